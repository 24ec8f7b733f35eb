"""Spark's workers: DataFrame -> rows at the task that owns their slot -> the results of the tasks.

There is one action per batch. There is one exchange, or two where other tasks look up the keys. Only the DataFrame API
is used, so that the same plan runs on classic Spark and under Spark Connect. Spark analyses the whole plan again at
each step, so each pipeline has few steps. Columns are SQL text: for each column made by a function, PySpark looks up a
Java class, which takes a millisecond of every batch.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import PySparkValueError
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from streaming.plan.columns import SLOT_COLUMN, TASK_COLUMN
from streaming.plan.routes import Routes, task_values
from streaming.plan.task_plan import Pipeline, TaskPlan
from streaming.plan.task_result import TaskResult, decode_result
from streaming.spark.carried import carried
from streaming.spark.collations import without_collations
from streaming.spark.schema import to_arrow_schema
from streaming.spark.worker_failure import failure_of
from streaming.spark.zipped_library import forget_finders
from streaming.task.arriving import conform_arriving
from streaming.task.failure import told_to_the_driver
from streaming.task.route_rows import tasks_of
from streaming.task.run import run_task
from streaming.task.tag import tag_rows
from table.errors import SchemaMismatchError
from table.files.names import build_write_token
from table.keys.keygen import KeyExpressions
from table.keys.sql_text import quote_text
from table.records.merge import ARRIVAL_COLUMN
from table.schema.avro_schema import PARTITION_PATH, RECORD_KEY

QUERY_ID_PROPERTY = "sql.streaming.queryId"
JOB_GROUP_PROPERTY = "spark.jobGroup.id"  # a streaming query puts the id of its run there
RESULT = StructType([StructField("result", StringType())])


def schema_of(rows: DataFrame) -> StructType:
    """The columns of a frame.

    Raises:
        SchemaMismatchError: PySpark has no class for the type of a column, such as a calendar interval.
    """
    try:
        return rows.schema
    except PySparkValueError as error:
        message = " ".join(str(error).split())
        raise SchemaMismatchError(
            f"the rows have a column whose type PySpark cannot read: {message}. Cast the column to a type that "
            "docs/concepts/keys-and-types.md lists, or leave it out"
        ) from error


class SparkWorkers:
    """The executors of a Spark application, with the rows of one batch.

    Args:
        rows: the batch.
        parallelism: the largest number of tasks.
    """

    can_repeat = True  # Spark computes the rows again

    def __init__(self, rows: DataFrame, parallelism: int) -> None:
        schema = schema_of(rows)
        self._rows, self.parallelism = without_collations(rows, schema), parallelism
        self.schema: pa.Schema = to_arrow_schema(schema)

    def list_partition_paths(self, keys: KeyExpressions) -> list[str]:
        """The partition paths of the rows, each once."""
        paths = self._rows.selectExpr(_named(keys.partition_path, "path")).distinct()
        return [row.path for row in paths.collect() if row.path]

    def write(self, keys: KeyExpressions, plan: TaskPlan) -> list[TaskResult]:
        """See `streaming.batch.workers.Workers`.

        Raises:
            HudiError: a task failed. It is the task's own error with the place where it happened, raised from Spark's.
        """
        pipelines = {Pipeline.BULK: _bulk, Pipeline.APPEND: _append, Pipeline.UPSERT: _upsert}
        written = pipelines.get(plan.pipeline, _tagged_upsert)(self._rows, keys, plan)
        try:
            rows = written.collect()
        except Exception as error:
            failed = failure_of(error, plan.context.instant_time)
            if failed is None:
                raise
            raise failed from error
        return [decode_result(row.result) for row in rows]


def _bulk(rows: DataFrame, keys: KeyExpressions, plan: TaskPlan) -> DataFrame:
    """Arranges rows by sort columns, or by ``hoodie.bulkinsert.sort.mode``. Every task opens files of its own."""
    assert plan.sort_mode is not None
    key, path = _named(keys.record_key, RECORD_KEY), _named(keys.partition_path, PARTITION_PATH)
    rows, tasks = rows.selectExpr("*", key, path, _named("0", SLOT_COLUMN)), plan.routes.tasks
    if plan.order is not None:  # each task sorts its range by itself
        rows = rows.repartitionByRange(tasks, PARTITION_PATH, *(F.col(f"`{name}`") for name in plan.order.columns))
    elif plan.sort_mode == "GLOBAL_SORT":
        rows = rows.repartitionByRange(tasks, PARTITION_PATH, RECORD_KEY)
    elif plan.sort_mode.startswith("PARTITION_PATH_REPARTITION"):
        rows = rows.repartition(tasks, PARTITION_PATH)
    if plan.is_sorted:
        rows = rows.sortWithinPartitions(PARTITION_PATH, RECORD_KEY)
    return _written(_dropped(rows, _repeated_key(keys)), plan, keys.key_column)


def _append(rows: DataFrame, keys: KeyExpressions, plan: TaskPlan) -> DataFrame:
    """Moves rows to the task of their slot, and sorts them there if the order of a slot's rows matters."""
    if not plan.keeps_order:
        rows = _dropped(_at_slots(rows, keys, plan, keys.key_column), _task_column(plan))
        return _written(rows, plan, keys.key_column)
    rows = _at_slots(rows, keys, plan, None)
    rows = rows.sortWithinPartitions(PARTITION_PATH, SLOT_COLUMN, *_order_within_slot(plan))
    rows = _dropped(rows, [*_task_column(plan), ARRIVAL_COLUMN, *_repeated_key(keys)])
    return _written(rows, plan, keys.key_column)


def _upsert(rows: DataFrame, keys: KeyExpressions, plan: TaskPlan) -> DataFrame:
    """Moves rows to the task of their slot. The slot owns the file groups that may hold their keys."""
    key_column = None if plan.needs_keys_only else keys.key_column
    return _written(_dropped(_at_slots(rows, keys, plan, key_column), _task_column(plan)), plan, key_column)


def _tagged_upsert(rows: DataFrame, keys: KeyExpressions, plan: TaskPlan) -> DataFrame:
    """Moves rows to a task that looks up their key, then to the task that writes the file group that holds it."""
    assert plan.changes is not None
    key_column = None if plan.needs_keys_only else keys.key_column
    if plan.changes.is_global:  # a key may be in any partition path: its hash decides which task looks it up
        rows = rows.selectExpr(*_columns(keys, plan, None), _named("0", SLOT_COLUMN), *_arrival(plan))
        rows = rows.coalesce(1) if plan.routes.tasks == 1 else rows.repartition(plan.routes.tasks, RECORD_KEY)
        rows = _dropped(rows, [RECORD_KEY] if key_column else [])
    else:
        rows = _dropped(_at_slots(rows, keys, plan, key_column), _task_column(plan))
    schema = from_arrow_schema(plan.tagged_schema).add(TASK_COLUMN, IntegerType())
    tagged = rows.mapInArrow(carried(partial(_tag_on_worker, plan, key_column)), schema)
    if plan.routes.tasks > 1:
        tagged = tagged.repartition(plan.routes.tasks, TASK_COLUMN)
    return _written(_dropped(tagged, [TASK_COLUMN]), plan, None)


def _written(rows: DataFrame, plan: TaskPlan, key_column: str | None) -> DataFrame:
    return rows.mapInArrow(carried(partial(_write_on_worker, plan, key_column)), RESULT)


def _columns(keys: KeyExpressions, plan: TaskPlan, key_column: str | None) -> list[str]:
    """The columns (SQL) of rows in an exchange. If the record key is a plain column, it is not sent a second time."""
    return [
        *([] if plan.needs_keys_only else ["*"]),
        *([] if key_column else [_named(keys.record_key, RECORD_KEY)]),
        _named(keys.partition_path, PARTITION_PATH),
    ]


def _arrival(plan: TaskPlan) -> list[str]:
    """The arrival number of rows (SQL). An exchange loses the order of arrival, which decides between equal rows."""
    numbered = plan.keeps_order or plan.numbers_rows
    return [_named("monotonically_increasing_id()", ARRIVAL_COLUMN)] if numbered else []


def _dropped(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    return rows.drop(*names) if names else rows


def _task_column(plan: TaskPlan) -> list[str]:
    """The column that chose the task of a row, if there was an exchange."""
    return [TASK_COLUMN] if plan.routes.tasks > 1 else []


def _repeated_key(keys: KeyExpressions) -> list[str]:
    """The record key column, which is not needed after the exchange if the record key is a plain column."""
    return [RECORD_KEY] if keys.key_column else []


def _at_slots(rows: DataFrame, keys: KeyExpressions, plan: TaskPlan, key_column: str | None) -> DataFrame:
    """Moves rows to the task of their slot. They keep the columns that decided the exchange."""
    routes, slot = plan.routes, _slot_sql(plan.routes, keys)
    columns = [*_columns(keys, plan, key_column), _named(slot, SLOT_COLUMN), *_arrival(plan)]
    if routes.tasks == 1:
        return rows.selectExpr(*columns).coalesce(1)
    task = _named(_task_sql(routes, keys, slot), TASK_COLUMN)
    return rows.selectExpr(*columns, task).repartition(routes.tasks, TASK_COLUMN)


def _order_within_slot(plan: TaskPlan) -> list[str | Column]:
    context = plan.context
    if context.combine_before_insert:
        newest_last = [F.col(f"`{name}`").asc_nulls_first() for name in context.merge.ordering_fields]
        return [RECORD_KEY, *newest_last, ARRIVAL_COLUMN]
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
    """SQL for a value by partition path. It is a literal map, so a change of values needs no new compiled code."""
    if not by_path:
        return otherwise
    entries = ",".join(f"{quote_text(known)},{value}" for known, value in by_path.items())
    found = f"element_at(map({entries}), {path})"
    return found if otherwise == "NULL" else f"coalesce({found}, {otherwise})"


def _named(sql: str, name: str) -> str:
    return f"{sql} AS {name}"


def _write_on_worker(
    plan: TaskPlan, key_column: str | None, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    assert context is not None
    token = build_write_token(context.partitionId(), context.stageId(), context.taskAttemptId())
    schema = plan.tagged_schema if plan.pipeline is Pipeline.TAGGED_UPSERT else plan.arriving_schema
    with told_to_the_driver():
        result = run_task(plan, token, _conformed(plan, schema, key_column, batches))
    forget_finders()  # for the next task of this process
    if not result.is_empty:
        query_id, job_group = map(context.getLocalProperty, (QUERY_ID_PROPERTY, JOB_GROUP_PROPERTY))
        result = replace(result, query_id=query_id, job_group=job_group)
        yield pa.RecordBatch.from_pydict({"result": [result.encode()]})


def _tag_on_worker(
    plan: TaskPlan, key_column: str | None, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    values = np.array(task_values(plan.routes.tasks))
    with told_to_the_driver():
        for rows in tag_rows(plan, _conformed(plan, plan.arriving_schema, key_column, batches)):
            tasks = values[tasks_of(plan.routes, rows)]
            yield from rows.append_column(TASK_COLUMN, pa.array(tasks, pa.int32())).to_batches()
    forget_finders()


def _conformed(
    plan: TaskPlan, schema: pa.Schema, key_column: str | None, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Casts Spark's batches to the table's types; for example, the session's time zone is not the table's."""
    for batch in batches:
        rows = pa.Table.from_batches([batch])
        if key_column is not None:
            rows = rows.append_column(RECORD_KEY, rows.column(key_column))
        yield from conform_arriving(rows, schema, plan).to_batches()
