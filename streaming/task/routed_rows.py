"""Groups the rows of a batch by task, in bounded memory: an exchange within one process."""

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from table.columns.memory_size import rows_bytes
from table.columns.spilled_run import SpilledRun
from table.columns.take import take_rows

Positions = npt.NDArray[np.int64]

SPILLED_ROWS = 16_384  # rows of a task that are written to disk, and read again, together


class _Held:
    """Rows in order of arrival, with the positions of each task's rows. Rows are copied only when a task reads them."""

    def __init__(self, rows: pa.Table, tasks: Positions, count: int) -> None:
        self._rows = rows
        self._order: Positions | None = None
        self._bounds = np.searchsorted(tasks, np.arange(count + 1))
        if len(tasks) and (tasks[1:] < tasks[:-1]).any():
            order = np.argsort(tasks, kind="stable")
            self._bounds = np.searchsorted(tasks[order], np.arange(count + 1))
            self._order = order

    def of(self, task: int) -> pa.Table:
        first, end = self._bounds[task], self._bounds[task + 1]
        if self._order is None:
            return self._rows.slice(first, end - first)
        return take_rows(self._rows, self._order[first:end])


class RoutedRows:
    """Collects rows, then returns the rows of a task, as often as needed. A context manager.

    Args:
        tasks: number of tasks.
        memory_bytes: most bytes of rows (Arrow) that are held in memory; more go to local disk.
    """

    def __init__(self, tasks: int, memory_bytes: int) -> None:
        self._tasks, self._memory_bytes = tasks, memory_bytes
        self._held: list[_Held] = []
        self._held_bytes = 0
        self._runs: list[SpilledRun[int]] = []
        self._counts = np.zeros(tasks, np.int64)

    def __enter__(self) -> "RoutedRows":  # noqa: PYI034 typing.Self is younger than Python 3.10
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Forgets the rows, in memory and on disk."""
        self._held = []
        for run in self._runs:
            run.close()

    def add(self, rows: pa.Table, tasks: Positions, added_bytes: int | None = None) -> None:
        """Adds rows, each to its task.

        Args:
            rows: the rows; all calls have the same schema.
            tasks: the task of each row.
            added_bytes: memory that holding them adds; None: the memory of all their columns. It is less if the caller
                holds some columns anyway.

        Raises:
            StorageError: the disk is full.
        """
        if not len(rows):
            return
        self._held.append(_Held(rows, tasks, self._tasks))
        self._held_bytes += rows_bytes(rows) if added_bytes is None else added_bytes
        self._counts += np.bincount(tasks, minlength=self._tasks)
        if self._held_bytes > self._memory_bytes:
            self._runs.append(SpilledRun(self._held_by_task()))
            self._held, self._held_bytes = [], 0

    def _held_by_task(self) -> Iterator[tuple[int, pa.Table]]:
        for task in range(self._tasks):
            for held in self._held:
                rows = held.of(task)
                for first in range(0, len(rows), SPILLED_ROWS):
                    yield task, rows.slice(first, SPILLED_ROWS)

    def has(self, task: int) -> bool:
        """Whether a task gets rows."""
        return bool(self._counts[task])

    def read(self, task: int) -> Iterator[pa.Table]:
        """The rows of a task, in order of arrival."""
        for run in self._runs:
            yield from run.read(task)
        for held in self._held:
            rows = held.of(task)
            if len(rows):
                yield rows


def read_all(parts: Iterable[RoutedRows], task: int) -> Iterator[pa.Table]:
    """The rows of a task in several `RoutedRows`, one after the other."""
    for part in parts:
        yield from part.read(task)
