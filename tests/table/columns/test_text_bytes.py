"""Text that is not UTF-8: which column, rows and bytes are named, and what stays when it is made readable."""

import numpy as np
import pyarrow as pa
import pytest

from table.columns.text_bytes import BadText, find_bad_text, holds_text, made_readable

BAD = b"x\xff"
TEXT, LARGE = pa.string(), pa.large_string()
ENDS = pa.array([0, 1, 2], pa.int32())


def texts(*values, kind=TEXT):
    """Strings of any bytes, as Spark hands them over."""
    return pa.array(values, pa.large_binary() if kind == LARGE else pa.binary()).view(kind)


def found_in(column):
    return [(bad.column, bad.rows.tolist(), bad.example) for bad in find_bad_text(pa.table({"c": column}))]


PARTS, GOOD = texts(b"ok", BAD), texts(b"k", b"l")
STRUCTS = pa.StructArray.from_arrays([GOOD, PARTS], ["a", "b"])
NESTED = {
    "c": PARTS,
    "c.b": STRUCTS,
    "c.element": pa.ListArray.from_arrays(ENDS, PARTS),
    "c.element.element": pa.ListArray.from_arrays(ENDS, pa.ListArray.from_arrays(ENDS, PARTS)),
    "c.key": pa.MapArray.from_arrays(ENDS, PARTS, GOOD),
    "c.value": pa.MapArray.from_arrays(ENDS, GOOD, PARTS),
    "c.value.b": pa.MapArray.from_arrays(ENDS, GOOD, STRUCTS),
}


@pytest.mark.parametrize("path", NESTED)
def test_a_bad_value_is_named_with_the_path_to_it_and_a_table_without_rows_has_none(path):
    assert found_in(NESTED[path]) == [(path, [False, True], BAD)]
    empty = pa.table({"c": NESTED[path].slice(0, 0)})
    assert find_bad_text(empty) == []
    assert made_readable(empty) == empty


@pytest.mark.parametrize("kind", [TEXT, LARGE, pa.dictionary(pa.int8(), TEXT)], ids=str)
def test_strings_at_any_depth_are_text_and_other_types_are_not(kind):
    for other, has_text in ((kind, True), (pa.binary(), False), (pa.int64(), False)):
        assert holds_text(other) is has_text
        assert holds_text(pa.list_(pa.struct([("n", pa.int8()), ("s", other)]))) is has_text
        assert holds_text(pa.map_(pa.int8(), other)) is has_text
        assert holds_text(pa.map_(other, pa.int8())) is has_text


@pytest.mark.parametrize("kind", [TEXT, LARGE], ids=str)
def test_rows_are_counted_across_chunks_and_the_first_bad_value_is_the_example(kind):
    chunks = [texts(b"ok", None, kind=kind), texts(kind=kind), texts(b"\xfe", "gut ü".encode(), BAD, kind=kind)]
    assert found_in(pa.chunked_array(chunks)) == [("c", [False, False, True, False, True], b"\xfe")]


def test_columns_are_named_in_the_order_of_the_table_and_good_ones_are_not():
    found = find_bad_text(pa.table({"z": PARTS, "good": GOOD, "n": [1, 2], "a": STRUCTS, "b": pa.array([b"", BAD])}))
    assert [bad.column for bad in found] == ["z", "a.b"]


def test_bytes_that_no_row_shows_are_not_found():
    assert found_in(pa.DictionaryArray.from_arrays(pa.array([0, None], pa.int8()), PARTS)) == []
    assert found_in(pa.StructArray.from_arrays([PARTS], ["a"], mask=pa.array([False, True]))) == []
    assert found_in(NESTED["c.key"].slice(0, 1)) == []
    assert found_in(pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int8()), PARTS)) == [("c", [True, False], BAD)]


@pytest.mark.parametrize(("length", "shown"), [(1, "ff"), (20, "ff" * 20), (21, "ff" * 20 + "…")])
def test_the_reason_shows_the_column_and_up_to_twenty_bytes(length, shown):
    reason = BadText("s.a", np.array([True]), b"\xff" * length).reason
    assert reason == f"the text in column 's.a' is not UTF-8, such as X'{shown}'"


def test_each_bad_byte_becomes_four_characters_and_the_schema_and_all_else_stay():
    field = pa.field("c", TEXT, nullable=False, metadata={"a": "b"})
    schema = pa.schema([field, pa.field("b", pa.binary())], {"x": "y"})
    rows = pa.Table.from_arrays([texts(b"\xff\xc3", "ü\\".encode()), pa.array([BAD, None])], schema=schema)
    readable = made_readable(rows)
    assert readable.schema.equals(schema, check_metadata=True)
    assert readable.to_pylist() == [{"c": "\\xff\\xc3", "b": BAD}, {"c": "ü\\", "b": None}]
