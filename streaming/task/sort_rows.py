"""Sorts the rows of a task in bounded memory, where their order within a slot matters."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import chain, groupby
from operator import itemgetter

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streaming.plan.columns import SLOT_COLUMN
from streaming.plan.task_plan import TaskPlan
from streaming.task.grouping import LOTS, Numbered, group_rows
from table.columns.memory_size import rows_bytes
from table.columns.spilled_run import SpilledRun
from table.columns.take import take_rows
from table.options.clustering_settings import RowOrder
from table.schema.avro_schema import PARTITION_PATH, RECORD_KEY
from table.write.sorted_rows import Ordering, SortedRows

Positions = npt.NDArray[np.int64]

_SLOTS = 1 << 32
_SAMPLED = 64  # keys sampled from each piece to choose the bounds of the lots


def sort_rows(plan: TaskPlan, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Sorts rows by slot. If the plan needs it, sorts each slot by record key, then by the ordering fields.

    Args:
        plan: from the driver; `TaskPlan.is_sorted`.
        batches: as `TaskPlan.arriving_schema`, in order of arrival, which is the last sort criterion.

    Raises:
        StorageError: the disk is full.
    """
    names, slots = _order_within_slot(plan), _Slots()
    numbered = (slots.number(pa.Table.from_batches([batch])) for batch in batches)
    for _, pieces in groupby(group_rows(numbered, plan.memory_bytes), itemgetter(0)):
        of_slot = (rows for _, rows in pieces)
        yield from sort_by(of_slot, names, plan.memory_bytes) if names else of_slot


def sort_slots(
    grouped: Iterable[tuple[str | None, int, pa.Table]], order: RowOrder, memory_bytes: int
) -> Iterator[tuple[str | None, int, pa.Table]]:
    """Sorts the rows of each slot by columns, or along a curve.

    Args:
        grouped: partition path, slot, and rows; the pieces of a slot follow each other.
        order: of the rows.
        memory_bytes: most bytes (Arrow) of a slot's rows that are held in memory; its sort columns come on top.

    Raises:
        StorageError: the disk is full.
    """
    ordering = Ordering(order.columns, order.layout, memory_bytes=memory_bytes)
    for (path, slot), pieces in groupby(grouped, itemgetter(0, 1)):
        with closing(SortedRows((rows for _, _, rows in pieces), ordering)) as in_order:
            yield from ((path, slot, rows) for rows in in_order)


class _Slots:
    """Numbers the slots of partition paths. It compares paths as bytes, because their text is not checked yet."""

    def __init__(self) -> None:
        self._paths: dict[bytes | None, int] = {}

    def number(self, rows: pa.Table) -> Numbered:
        column = rows.column(PARTITION_PATH).combine_chunks().cast(pa.binary())
        paths = column.dictionary_encode(null_encoding="encode")
        known = [self._paths.setdefault(path, len(self._paths)) for path in paths.dictionary.to_pylist()]
        slots = rows.column(SLOT_COLUMN).to_numpy().astype(np.int64)
        return rows, np.array(known, np.int64)[paths.indices.to_numpy()] * _SLOTS + slots


def _order_within_slot(plan: TaskPlan) -> list[str]:
    names = []
    if plan.context.combine_before_insert or plan.sort_mode is not None:
        names.append(RECORD_KEY)
    if plan.context.combine_before_insert:
        names += plan.context.merge.ordering_fields
    return names


def sort_by(pieces: Iterable[pa.Table], names: Sequence[str], memory_bytes: int) -> Iterator[pa.Table]:
    """Sorts rows. Equal rows keep their order. Nulls come first.

    Args:
        pieces: rows, all with the same schema.
        names: columns, the most significant first; it is a string.
        memory_bytes: most bytes (Arrow) held in memory. More rows go to local disk, in lots by ranges of the first
            column.

    Raises:
        StorageError: the disk is full.
    """
    rest = iter(pieces)
    held, held_bytes = [], 0
    for rows in rest:
        held.append(rows)
        held_bytes += rows_bytes(rows)
        if held_bytes > memory_bytes:
            yield from _sorted_on_disk(chain(held, rest), names)
            return
    if held:
        yield _sorted(held, names)


def _sorted(held: Sequence[pa.Table], names: Sequence[str]) -> pa.Table:
    rows = pa.concat_tables(held)
    # numpy's lexsort takes the most significant key last
    order = np.lexsort([_ranks(rows.column(name)) for name in reversed(names)])
    return take_rows(rows, order)


def _sorted_on_disk(pieces: Iterable[pa.Table], names: Sequence[str]) -> Iterator[pa.Table]:
    sampled: list[pa.ChunkedArray] = []

    def sample() -> Iterator[tuple[int, pa.Table]]:
        for rows in pieces:
            if len(rows):
                places = np.linspace(0, len(rows) - 1, min(_SAMPLED, len(rows)), dtype=np.int64)
                sampled.append(rows.column(names[0]).take(pa.array(places)))
                yield 0, rows

    with ExitStack() as stack:
        raw = stack.enter_context(SpilledRun(sample()))
        keys = pc.drop_null(pa.concat_arrays([chunk for column in sampled for chunk in column.chunks]))
        keys = keys.take(pc.sort_indices(keys))
        bounds = keys.take(pa.array(np.unique(np.linspace(0, max(0, len(keys) - 1), LOTS, dtype=np.int64)[1:-1])))
        lots = stack.enter_context(SpilledRun(_in_lots(raw, names[0], pc.unique(bounds))))
        raw.close()
        for lot in sorted(lots.groups):
            yield _sorted(list(lots.read(lot)), names)


def _in_lots(raw: SpilledRun[int], name: str, bounds: pa.Array) -> Iterator[tuple[int, pa.Table]]:
    for rows in raw.read(0):
        ranks = _ranks(pa.chunked_array([bounds, *rows.column(name).chunks]))
        lots = np.searchsorted(ranks[: len(bounds)], ranks[len(bounds) :], side="right")
        for lot in np.unique(lots).tolist():
            yield lot, rows.filter(pa.array(lots == lot))


def _ranks(column: pa.ChunkedArray) -> Positions:
    """The rank of each value. Equal values have the same rank; nulls come first."""
    values = column.combine_chunks()
    ranks: Positions = pc.rank(values, tiebreaker="dense").to_numpy().astype(np.int64)
    ranks[pc.is_null(values).to_numpy(zero_copy_only=False)] = 0
    return ranks
