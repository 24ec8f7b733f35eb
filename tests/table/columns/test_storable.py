"""Types of Arrow's many makers, as a table stores them."""

import datetime as dt

import polars as pl
import pyarrow as pa
import pytest

from streaming.task.arrow_rows import open_rows
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
    (pa.map_(pa.string(), pa.struct([("d", pa.dictionary(pa.int32(), pa.string())), ("x", pa.string_view())])),
     [[("k", {"d": "q", "x": "a"})], None],
     pa.map_(pa.string(), pa.struct([("d", pa.string()), ("x", pa.string())]))),
    (pa.dictionary(pa.int8(), pa.large_string()), ["a", None, "a"], pa.string()),
    (pa.date64(), [dt.date(2024, 2, 29)], pa.date32()),
    (pa.uint64(), [2**63 - 1, None], pa.int64()),
    (pa.null(), [None, None], pa.null()),
    (pa.list_(pa.null()), [[], None], pa.list_(pa.null())),
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
    (pa.timestamp("us"), "give it a zone"),
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


CODED = pa.dictionary(pa.int8(), pa.string())
NESTED = [
    (pa.list_(CODED), [["x", None, "x"], None, [], ["y"]]),
    (pa.large_list(CODED), [["x"], None, ["y"]]),
    (pa.list_(CODED, 2), [["x", "y"], None, [None, "x"]]),
    (pa.struct([("k", CODED), ("n", pa.int64())]), [{"k": "x", "n": 1}, None, {"k": None, "n": 2}]),
    (pa.map_(pa.string(), CODED), [[("a", "x"), ("b", None)], None, []]),
    (pa.struct([("l", pa.list_(pa.struct([("k", CODED)])))]), [{"l": [{"k": "x"}, None]}, {"l": None}, None]),
]


@pytest.mark.parametrize(("kind", "values"), NESTED, ids=str)
def test_dictionaries_within_columns_are_decoded(kind, values):
    array = pa.array(values, kind)
    for rows in (pa.table({"c": array}), pa.table({"c": array}).slice(1)):
        made = as_storable(rows, storable_schema(rows.schema))
        assert "dictionary" not in str(made.schema)
        assert made["c"].to_pylist() == values[len(values) - len(rows) :]


def test_dictionaries_of_polars_within_columns_are_decoded():
    kinds = [pl.List(pl.Categorical), pl.Struct({"k": pl.Enum(["x", "y"])}), pl.Array(pl.Categorical, 2)]
    values = [[["x", None], None, ["y"]], [{"k": "x"}, None, {"k": None}], [["x", "y"], None, ["y", "x"]]]
    frame = pl.DataFrame(
        {f"c{number}": pl.Series(v, dtype=kind) for number, (kind, v) in enumerate(zip(kinds, values, strict=True))}
    )
    made = open_rows(frame)
    assert "dictionary" not in str(made.schema)
    assert made.to_pylist() == frame.to_dicts()


def test_a_type_of_polars_that_arrow_does_not_know_is_named():
    frame = pl.DataFrame({"id": ["a"], "n": pl.Series([1], dtype=pl.Int128)})
    with pytest.raises(SchemaMismatchError, match=r"the column 'n' has a type Int128 .*cast it, as to Int64"):
        open_rows(frame)


def test_a_struct_without_fields_is_refused_by_its_path():
    kind = pa.struct([("tags", pa.list_(pa.struct([])))])
    with pytest.raises(SchemaMismatchError, match=r"'c\.tags\.element' is a struct without fields"):
        storable_schema(pa.schema([("c", kind)]))


def test_a_value_that_does_not_fit_is_named():
    rows = pa.table({"n": pa.array([1, 2**63], pa.uint64())})
    with pytest.raises(InvalidRecordError, match=r"'n' .*9223372036854775808.*decimal128\(20, 0\)"):
        as_storable(rows, storable_schema(rows.schema))
    rows = pa.table({"c": pa.array([1001], pa.timestamp("ns", "UTC"))})
    with pytest.raises(InvalidRecordError, match="'c' .*1001.*round it"):
        as_storable(rows, storable_schema(rows.schema))
    kind = pa.struct([("text", pa.string_view()), ("time", pa.timestamp("ns", "UTC"))])
    rows = pa.table({"c": pa.array([{"text": "x", "time": 1001}], kind)})
    with pytest.raises(InvalidRecordError, match="'c' .*1001.*round it"):
        as_storable(rows, storable_schema(rows.schema))
