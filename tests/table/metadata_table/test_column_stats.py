"""Records of statistics: the bytes that Hudi writes, and how several of one key become one."""

import io
import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from table.config.metadata_indexes import COLUMN_STATS, PARTITION_STATS
from table.errors import CorruptFileError, UnsupportedTableError
from table.files.column_ranges import ColumnRange
from table.files.hfile.read_hfile import HFile
from table.files.log.framing import BlockType, scan_blocks
from table.hudi_table import HudiTable
from table.metadata_table.column_stats import ColumnStats, StatsCodec, is_indexed, newest_values, widened_value
from table.metadata_table.record_codec import schema_of
from table.metadata_table.records import RecordType, Value
from table.schema.avro_schema import with_meta_columns
from table.snapshot import Snapshot

TABLES = ["cow_metadata_table", "v8_cow_types", "v9_cow_types", "v8_mor_logs", "v9_mor_logs", "v9_cow_cleaned"]
KINDS = {
    "n": pa.int64(),
    "s": pa.string(),
    "x": pa.binary(),
    "c": pa.decimal128(30, 15),
    "t": pa.date32(),
    "d": pa.float64(),
}
VALUES = {
    "n": st.integers(-(2**63), 2**63 - 1),
    "s": st.text(st.characters(exclude_categories=["Cs"])),
    "x": st.binary().map(lambda data: data.decode("latin-1")),
    "c": st.integers(-(10**30) + 1, 10**30 - 1),
    "t": st.integers(-(2**31), 2**31 - 1),
    "d": st.floats(allow_nan=False),
}


def records_of(path, index):
    """Keys, values and schemas of Hudi's own log files."""
    for file in sorted(Path(path, ".hoodie/metadata", index).glob(".*.log.*")):
        for place in scan_blocks(io.BytesIO(file.read_bytes())):
            if place.block.type is BlockType.HFILE_DATA:
                hfile = HFile(place.block.content)
                yield from ((value, hfile.schema) for _, value in hfile.entries())


@pytest.mark.parametrize("name", TABLES)
def test_hudis_own_records_are_written_again_byte_for_byte(name, golden):
    path, _ = golden(name)
    table = HudiTable.open(path)
    columns = with_meta_columns(Snapshot.load(table).load_schema())
    defined = json.loads(Path(path, ".hoodie/.index_defs/index.json").read_text())["indexDefinitions"][COLUMN_STATS]
    kinds = {column: columns.field(column).type for column in defined["sourceFields"]}
    is_typed = defined.get("version") == "V2"
    assert all(is_indexed(kind, is_typed=is_typed) for kind in kinds.values())
    codec, count = StatsCodec(kinds, table.config.version, is_typed=is_typed), 0
    for index, kind in ((COLUMN_STATS, RecordType.COLUMN_STATS), (PARTITION_STATS, RecordType.PARTITION_STATS)):
        for value, schema in records_of(path, index):
            assert codec.encode(kind, codec.decode(value, schema)) == value
            assert widened_value([Value(value, schema)], table.config.version) == value
            count += 1
    assert count > 20


@st.composite
def stats(draw):
    column = draw(st.sampled_from(sorted(KINDS)))
    low, high = sorted([draw(VALUES[column]), draw(VALUES[column])])
    counts = [draw(st.integers(0, 2**40)) for _ in range(3)]
    bounds = (low, high) if draw(st.booleans()) else (None, None)
    return ColumnStats(
        draw(st.text()), column, ColumnRange(*bounds, draw(st.integers(1, 9)), *counts), draw(st.booleans())
    )


@given(stats(), st.sampled_from([(6, False), (8, False), (9, True)]))
def test_each_record_is_read_back(record, form):
    version, is_typed = form
    codec = StatsCodec(KINDS, version, is_typed=is_typed)
    assert codec.decode(codec.encode(RecordType.COLUMN_STATS, record), schema_of(version)) == record


def test_a_record_of_another_column_is_passed_over_and_a_damaged_one_is_told():
    codec = StatsCodec(KINDS, 8, is_typed=False)
    value = codec.encode(RecordType.COLUMN_STATS, ColumnStats("f", "n", ColumnRange(1, 2, 3, 0)))
    assert StatsCodec({}, 8, is_typed=False).decode(value, schema_of(8)) is None
    for damaged in (b"", value[:20], b"\xff" * 40):
        with pytest.raises(CorruptFileError, match="damaged"):
            codec.decode(damaged, schema_of(8))
        with pytest.raises(CorruptFileError, match="damaged"):
            widened_value([Value(value, schema_of(8)), Value(damaged or b"\x00", schema_of(8))], 8)


@pytest.mark.parametrize(
    ("kind", "by_value", "by_type"),
    [
        (pa.decimal128(30, 15), True, True),
        (pa.decimal128(31, 15), False, True),
        (pa.decimal128(20, 16), False, True),
        (pa.timestamp("us", "UTC"), True, True),
        (pa.timestamp("us"), False, False),
        (pa.time64("us"), False, False),
        (pa.list_(pa.int64()), False, False),
    ],
)
def test_which_types_have_statistics(kind, by_value, by_type):
    assert (is_indexed(kind, is_typed=False), is_indexed(kind, is_typed=True)) == (by_value, by_type)


def combine(records, *, is_typed=True):
    version = 9 if is_typed else 8
    codec = StatsCodec(KINDS, version, is_typed=is_typed)
    values = [
        Value(None, "")
        if record is None
        else Value(codec.encode(RecordType.PARTITION_STATS, ColumnStats("p", *record)), schema_of(version))
        for record in records
    ]
    found = widened_value(values, version)
    return None if found is None else codec.decode(found, schema_of(version))


LOW, HIGH, MIDDLE = (("n", ColumnRange(*ends, 2, 1, 10, 20)) for ends in ((-300, 4), (90, 700), (5, 6)))
NONE = ("n", ColumnRange(None, None, 2, 2))


@pytest.mark.parametrize("is_typed", [False, True])
@pytest.mark.parametrize(
    ("records", "wanted"),
    [
        ([LOW], (-300, 4, 2)),
        ([LOW, HIGH, MIDDLE], (-300, 700, 6)),
        ([LOW, (*HIGH, True)], (90, 700, 2)),
        ([(*HIGH, True), LOW], (-300, 700, 4)),
        ([LOW, None, HIGH, MIDDLE], (5, 700, 4)),
        ([LOW, None], None),
        ([NONE, LOW], (-300, 4, 4)),
        ([LOW, NONE], (-300, 4, 4)),
        ([NONE, NONE], (None, None, 4)),
        ([LOW, ("n", LOW[1], False, True)], None),
    ],
)
def test_records_of_a_partition_path_widen_each_other_unless_one_is_tight(records, wanted, is_typed):
    found = combine(records, is_typed=is_typed)
    assert (None if found is None else (found.range.least, found.range.greatest, found.range.values)) == wanted


@pytest.mark.parametrize("is_typed", [False, True])
def test_decimals_are_widened_as_numbers(is_typed):
    """Their bytes have another order: those of -1 are ff, those of 256 are 01 00."""
    ends = [-1, 256, -129]
    found = combine([("c", ColumnRange(end, end, 1, 0)) for end in ends], is_typed=is_typed)
    assert (found.range.least, found.range.greatest) == (-129, 256)
    assert Decimal(found.range.least).scaleb(-3) == Decimal("-0.129")


NAN = float("nan")


@pytest.mark.parametrize("ends", [[(NAN, NAN), (3.0, 4.0)], [(3.0, 4.0), (NAN, NAN)], [(3.0, NAN), (3.5, 4.0)]])
def test_nan_is_greater_than_all_numbers(ends):
    found = combine([("d", ColumnRange(*one, 1, 0)) for one in ends])
    assert found.range.least == 3.0
    assert found.range.greatest != found.range.greatest


@pytest.mark.parametrize(("column", "value"), [("s", 0), ("n", "0"), ("n", True), ("n", 0.5), ("x", 1), ("t", "1")])
def test_a_value_of_another_type_is_refused(column, value):
    """Such as those of files that were written before a number became text."""
    codec = StatsCodec(KINDS, 8, is_typed=False)
    with pytest.raises(UnsupportedTableError, match=f"the column '{column}' is"):
        codec.encode(RecordType.COLUMN_STATS, ColumnStats("f", column, ColumnRange(value, value, 1, 0)))


def test_values_behind_the_last_delete_count():
    values = [Value(b"1", ""), Value(None, ""), Value(b"2", ""), Value(b"3", "")]
    assert newest_values(values) == values[2:]
    assert newest_values(values[:2]) == []
    assert newest_values(values[2:]) == values[2:]


def test_a_record_of_another_schema_is_written_in_ours():
    """Hudi's base files have the meta columns in front of a record."""
    schema = json.loads(schema_of(8))
    meta = [{"name": f"_hoodie_{n}", "type": ["null", "string"], "default": None} for n in range(5)]
    theirs = json.dumps({**schema, "fields": [*meta, *schema["fields"]]})
    codec = StatsCodec(KINDS, 8, is_typed=False)
    value = codec.encode(RecordType.COLUMN_STATS, ColumnStats("f", "c", ColumnRange(-5, 7, 3, 0)))
    assert widened_value([Value(bytes(5) + value, theirs)], 8) == value
