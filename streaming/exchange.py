"""DataFrame -> rows at the task that owns their slot -> what the tasks wrote. One action, one exchange at most.

DataFrame API alone, so that the same plan runs on classic Spark and under Spark Connect.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streaming.regroup import SLOT_COLUMN
from streaming.routes import Routes, task_values
from streaming.write_task import TaskPlan, TaskResult, decode_result, write_rows
from table.files.base_file import conform
from table.files.file_names import build_write_token
from table.keygen import KeyExpressions, quote_text
from table.schema import PARTITION_PATH, RECORD_KEY

QUERY_ID_PROPERTY = "sql.streaming.queryId"
TASK_COLUMN = "_hudistream_task"
ARRIVAL_COLUMN = "_hudistream_arrival"


def exchange_and_write(batch: DataFrame, keys: KeyExpressions, plan: TaskPlan) -> list[TaskResult]:
    """Moves a batch's rows to their tasks and has them written.

    Args:
        batch: the micro-batch.
        keys: record key and partition path.
        plan: what the tasks need.

    Returns:
        One result for each task that got rows.
    """
    routes = plan.routes
    rows = batch.select(
        "*",
        F.expr(keys.record_key).alias(RECORD_KEY),
        F.expr(keys.partition_path).alias(PARTITION_PATH),
    )
    if plan.keeps_order:
        # ties go by order of arrival, which no exchange keeps: number the rows before it
        rows = rows.withColumn(ARRIVAL_COLUMN, F.monotonically_increasing_id())
    if plan.sort_mode is not None:
        rows = _arranged(rows, plan.sort_mode, routes.tasks)
    else:
        rows = rows.withColumn(SLOT_COLUMN, F.expr(_slot_sql(routes)))
        if routes.tasks == 1:
            rows = rows.coalesce(1)
        else:
            rows = rows.withColumn(TASK_COLUMN, F.expr(_task_sql(routes))).repartition(routes.tasks, TASK_COLUMN)
        if plan.keeps_order:
            rows = rows.sortWithinPartitions(PARTITION_PATH, SLOT_COLUMN, *_order_within_slot(plan))
        rows = rows.drop(TASK_COLUMN, ARRIVAL_COLUMN)
    if keys.key_column is not None:
        rows = rows.drop(RECORD_KEY)  # a column twice: once is enough to travel
    written = rows.mapInArrow(partial(_run_task, plan, keys.key_column), "result string")
    return [decode_result(row.result) for row in written.collect()]


def _arranged(rows: DataFrame, sort_mode: str, tasks: int) -> DataFrame:
    """Rows of a bulk insert (BulkInsertSortMode). Every task opens files of its own, one at a time."""
    if sort_mode == "GLOBAL_SORT":
        rows = rows.repartitionByRange(tasks, PARTITION_PATH, RECORD_KEY)
    elif sort_mode.startswith("PARTITION_PATH_REPARTITION"):
        rows = rows.repartition(tasks, PARTITION_PATH)
    if sort_mode.endswith("SORT"):
        rows = rows.sortWithinPartitions(PARTITION_PATH, RECORD_KEY)
    return rows.withColumn(SLOT_COLUMN, F.lit(0))


def _order_within_slot(plan: TaskPlan) -> list[str | Column]:
    context = plan.context
    if context.combine_before_insert:
        newest_last: list[str | Column] = [RECORD_KEY]
        if context.ordering_field:
            newest_last.append(F.col(f"`{context.ordering_field}`").asc_nulls_first())
        return [*newest_last, ARRIVAL_COLUMN]
    return [ARRIVAL_COLUMN]


def _slot_sql(routes: Routes) -> str:
    counts = {path: str(len(tasks)) for path, tasks in routes.planned.items() if len(tasks) != routes.default_slots}
    if not counts and routes.default_slots == 1:
        return "0"
    return f"CAST(pmod(xxhash64({RECORD_KEY}), {_look_up(counts, str(routes.default_slots))}) AS INT)"


def _task_sql(routes: Routes) -> str:
    values = task_values(routes.tasks)
    hashed = (
        f"element_at({_array(values)}, CAST(pmod(hash({PARTITION_PATH}, {SLOT_COLUMN}), {routes.tasks}) AS INT) + 1)"
    )
    owners = {path: _array([values[task] for task in tasks]) for path, tasks in routes.planned.items()}
    return f"coalesce(element_at({_look_up(owners, 'NULL')}, {SLOT_COLUMN} + 1), {hashed})" if owners else hashed


def _array(values: Sequence[int]) -> str:
    return "array(" + ",".join(map(str, values)) + ")"


def _look_up(by_path: Mapping[str, str], otherwise: str) -> str:
    """SQL for a value by partition path: as a literal map it may change without new code to compile."""
    if not by_path:
        return otherwise
    entries = ",".join(f"{quote_text(path)},{value}" for path, value in by_path.items())
    found = f"element_at(map({entries}), {PARTITION_PATH})"
    return found if otherwise == "NULL" else f"coalesce({found}, {otherwise})"


def _run_task(plan: TaskPlan, key_column: str | None, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs on a worker."""
    context = TaskContext.get()
    assert context is not None
    token = build_write_token(context.partitionId(), context.stageId(), context.taskAttemptId())
    result = write_rows(plan, token, _conformed(plan, key_column, batches))
    result = replace(result, query_id=context.getLocalProperty(QUERY_ID_PROPERTY))
    if result.stats or result.bad_rows:
        yield pa.RecordBatch.from_pydict({"result": [result.encode()]})


def _conformed(plan: TaskPlan, key_column: str | None, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Spark's batches with the table's types: the session's time zone, for one, is not the table's."""
    schema = pa.schema(
        [
            *plan.context.schema,
            pa.field(RECORD_KEY, pa.string()),
            pa.field(PARTITION_PATH, pa.string()),
            pa.field(SLOT_COLUMN, pa.int32()),
        ]
    )
    for batch in batches:
        rows = pa.Table.from_batches([batch])
        if key_column is not None:
            rows = rows.append_column(RECORD_KEY, rows.column(key_column))
        yield from conform(rows, schema).to_batches()
