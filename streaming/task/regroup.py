"""Rows in any order -> rows by partition path and slot, in bounded memory.

A task writes one file at a time, so the rows of one slot must come together. Spark could sort them, row
by row; columns are faster. What does not fit into memory goes to the worker's disk in runs, each grouped
already, and comes back group by group: an external sort whose comparisons are two integers a row.
"""

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from table.columns.memory_size import rows_bytes
from table.schema.avro_schema import PARTITION_PATH

SLOT_COLUMN = "_hudistream_slot"
NO_PATH = "\0"  # rows of which no partition path can be made

Group = tuple[str, int]


def regroup(batches: Iterable[pa.RecordBatch], memory_bytes: int) -> Iterator[tuple[str, int, pa.Table]]:
    """Brings the rows of each slot together; within a slot they keep their order of arrival.

    Args:
        batches: rows with ``_hoodie_partition_path`` and the slot (int32); schemas all alike.
        memory_bytes: what may be held in memory (Arrow bytes). Beyond it the largest slot is passed on
            as it comes, and the others are spilled to local disk.

    Yields:
        Partition path (`NO_PATH` for null), slot, and rows of it without those two columns; the pieces
        of one slot follow each other.
    """
    held: list[pa.Table] = []
    held_bytes = 0
    passing: Group | None = None
    with ExitStack() as stack:
        runs: list[_Run] = []
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            held.append(rows)
            held_bytes += rows_bytes(rows)
            if held_bytes >= memory_bytes:
                groups = _group(held)
                passing = passing or max(groups, key=lambda group: len(groups[group]))
                if passing in groups:
                    yield *passing, groups.pop(passing)
                if groups:
                    runs.append(stack.enter_context(_Run(groups)))
                held, held_bytes = [], 0
        last = _group(held) if held else {}
        if passing is not None and passing in last:
            yield *passing, last.pop(passing)
        for group in dict.fromkeys([*(group for run in runs for group in run.batches), *last]):
            for run in runs:
                yield from ((*group, rows) for rows in run.read(group))
            if group in last:
                yield *group, last.pop(group)


def split_in_order(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, int, pa.Table]]:
    """The same for rows that come sorted by partition path and slot: nothing is held."""
    for batch in batches:
        if len(batch):
            yield from ((*group, rows) for group, rows in _group([pa.Table.from_batches([batch])]).items())


def _group(held: list[pa.Table]) -> dict[Group, pa.Table]:
    rows = pa.concat_tables(held)
    paths = pc.fill_null(rows.column(PARTITION_PATH), NO_PATH).combine_chunks().dictionary_encode()
    slots = rows.column(SLOT_COLUMN).to_numpy().astype(np.int64)
    several = int(slots.max(initial=0)) + 1
    numbers = paths.indices.to_numpy().astype(np.int64) * several + slots
    kept = rows.drop_columns([PARTITION_PATH, SLOT_COLUMN])
    if len(numbers) and (numbers[1:] < numbers[:-1]).any():
        order = np.argsort(numbers, kind="stable")
        numbers, kept = numbers[order], kept.take(pa.array(order))
    starts = np.flatnonzero(np.diff(numbers, prepend=-1))
    ends = [*starts[1:], len(numbers)]
    return {
        (paths.dictionary[int(number) // several].as_py(), int(number) % several): kept.slice(start, end - start)
        for number, start, end in zip(numbers[starts], starts, ends, strict=True)
    }


class _Run:
    """Grouped rows on local disk; the file has no name and is gone when it is closed."""

    def __init__(self, groups: dict[Group, pa.Table]) -> None:
        # Spark's executors say which disks are for this
        folder = (os.environ.get("SPARK_LOCAL_DIRS") or os.environ.get("LOCAL_DIRS") or "").split(",")[0]
        self._file = tempfile.TemporaryFile(  # noqa: SIM115 closed by the with statement of the run
            dir=folder if os.path.isdir(folder) else None
        )
        self.batches: dict[Group, list[int]] = {}
        number = 0
        schema = next(iter(groups.values())).schema
        with pa.ipc.new_file(pa.PythonFile(self._file, mode="w"), schema) as writer:
            for group, rows in groups.items():
                for batch in rows.to_batches():
                    writer.write_batch(batch)
                    self.batches.setdefault(group, []).append(number)
                    number += 1
        self._file.flush()
        self._reader = pa.ipc.open_file(pa.PythonFile(self._file, mode="r"))

    def __enter__(self) -> "_Run":  # noqa: PYI034 typing.Self is younger than Python 3.10
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._file.close()

    def read(self, group: Group) -> Iterator[pa.Table]:
        for number in self.batches.get(group, ()):
            yield pa.Table.from_batches([self._reader.get_batch(number)])
