"""Types of Arrow's many makers, as a table stores them."""

import datetime as dt

import polars as pl
import pyarrow as pa
import pytest

from table.columns.storable import as_storable, storable_schema
from table.errors import InvalidRecordError, SchemaMismatchError

CASES = [
    (pa.int8(), [-1, None], pa.int32()),
    (pa.uint32(), [2**32 - 1], pa.int64()),
    (pa.large_string(), ["a", None], pa.string()),
    (pa.string_view(), ["a", None], pa.string()),
    (pa.binary(2), [b"ab", None], pa.binary()),
    (pa.large_list(pa.large_string()), [["a", None], None, []], pa.list_(pa.string())),
    (pa.list_(pa.int8(), 2), [[1, 2], None], pa.list_(pa.int32())),
    (pa.struct([("a", pa.large_string()), ("b", pa.list_(pa.int16()))]), [{"a": "x", "b": [1]}, None],
     pa.struct([("a", pa.string()), ("b", pa.list_(pa.int32()))])),
    (pa.struct([("a", pa.string_view()), ("b", pa.list_(pa.binary_view()))]), [{"a": "x", "b": [b"y", None]}, None],
     pa.struct([("a", pa.string()), ("b", pa.list_(pa.binary()))])),
    (pa.map_(pa.string_view(), pa.string_view()), [[("a", "x"), ("b", None)], None], pa.map_(pa.string(), pa.string())),
    (pa.map_(pa.large_string(), pa.int16()), [[("a", 1)], None], pa.map_(pa.string(), pa.int32())),
    (pa.dictionary(pa.int8(), pa.large_string()), ["a", None, "a"], pa.string()),
    (pa.date64(), [dt.date(2024, 2, 29)], pa.date32()),
]  # fmt: skip


def made_array(values, kind):
    """pyarrow 17 makes no dictionaries of large strings from values."""
    if not pa.types.is_dictionary(kind):
        return pa.array(values, kind)
    return pa.array(values, pa.string()).dictionary_encode().cast(kind)


@pytest.mark.parametrize(("given", "values", "stored"), CASES, ids=[str(case[0]) for case in CASES])
def test_other_types_become_those_that_are_stored_with_the_same_values(given, values, stored):
    rows = pa.table({"c": made_array(values, given)})
    made = as_storable(rows, storable_schema(rows.schema))
    assert made.schema.field("c").type == stored
    assert made["c"].to_pylist() == values
    part = rows.slice(1)
    assert as_storable(part, storable_schema(part.schema))["c"].to_pylist() == values[1:]


def test_times_are_microseconds_in_utc():
    moment = dt.datetime(2024, 3, 31, 1, 30, tzinfo=dt.timezone.utc)
    rows = pa.table({"c": pa.array([moment, None], pa.timestamp("ns", "Europe/Berlin"))})
    made = as_storable(rows, storable_schema(rows.schema))
    assert made["c"].type == pa.timestamp("us", "UTC")
    assert made["c"].to_pylist() == [moment, None]


def test_frames_of_polars():
    frame = pl.DataFrame({"a": [["x", None], []], "b": [{"c": "y", "d": [1.5]}, None], "e": ["u", "v"]})
    frame = frame.with_columns(pl.col("e").cast(pl.Categorical), f=pl.Series([1, 2], dtype=pl.Decimal(10, 2)))
    rows = pa.table(frame)
    made = as_storable(rows, storable_schema(rows.schema))
    assert made.drop_columns(["f"]).to_pylist() == frame.drop("f").to_dicts()
    assert [str(kind) for kind in made.schema.types[:3]] == [
        "list<element: string>",
        "struct<c: string, d: list<element: double>>",
        "string",
    ]


def test_rows_that_need_nothing_are_the_same():
    rows = pa.table({"a": [1], "b": ["x"]})
    assert as_storable(rows, storable_schema(rows.schema)) is rows


REFUSED = [
    (pa.null(), "no type of its own"),
    (pa.timestamp("us"), "give it a zone"),
    (pa.uint64(), "decimal128"),
    (pa.time64("us"), "keys-and-types"),
    (pa.duration("s"), "keys-and-types"),
    (pa.map_(pa.int32(), pa.int32()), "keys-and-types"),
    (pa.decimal256(50, 2), "keys-and-types"),
]


@pytest.mark.parametrize(("kind", "way_out"), REFUSED, ids=[str(case[0]) for case in REFUSED])
def test_what_cannot_be_stored_is_named_with_a_way_out(kind, way_out):
    for schema, name in ((pa.schema([("c", kind)]), "'c'"), (pa.schema([("c", pa.struct([("d", kind)]))]), "'c.d'")):
        with pytest.raises(SchemaMismatchError, match=name) as error:
            storable_schema(schema)
        assert way_out in str(error.value)


def test_a_value_that_does_not_fit_is_named():
    rows = pa.table({"c": pa.array([1001], pa.timestamp("ns", "UTC"))})
    with pytest.raises(InvalidRecordError, match="'c' .*1001.*round it"):
        as_storable(rows, storable_schema(rows.schema))
    kind = pa.struct([("text", pa.string_view()), ("time", pa.timestamp("ns", "UTC"))])
    rows = pa.table({"c": pa.array([{"text": "x", "time": 1001}], kind)})
    with pytest.raises(InvalidRecordError, match="'c' .*1001.*round it"):
        as_storable(rows, storable_schema(rows.schema))
