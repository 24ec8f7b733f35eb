"""Which comparisons mean the same to Arrow and to Spark (pure).

They differ about NaN, about nested values, and about what is cast to what. A condition outside of this module's list is
left to Arrow.
"""

from collections.abc import Iterable
from datetime import date, datetime
from typing import Any

import pyarrow as pa

_LONG = 2**63


def compares_alike(kind: pa.DataType, operator: str, value: Any) -> bool:
    """Whether both find the same rows.

    Args:
        kind: the column's type.
        operator: ``= == != < > <= >= in``, ``not in``.
        value: what the column is compared to; of ``in`` and ``not in`` the values.
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
        return type(value) is date
    if pa.types.is_timestamp(kind):
        return kind.tz is not None and isinstance(value, datetime) and value.tzinfo is not None
    return False
