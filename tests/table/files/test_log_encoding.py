"""Log blocks that are written here: they hold the rows, and have the bytes that others write for them."""

import io
import json
import struct
from decimal import Decimal
from pathlib import Path

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from every_type import EVERY_TYPE, random_row
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from table.columns.cast import cast_column
from table.files.log.avro_data import encode_avro_content
from table.files.log.avro_encoders import RowEncoder, numbers, scatter
from table.files.log.data_blocks import read_rows
from table.files.log.delete_block import (
    _decode,
    _ordering_values,
    find_too_long,
    may_be_too_long,
    read_deletes,
    reads_as_none,
)
from table.files.log.encode_blocks import data_blocks, delete_block
from table.files.log.framing import BlockType, Header, encode_block, scan_blocks
from table.options.choices import LogBlockFormat
from table.options.groups import BaseFileSettings, LogFileSettings
from table.schema.avro_schema import relaxed, to_avro

SCHEMA = relaxed(EVERY_TYPE)
AVRO = to_avro(SCHEMA, "t")
seeds = st.randoms(use_true_random=False)


def table_of(random, count):
    return pa.Table.from_pylist([random_row(random, number) for number in range(count)], SCHEMA)


def one_by_one(rows):
    """The same by fastavro, without the number of records."""
    records = [{**row, "counts": row["counts"] and dict(row["counts"])} for row in rows.to_pylist()]
    records = [{**row, "counts": {}} if row["counts"] == [] else row for row in records]
    return encode_avro_content(json.dumps(AVRO), records)[8:]


@given(seeds, st.integers(0, 9), st.integers(0, 4), st.integers(0, 4))
@settings(max_examples=examples(80), deadline=None)
def test_records_have_the_bytes_of_another_encoder(random, count, first, cut):
    rows = table_of(random, count)
    part = rows.slice(first, max(0, count - first - cut))
    assert RowEncoder(AVRO).encode(part).tobytes() == one_by_one(part)
    joined = pa.concat_tables([part, rows])
    assert RowEncoder(AVRO).encode(joined).tobytes() == one_by_one(joined)


def test_values_that_are_null_hide_what_lies_below_them():
    struct_type = pa.struct([pa.field("a", pa.int64())])
    hidden = pa.StructArray.from_arrays(
        [pa.array([1, 2, 3])], fields=list(struct_type), mask=pa.array([False, True, False])
    )
    lists = pa.ListArray.from_arrays(
        pa.array([0, 1, 3, 4], pa.int32()), pa.array([7, 8, 9, 10]), mask=pa.array([False, True, False])
    )
    rows = pa.table({"s": hidden, "l": lists}).cast(
        relaxed(pa.schema([("s", struct_type), ("l", pa.list_(pa.int64()))]))
    )
    avro = to_avro(rows.schema, "t")
    assert RowEncoder(avro).encode(rows).tobytes() == encode_avro_content(json.dumps(avro), rows.to_pylist())[8:]


def test_a_column_that_must_not_be_null_is_said():
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    encoder = RowEncoder(to_avro(schema, "t"))
    assert encoder.encode(pa.table({"a": [1]})).tobytes() == b"\0\0\0\1\2"
    with pytest.raises(ValueError, match="'a' has nulls"):
        encoder.encode(pa.table({"a": pa.array([1, None])}))


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-300, 300)))
def test_numbers_are_zigzag(values):
    piece = numbers(np.array(values, np.int64))
    ends = np.cumsum(piece.lengths)
    out = np.zeros(int(piece.lengths.sum()), np.uint8)
    piece.write(out, ends - piece.lengths)
    wanted = io.BytesIO()
    for value in values:
        fastavro.schemaless_writer(wanted, "long", value)
    assert out.tobytes() == wanted.getvalue()


@given(st.lists(st.binary(max_size=5) | st.just(b"x" * 700), max_size=9))
def test_values_are_scattered_whatever_their_length(values):
    lengths = np.array([len(value) for value in values], np.int64)
    offsets = np.concatenate([[3], 3 + np.cumsum(lengths)]).astype(np.int64)
    at = np.concatenate([[0], np.cumsum(lengths + 1)])[:-1].astype(np.int64)
    out = np.zeros(int((lengths + 1).sum()), np.uint8)
    scatter(out, at, np.frombuffer(b"___" + b"".join(values), np.uint8), offsets)
    assert out.tobytes() == b"".join(value + b"\0" for value in values)


@pytest.mark.parametrize("form", list(LogBlockFormat))
@given(random=seeds, limit=st.sampled_from([1, 300, 1 << 20]))
@settings(max_examples=examples(20), deadline=None)
def test_blocks_give_their_rows_back_and_end_at_their_size(form, random, limit):
    rows = table_of(random, 12)
    sizes = LogFileSettings(block_format=form, block_bytes=limit)
    blocks = list(data_blocks(rows, json.dumps(AVRO), "7", sizes, BaseFileSettings()))
    assert sum(count for _, count in blocks) == len(rows)
    found = [piece for block, _ in blocks for piece in read_rows(block, SCHEMA.names, "the log")]
    assert pa.concat_tables(found).cast(SCHEMA).to_pylist() == rows.to_pylist()
    kind = BlockType.AVRO_DATA if form is LogBlockFormat.AVRO else BlockType.PARQUET_DATA
    assert {(block.type, block.header[Header.INSTANT_TIME]) for block, _ in blocks} == {(kind, "7")}
    if form is LogBlockFormat.PARQUET and limit == 1:
        assert len(blocks) == len(rows)


ORDERS = {
    pa.int32(): [5, -7, None],
    pa.int64(): [2**40, 0, None],
    pa.float32(): [0.5, None],
    pa.float64(): [-1.25, 0.0, None],
    pa.string(): ["a", "", None],
    pa.date32(): [-1, 19_000, None],
    pa.timestamp("us", "UTC"): [10**15, None],
    pa.bool_(): [True, False, None],
    pa.decimal128(12, 2): [Decimal("-12.34"), Decimal("0.01"), None],
    pa.null(): [None, None],
}


@pytest.mark.parametrize("kind", ORDERS, ids=str)
def test_deletes_are_read_with_their_order(kind):
    order = pa.table({"ts": pa.array(ORDERS[kind], kind)})
    keys = pa.array([f"k{number}" * 80 for number in range(len(order))])
    block = delete_block(keys, order, "p", "{}", "7")
    found = read_deletes(block, order.schema, "the log")
    assert found.keys.equals(keys)
    assert found.order.equals(order)
    assert found.removes.tolist() == [value is None for value in ORDERS[kind]]
    assert struct.unpack(">ii", block.content[:8]) == (3, len(block.content) - 8)


def test_deletes_of_several_ordering_fields_are_read_with_all_of_them():
    """Where one value is missing, the delete has no order. An int 0 in a list is a value, alone it is none."""
    kinds = [kind for kind in ORDERS if not pa.types.is_null(kind)]
    columns = {str(kind): pa.array([ORDERS[kind][0], ORDERS[kind][-2], ORDERS[kind][0]], kind) for kind in kinds}
    columns["int32"] = pa.array([0, 1, None], pa.int32())
    order = pa.table(columns)
    block = delete_block(pa.array(["a", "b", "c"]), order, "p", "{}", "7")
    found = read_deletes(block, order.schema, "the log")
    assert found.removes.tolist() == [False, False, True]
    assert found.order.slice(0, 2).equals(order.slice(0, 2))
    assert found.order.slice(2).to_pylist() == [dict.fromkeys(columns)]
    one = read_deletes(block, order.schema.empty_table().select(["int32"]).schema, "the log")
    assert one.removes.all()  # of another number of fields


WIDENED = [
    (pa.int32(), pa.int64(), [5, -7, None]),
    (pa.int32(), pa.float32(), [5, 2**31 - 1, None]),
    (pa.int32(), pa.float64(), [5, 2**31 - 1, None]),
    (pa.int64(), pa.float32(), [2**62 + 1, -(2**63), 0]),
    (pa.int64(), pa.float64(), [2**53 + 1, 2**63 - 1, 0]),
    (pa.float32(), pa.float64(), [0.1, float("-inf"), None]),
]


@pytest.mark.parametrize(("before", "now", "values"), WIDENED, ids=str)
def test_deletes_from_before_a_widening_have_the_present_type(before, now, values):
    """As rows have it: a number that a float cannot hold is rounded."""
    order = pa.table({"ts": pa.array(values, before)})
    block = delete_block(pa.array(["a", "b", "c"]), order, "p", "{}", "7")
    found = read_deletes(block, pa.schema([("ts", now)]), "the log")
    assert found.removes.tolist() == [value is None for value in values]
    assert found.order.column("ts").equals(cast_column(order.column("ts"), now))
    narrower = read_deletes(delete_block(found.keys, found.order, "p", "{}", "7"), order.schema, "the log")
    assert narrower.removes.all()  # the column never had such a value


def test_a_block_may_hold_values_of_several_types():
    """As where several writers went into one, by a log compaction of Hudi."""
    records = [
        ("IntWrapper", 7),
        ("LongWrapper", 2**40),
        ("IntWrapper", 0),
        ("StringWrapper", "x"),
        ("FloatWrapper", 0.5),
    ]
    found, removes = _ordering_values(
        [(name, {"value": value}) for name, value in records], pa.schema([("ts", pa.int64())])
    )
    assert found.column("ts").to_pylist() == [7, 2**40, None, None, None]
    assert removes.tolist() == [False, False, True, True, True]


@pytest.mark.parametrize("name", ["IntWrapper", "DateWrapper", "LocalDateWrapper"])
def test_dates_of_every_writer_are_read_and_ours_are_ints(name):
    """Hudi 1.2.0 fails on a DateWrapper, and hudistream wrote it once."""
    found, _ = _ordering_values([(name, {"value": 20_000})], pa.schema([("ts", pa.date32())]))
    assert found.column("ts").cast(pa.int32()).to_pylist() == [20_000]
    order = pa.table({"ts": pa.array([20_000], pa.date32())})
    [record] = _decode(delete_block(pa.array(["a"]), order, "p", "{}", "7").content, "the log")
    assert record["orderingVal"][0].rsplit(".", 1)[-1] == "IntWrapper"


@pytest.mark.parametrize(
    ("columns", "is_one"),
    [
        ([pa.array([0, 1], pa.int32())], True),
        ([pa.array([None, 1], pa.int32())], False),
        ([pa.array([0], pa.date32())], True),
        ([pa.array([1, -1], pa.date32())], False),
        ([pa.array([0], pa.int64())], False),
        ([pa.array([0.0], pa.float32())], False),
        ([pa.array([0], pa.timestamp("us", "UTC"))], False),
        ([pa.array([False])], False),
        ([pa.array([0], pa.int32()), pa.array([0], pa.int32())], False),
        ([], False),
    ],
)
def test_which_ordering_values_readers_take_for_none(columns, is_one):
    order = pa.table({f"c{number}": column for number, column in enumerate(columns)})
    assert reads_as_none(order) == is_one


LONG = {
    pa.decimal128(38, 18): ["10.500000000000000003", "-0.0000000000000001"],
    pa.decimal128(38, 0): ["1000000000000000", "-1000000000000000", str(10**37)],
    pa.decimal128(18, 2): ["1000000000000000.5"],
    pa.decimal128(38, 15): ["1000000000000000.000000000000001"],
}
FITTING = ["999999999999999", "-999999999999999", "0", "1.5"]


@pytest.mark.parametrize("kind", LONG, ids=str)
def test_decimals_that_no_log_can_hold_are_found(kind):
    fitting = [Decimal(text) for text in FITTING if kind.scale or "." not in text]
    values = [*fitting, None, *map(Decimal, LONG[kind])]
    column = pa.chunked_array([pa.array(values[:2], kind), pa.array(values[2:], kind)])
    assert find_too_long(column).tolist() == [False] * (len(fitting) + 1) + [True] * len(LONG[kind])
    assert not find_too_long(column.slice(0, len(fitting) + 1)).any()
    assert may_be_too_long(kind)


@pytest.mark.parametrize(
    "kind", [pa.decimal128(30, 15), pa.decimal128(15, 0), pa.decimal128(20, 6), pa.int64()], ids=str
)
def test_shorter_types_are_not_looked_at(kind):
    assert not may_be_too_long(kind)
    assert not find_too_long(pa.chunked_array([pa.array([1], kind)])).any()


def blocks_of(path):
    with path.open("rb") as stream:
        return [place.block for place in scan_blocks(stream)]


def encoded_again(block):
    """A block of Hudi's, from what it holds."""
    schema, time = block.header[Header.SCHEMA], block.header[Header.INSTANT_TIME]
    if block.type is BlockType.DELETE:
        deletes = read_deletes(block, pa.schema([("ts", pa.int64())]), "the log")
        return delete_block(deletes.keys, deletes.order, PARTITION, schema, time)
    names = [field["name"] for field in json.loads(schema)["fields"]]
    rows = pa.concat_tables(list(read_rows(block, names, "the log")))
    [(again, _)] = data_blocks(rows, schema, time, LogFileSettings(), BaseFileSettings())
    return again


PARTITION = "eu"


def test_hudis_own_log_files_are_written_byte_by_byte(golden):
    path, _ = golden("mor_avro_logs")
    files = sorted((Path(path) / PARTITION).glob(".*.log.*"))
    kinds = [block.type for file in files for block in blocks_of(file)]
    assert kinds == [BlockType.AVRO_DATA, BlockType.DELETE, BlockType.AVRO_DATA]
    for file in files:
        assert b"".join(encode_block(encoded_again(block)) for block in blocks_of(file)) == file.read_bytes()
