"""The members of a list in a condition as values of a column: exactly, or not at all (pure).

Arrow would round them to the column's type, and find rows that are not equal to them.
"""

from datetime import date, datetime, time
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
import pyarrow as pa


def exact_values(value: Any, kind: pa.DataType) -> list[Any]:
    """A value as one of a column: one value, or none where the column cannot have it.

    Args:
        value: not null.
        kind: the column's type (Arrow).

    Raises:
        TypeError: values of such a type are not compared to the column.
    """
    if isinstance(value, pa.Scalar):
        value = value.as_py()
    if pa.types.is_integer(kind):
        return _whole(value, kind)
    if pa.types.is_floating(kind):
        return _floating(value, kind)
    if pa.types.is_decimal(kind):
        return _decimal(value, kind)
    if pa.types.is_date(kind) and isinstance(value, datetime):
        return [value.date()] if value.tzinfo is None and value.time() == time() else []
    if pa.types.is_timestamp(kind) and isinstance(value, date) and not isinstance(value, datetime):
        return [datetime.combine(value, time())]
    return [value]


def _number(value: Any) -> Any:
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real | Decimal):
        raise TypeError(f"{value!r} is no number")
    return int(value) if isinstance(value, Integral) else value


def _whole(value: Any, kind: pa.DataType) -> list[int]:
    number = _number(value)
    if not isinstance(number, int):
        if not np.isfinite(float(number)) or number != int(number):
            return []
        number = int(number)
    bits = kind.bit_width - pa.types.is_signed_integer(kind)
    least = -(2**bits) if pa.types.is_signed_integer(kind) else 0
    return [number] if least <= number < 2**bits else []


def _floating(value: Any, kind: pa.DataType) -> list[float]:
    number = _number(value)
    try:
        with np.errstate(over="ignore"):
            held = float(kind.to_pandas_dtype()(number))
    except OverflowError:
        return []
    is_same = held == number or (np.isnan(held) and np.isnan(float(number)))
    return [held] if is_same else []


def _decimal(value: Any, kind: pa.DataType) -> list[Decimal]:
    number = _number(value)
    # the shortest digits of a float are those that a decimal is compared by
    exact = Decimal(number if isinstance(number, int | Decimal) else repr(float(number)))
    if not exact.is_finite():
        return []
    try:
        return [pa.scalar(exact, kind).as_py()]
    except pa.ArrowInvalid:  # it has more digits
        return []
