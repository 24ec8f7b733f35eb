"""Comparisons that Spark may evaluate in Arrow's place."""

from datetime import date, datetime, timezone

import pyarrow as pa
import pytest

from streaming.spark.same_comparison import compares_alike

MOMENT = datetime(2026, 1, 1, tzinfo=timezone.utc)
UTC, LOCAL = pa.timestamp("us", "UTC"), pa.timestamp("us")


@pytest.mark.parametrize(
    ("kind", "value", "is_alike"),
    [
        (pa.int32(), 5, True),
        (pa.int32(), True, False),  # Spark compares a number with no boolean
        (pa.int64(), 2**63, False),  # no long
        (pa.int64(), -(2**63), True),
        (pa.int64(), 5.0, False),  # a cast decides
        (pa.float64(), 5.0, False),  # NaN equals NaN in Spark alone
        (pa.bool_(), True, True),
        (pa.bool_(), 1, False),
        (pa.string(), "a", True),
        (pa.string(), b"a", False),
        (pa.binary(), b"a", False),
        (pa.date32(), date(2026, 1, 1), True),
        (pa.date32(), date(1582, 10, 4), True),
        (pa.date32(), date(1582, 10, 5), False),  # no day of java.sql.Date
        (pa.date32(), date(1582, 10, 14), False),
        (pa.date32(), date(1582, 10, 15), True),
        (UTC, datetime(1582, 10, 15, 3, tzinfo=timezone.utc), False),  # such a day in the west
        (UTC, datetime(1582, 10, 16, tzinfo=timezone.utc), True),
        (pa.date32(), MOMENT, False),  # a time is a date, too, for Python
        (UTC, MOMENT, True),
        (UTC, MOMENT.replace(tzinfo=None), False),  # the session's zone decides
        (LOCAL, MOMENT, False),
        (pa.decimal128(10, 2), 5, False),
        (pa.list_(pa.int64()), [1], False),
        (pa.string(), None, False),
    ],
)
@pytest.mark.parametrize("operator", ["=", "!=", "<", ">="])
def test_a_value_of_the_columns_own_type_compares_alike(kind, operator, value, is_alike):
    assert compares_alike(kind, operator, value) == is_alike


@pytest.mark.parametrize("operator", ["in", "not in"])
def test_each_value_of_a_list_has_to_compare_alike(operator):
    assert compares_alike(pa.int64(), operator, [1, 2])
    assert compares_alike(pa.int64(), operator, [])
    assert not compares_alike(pa.int64(), operator, [1, None])
    assert not compares_alike(pa.int64(), operator, 1)
