"""The order of rows that are sorted before they are written: by columns in turn, or along a curve (pure).

If two rows are near in every column, a curve keeps them near each other. So a filter on any of the columns skips files.
A value enters the curve by its rank among the sorted rows, and not by its bits as in Hudi. So values that are
bunched together still fill the curve.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from table.errors import InvalidConfigError
from table.options.clustering_settings import Layout

Positions = npt.NDArray[np.int64]
_Axis = npt.NDArray[np.uint64]
_BITS = 64


def check_sortable(name: str, kind: pa.DataType) -> None:
    """Refuses a column whose values have no order.

    Raises:
        InvalidConfigError: names the column and its type.
    """
    if pa.types.is_nested(kind):
        raise InvalidConfigError(
            f"rows cannot be sorted by the column {name!r} of type {kind}: name a column of numbers, text or times"
        )


def order_of(keys: pa.Table, layout: Layout) -> Positions:
    """The positions of the rows in the order in which they are to be written.

    Equal rows keep their order. Nulls come first.

    Args:
        keys: the sort columns, the most significant first.
        layout: the order.

    Raises:
        InvalidConfigError: a column has no order.
    """
    if layout is Layout.LINEAR or keys.num_columns == 1:
        return _linear(keys)
    bits = _BITS // keys.num_columns
    axes = [_scaled(_ranks(keys.column(name), name), bits) for name in keys.column_names]
    along = _interleaved(_hilbert(axes, bits) if layout is Layout.HILBERT else axes, bits)
    return np.argsort(along, kind="stable").astype(np.int64)


def _linear(keys: pa.Table) -> Positions:
    # numpy's lexsort takes the most significant key last
    return np.lexsort([_ranks(keys.column(name), name) for name in reversed(keys.column_names)]).astype(np.int64)


def _ranks(column: pa.ChunkedArray, name: str) -> Positions:
    """The rank of each value among the distinct values; 0 for null."""
    check_sortable(name, column.type)
    if not len(column):
        return np.zeros(0, np.int64)
    coded = column.dictionary_encode().unify_dictionaries().combine_chunks()
    order = pc.sort_indices(coded.dictionary).to_numpy()
    ranks = np.empty(len(order) + 1, np.int64)
    ranks[order] = np.arange(1, len(order) + 1)
    ranks[-1] = 0
    places: Positions = pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return ranks[places]


def _scaled(ranks: Positions, bits: int) -> _Axis:
    """Ranks, stretched over the whole axis."""
    most = int(ranks.max(initial=0))
    if most == 0:
        return ranks.astype(np.uint64)
    return (ranks.astype(np.float64) / most * float((1 << bits) - 1)).astype(np.uint64)


def _interleaved(axes: Sequence[_Axis], bits: int) -> _Axis:
    """One number per row: its bits are taken from the axes in turn, the highest first."""
    along = np.zeros(len(axes[0]), np.uint64)
    for bit in range(bits - 1, -1, -1):
        for axis in axes:
            along = (along << np.uint64(1)) | ((axis >> np.uint64(bit)) & np.uint64(1))
    return along


def _hilbert(axes: Sequence[_Axis], bits: int) -> list[_Axis]:
    """Places in space -> the bits of their index on the Hilbert curve, one array per axis (J. Skilling, 2004)."""
    turned = [axis.copy() for axis in axes]
    bit = 1 << (bits - 1)
    while bit > 1:
        high, low = np.uint64(bit), np.uint64(bit - 1)
        for number, axis in enumerate(turned):
            is_set = (axis & high) != 0
            swapped = np.where(is_set, np.uint64(0), (turned[0] ^ axis) & low)
            first = np.where(is_set, turned[0] ^ low, turned[0] ^ swapped)
            if number:
                turned[number] = axis ^ swapped
            turned[0] = first
        bit >>= 1
    for number in range(1, len(turned)):
        turned[number] = turned[number] ^ turned[number - 1]
    flips = np.zeros(len(turned[0]), np.uint64)
    bit = 1 << (bits - 1)
    while bit > 1:
        flips = np.where((turned[-1] & np.uint64(bit)) != 0, flips ^ np.uint64(bit - 1), flips)
        bit >>= 1
    return [axis ^ flips for axis in turned]
