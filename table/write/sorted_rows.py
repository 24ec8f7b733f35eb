"""Sorts rows in bounded memory: in memory, or by way of local disk, in lots of neighbouring rows."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa

from table.columns.memory_size import rows_bytes
from table.columns.spilled_run import SpilledRun
from table.columns.take import take_rows
from table.options.clustering_settings import Layout
from table.write.row_order import Positions, order_of

_SORTED_BYTES = 256 * 1024 * 1024
_POSITION = "_hudistream_position"


@dataclass(frozen=True)
class Ordering:
    """The order of rows that are written together: those of a clustered group, or of a bulk insert's partition path.

    Attributes:
        columns: sort columns; none: the rows keep their order.
        layout: the order if there are several columns.
        number: the number of this order, for the names of files (`table.services.clustering.plan.order_number`).
        memory_bytes: most bytes of rows (Arrow) that are held in memory. The sort columns of all rows come on top.
    """

    columns: tuple[str, ...] = ()
    layout: Layout = Layout.LINEAR
    number: int = 0
    memory_bytes: int = _SORTED_BYTES


class SortedRows:
    """Rows in order. They are read once.

    Args:
        pieces: the rows, all with the same schema.
        ordering: the order of the rows.

    Attributes:
        count: number of rows.

    Raises:
        StorageError: the disk is full.
    """

    def __init__(self, pieces: Iterable[pa.Table], ordering: Ordering) -> None:
        self._ordering, self._stack, self.count = ordering, ExitStack(), 0
        self._keys: list[pa.Table] = []
        self._held: list[pa.Table] = []
        self._spilled: SpilledRun[int] | None = None
        self._bytes = 0
        rest = iter(self._noted(pieces))
        for rows in rest:
            self._held.append(rows)
            if self._bytes > ordering.memory_bytes:
                spilled: Iterator[pa.Table] = chain(self._held, rest)
                self._spilled = self._stack.enter_context(SpilledRun((0, piece) for piece in spilled))
                self._held = []

    def _noted(self, pieces: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for rows in pieces:
            if not len(rows):
                continue
            self.count += len(rows)
            self._bytes += rows_bytes(rows)
            if self._ordering.columns:
                self._keys.append(rows.select(list(self._ordering.columns)))
            yield rows

    def close(self) -> None:
        """Deletes what lies on local disk."""
        self._stack.close()

    def __iter__(self) -> Iterator[pa.Table]:
        """The rows, in pieces."""
        if not self.count:
            return
        order = order_of(pa.concat_tables(self._keys), self._ordering.layout) if self._keys else None
        self._keys = []
        if self._spilled is None:
            rows = pa.concat_tables(self._held)
            self._held = []
            yield rows if order is None else take_rows(rows, order)
        elif order is None:
            yield from self._spilled.read(0)
        else:
            yield from self._through_lots(self._spilled, order)

    def _through_lots(self, raw: SpilledRun[int], order: Positions) -> Iterator[pa.Table]:
        positions = np.empty(len(order), np.int64)
        positions[order] = np.arange(len(order))
        lots = -(-2 * self._bytes // self._ordering.memory_bytes)  # a lot is held twice while it is sorted
        with SpilledRun(_in_lots(raw, positions, lots)) as by_lot:
            raw.close()
            for lot in sorted(by_lot.groups):
                rows = pa.concat_tables(list(by_lot.read(lot)))
                at = np.argsort(rows.column(_POSITION).to_numpy(), kind="stable")
                yield take_rows(rows.drop_columns([_POSITION]), at)


def _in_lots(raw: SpilledRun[int], positions: Positions, lots: int) -> Iterator[tuple[int, pa.Table]]:
    begin = 0
    for rows in raw.read(0):
        mine = positions[begin : begin + len(rows)]
        begin += len(rows)
        lot_of = mine * lots // len(positions)
        numbered = rows.append_column(_POSITION, pa.array(mine))
        for lot in np.unique(lot_of).tolist():
            yield lot, take_rows(numbered, np.flatnonzero(lot_of == lot))
