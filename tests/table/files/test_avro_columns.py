"""Avro records decoded a field at a time: the rows that are decoded one by one."""

import datetime
import io
import json
import struct
from contextlib import suppress
from decimal import Decimal

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from table import CorruptFileError
from table.files.log import avro_columns
from table.files.log.avro_data import encode_avro_content, encode_avro_runs, joined_runs, read_avro_rows
from table.files.log.framing import BlockType, Header, LogBlock
from table.schema.avro_schema import from_avro, relaxed, to_avro

UTC = datetime.timezone.utc
INNER = pa.struct([("x", pa.int64()), ("y", pa.list_(pa.field("element", pa.string())))])
SCHEMA = relaxed(
    pa.schema(
        [
            ("flag", pa.bool_()),
            ("small", pa.int32()),
            ("large", pa.int64()),
            ("single", pa.float32()),
            ("double", pa.float64()),
            ("text", pa.string()),
            ("bytes", pa.binary()),
            ("day", pa.date32()),
            ("time", pa.timestamp("us", "UTC")),
            ("local", pa.timestamp("us")),
            ("amount", pa.decimal128(12, 3)),
            ("price", pa.decimal128(5, 1)),
            ("inner", INNER),
            ("list", pa.list_(INNER)),
            ("map", pa.map_(pa.string(), pa.int32())),
        ]
    )
)
FLAT = {
    "flag": st.booleans(),
    "small": st.integers(-(2**31), 2**31 - 1),
    "large": st.integers(-(2**63), 2**63 - 1) | st.integers(-70, 70),
    "single": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "text": st.text(st.characters(exclude_categories=["Cs"]), max_size=70) | st.just("long " * 99),
    "bytes": st.binary(max_size=9),
    "day": st.dates(),
    "time": st.datetimes(timezones=st.just(UTC)),
    "local": st.datetimes(),
    "price": st.decimals(-999, 999, places=1, allow_nan=False),
    "amount": st.decimals(-999999999, 999999999, places=3, allow_nan=False),
}
inner = st.fixed_dictionaries(
    {"x": st.none() | st.integers(-9, 9), "y": st.none() | st.lists(st.none() | st.text(max_size=3), max_size=3)}
)
NESTED = {
    "inner": inner,
    "list": st.lists(st.none() | inner, max_size=4),
    "map": st.dictionaries(st.text(max_size=3), st.none() | st.integers(0, 9), max_size=3),
}
rows = st.lists(st.fixed_dictionaries({key: st.none() | kind for key, kind in (FLAT | NESTED).items()}), max_size=6)


def block_of(schema, records):
    text = json.dumps(schema)
    return LogBlock(BlockType.AVRO_DATA, {Header.SCHEMA: text}, encode_avro_content(text, records))


def decode(block, columns):
    return pa.concat_tables(list(read_avro_rows(block, columns, "the log")))


@given(rows, st.sets(st.sampled_from(SCHEMA.names), min_size=1))
@settings(max_examples=examples(150), deadline=None)
def test_records_are_decoded_to_their_rows(records, columns):
    block = block_of(to_avro(SCHEMA, "t"), records)
    wanted = pa.schema([field for field in SCHEMA if field.name in columns])
    pieces = list(read_avro_rows(block, columns, "the log"))
    found = pa.concat_tables([wanted.empty_table(), *pieces])
    found.validate(full=True)
    assert found.equals(pa.Table.from_pylist([{key: row[key] for key in columns} for row in records], wanted))


OTHER = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "kind", "type": {"type": "enum", "name": "k", "symbols": ["A", "B"]}},
        {"name": "again", "type": "k"},
        {"name": "raw", "type": {"type": "fixed", "name": "f", "size": 3}},
        {"name": "last", "type": ["int", "null"]},
        {"name": "money", "type": {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 2}},
        {"name": "when", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "clock", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "many", "type": {"type": "array", "items": "long"}},
    ],
}


def test_types_that_other_writers_use_are_decoded():
    record = {
        "kind": "B",
        "again": "A",
        "raw": b"xyz",
        "last": None,
        "money": Decimal("-123456789012345678901234567890.12"),
        "when": datetime.datetime(2020, 1, 2, tzinfo=UTC),
        "clock": datetime.time(1, 2, 3),
        "many": [1, 2],
    }
    other = {**record, "last": 7, "money": Decimal("0.01"), "many": []}
    found = decode(block_of(OTHER, [record, other]), [field["name"] for field in OTHER["fields"]])
    assert found.to_pylist() == [record, other]
    assert found.schema.equals(relaxed(from_avro(json.dumps(OTHER))))


def test_long_lists_are_decoded_one_record_at_a_time(monkeypatch):
    monkeypatch.setattr(avro_columns, "MOST_ITEMS", 3)
    records = [{"map": None, "list": [{"x": number, "y": None}] * number, "large": number} for number in range(9)]
    block = block_of(to_avro(SCHEMA, "t"), [dict.fromkeys(SCHEMA.names) | record for record in records])
    assert decode(block, ["list", "large"]).to_pylist() == [{"large": r["large"], "list": r["list"]} for r in records]


def test_beside_long_lists_dates_and_times_reach_from_end_to_end(monkeypatch):
    """Python's dates end at the year 9999, and the stored numbers do not."""
    monkeypatch.setattr(avro_columns, "MOST_ITEMS", 3)
    moments = pa.array([-(2**63), 2**63 - 1, None], pa.int64())
    days = pa.array([-(2**31), 2**31 - 1, 0], pa.int32())
    columns = {
        "when": moments.cast(pa.timestamp("us", "UTC")),
        "local": moments.cast(pa.timestamp("us")),
        "day": days.cast(pa.date32()),
        "many": pa.array([[1] * 9, [2], None], pa.list_(pa.int64())),
        "inner": pa.array([[253402300800000000], [0] * 9, None], pa.list_(pa.timestamp("us", "UTC"))),
    }
    table = pa.table(columns)
    text = json.dumps(to_avro(table.schema, "t"))
    [(_, run)] = encode_avro_runs(text, table)
    block = LogBlock(BlockType.AVRO_DATA, {Header.SCHEMA: text}, joined_runs([(len(table), run)]))
    assert decode(block, table.column_names).cast(table.schema).equals(table)


def sized(record):
    """A list as writers send it that know how many bytes it has: counts are negative."""
    out = io.BytesIO()
    for value in (-2, 2, *record, 0):
        fastavro.schemaless_writer(out, "long", value)
    return struct.pack(">iii", 3, 1, out.tell()) + out.getvalue()


def test_runs_of_a_list_may_say_their_bytes():
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": {"type": "array", "items": "long"}}]}
    block = LogBlock(BlockType.AVRO_DATA, {Header.SCHEMA: json.dumps(schema)}, sized([5, -6]))
    assert decode(block, ["a"]).to_pylist() == [{"a": [5, -6]}]


@given(rows.filter(len), st.data())
@settings(max_examples=examples(300), deadline=None)
def test_changed_bytes_give_rows_or_an_error_and_take_no_more_memory(records, data):
    block = block_of(to_avro(SCHEMA, "t"), records)
    changed = bytearray(block.content)
    for _ in range(data.draw(st.integers(1, 3))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.sampled_from([0, 1, 2, 127, 128, 254, 255]))
    before = pa.total_allocated_bytes()
    with suppress(CorruptFileError):
        for piece in read_avro_rows(LogBlock(block.type, block.header, bytes(changed)), SCHEMA.names, "the log"):
            piece.validate(full=True)
            assert pa.total_allocated_bytes() - before < 100_000


@pytest.mark.parametrize("schema", ["{}", "[]", "nonsense", '{"type": "record", "name": "r", "fields": []}'])
def test_a_schema_that_is_none_is_an_error(schema):
    block = LogBlock(BlockType.AVRO_DATA, {Header.SCHEMA: schema}, b"\0\0\0\3\0\0\0\0")
    with pytest.raises(CorruptFileError, match="the log"):
        list(read_avro_rows(block, ["a"], "the log"))
