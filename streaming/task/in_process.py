"""Workers without an engine: the tasks of a batch in this process, one after another or in threads."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, wait
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from dataclasses import replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streaming.plan.columns import SLOT_COLUMN
from streaming.plan.task_plan import Pipeline, TaskPlan
from streaming.plan.task_result import TaskResult
from streaming.task.arriving import conform_arriving
from streaming.task.route_rows import slots_of, tasks_of
from streaming.task.routed_rows import RoutedRows, read_all
from streaming.task.run import run_task
from streaming.task.sort_rows import sort_rows
from streaming.task.tag import tag_rows
from table import threads
from table.columns.memory_size import rows_bytes
from table.columns.text_bytes import find_bad_text, made_readable
from table.errors import TaskFailedError
from table.files.bloom.key_hashes import hash_keys
from table.keys.arrow_keys import compute_keys
from table.keys.keygen import KeyExpressions
from table.records.merge import ARRIVAL_COLUMN
from table.schema.avro_schema import PARTITION_PATH, RECORD_KEY

Positions = npt.NDArray[np.int64]
Result = TypeVar("Result")

BATCH_ROWS = 10_000  # as many rows as Spark hands to a worker at once
PIECE_ROWS = 100_000  # rows whose keys are computed at once
PIECE_BYTES = 32 * 1024 * 1024


def count_cores() -> int:
    """Cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


class InProcessWorkers:
    """Runs the tasks of one batch in this process; see `streaming.batch.workers.Workers`.

    Args:
        rows: the batch (Arrow), with types from `table.columns.storable`. A reader is read once, piece by piece.
        parallelism: number of tasks into which the batch is split.
        workers: threads that run the tasks; with one, the tasks run one after another in this thread.
        attempts: how often a task is tried before the batch fails.
        batch_rows: rows that a task gets at once.
    """

    def __init__(
        self,
        rows: pa.Table | pa.RecordBatchReader,
        *,
        parallelism: int = 1,
        workers: int = 1,
        attempts: int = 1,
        batch_rows: int = BATCH_ROWS,
    ) -> None:
        self._rows = rows
        self.parallelism, self._attempts, self._batch_rows = parallelism, attempts, batch_rows
        self._workers = workers
        self._started = 0
        self._failed = False
        self._lock = threads.make_lock()

    @property
    def schema(self) -> pa.Schema:
        """Columns of the batch (Arrow)."""
        return self._rows.schema

    @property
    def can_repeat(self) -> bool:
        """Whether the rows can be read again."""
        return not isinstance(self._rows, pa.RecordBatchReader)

    def list_partition_paths(self, keys: KeyExpressions) -> Sequence[str]:
        """The partition paths of the rows, each once."""
        found: dict[str, None] = {}
        for start, rows in self._pieces():
            found |= dict.fromkeys(pc.unique(self._make_keys(keys, rows, start)[1]).to_pylist())
        return [path for path in found if path]

    def _make_keys(self, keys: KeyExpressions, rows: pa.Table, start: int) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
        """Record keys and partition paths of rows; `start` is the number of the first row in the batch."""
        del start  # only subclasses that already have the keys of the whole batch use it
        return compute_keys(keys.rules, rows)

    def write(self, keys: KeyExpressions, plan: TaskPlan) -> list[TaskResult]:
        """Moves the rows to their tasks, in memory and on local disk, and runs the tasks.

        Raises:
            HudiError: a task failed in all its attempts. The other tasks have ended, too.
            StorageError: local disk is full.
        """
        # the threads together get the memory of one Spark worker process
        plan = replace(plan, memory_bytes=max(1, plan.memory_bytes // min(self._workers, plan.routes.tasks)))
        with self._routed(keys, plan) as parts:

            def run(task: int) -> TaskResult:
                return self._run(plan, task, lambda: self._batches(plan, parts, task))

            tasks = [task for task in range(plan.routes.tasks) if any(part.has(task) for part in parts)]
            results = self._run_all(tasks, run)
        return [result for result in results if not result.is_empty]

    def route(self, keys: KeyExpressions, plan: TaskPlan) -> list[list[pa.RecordBatch]]:
        """The rows of each task, in the form that `run_task` takes; a separate key lookup is already done."""
        with self._routed(keys, plan) as parts:
            return [list(self._batches(plan, parts, task)) for task in range(plan.routes.tasks)]

    def _run(self, plan: TaskPlan, task: int, read: Callable[[], Iterable[pa.RecordBatch]]) -> TaskResult:
        for attempt in range(self._attempts):
            with self._lock:
                self._started += 1
                token = f"{task}-0-{self._started}"
            try:
                return run_task(plan, token, read())
            except Exception:
                if attempt + 1 == self._attempts:
                    raise
        raise AssertionError("a task has at least one attempt")

    def _run_all(self, tasks: Sequence[int], run: Callable[[int], Result]) -> list[Result]:
        """Runs tasks. When one fails, no other task starts, and running tasks end at their next rows."""
        self._failed = False  # a batch that met a conflict is written again
        if self._workers == 1 or len(tasks) < 2:
            return [run(task) for task in tasks]
        with threads.make_pool(min(self._workers, len(tasks)), "hudistream-task") as pool:
            running = [pool.submit(copy_context().run, run, task) for task in tasks]
            try:
                ended, _ = wait(running, return_when=FIRST_EXCEPTION)
                failed = next((future for future in running if future in ended and future.exception()), None)
                self._failed = failed is not None
            except BaseException:
                self._failed = True
                raise
            finally:
                for future in running:
                    future.cancel()  # has an effect only on tasks that have not started
        return [future.result() for future in (running if failed is None else [failed])]

    def _batches(self, plan: TaskPlan, parts: Sequence[RoutedRows], task: int) -> Iterator[pa.RecordBatch]:
        pieces = read_all(parts, task)
        if plan.is_sorted:
            pieces = sort_rows(plan, (batch for rows in pieces for batch in self._cut(rows)))
        for rows in pieces:
            yield from self._cut(rows)

    def _cut(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        for batch in rows.combine_chunks().to_batches(self._batch_rows):
            if self._failed:
                raise TaskFailedError("another task of the batch failed")
            yield batch

    @contextmanager
    def _routed(self, keys: KeyExpressions, plan: TaskPlan) -> Iterator[Sequence[RoutedRows]]:
        """The rows of each task, in one or several parts that are read one after the other."""
        with ExitStack() as stack:
            routed = stack.enter_context(self._at_tasks(keys, plan))
            if plan.pipeline is not Pipeline.TAGGED_UPSERT:
                yield [routed]
                return
            tagged = self._tagged(plan, routed, stack)
            routed.close()
            yield tagged

    def _at_tasks(self, keys: KeyExpressions, plan: TaskPlan) -> RoutedRows:
        """The first exchange: each row goes to the task of its slot, or of its key with a global index."""
        routed = RoutedRows(plan.routes.tasks, plan.memory_bytes)
        try:
            for start, rows in self._pieces():
                arriving, tasks = self._arriving(keys, plan, rows, start)
                routed.add(arriving, tasks, self._added_bytes(rows, arriving))
        except BaseException:
            routed.close()
            raise
        return routed

    def _added_bytes(self, rows: pa.Table, arriving: pa.Table) -> int | None:
        """Memory that holding the rows adds. The caller holds the columns of a table anyway; only new ones count."""
        if isinstance(self._rows, pa.RecordBatchReader):
            return None
        theirs = {field.name: field.type for field in rows.schema}
        ours = [field.name for field in arriving.schema if theirs.get(field.name) != field.type]
        return rows_bytes(arriving.select(ours))

    def _pieces(self) -> Iterator[tuple[int, pa.Table]]:
        """The rows piece by piece, each with the number of its first row."""
        start = 0
        for rows in self._large_pieces():
            for first in range(0, len(rows), PIECE_ROWS):
                yield start + first, rows.slice(first, PIECE_ROWS)
            start += len(rows)

    def _large_pieces(self) -> Iterator[pa.Table]:
        if not isinstance(self._rows, pa.RecordBatchReader):
            yield self._rows
            return
        held: list[pa.RecordBatch] = []
        rows = held_bytes = 0
        for batch in self._rows:
            held.append(batch)
            rows += len(batch)
            held_bytes += rows_bytes(pa.Table.from_batches([batch]))
            if rows >= PIECE_ROWS or held_bytes >= PIECE_BYTES:
                yield pa.Table.from_batches(held)
                held, rows, held_bytes = [], 0, 0
        if held:
            yield pa.Table.from_batches(held)

    def _arriving(self, keys: KeyExpressions, plan: TaskPlan, rows: pa.Table, start: int) -> tuple[pa.Table, Positions]:
        """Rows as `TaskPlan.arriving_schema`, and the task of each."""
        record_keys, paths = self._make_keys(keys, rows, start)
        routes, route = plan.routes, pa.table({RECORD_KEY: record_keys, PARTITION_PATH: paths})
        if find_bad_text(route):
            route = made_readable(route)  # only for routing; the task finds the bad text again and reports it
        numbers = hash_keys(route.column(RECORD_KEY))
        slots = slots_of(routes, route.column(PARTITION_PATH), numbers).astype(np.int32)
        route = route.append_column(SLOT_COLUMN, pa.array(slots))
        is_global = plan.changes is not None and plan.changes.is_global
        tasks: Positions = numbers % routes.tasks if is_global else tasks_of(routes, route)
        taken = rows.select([]) if plan.needs_keys_only else rows
        columns = dict(zip(taken.column_names, taken.columns, strict=True))
        columns |= {RECORD_KEY: record_keys, PARTITION_PATH: paths, SLOT_COLUMN: pa.array(slots)}
        if plan.numbers_rows:
            columns[ARRIVAL_COLUMN] = pa.array(np.arange(start, start + len(record_keys)))
        return conform_arriving(pa.table(columns), plan.arriving_schema, plan), tasks

    def _tagged(self, plan: TaskPlan, routed: RoutedRows, stack: ExitStack) -> list[RoutedRows]:
        """The second exchange: each row, tagged with its file group, goes to the task that writes it."""
        count = plan.routes.tasks
        parts = [stack.enter_context(RoutedRows(count, plan.memory_bytes // count)) for _ in range(count)]

        def tag(task: int) -> None:
            for rows in tag_rows(plan, self._batches(plan, [routed], task)):
                parts[task].add(rows, tasks_of(plan.routes, rows))

        self._run_all([task for task in range(count) if routed.has(task)], tag)
        return parts
