"""Takes rows by position, also where a column has more text than one Arrow array can hold (pure).

An array of strings, binaries or lists has offsets of 32 bits: it ends at 2 GiB. Arrow joins the chunks of a column
before it takes rows of it, and refuses a larger column. There rows are taken part by part.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from table.columns.memory_size import rows_bytes

Positions = npt.NDArray[np.int64]

_PART_BYTES = 256 * 1024 * 1024  # of rows that are put in order at once


def take_rows(rows: pa.Table, positions: Positions) -> pa.Table:
    """The rows at these positions, in their order.

    Args:
        rows: any number of rows, with columns in any chunks.
        positions: in `rows`; a position may come several times.
    """
    try:
        return rows.take(pa.array(positions, pa.int64()))
    except pa.ArrowInvalid:  # the offsets overflow; a position that does not exist is another error
        return pa.concat_tables(_parts(rows, positions))


def take_values(column: pa.ChunkedArray, positions: Positions) -> pa.ChunkedArray:
    """The values of a column at these positions; see `take_rows`."""
    return take_rows(pa.table([column], ["values"]), positions).column(0)


def _parts(rows: pa.Table, positions: Positions) -> Iterator[pa.Table]:
    yield rows.slice(0, 0)  # else there is no schema where no row is wanted
    most = max(1, _PART_BYTES * len(rows) // max(1, rows_bytes(rows)))
    for first in range(0, len(positions), most):
        yield from _in_order(rows, positions[first : first + most], most)


def _in_order(rows: pa.Table, positions: Positions, most: int) -> Iterator[pa.Table]:
    """The rows as one part; as several where values are so much larger than on average that Arrow refuses it."""
    order = np.argsort(positions, kind="stable")
    ascending = positions[order]
    ends = np.flatnonzero(np.diff(ascending // most)) + 1
    found = pa.concat_tables(part for near in np.split(ascending, ends) for part in _joined(rows, near))
    if not (order[1:] < order[:-1]).any():
        yield found
        return
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    try:
        yield found.take(pa.array(places))
    except pa.ArrowInvalid:
        yield from (part for half in np.array_split(positions, 2) for part in _in_order(rows, half, most))


def _joined(rows: pa.Table, positions: Positions) -> Iterator[pa.Table]:
    """The rows at positions in ascending order: Arrow joins the rows from the first to the last one."""
    first, last = int(positions[0]), int(positions[-1])
    try:
        yield rows.slice(first, last + 1 - first).take(pa.array(positions - first))
    except pa.ArrowInvalid:
        yield from (part for half in np.array_split(positions, 2) for part in _joined(rows, half))
