"""Rows in any order -> rows by group, in bounded memory.

A task writes one file at a time, so the rows of one slot, and then of one file, must come together. Spark could sort
them row by row, but grouping columns is faster. Rows that do not fit into memory go to the worker's disk in runs that
are already grouped, and are read back group by group: an external sort that compares one integer per row.
"""

from collections.abc import Hashable, Iterable, Iterator
from contextlib import ExitStack
from itertools import chain
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streaming.plan.columns import SLOT_COLUMN
from table.columns.memory_size import rows_bytes
from table.columns.spilled_run import SpilledRun
from table.columns.take import take_rows
from table.files.bloom.key_hashes import hash_keys
from table.schema.avro_schema import PARTITION_PATH, RECORD_KEY

LOTS = 32  # lots into which rows are split that do not fit into memory

_SLOTS = 1 << 32
_ROWS_OF_A_LARGE_GROUP = 256  # average rows per group in a piece; below it, sorting all pieces together is faster
_MOST_HELD = 2  # times its own bytes that a slice may keep in memory
_MOST_PARTS = 4096  # group parts in all pieces; above it, sorting row by row is faster

Numbers = npt.NDArray[np.int64]
Numbered = tuple[pa.Table, Numbers]  # rows, and the number of each one's group
Key = TypeVar("Key", bound=Hashable)


def group_rows(pieces: Iterable[Numbered], memory_bytes: int) -> Iterator[tuple[int, pa.Table]]:
    """Brings the rows of each group together; within a group they keep their order of arrival.

    Args:
        pieces: rows with the number of their group, all with the same schema.
        memory_bytes: most bytes (Arrow) held in memory. Above it, rows of the largest group are yielded as they come,
            and rows of the other groups are spilled to local disk.

    Yields:
        Number of a group, and some of its rows. The pieces of one group follow each other.
    """
    held: list[Numbered] = []
    held_bytes = 0
    passing: int | None = None
    with ExitStack() as stack:
        runs: list[SpilledRun[int]] = []
        for piece in pieces:
            held.append(_sorted_early(piece))
            held_bytes += rows_bytes(held[-1][0])
            if held_bytes >= memory_bytes:
                groups = _grouped(held)
                if passing is None:
                    passing = max(groups, key=lambda group: len(groups[group]))
                if passing in groups:
                    yield passing, _copied(groups.pop(passing))
                if groups:
                    runs.append(stack.enter_context(SpilledRun(groups.items())))
                held, held_bytes = [], 0
        last = _grouped(held) if held else {}
        if passing is not None and passing in last:
            yield passing, _copied(last.pop(passing))
        for group in dict.fromkeys([*(group for run in runs for group in run.groups), *last]):
            for run in runs:
                yield from ((group, rows) for rows in run.read(group))
            if group in last:
                yield group, last.pop(group).combine_chunks()


def group_by_slot(batches: Iterable[pa.RecordBatch], memory_bytes: int) -> Iterator[tuple[str | None, int, pa.Table]]:
    """`group_rows` for rows as they arrive at a task.

    Args:
        batches: rows with ``_hoodie_partition_path`` and the slot (int32).
        memory_bytes: as in `group_rows`.

    Yields:
        Partition path (None where the row has none), slot, and rows of the slot without those two columns.
    """
    slots = _Slots()
    numbered = (slots.number(pa.Table.from_batches([batch])) for batch in batches)
    for number, rows in group_rows(numbered, memory_bytes):
        yield *slots.of(number), rows


def split_in_order(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str | None, int, pa.Table]]:
    """`group_by_slot` for rows that come sorted by partition path and slot: no rows are held back."""
    slots = _Slots()
    for batch in batches:
        if len(batch):
            for number, rows in _grouped([slots.number(pa.Table.from_batches([batch]))]).items():
                yield *slots.of(number), rows


def whole_groups(pieces: Iterable[tuple[Key, pa.Table]]) -> Iterator[tuple[Key, pa.Table]]:
    """Concatenates the pieces of each group. The pieces of one group must follow each other."""
    current: Key | None = None
    held: list[pa.Table] = []
    for group, rows in pieces:
        if held and group != current:
            assert current is not None
            yield current, pa.concat_tables(held)
            held = []
        current = group
        held.append(rows)
    if held:
        assert current is not None
        yield current, pa.concat_tables(held)


def lots_of_keys(pieces: Iterable[pa.Table], memory_bytes: int) -> Iterator[pa.Table]:
    """Splits rows into lots that fit into memory. All rows of a key are in one lot.

    Args:
        pieces: rows with ``_hoodie_record_key``.
        memory_bytes: most bytes (Arrow) held in memory. If all rows fit, there is one lot.
    """
    rest = iter(pieces)
    held, held_bytes = [], 0
    for rows in rest:
        held.append(rows)
        held_bytes += rows_bytes(rows)
        if held_bytes > memory_bytes:
            numbered = ((part, _lot_numbers(part)) for part in chain(held, rest))
            yield from (lot for _, lot in whole_groups(group_rows(numbered, memory_bytes)))
            return
    if held:
        yield pa.concat_tables(held)


def _lot_numbers(rows: pa.Table) -> Numbers:
    return hash_keys(rows.column(RECORD_KEY)) % LOTS


class _Slots:
    """Numbers the slots of partition paths, in the order in which the paths arrive."""

    def __init__(self) -> None:
        self._paths: dict[str | None, int] = {}
        self._names: list[str | None] = []

    def number(self, rows: pa.Table) -> Numbered:
        """Rows without the two columns, and the slot number of each row."""
        paths = rows.column(PARTITION_PATH).combine_chunks().dictionary_encode("encode")
        known = np.array([self._number_of(path) for path in paths.dictionary.to_pylist()], np.int64)
        slots = rows.column(SLOT_COLUMN).to_numpy().astype(np.int64)
        numbers = known[paths.indices.to_numpy()] * _SLOTS + slots
        return rows.drop_columns([PARTITION_PATH, SLOT_COLUMN]), numbers

    def _number_of(self, path: str | None) -> int:
        if path not in self._paths:
            self._paths[path] = len(self._names)
            self._names.append(path)
        return self._paths[path]

    def of(self, number: int) -> tuple[str | None, int]:
        """The partition path and the slot with that number."""
        return self._names[number // _SLOTS], number % _SLOTS


def _sorted_early(piece: Numbered) -> Numbered:
    """Groups a piece if it has few groups. This happens while the next piece is on its way."""
    rows, numbers = piece
    if _are_together(numbers):
        return piece
    order = np.argsort(numbers, kind="stable")
    numbers = numbers[order]
    few = len(_starts(numbers)) * _ROWS_OF_A_LARGE_GROUP <= len(numbers)
    return (take_rows(rows, order), numbers) if few else piece


def _are_together(numbers: Numbers) -> bool:
    return not (numbers[1:] < numbers[:-1]).any()


def _copied(rows: pa.Table) -> pa.Table:
    """The rows without those that they were sliced from, which stay in memory as long as the slice."""
    whole = rows.combine_chunks()
    if whole.get_total_buffer_size() <= _MOST_HELD * rows_bytes(whole):
        return whole
    return take_rows(whole, np.arange(len(whole)))


def _starts(numbers: Numbers) -> npt.NDArray[np.int64]:
    """Where the rows of each group begin, in rows that are grouped."""
    return np.flatnonzero(np.diff(numbers, prepend=-1))


def _grouped(held: list[Numbered]) -> dict[int, pa.Table]:
    """Group number -> its rows in all pieces, in the order of the numbers."""
    parts = sum(len(_starts(numbers)) for _, numbers in held)
    if (len(held) > 1 and parts > _MOST_PARTS) or not all(_are_together(numbers) for _, numbers in held):
        rows, numbers = pa.concat_tables([part for part, _ in held]), np.concatenate([part for _, part in held])
        order = np.argsort(numbers, kind="stable")
        held = [(take_rows(rows, order), numbers[order])]
    groups: dict[int, list[pa.Table]] = {}
    for rows, numbers in held:
        starts = _starts(numbers)
        ends = [*starts[1:], len(numbers)][: len(starts)]
        for number, start, end in zip(numbers[starts].tolist(), starts, ends, strict=True):
            groups.setdefault(number, []).append(rows.slice(start, end - start))
    return {number: pa.concat_tables(groups[number]) for number in sorted(groups)}
