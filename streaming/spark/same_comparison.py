"""Which comparisons mean the same to Arrow and to Spark (pure).

They differ in NaN, in nested values, in casts, and in ten days of 1582. A condition that is not in this module's list
is evaluated by Arrow.
"""

from collections.abc import Iterable
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa

_LONG = 2**63
# Spark converts the values of a pushed filter to the calendar of java.sql.Date, which does not have these days
_NO_DAYS = date(1582, 10, 5), date(1582, 10, 14)


def compares_alike(kind: pa.DataType, operator: str, value: Any) -> bool:
    """Whether Arrow and Spark find the same rows.

    Args:
        kind: the column's type.
        operator: ``= == != < > <= >= in``, ``not in``.
        value: the value that the column is compared to; for ``in`` and ``not in`` the list of values.
    """
    if operator in ("in", "not in"):
        return isinstance(value, Iterable) and all(_is_alike(kind, one) for one in value)
    return _is_alike(kind, value)


def _is_alike(kind: pa.DataType, value: Any) -> bool:
    if pa.types.is_boolean(kind):
        return isinstance(value, bool)
    if pa.types.is_integer(kind):
        return isinstance(value, int) and not isinstance(value, bool) and -_LONG <= value < _LONG
    if pa.types.is_string(kind):
        return isinstance(value, str)
    if pa.types.is_date(kind):
        return type(value) is date and not _NO_DAYS[0] <= value <= _NO_DAYS[1]
    if pa.types.is_timestamp(kind):
        is_told = kind.tz is not None and isinstance(value, datetime) and value.tzinfo is not None
        day = timedelta(days=1)  # the session's zone decides which day it is
        return is_told and not _NO_DAYS[0] - day <= value.date() <= _NO_DAYS[1] + day
    return False
