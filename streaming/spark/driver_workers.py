"""Workers of a batch whose rows come to the driver: for clusters whose executors cannot reach the table's store.

The executors compute the rows, and need pyarrow for that, but not this package. The driver writes the files.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame

from streaming.plan.task_plan import TaskPlan
from streaming.plan.task_result import TaskResult
from streaming.spark.carried import ArrowTask
from streaming.spark.schema import to_arrow_schema
from streaming.spark.worker_failure import failure_of
from streaming.spark.workers import JOB_GROUP_PROPERTY, QUERY_ID_PROPERTY
from streaming.task.in_process import InProcessWorkers
from table.columns.conform import conform
from table.errors import InvalidConfigError
from table.keys.keygen import KeyExpressions

_SENT = "rows binary, bytes bigint, query_id string, job_group string"
_MB = 1024 * 1024


@dataclass(frozen=True)
class CollectedRows:
    """The rows of a batch on the driver.

    Attributes:
        rows: in the order of Spark's partitions.
        size_bytes: of the rows in memory.
        query_id: the streaming query of the tasks that sent them; None outside a stream, and where there was no task.
        job_group: the job group of these tasks (`TaskResult.job_group`).
    """

    rows: pa.Table
    size_bytes: int
    query_id: str | None
    job_group: str | None = None


def collect_rows(rows: DataFrame, most_bytes: int) -> CollectedRows:
    """Brings the rows of a DataFrame to the driver, in one action.

    A task that has more than `most_bytes` sends none of its rows. So the driver holds at most `most_bytes` for each
    task, and at most ``spark.driver.maxResultSize``.

    Args:
        most_bytes: most bytes of all rows (``hudistream.write.driver.max.bytes``).

    Raises:
        InvalidConfigError: there are more bytes, or pyarrow is missing on a worker.
        HudiError: a task failed.
    """
    schema = to_arrow_schema(rows.schema)
    try:
        sent = rows.mapInArrow(_make_sender(most_bytes), _SENT).collect()
    except Exception as error:
        failed = failure_of(error)
        if failed is None:
            raise
        raise failed from error
    size_bytes = sum(row.bytes for row in sent)
    if size_bytes > most_bytes:
        raise InvalidConfigError(
            f"the batch has {size_bytes / _MB:.1f} MB of rows, and hudistream.write.location=driver takes at most "
            f"hudistream.write.driver.max.bytes={most_bytes} ({most_bytes / _MB:.1f} MB): let the source give smaller "
            "batches (maxFilesPerTrigger, maxOffsetsPerTrigger), or raise the limit and the driver's memory; nothing "
            "was written"
        )
    pieces = [
        conform(pa.Table.from_batches([batch]), schema)
        for row in sent
        if row.rows is not None
        for batch in pa.ipc.open_stream(row.rows)
    ]
    query_id = next((row.query_id for row in sent if row.query_id is not None), None)
    job_group = next((row.job_group for row in sent if row.job_group is not None), None)
    return CollectedRows(pa.concat_tables(pieces) if pieces else schema.empty_table(), size_bytes, query_id, job_group)


def _make_sender(most_bytes: int) -> ArrowTask:
    """The function that sends the rows of a task. It is nested, so Spark pickles it by value."""
    properties = QUERY_ID_PROPERTY, JOB_GROUP_PROPERTY

    def send(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa  # noqa: PLC0415
        from pyspark import TaskContext  # noqa: PLC0415

        columns = {"rows": pa.binary(), "bytes": pa.int64(), "query_id": pa.string(), "job_group": pa.string()}

        def told(*values: object) -> pa.RecordBatch:
            return pa.RecordBatch.from_arrays(
                [pa.array([value], kind) for value, kind in zip(values, columns.values(), strict=True)], list(columns)
            )

        context, total = TaskContext.get(), 0
        query_id, job_group = (None, None) if context is None else map(context.getLocalProperty, properties)
        for batch in batches:
            total += batch.nbytes
            if total <= most_bytes and len(batch):
                sink = pa.BufferOutputStream()
                with pa.ipc.new_stream(sink, batch.schema) as stream:
                    stream.write_batch(batch)
                yield told(sink.getvalue().to_pybytes(), 0, None, None)
        yield told(None, total, query_id, job_group)

    return send


class DriverWorkers(InProcessWorkers):
    """Threads of the driver, with the rows of one batch.

    Args:
        collected: the rows.
        threads: that write.
    """

    def __init__(self, collected: CollectedRows, threads: int) -> None:
        super().__init__(collected.rows, parallelism=threads, workers=threads)
        self._query_id, self._job_group = collected.query_id, collected.job_group

    def write(self, keys: KeyExpressions, plan: TaskPlan) -> list[TaskResult]:
        """See `InProcessWorkers.write`. The results name the query whose tasks sent the rows, and its run."""
        results = super().write(keys, plan)
        return [replace(result, query_id=self._query_id, job_group=self._job_group) for result in results]
