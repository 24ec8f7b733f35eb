import datetime
from decimal import Decimal
from operator import eq, ge, gt, le, lt, ne

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudistream import ArrowSink, HudiTable, InvalidConfigError
from table.scan.exact_values import exact_values
from table.scan.predicate import parse_where

DAY = datetime.date(2024, 1, 1)
NOON = datetime.datetime.fromisoformat("2024-01-01T12:00:00")


@pytest.mark.parametrize(
    ("kind", "value", "held"),
    [
        (pa.int32(), 1, [1]),
        (pa.int32(), np.int64(1), [1]),
        (pa.int32(), 1.0, [1]),
        (pa.int32(), 1.5, []),
        (pa.int32(), float("nan"), []),
        (pa.int32(), Decimal("2.0"), [2]),
        (pa.int32(), Decimal("2.5"), []),
        (pa.int32(), 2**31, []),
        (pa.int32(), -(2**31), [-(2**31)]),
        (pa.uint8(), -1, []),
        (pa.uint8(), 255, [255]),
        (pa.float32(), 0.1, []),
        (pa.float32(), float(np.float32(0.1)), [float(np.float32(0.1))]),
        (pa.float32(), 1e39, []),
        (pa.float64(), 2**53 + 1, []),
        (pa.float64(), 10**400, []),
        (pa.float64(), 3, [3.0]),
        (pa.decimal128(10, 2), 1.505, []),
        (pa.decimal128(10, 2), 1.5, [Decimal("1.50")]),
        (pa.decimal128(10, 2), 0.1, [Decimal("0.10")]),
        (pa.decimal128(10, 2), Decimal("1.505"), []),
        (pa.decimal128(10, 2), 7, [Decimal("7.00")]),
        (pa.decimal128(10, 2), 10**20, []),
        (pa.decimal128(10, 2), float("inf"), []),
        (pa.date32(), NOON, []),
        (pa.date32(), datetime.datetime.combine(DAY, datetime.time()), [DAY]),
        (pa.date32(), DAY, [DAY]),
        (pa.timestamp("us"), DAY, [datetime.datetime.combine(DAY, datetime.time())]),
        (pa.string(), "a", ["a"]),
    ],
)
def test_a_value_is_one_of_the_column_or_none(kind, value, held):
    assert exact_values(value, kind) == held


@pytest.mark.parametrize("kind", [pa.int32(), pa.float64(), pa.decimal128(10, 2)])
@pytest.mark.parametrize("value", [True, "x"])
def test_what_is_no_number_is_refused(kind, value):
    with pytest.raises(TypeError, match="is no number"):
        exact_values(value, kind)


SCHEMA = pa.schema([("id", pa.string()), ("f", pa.float32()), ("d", pa.decimal128(10, 2)), ("i", pa.int64())])


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ([("f", "in", [0.1])], []),
        ([("f", "not in", [0.1])], ["a", "b"]),
        ([("d", "in", [1.505])], []),
        ([("d", "not in", [1.505])], ["a", "b"]),
        ([("d", "not in", [1.5])], ["b"]),
        ([("d", "not in", [])], ["a", "b", "c"]),
        ([("i", "not in", [2**70])], ["a", "b"]),
        ([("i", "in", {1, 2.5})], ["a"]),
    ],
)
@pytest.mark.parametrize("is_apart", [False, True])
def test_answers_do_not_depend_on_how_rows_lie_in_files(tmp_path, where, found, is_apart):
    rows = [("a", 0.1, Decimal("1.50"), 1), ("b", 0.2, Decimal("2.00"), 2), ("c", None, None, None)]
    table = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)
    options = {"hoodie.parquet.small.file.limit": "0"}
    with ArrowSink(str(tmp_path / "t"), options, key="id", operation="insert") as sink:
        for part in [table.slice(n, 1) for n in range(3)] if is_apart else [table]:
            sink.write(part)
    assert sorted(HudiTable.open(tmp_path / "t").scan(where=where).to_arrow()["id"].to_pylist()) == found


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ([("i", "in", [True])], "True is no number"),
        ([("i", "in", map(int, "12"))], "takes a list of values"),
        ([("i", "in", "12")], "takes a list of values"),
        (pc.field(3) < 3, "names a column by its place"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_a_file_is_read(where, text):
    with pytest.raises(InvalidConfigError, match=text):
        parse_where(where, SCHEMA)


def test_a_text_that_looks_like_a_place_is_a_text():
    assert parse_where(pc.field("id") == 'FieldPath(0) "', SCHEMA).columns >= {"id"}


NUMBERS = [
    0,
    1,
    -5,
    2**24,
    2**24 + 1,
    2**31 - 1,
    -(2**31),
    2**53,
    2**53 + 1,
    2**63 - 1,
    -(2**63),
    2**63,
    -(2**70),
    10**400,
]
FLOATS = [0.1, 1.5, -0.5, 2.0**24, 2.0**53, 1e300, -1e300, float("inf"), -float("inf"), float("nan")]
WAYS = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


def columns_of(kind):
    if pa.types.is_integer(kind):
        least, most = -(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1
        return [value for value in NUMBERS if least <= value <= most]
    whole = [float(value) for value in NUMBERS[:-1]]
    return [value.as_py() for value in pa.array([*whole, *FLOATS], pa.float64()).cast(kind, safe=False)]


@pytest.mark.parametrize("operator", WAYS)
@pytest.mark.parametrize("kind", [pa.int32(), pa.int64(), pa.float32(), pa.float64()])
def test_numbers_are_compared_exactly_whatever_their_types(kind, operator):
    """Python compares whole numbers and floats exactly."""
    held = columns_of(kind)
    table = pa.table({"n": pa.array([*held, None], kind), "at": range(len(held) + 1)})
    numbers = [*NUMBERS, *FLOATS, *map(np.float64, FLOATS), np.float32(0.1), np.int64(2**53 + 1), pa.scalar(1)]
    for value in numbers:
        predicate = parse_where([("n", operator, value)], table.schema)
        found = table.filter(predicate.expression)["at"].to_pylist()
        plain = value.as_py() if isinstance(value, pa.Scalar) else value.item() if hasattr(value, "item") else value
        assert found == [at for at, one in enumerate(held) if WAYS[operator](one, plain)], value


@pytest.mark.parametrize("value", [np.int64(1), pa.scalar(1), np.int8(1), Decimal(1), "1", 1])
@pytest.mark.parametrize("kind", [pa.decimal128(10, 2), pa.decimal128(38, 10)])
def test_decimals_are_compared_to_whole_numbers_of_every_kind(kind, value):
    table = pa.table({"n": pa.array([Decimal(0), Decimal(1), None], kind)})
    assert table.filter(parse_where([("n", "=", value)], table.schema).expression).num_rows == 1


def test_a_day_of_numpy_is_a_date():
    table = pa.table({"d": pa.array([DAY, None])})
    for where in (("d", "=", np.datetime64("2024-01-01")), ("d", "in", [np.datetime64("2024-01-01T00:00")])):
        assert table.filter(parse_where([where], table.schema).expression).num_rows == 1
