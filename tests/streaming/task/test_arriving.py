"""A value that the table's type does not hold is named with its column, its row, and the way out."""

import datetime as dt
from decimal import Decimal
from types import SimpleNamespace

import pyarrow as pa
import pytest

from streaming.task.arriving import conform_arriving
from table.errors import InvalidRecordError

I32, I64, F32, F64 = pa.int32(), pa.int64(), pa.float32(), pa.float64()
D = pa.decimal128
S = pa.struct([("a", pa.list_(pa.struct([("b", F64)])))])
S_WANTED = pa.struct([("a", pa.list_(pa.struct([("b", I64)])))])
MAP, MAP_WANTED = (pa.map_(pa.string(), kind) for kind in (F64, I64))
PLAN = SimpleNamespace(context=SimpleNamespace(required=()))
WAY = "in pandas as 'Int64'), or set hudistream.schema.integers.to.floats=true, which makes the table's column"


def rows_of(values, kind):
    return pa.table({"n": pa.array(values, kind), "_hoodie_record_key": [f"k{at}" for at in range(len(values))]})


REFUSED = [
    (F64, [1.0, None, 0.5, 7.5], I64, "'n' is double, the table has int64: the row with the key 'k2' has 0.5", WAY),
    (F32, [1.0, 0.25], I32, "'n' is float, the table has int32: the row with the key 'k1' has 0.25", "float for good"),
    (F64, [2.0**53, 2.0**53 + 2], I64, "'k1' has 9007199254740994.0, and beyond 9007199254740992 a double", "'Int64'"),
    (F32, [2.0**24 + 2], I64, "'k0' has 16777218.0, and beyond 16777216 a float", "'Int64'"),
    (F64, [float("nan")], I64, "'k0' has nan, which is no number", "'Int64'"),
    (F64, [float("-inf")], I64, "'k0' has -inf, and beyond", "'Int64'"),
    (F64, [1.0, -(2.0**31) - 1], I32, "'k1' has -2147483649.0, which int32 does not hold", "cast the column to int64"),
    (D(12, 2), [Decimal("1.00"), Decimal("123456789.00")], D(10, 2), "'k1' has 123456789.00, which", "round it"),
    (D(12, 3), [Decimal("1.500"), Decimal("1.255")], D(10, 2), "'k1' has 1.255, which decimal128(10, 2)", "round it"),
    (I64, [1, 100], D(4, 2), "'k1' has 100, which decimal128(4, 2) does not hold", "decimals of a table do not grow"),
    (S, [None, {"a": None}, {"a": [None, {"b": 1.0}, {"b": 0.5}]}], S_WANTED, "'n.a.element.b' is", "'k2' has 0.5"),
    (MAP, [[("x", 1.0)], None, [("y", 2.0), ("z", 2.5)]], MAP_WANTED, "'n.value' is double", "'k2' has 2.5"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "values", "wanted", "said", "way"), REFUSED, ids=str)
def test_the_first_value_that_does_not_fit_is_named(kind, values, wanted, said, way):
    rows = rows_of(values, kind)
    chunked = pa.concat_tables([rows.slice(0, 1), rows.slice(1)])
    for given in (rows, chunked):
        with pytest.raises(InvalidRecordError) as raised:
            conform_arriving(given, pa.schema([("n", wanted)]), PLAN)
        assert said in str(raised.value)
        assert way in str(raised.value)
        assert "nothing of the batch is visible" in str(raised.value)


def test_values_that_fit_have_the_tables_types():
    at = dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=dt.timezone.utc)
    for kind, value, wanted, found in [
        (F64, 7.0, I64, 7),
        (D(5, 2), Decimal("1.50"), D(10, 3), Decimal("1.500")),
        (I32, 7, D(10, 2), Decimal("7.00")),
        (pa.timestamp("us", "UTC"), at, pa.timestamp("ms", "UTC"), at.replace(microsecond=999000)),
        (pa.null(), None, S_WANTED, None),
    ]:
        made = conform_arriving(rows_of([value, None], kind), pa.schema([("n", wanted)]), PLAN)
        assert made.to_pylist() == [{"n": found}, {"n": None}]


def test_another_failure_stays_as_it_is():
    with pytest.raises(pa.ArrowInvalid):
        conform_arriving(pa.table({"n": ["x"]}), pa.schema([("n", I64), ("m", I64)]), PLAN)
