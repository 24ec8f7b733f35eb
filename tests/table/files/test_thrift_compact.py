"""The codec of Parquet footers, against footers of other writers and against bytes that are no footers."""

import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from needs import require
from tiers import examples

from table.errors import CorruptFileError
from table.files.parquet import thrift_compact as t
from table.files.parquet.thrift_compact import Field, Items, Pairs, decode_struct, encode_list_header, encode_struct

INTS = {t.I16: 15, t.I32: 31, t.I64: 63}
LEAF = st.sampled_from([t.BYTE, t.I16, t.I32, t.I64, t.DOUBLE, t.BINARY])


def leaf(kind):
    if kind in INTS:
        return st.integers(-(2 ** INTS[kind]), 2 ** INTS[kind] - 1)
    return {t.BYTE: st.integers(0, 255), t.DOUBLE: st.floats(allow_nan=False), t.BINARY: st.binary(max_size=40)}[kind]


def fields(children):
    boolean = st.booleans().map(lambda value: Field(t.TRUE if value else t.FALSE, value))
    single = LEAF.flatmap(lambda kind: leaf(kind).map(lambda value: Field(kind, value)))
    listed = st.tuples(st.sampled_from([t.LIST, t.SET]), LEAF).flatmap(
        lambda pair: st.lists(leaf(pair[1]), max_size=20).map(lambda v: Field(pair[0], Items(pair[1], v)))
    )
    flags = st.lists(st.booleans(), max_size=17).map(lambda v: Field(t.LIST, Items(t.TRUE, v)))
    mapped = st.tuples(LEAF, LEAF).flatmap(
        lambda kinds: st.lists(st.tuples(leaf(kinds[0]), leaf(kinds[1])), min_size=1, max_size=4).map(
            lambda entries: Field(t.MAP, Pairs(*kinds, entries))
        )
    )
    nested = children.map(lambda value: Field(t.STRUCT, value))
    structs = st.lists(children, max_size=18).map(lambda v: Field(t.LIST, Items(t.STRUCT, v)))
    field = st.one_of(boolean, single, listed, flags, mapped, nested, structs)
    return st.dictionaries(st.integers(-300, 32_767), field, max_size=5)


STRUCT = st.recursive(st.just({}), fields, max_leaves=12)


@settings(max_examples=examples(300), deadline=None)
@given(STRUCT)
@example({1: Field(t.MAP, Pairs(t.STOP, t.STOP, []))})
def test_what_is_encoded_is_decoded(value):
    assert decode_struct(encode_struct(value)) == value


@settings(max_examples=examples(200), deadline=None)
@given(STRUCT, st.binary(max_size=5), st.integers(-(2**63), 2**63 - 1))
@example({1: Field(t.MAP, Pairs(t.STOP, t.STOP, []))}, b"", 0)
def test_what_is_skipped_ends_where_it_was_encoded(value, behind, number):
    whole = encode_struct(value)
    assert t.skip_struct(b"\0" + whole + behind, 1) == 1 + len(whole)
    at, last, found = 0, 0, []
    while True:
        kind, last, at = t.read_field_head(whole, at, last)
        if kind == t.STOP:
            break
        found.append((last, kind))
        at = t.skip_value(whole, at, kind)
    assert (found, at) == ([(field, held.type) for field, held in value.items()], len(whole))
    integer = bytearray()
    t.append_integer(integer, number)
    assert t.read_integer(bytes(integer) + behind, 0) == (number, len(integer))


@settings(max_examples=examples(300), deadline=None)
@given(st.binary(max_size=60))
@example(bytes([1 << 4 | t.STRUCT]) * 100)
@example(bytes([1 << 4 | t.LIST]) + bytes([1 << 4 | t.LIST]) * 100)
@example(bytes([1 << 4 | t.LIST, 0xF0 | t.STRUCT, 0xFF, 0xFF, 0xFF, 0x7F]))
def test_bytes_that_are_no_struct_are_not_skipped(data):
    try:
        end = t.skip_struct(data, 0)
    except (CorruptFileError, IndexError, struct.error):
        return
    assert 0 < end <= len(data)


def footer_of(path):
    data = Path(path).read_bytes()
    length = int.from_bytes(data[-8:-4], "little")
    return data[-8 - length : -8]


@pytest.mark.parametrize("table", ["types_all", "types_all_3level_lists", "cow_upsert_delete"])
def test_footers_of_hudi_come_out_byte_for_byte(golden, table):
    files = list(Path(golden(table)[0]).rglob("*.parquet"))
    assert files
    for file in files:
        assert encode_struct(decode_struct(footer_of(file))) == footer_of(file)


@pytest.mark.parametrize("version", ["1.0", "2.6"])
def test_footers_of_pyarrow_come_out_byte_for_byte(tmp_path, version):
    rows = pa.table({"a": [1, None, 3], "b": [["x"], [], None], "c": [{"d": 1.5}, None, {"d": None}]})
    file = tmp_path / "f.parquet"
    pq.write_table(rows, file, version=version, row_group_size=1, write_page_index=True, sorting_columns=None)
    assert encode_struct(decode_struct(footer_of(file))) == footer_of(file)


@pytest.mark.spark
def test_footers_of_spark_come_out_byte_for_byte(spark, tmp_path):
    spark.range(100).selectExpr("id", "CAST(id AS STRING) s", "array(id) l").write.parquet(str(tmp_path / "t"))
    files = list((tmp_path / "t").glob("*.parquet"))
    assert files
    for file in files:
        assert encode_struct(decode_struct(footer_of(file))) == footer_of(file)


def test_footers_of_duckdb_mean_the_same_afterwards(tmp_path):
    file = tmp_path / "d.parquet"
    query = "SELECT range i, 'x' || range s, [range] l FROM range(5000)"
    require("duckdb").sql(f"COPY ({query}) TO '{file}' (FORMAT parquet, ROW_GROUP_SIZE 2048)")
    decoded = decode_struct(footer_of(file))
    again = encode_struct(decoded)
    assert decode_struct(again) == decoded
    whole = b"PAR1" + again + len(again).to_bytes(4, "little") + b"PAR1"
    assert pq.read_metadata(pa.BufferReader(whole)).equals(pq.read_metadata(file))


def varint(value):
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "cut short"),
        (b"\x15", "cut short"),
        (b"\x17\x00\x00", "cut short"),
        (b"\x15\x02\x00\x00", "1 bytes too many"),
        (b"\x18" + varint(2**31) + b"x", "says it has 2147483648 elements"),
        (b"\x19\xfc" + varint(2**40), "says it has 1099511627776 elements"),
        (b"\x1b" + varint(2**50) + b"\x88", "elements"),
        (b"\x15" + b"\xff" * 11 + b"\x01\x00", "longer than ten bytes"),
        (b"\x1d\x00", "unknown type 13"),
        (b"\x1c" * 40, "nested more than"),
        (b"\x19\x19" * 40, "nested more than"),
        (b"\x15\x02\x05\x02\x02\x00", "field 1 twice"),
    ],
)
def test_hostile_bytes_are_refused(data, message):
    with pytest.raises(CorruptFileError, match=message):
        decode_struct(data)


@settings(max_examples=examples(400), deadline=None)
@given(st.binary(max_size=80))
def test_any_bytes_are_decoded_or_refused(data):
    try:
        decoded = decode_struct(data)
    except CorruptFileError:
        return
    assert decode_struct(encode_struct(decoded)) == decoded or b"\x17" in data  # a NaN equals nothing


def test_the_rest_of_a_struct_and_list_headers():
    value = {1: Field(t.I32, 5), 2: Field(t.BINARY, b"x"), 7: Field(t.DOUBLE, 1.5)}
    whole = encode_struct(value)
    rest = encode_struct({2: value[2], 7: value[7]}, behind=1)
    assert whole == b"\x15\x0a" + rest
    assert decode_struct(rest, behind=1) == {2: value[2], 7: value[7]}
    assert encode_list_header(t.STRUCT, 14) == b"\xec"
    assert encode_list_header(t.STRUCT, 300) == b"\xfc" + varint(300)
    assert struct.pack("<d", 1.5) in whole
