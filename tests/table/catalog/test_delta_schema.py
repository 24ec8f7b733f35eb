"""Columns of a Delta log: how each type is spelled, which types and names are refused, which changes are named."""

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from table.catalog.delta.delta_schema import changed_types, encode_schema
from table.errors import UnsupportedTableError

PLAIN = {
    pa.string(): "string", pa.large_string(): "string", pa.binary(): "binary", pa.large_binary(): "binary",
    pa.bool_(): "boolean", pa.int8(): "byte", pa.int16(): "short", pa.int32(): "integer", pa.int64(): "long",
    pa.float32(): "float", pa.float64(): "double", pa.date32(): "date", pa.decimal128(20, 3): "decimal(20,3)",
    pa.timestamp("us", "UTC"): "timestamp", pa.timestamp("ns", "Europe/Berlin"): "timestamp",
}  # fmt: skip
TYPES = st.recursive(
    st.sampled_from(list(PLAIN)),
    lambda part: st.builds(pa.list_, part) | st.builds(pa.map_, st.just(pa.string()), part),
    max_leaves=3,
)


def encoded(kind):
    return encode_schema(pa.schema([("c", kind)]))


@pytest.mark.parametrize(("kind", "spelled"), PLAIN.items(), ids=str)
def test_a_type_is_spelled_as_the_protocol_says(kind, spelled):
    [column] = json.loads(encoded(kind))["fields"]
    assert column == {"name": "c", "type": spelled, "nullable": True, "metadata": {}}


def test_columns_keep_their_order_and_may_be_null_at_any_depth_whatever_the_schema_says():
    inner = pa.struct([pa.field("x", pa.int8(), nullable=False)])
    nested = pa.map_(pa.string(), pa.field("value", pa.list_(pa.field("element", inner, nullable=False))))
    fields = json.loads(encode_schema(pa.schema([("b", nested), pa.field("a", pa.int32(), nullable=False)])))["fields"]
    x = {"name": "x", "type": "byte", "nullable": True, "metadata": {}}
    array = {"type": "array", "elementType": {"type": "struct", "fields": [x]}, "containsNull": True}
    mapped = {"type": "map", "keyType": "string", "valueType": array, "valueContainsNull": True}
    assert [field["name"] for field in fields] == ["b", "a"]
    assert [field["type"] for field in fields] == [mapped, "integer"]
    assert all(field["nullable"] for field in fields)


@pytest.mark.parametrize(
    ("kind", "place"),
    [(pa.uint32(), "c"), (pa.null(), "c"), (pa.decimal128(5, -2), "c"), (pa.decimal256(50, 2), "c"),
     (pa.dictionary(pa.int8(), pa.string()), "c"), (pa.struct([("x", pa.duration("us"))]), "c.x"),
     (pa.map_(pa.time32("s"), pa.int8()), "c.key"), (pa.map_(pa.binary(), pa.list_(pa.uint8())), "c.value.element")],
    ids=str,
)  # fmt: skip
def test_a_type_that_delta_lacks_is_refused_with_its_place_and_the_way_out(kind, place):
    with pytest.raises(UnsupportedTableError) as refused:
        encoded(kind)
    assert str(refused.value).startswith(f"a Delta log has no type for the column {place!r} (")
    assert str(refused.value).endswith("): cast it before it is written")


@pytest.mark.parametrize("letter", " ,;{}()\n\t=")
def test_a_name_with_a_letter_that_parquet_readers_of_delta_do_not_take_is_refused(letter):
    with pytest.raises(UnsupportedTableError, match="cannot name the column"):
        encode_schema(pa.schema([(f"a{letter}b", pa.string())]))


def test_other_letters_are_taken_as_they_are():
    name = "a.b-c_é%$:[]/'`1"
    assert json.loads(encode_schema(pa.schema([(name, pa.string())])))["fields"][0]["name"] == name


@given(TYPES, TYPES)
def test_of_types_without_structs_a_change_is_named_where_they_are_spelled_differently_and_only_there(before, after):
    changes = changed_types(encoded(before), encoded(after))
    assert bool(changes) == (encoded(before) != encoded(after))
    assert all(change.startswith(("c was ", "c.")) for change in changes)


def test_changes_are_named_in_the_order_of_the_new_columns_and_dropped_and_new_ones_are_not():
    def schema(*fields):
        return encode_schema(pa.schema([(name, pa.list_(pa.struct(kind))) for name, kind in fields]))

    before = schema(("a", [("x", pa.decimal128(10, 2)), ("gone", pa.int8())]), ("b", [("y", pa.string())]))
    after = schema(("b", [("y", pa.binary())]), ("new", [("z", pa.int8())]), ("a", [("x", pa.decimal128(12, 2))]))
    assert changed_types(before, after) == [
        "b.element.y was string, is binary",
        "a.element.x was decimal(10,2), is decimal(12,2)",
    ]
