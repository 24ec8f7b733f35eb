"""Rows in any order -> rows by group, in bounded memory.

A task writes one file at a time, so the rows of one slot, and then of one file, must come together. Spark could
sort them, row by row; columns are faster. What does not fit into memory goes to the worker's disk in runs, each
grouped already, and comes back group by group: an external sort whose comparison is one integer per row.
"""

from collections.abc import Hashable, Iterable, Iterator
from contextlib import ExitStack
from itertools import chain
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streaming.plan.columns import SLOT_COLUMN
from streaming.task.spilled_run import SpilledRun
from table.columns.memory_size import rows_bytes
from table.files.bloom.key_hashes import hash_keys
from table.schema.avro_schema import PARTITION_PATH, RECORD_KEY

LOTS = 32  # parts of what is too large for memory

_SLOTS = 1 << 32
_ROWS_OF_A_LARGE_GROUP = 256  # in a piece: fewer are better brought together once all are there
_MOST_PARTS = 4096  # of groups, in all pieces: more are better brought together row by row

Numbers = npt.NDArray[np.int64]
Numbered = tuple[pa.Table, Numbers]  # rows, and the number of each one's group
Key = TypeVar("Key", bound=Hashable)


def group_rows(pieces: Iterable[Numbered], memory_bytes: int) -> Iterator[tuple[int, pa.Table]]:
    """Brings the rows of each group together; within a group they keep their order of arrival.

    Args:
        pieces: rows with the number of their group; schemas all alike.
        memory_bytes: what may be held in memory (Arrow bytes). Beyond it the largest group is passed on
            as it comes, and the others are spilled to local disk.

    Yields:
        Number of a group, and rows of it; the pieces of one group follow each other.
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
                    yield passing, groups.pop(passing).combine_chunks()
                if groups:
                    runs.append(stack.enter_context(SpilledRun(groups.items())))
                held, held_bytes = [], 0
        last = _grouped(held) if held else {}
        if passing is not None and passing in last:
            yield passing, last.pop(passing).combine_chunks()
        for group in dict.fromkeys([*(group for run in runs for group in run.groups), *last]):
            for run in runs:
                yield from ((group, rows) for rows in run.read(group))
            if group in last:
                yield group, last.pop(group).combine_chunks()


def group_by_slot(batches: Iterable[pa.RecordBatch], memory_bytes: int) -> Iterator[tuple[str | None, int, pa.Table]]:
    """`group_rows` for rows as they arrive at a task.

    Args:
        batches: rows with ``_hoodie_partition_path`` and the slot (int32).
        memory_bytes: as there.

    Yields:
        Partition path (None where none can be made of the row), slot, and rows of it without those two columns.
    """
    slots = _Slots()
    numbered = (slots.number(pa.Table.from_batches([batch])) for batch in batches)
    for number, rows in group_rows(numbered, memory_bytes):
        yield *slots.of(number), rows


def split_in_order(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str | None, int, pa.Table]]:
    """The same for rows that come sorted by partition path and slot: nothing is held."""
    slots = _Slots()
    for batch in batches:
        if len(batch):
            for number, rows in _grouped([slots.number(pa.Table.from_batches([batch]))]).items():
                yield *slots.of(number), rows


def whole_groups(pieces: Iterable[tuple[Key, pa.Table]]) -> Iterator[tuple[Key, pa.Table]]:
    """The pieces of each group put together; those of one group follow each other."""
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
    """Rows that have to be looked at together: all of a key, and no more than fit. One lot where all do.

    Args:
        pieces: rows with ``_hoodie_record_key``.
        memory_bytes: what may be held in memory (Arrow bytes).
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
    """Numbers slots of partition paths, in the order in which their paths come."""

    def __init__(self) -> None:
        self._paths: dict[str | None, int] = {}
        self._names: list[str | None] = []

    def number(self, rows: pa.Table) -> Numbered:
        """Rows without the two columns, and the number of each one's slot."""
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
    """A piece with the rows of each group together, where its groups are few: done while the next is on its way."""
    rows, numbers = piece
    if _are_together(numbers):
        return piece
    order = np.argsort(numbers, kind="stable")
    numbers = numbers[order]
    few = len(_starts(numbers)) * _ROWS_OF_A_LARGE_GROUP <= len(numbers)
    return (rows.take(pa.array(order)), numbers) if few else piece


def _are_together(numbers: Numbers) -> bool:
    return not (numbers[1:] < numbers[:-1]).any()


def _starts(numbers: Numbers) -> npt.NDArray[np.int64]:
    """Where the rows of each group begin, in rows that lie together."""
    return np.flatnonzero(np.diff(numbers, prepend=-1))


def _grouped(held: list[Numbered]) -> dict[int, pa.Table]:
    """Rows by the number of their group, in the order of the numbers; the rows of a group are those of all pieces."""
    parts = sum(len(_starts(numbers)) for _, numbers in held)
    if (len(held) > 1 and parts > _MOST_PARTS) or not all(_are_together(numbers) for _, numbers in held):
        rows, numbers = pa.concat_tables([part for part, _ in held]), np.concatenate([part for _, part in held])
        order = np.argsort(numbers, kind="stable")
        held = [(rows.take(pa.array(order)), numbers[order])]
    groups: dict[int, list[pa.Table]] = {}
    for rows, numbers in held:
        starts = _starts(numbers)
        ends = [*starts[1:], len(numbers)][: len(starts)]
        for number, start, end in zip(numbers[starts].tolist(), starts, ends, strict=True):
            groups.setdefault(number, []).append(rows.slice(start, end - start))
    return {number: pa.concat_tables(groups[number]) for number in sorted(groups)}
