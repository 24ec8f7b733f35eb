"""Tells whether values are the same bit by bit: whole columns, or row by row (pure).

Arrow counts 0.0 and -0.0 as equal, and NaN as unequal to itself, at any depth.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from table.columns.cast import entries_of

Flags = npt.NDArray[np.bool_]


def same_column(first: pa.ChunkedArray, second: pa.ChunkedArray) -> bool:
    """Whether two columns of one type hold the same values. All NaNs count as the same.

    Args:
        first: column of any type that tables have; a dictionary column counts as the column of its values.
        second: column of the same type.
    """
    return _same(*(_joined(column) for column in (first, second)))


def same_rows(first: pa.Table, second: pa.Table) -> Flags:
    """Which rows of two tables hold the same values, place by place. All NaNs count as the same.

    Args:
        first: rows of any types that tables have.
        second: as many rows, with the same columns.
    """
    same = np.ones(len(first), np.bool_)
    for name in first.column_names:
        same &= same_entries(*(_joined(rows.column(name)) for rows in (first, second)))
    return same


def same_entries(first: pa.Array, second: pa.Array) -> Flags:
    """Which entries of two arrays of one type and length are the same; as `same_rows`."""
    kind = first.type
    valid, other_valid = (array.is_valid().to_numpy(zero_copy_only=False) for array in (first, second))
    if pa.types.is_struct(kind):
        found = [same_entries(*fields) for fields in zip(first.flatten(), second.flatten(), strict=True)]
        same = np.logical_and.reduce(found) if found else np.ones(len(first), np.bool_)
    elif pa.types.is_map(kind):
        return same_entries(entries_of(first), entries_of(second))
    elif pa.types.is_nested(kind):
        same = _same_lists(first, second)
    elif pa.types.is_floating(kind):
        same = _bits(first) == _bits(second)
    elif pa.types.is_null(kind):
        same = np.ones(len(first), np.bool_)
    else:
        same = pc.fill_null(pc.equal(first, second), False).to_numpy(zero_copy_only=False)
    result: Flags = (valid == other_valid) & (same | ~valid)
    return result


def _same_lists(first: pa.Array, second: pa.Array) -> Flags:
    """Entries of lists are compared where both lists have as many of them."""
    lengths, others = (pc.fill_null(pc.list_value_length(lists), 0).to_numpy() for lists in (first, second))
    same: Flags = lengths == others
    at = np.flatnonzero(same & (lengths > 0))
    if len(at):
        chosen = pa.array(at)
        inner = same_entries(first.take(chosen).flatten(), second.take(chosen).flatten())
        starts = np.cumsum(lengths[at]) - lengths[at]
        same[at] = np.logical_and.reduceat(inner, starts)
    return same


def _joined(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    return pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found


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
