"""Casts Arrow columns to another type: to a wider or richer one, and to a narrower one if it holds every value.

Numbers become the text that Java writes (HoodieAvroUtils.rewritePrimaryTypeWithDiffSchemaType).
"""

import math
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

EXACT = {pa.float32(): 2**24, pa.float64(): 2**53}  # up to here a float stands for one whole number alone
_ANY_INTEGER = pa.decimal128(20, 0)  # holds each integer of 64 bits


def cast_column(column: pa.ChunkedArray, arrow: pa.DataType) -> pa.ChunkedArray:
    """A column with another type: missing fields become null, numbers are widened, text is as Java writes it.

    A column without a type of its own (Arrow's null) becomes nulls of any type. Whole floats up to `EXACT` become
    integers. Integers and decimals become decimals of another precision and scale. Microseconds become milliseconds,
    rounded down as Flink does.

    Args:
        column: column of any type.
        arrow: the wanted type.

    Raises:
        ArrowInvalid: a value has no equal of the wanted type.
    """
    if column.type.equals(arrow):
        return column
    if not _needs_care(column.type, arrow):
        return _plain(column, arrow)
    return pa.chunked_array([_cast(chunk, arrow) for chunk in column.chunks], arrow)


def _needs_care(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Arrow's own cast would fail, or would produce another text than Java."""
    if pa.types.is_dictionary(stored) or pa.types.is_dictionary(wanted):
        return False
    if pa.types.is_nested(stored) or pa.types.is_null(stored) or _narrows(stored, wanted):
        return True
    return bool(pa.types.is_string(wanted) and (pa.types.is_floating(stored) or pa.types.is_decimal(stored)))


def _narrows(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values are cast that Arrow's own cast refuses or changes."""
    return bool(
        (stored in EXACT and pa.types.is_integer(wanted))
        or (pa.types.is_integer(stored) and pa.types.is_decimal(wanted))
        or is_coarser(stored, wanted)
    )


def is_coarser(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether moments in microseconds become moments in milliseconds."""
    both = pa.types.is_timestamp(stored) and pa.types.is_timestamp(wanted)
    return both and (stored.unit, wanted.unit) == ("us", "ms") and (stored.tz is None) == (wanted.tz is None)


def _cast(array: pa.Array, wanted: pa.DataType) -> pa.Array:  # noqa: PLR0911 a way a kind of type
    if array.type.equals(wanted):
        return array
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), wanted)
    if _narrows(array.type, wanted):
        return _narrowed(array, wanted)
    if pa.types.is_struct(array.type) and pa.types.is_struct(wanted):
        return _cast_struct(array, wanted)
    if pa.types.is_map(array.type) and pa.types.is_map(wanted):
        return _cast_map(array, wanted)
    if pa.types.is_list(array.type) and pa.types.is_list(wanted):
        values = _cast(array.flatten(), wanted.value_type)
        return pa.ListArray.from_arrays(list_offsets(array), values, type=wanted, mask=pc.is_null(array))
    if pa.types.is_string(wanted) and pa.types.is_floating(array.type):
        single = pa.types.is_float32(array.type)
        texts = [None if value is None else java_text(value, single=single) for value in array.to_pylist()]
        return pa.array(texts, pa.string())
    if pa.types.is_string(wanted) and pa.types.is_decimal(array.type):
        return pa.array([None if value is None else f"{value:f}" for value in array.to_pylist()], pa.string())
    return _plain(array, wanted)


def _plain(values: pa.Array | pa.ChunkedArray, wanted: pa.DataType) -> pa.Array | pa.ChunkedArray:
    # an integer that a float cannot hold exactly is rounded, as in Java
    rounds = pa.types.is_integer(values.type) and pa.types.is_floating(wanted)
    return values.cast(wanted, safe=not rounds)


def _narrowed(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(wanted):
        micros = pc.fill_null(array.cast(pa.int64()), 0).to_numpy()
        missing = pc.is_null(array).to_numpy(zero_copy_only=False)
        return pa.array(np.floor_divide(micros, 1000), mask=missing).cast(wanted)
    if pa.types.is_decimal(wanted):
        return array.cast(_ANY_INTEGER).cast(wanted)
    most = EXACT[array.type]
    if pc.any(pc.greater(pc.abs(array), pa.scalar(most, array.type))).as_py():
        raise pa.ArrowInvalid(f"a value is beyond {most}")
    return array.cast(wanted)


def _cast_struct(array: pa.StructArray, wanted: pa.StructType) -> pa.Array:
    present = {array.type.field(number).name for number in range(array.type.num_fields)}
    children = [
        _cast(pc.struct_field(array, column.name), column.type)
        if column.name in present
        else pa.nulls(len(array), column.type)
        for column in wanted
    ]
    return pa.StructArray.from_arrays(children, fields=list(wanted), mask=pc.is_null(array))


def _cast_map(array: pa.MapArray, wanted: pa.MapType) -> pa.Array:
    return rebuilt_map(array, lambda keys: keys, lambda items: _cast(items, wanted.item_type), wanted)


def rebuilt_map(
    array: pa.MapArray,
    with_keys: Callable[[pa.Array], pa.Array],
    with_items: Callable[[pa.Array], pa.Array],
    wanted: pa.MapType,
) -> pa.Array:
    """Maps with other keys and values.

    Args:
        array: the maps.
        with_keys: makes the keys of all maps from the old ones.
        with_items: makes the values of all maps from the old ones.
        wanted: type of the resulting maps.
    """
    whole = array.take(pa.array(np.arange(len(array))))  # a copy whose keys and items begin with its first row
    # in MapArray.from_arrays a null offset makes a null map
    missing = np.append(pc.is_null(whole).to_numpy(zero_copy_only=False), False)
    offsets = pa.array(whole.offsets.to_numpy(), mask=missing)
    return pa.MapArray.from_arrays(offsets, with_keys(whole.keys), with_items(whole.items)).cast(wanted)


def entries_of(maps: pa.MapArray) -> pa.ListArray:
    """Maps as lists of structs with ``key`` and ``value``: more of Arrow's functions accept lists."""
    kind = maps.type
    return maps.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)])))


def list_offsets(array: pa.ListArray) -> pa.Array:
    """The start of each list in the flattened values of all lists, and the end of the last list."""
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy()
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))


def java_text(value: float, *, single: bool = False) -> str:
    """The text of a floating point number as Java's ``toString`` writes it."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    text = str(np.float32(value)) if single else repr(float(value))
    sign, text = ("-", text[1:]) if text.startswith("-") else ("", text)
    digits, _, exponent = text.partition("e")
    whole, _, fraction = digits.partition(".")
    power = int(exponent or 0) + len(whole)  # exponent if the decimal point stands before all digits
    significant = (whole + fraction).lstrip("0")
    power -= len(whole + fraction) - len(significant)
    significant = significant.rstrip("0")
    if not significant:
        return sign + "0.0"
    if len(significant) == 1:  # Java writes two digits if they are closer to the value: 4.9E-324
        significant = f"{abs(float(np.float32(value)) if single else value):.1e}".replace(".", "")[:2].rstrip("0")
    if -2 <= power <= 7:  # from 10^-3 up to 10^7 without an exponent
        padded = significant.rjust(len(significant) - min(0, power), "0")
        point = max(0, power)
        padded = padded.ljust(point, "0")
        return f"{sign}{padded[:point] or '0'}.{padded[point:] or '0'}"
    return f"{sign}{significant[0]}.{significant[1:] or '0'}E{power - 1}"
