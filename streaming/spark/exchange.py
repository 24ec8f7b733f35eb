"""DataFrame -> rows at the task that owns their slot -> what the tasks wrote. One action, one exchange at most.

DataFrame API alone, so that the same plan runs on classic Spark and under Spark Connect.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import PythonException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from streaming.plan.routes import Routes, task_values
from streaming.plan.task_plan import TaskPlan, TaskResult, decode_result
from streaming.task.append import write_rows
from streaming.task.failure import read_failure, told_to_the_driver
from streaming.task.regroup import SLOT_COLUMN
from streaming.task.tag import tag_rows, tasks_of
from streaming.task.upsert import write_changes
from table.columns.conform import conform
from table.files.names import build_write_token
from table.keys.keygen import KeyExpressions
from table.keys.sql_text import quote_text
from table.records.merge import ARRIVAL_COLUMN
from table.schema.avro_schema import PARTITION_PATH, RECORD_KEY

QUERY_ID_PROPERTY = "sql.streaming.queryId"
TASK_COLUMN = "_hudistream_task"
RESULT = StructType([StructField("result", StringType())])


def exchange_and_write(batch: DataFrame, keys: KeyExpressions, plan: TaskPlan) -> list[TaskResult]:
    """Moves a batch's rows to their tasks and has them written.

    Args:
        batch: the micro-batch.
        keys: record key and partition path.
        plan: what the tasks need.

    Returns:
        One result for each task that got rows.

    Raises:
        HudiError: a task failed: its own error with the place where it happened, caused by Spark's.
    """
    # few steps: Spark analyses the whole plan anew at each of them
    key_column = None if plan.needs_keys_only else keys.key_column
    columns: list[str | Column] = [
        *([] if plan.needs_keys_only else ["*"]),
        # a record key that is a column as it stands need not travel twice
        *([] if key_column and not _goes_by_key(plan) else [_named(keys.record_key, RECORD_KEY)]),
        _named(keys.partition_path, PARTITION_PATH),
    ]
    if plan.sort_mode is not None:
        rows = _arranged(batch.select(*columns, F.lit(0).alias(SLOT_COLUMN)), plan.sort_mode, plan.routes.tasks)
    else:
        rows = _routed(batch, columns, keys, plan)
    done_with = [TASK_COLUMN] if plan.routes.tasks > 1 else []
    done_with += [ARRIVAL_COLUMN] if plan.keeps_order and not plan.numbers_rows else []
    done_with += [RECORD_KEY] if key_column and _goes_by_key(plan) else []
    rows = rows.drop(*done_with) if done_with else rows
    if plan.changes is not None and plan.changes.apart:
        rows, key_column = _tagged(rows, key_column, plan), None
    return _collect(rows.mapInArrow(partial(_run_task, plan, key_column), RESULT), plan)


def collect_paths(rows: DataFrame, keys: KeyExpressions) -> list[str]:
    """The partition paths of rows, each once."""
    return [row.path for row in rows.select(_named(keys.partition_path, "path")).distinct().collect() if row.path]


def _collect(written: DataFrame, plan: TaskPlan) -> list[TaskResult]:
    try:
        rows = written.collect()
    except Exception as error:
        failed = read_failure(str(error), plan.context.instant_time, from_python=isinstance(error, PythonException))
        if failed is None:
            raise
        raise failed from error
    return [decode_result(row.result) for row in rows]


def _goes_by_key(plan: TaskPlan) -> bool:
    """Whether rows are sorted or exchanged by their key."""
    return plan.sort_mode is not None or plan.keeps_order or (plan.changes is not None and plan.changes.is_global)


def _tagged(rows: DataFrame, key_column: str | None, plan: TaskPlan) -> DataFrame:
    """Rows with the file group that holds their key, at the task that writes it: the second exchange."""
    schema = from_arrow_schema(plan.tagged_schema).add(TASK_COLUMN, IntegerType())
    tagged = rows.mapInArrow(partial(_run_tagging, plan, key_column), schema)
    if plan.routes.tasks > 1:
        tagged = tagged.repartition(plan.routes.tasks, TASK_COLUMN)
    return tagged.drop(TASK_COLUMN)


def _named(sql: str, name: str) -> Column:
    return F.expr(sql).alias(name)


def _routed(batch: DataFrame, columns: list[str | Column], keys: KeyExpressions, plan: TaskPlan) -> DataFrame:
    routes = plan.routes
    anywhere = plan.changes is not None and plan.changes.is_global
    slot = "0" if anywhere else _slot_sql(routes, keys)
    columns = [*columns, _named(slot, SLOT_COLUMN)]
    if plan.keeps_order or plan.numbers_rows:
        # ties go by order of arrival, which no exchange keeps: number the rows before it
        columns.append(F.monotonically_increasing_id().alias(ARRIVAL_COLUMN))
    if routes.tasks == 1:
        rows = batch.select(*columns).coalesce(1)
    elif anywhere:
        rows = batch.select(*columns).repartition(routes.tasks, RECORD_KEY)
    else:
        task = _named(_task_sql(routes, keys, slot), TASK_COLUMN)
        rows = batch.select(*columns, task).repartition(routes.tasks, TASK_COLUMN)
    if plan.keeps_order:
        rows = rows.sortWithinPartitions(PARTITION_PATH, SLOT_COLUMN, *_order_within_slot(plan))
    return rows


def _arranged(rows: DataFrame, sort_mode: str, tasks: int) -> DataFrame:
    """Rows of a bulk insert (BulkInsertSortMode). Every task opens files of its own, one at a time."""
    if sort_mode == "GLOBAL_SORT":
        rows = rows.repartitionByRange(tasks, PARTITION_PATH, RECORD_KEY)
    elif sort_mode.startswith("PARTITION_PATH_REPARTITION"):
        rows = rows.repartition(tasks, PARTITION_PATH)
    if sort_mode.endswith("SORT"):
        rows = rows.sortWithinPartitions(PARTITION_PATH, RECORD_KEY)
    return rows


def _order_within_slot(plan: TaskPlan) -> list[str | Column]:
    context = plan.context
    if context.combine_before_insert:
        newest_last: list[str | Column] = [RECORD_KEY]
        if context.merge.ordering_field:
            newest_last.append(F.col(f"`{context.merge.ordering_field}`").asc_nulls_first())
        return [*newest_last, ARRIVAL_COLUMN]
    return [ARRIVAL_COLUMN]


def _slot_sql(routes: Routes, keys: KeyExpressions) -> str:
    counts = {path: str(len(tasks)) for path, tasks in routes.planned.items() if len(tasks) != routes.default_slots}
    if not counts and routes.default_slots == 1:
        return "0"
    count = _look_up(counts, keys.partition_path, str(routes.default_slots))
    return f"CAST(pmod(xxhash64({keys.record_key}), {count}) AS INT)"


def _task_sql(routes: Routes, keys: KeyExpressions, slot: str) -> str:
    path, values = keys.partition_path, task_values(routes.tasks)
    hashed = f"element_at({_array(values)}, CAST(pmod(hash({path}, {slot}), {routes.tasks}) AS INT) + 1)"
    owners = {planned: _array([values[task] for task in tasks]) for planned, tasks in routes.planned.items()}
    return f"coalesce(element_at({_look_up(owners, path, 'NULL')}, {slot} + 1), {hashed})" if owners else hashed


def _array(values: Sequence[int]) -> str:
    return "array(" + ",".join(map(str, values)) + ")"


def _look_up(by_path: Mapping[str, str], path: str, otherwise: str) -> str:
    """SQL for a value by partition path: as a literal map it may change without new code to compile."""
    if not by_path:
        return otherwise
    entries = ",".join(f"{quote_text(known)},{value}" for known, value in by_path.items())
    found = f"element_at(map({entries}), {path})"
    return found if otherwise == "NULL" else f"coalesce({found}, {otherwise})"


def _run_task(plan: TaskPlan, key_column: str | None, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs on a worker."""
    context = TaskContext.get()
    assert context is not None
    token = build_write_token(context.partitionId(), context.stageId(), context.taskAttemptId())
    with told_to_the_driver():
        if plan.changes is not None and plan.changes.apart:
            result = write_changes(plan, token, _conformed(plan.tagged_schema, None, batches))
        else:
            write = write_rows if plan.changes is None else write_changes
            result = write(plan, token, _conformed(plan.arriving_schema, key_column, batches))
    result = replace(result, query_id=context.getLocalProperty(QUERY_ID_PROPERTY))
    if result.stats or result.bad_rows or result.listed:
        yield pa.RecordBatch.from_pydict({"result": [result.encode()]})


def _run_tagging(plan: TaskPlan, key_column: str | None, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs on a worker."""
    values = np.array(task_values(plan.routes.tasks))
    with told_to_the_driver():
        for rows in tag_rows(plan, _conformed(plan.arriving_schema, key_column, batches)):
            tasks = values[tasks_of(plan, rows)]
            yield from rows.append_column(TASK_COLUMN, pa.array(tasks, pa.int32())).to_batches()


def _conformed(
    schema: pa.Schema, key_column: str | None, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Spark's batches with the table's types: the session's time zone, for one, is not the table's."""
    for batch in batches:
        rows = pa.Table.from_batches([batch])
        if key_column is not None:
            rows = rows.append_column(RECORD_KEY, rows.column(key_column))
        yield from conform(rows, schema).to_batches()
