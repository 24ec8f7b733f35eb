"""Tells whether values are the same bit by bit (pure).

Arrow counts 0.0 and -0.0 as equal, and NaN as unequal to itself, at any depth.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from table.columns.cast import entries_of


def same_column(first: pa.ChunkedArray, second: pa.ChunkedArray) -> bool:
    """Whether two columns of one type hold the same values. All NaNs count as the same.

    Args:
        first: column of any type that tables have; a dictionary column counts as the column of its values.
        second: column of the same type.
    """
    one, other = (column.combine_chunks() for column in (first, second))
    return _same(*(pa.concat_arrays(a.chunks) if isinstance(a, pa.ChunkedArray) else a for a in (one, other)))


def _same(first: pa.Array, second: pa.Array) -> bool:  # noqa: PLR0911 one a type
    kind = first.type
    if pa.types.is_dictionary(kind):
        return _same(first.cast(kind.value_type), second.cast(kind.value_type))
    if not _holds_floats(kind):
        return bool(first.equals(second))
    if len(first) != len(second) or not first.is_valid().equals(second.is_valid()):
        return False
    if pa.types.is_floating(kind):
        return bool(np.array_equal(_bits(first), _bits(second)))
    if pa.types.is_struct(kind):
        return all(_same(*fields) for fields in zip(first.flatten(), second.flatten(), strict=True))
    if pa.types.is_map(kind):
        return _same(entries_of(first), entries_of(second))
    counts = (pc.list_value_length(lists) for lists in (first, second))
    return bool(next(counts).equals(next(counts))) and _same(first.flatten(), second.flatten())


def _holds_floats(kind: pa.DataType) -> bool:
    if pa.types.is_nested(kind):
        return any(_holds_floats(kind.field(number).type) for number in range(kind.num_fields))
    return bool(pa.types.is_floating(kind))


def _bits(values: pa.Array) -> npt.NDArray[np.int64]:
    doubles = pc.fill_null(values.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False)
    return np.where(np.isnan(doubles), np.float64(np.nan), doubles).view(np.int64)
