"""Workers without an engine: the tasks of a batch one after another, in this process."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streaming.plan.columns import SLOT_COLUMN
from streaming.plan.task_plan import Pipeline, TaskPlan
from streaming.plan.task_result import TaskResult
from streaming.task.route_rows import slots_of, tasks_of
from streaming.task.run import run_task
from streaming.task.tag import tag_rows
from table.columns.conform import conform
from table.columns.text_bytes import find_bad_text, made_readable
from table.files.bloom.key_hashes import hash_keys
from table.keys.keygen import KeyExpressions
from table.records.merge import ARRIVAL_COLUMN
from table.schema.avro_schema import PARTITION_PATH, RECORD_KEY

Positions = npt.NDArray[np.int64]

BATCH_ROWS = 10_000  # as many as Spark hands to a worker at once


class InProcessWorkers:
    """This process, with the rows of one batch; see `streaming.batch.workers.Workers`.

    Args:
        rows: the batch (Arrow).
        record_keys: of the rows (string); null or empty: the row cannot be stored.
        partition_paths: of the rows (string).
        parallelism: tasks that the batch is cut into.
        attempts: how often a task is tried before its failure is the batch's.
        batch_rows: rows that a task is handed at once.
    """

    def __init__(
        self,
        rows: pa.Table,
        record_keys: pa.ChunkedArray,
        partition_paths: pa.ChunkedArray,
        *,
        parallelism: int = 1,
        attempts: int = 1,
        batch_rows: int = BATCH_ROWS,
    ) -> None:
        self._rows, self._keys, self._paths = rows, record_keys, partition_paths
        self.parallelism, self._attempts, self._batch_rows = parallelism, attempts, batch_rows
        self._started = 0

    @property
    def schema(self) -> pa.Schema:
        """Columns of the batch (Arrow)."""
        return self._rows.schema

    def list_partition_paths(self, keys: KeyExpressions) -> Sequence[str]:  # noqa: ARG002 they were made before
        """The partition paths of the rows, each once."""
        paths: list[str] = pc.unique(self._paths).to_pylist()
        return paths

    def write(self, keys: KeyExpressions, plan: TaskPlan) -> list[TaskResult]:  # noqa: ARG002 they were made before
        """Runs one task after another.

        Raises:
            HudiError: a task failed as often as it may.
        """
        results = (self._run(plan, task, batches) for task, batches in enumerate(self.route(plan)) if batches)
        return [result for result in results if not result.is_empty]

    def _run(self, plan: TaskPlan, task: int, batches: Sequence[pa.RecordBatch]) -> TaskResult:
        for attempt in range(self._attempts):
            self._started += 1
            try:
                return run_task(plan, f"{task}-0-{self._started}", batches)
            except Exception:
                if attempt + 1 == self._attempts:
                    raise
        raise AssertionError("a task has at least one attempt")

    def route(self, plan: TaskPlan) -> list[list[pa.RecordBatch]]:
        """The rows that each task writes, as `run_task` takes them; keys that are looked for apart were looked for."""
        routed: Iterable[pa.Table] = self._routed(plan)
        if plan.pipeline is Pipeline.TAGGED_UPSERT:
            routed = self._tagged(plan, routed)
        return [rows.combine_chunks().to_batches(self._batch_rows) for rows in routed]

    def _routed(self, plan: TaskPlan) -> Iterator[pa.Table]:
        """The rows of each task, in order of arrival."""
        routes, route = plan.routes, pa.table({RECORD_KEY: self._keys, PARTITION_PATH: self._paths})
        if find_bad_text(route):
            route = made_readable(route)  # the task finds it, too, and says so
        numbers = hash_keys(route.column(RECORD_KEY))
        slots = slots_of(routes, route.column(PARTITION_PATH), numbers).astype(np.int32)
        is_global = plan.changes is not None and plan.changes.is_global
        route = route.append_column(SLOT_COLUMN, pa.array(slots))
        tasks = numbers % routes.tasks if is_global else tasks_of(routes, route)
        rows = self._arriving(plan, slots)
        for task in range(routes.tasks):
            mine = rows.filter(pa.array(tasks == task))
            yield mine.take(pa.array(self._order(plan, mine))) if plan.is_sorted else mine

    def _arriving(self, plan: TaskPlan, slots: npt.NDArray[np.int32]) -> pa.Table:
        rows = self._rows.select([]) if plan.needs_keys_only else self._rows
        columns = dict(zip(rows.column_names, rows.columns, strict=True))
        columns |= {RECORD_KEY: self._keys, PARTITION_PATH: self._paths, SLOT_COLUMN: pa.array(slots)}
        if plan.numbers_rows:
            columns[ARRIVAL_COLUMN] = pa.array(np.arange(len(self._keys)))
        return conform(pa.table(columns), plan.arriving_schema, plan.context.required)

    def _order(self, plan: TaskPlan, rows: pa.Table) -> Positions:
        """Sorted as Spark sorts them: by slot, then by key and what decides among equal keys."""
        names = [PARTITION_PATH, SLOT_COLUMN]
        if plan.context.combine_before_insert or plan.sort_mode is not None:
            names.append(RECORD_KEY)
        ordering = plan.context.merge.ordering_field
        if plan.context.combine_before_insert and ordering is not None:
            names.append(ordering)
        # of numpy's keys the last one counts most
        order: Positions = np.lexsort([_ranks(rows.column(name)) for name in reversed(names)])
        return order

    def _tagged(self, plan: TaskPlan, routed: Iterable[pa.Table]) -> list[pa.Table]:
        """The second exchange."""
        parts: list[list[pa.Table]] = [[] for _ in range(plan.routes.tasks)]
        for arrived in routed:
            for rows in tag_rows(plan, arrived.to_batches(self._batch_rows)):
                tasks = tasks_of(plan.routes, rows)
                for task, of_task in enumerate(parts):
                    of_task.append(rows.filter(pa.array(tasks == task)))
        empty = plan.tagged_schema.empty_table()
        return [pa.concat_tables([empty, *of_task]) for of_task in parts]


def _ranks(column: pa.ChunkedArray) -> Positions:
    """The rank of each value, the same for equal ones; nulls first."""
    values = column.combine_chunks()
    ranks: Positions = pc.rank(values, tiebreaker="dense").to_numpy().astype(np.int64)
    ranks[pc.is_null(values).to_numpy(zero_copy_only=False)] = 0
    return ranks
