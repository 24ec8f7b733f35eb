"""HudiSink: the callable for ``writeStream.foreachBatch``."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from streaming.batch.summary import BatchSummary
from streaming.batch.workers import Batch
from streaming.table_sink import TableSink, given_batch_id
from table.errors import HudiError, InvalidConfigError
from table.extras import needs_extra
from table.log import get_logger
from table.options.operation import Operation, OperationName

if TYPE_CHECKING:  # pyspark is needed when the first batch is there, not before
    from pyspark.sql import DataFrame

    from streaming.spark.engine import SparkEngine
    from streaming.spark.query_watch import QueryWatch

log = get_logger("hudistream.sink")


class HudiSink(TableSink):
    """Writes every micro-batch of a stream into a Hudi table, exactly once.

    ``sink = HudiSink(path, key="id", partition_by="day", order_by="ts")``, then
    ``df.writeStream.foreachBatch(sink).option("checkpointLocation", …).start().awaitTermination()``

    The table is created by the first batch. The sink is picklable; under Spark Connect it lives in a
    process of its own.

    Args:
        path: where the table is: a folder, ``file:///…``, ``s3a://…``.
        options: ``hoodie.*`` keys and values as strings, or `WriteOptions`. A value of None means that the option is
            not given. Where an option and one of the short names (`key`, `partition_by`, `order_by` …) are
            both given, they must agree.
        key: column or columns that identify a row; a new table needs it.
        partition_by: column or columns that make the partition path; without it, a new table has no partitions.
        order_by: column or columns that order the records of one key: the greatest value stays; without it, the record
            that arrives last stays.
        operation: the operation of a batch; ``upsert`` by default.
        table_type: ``cow`` (copy on write) or ``mor`` (merge on read) for a new table; ``cow`` where it is not named.
        index: how keys are found: ``bloom``, ``simple``, ``bucket``, ``global_bloom`` …; ``bloom`` if it is not named.
        bad_rows: what becomes of rows that cannot be stored: ``fail`` (the batch fails, the default) or ``quarantine``.
        schema: how columns that differ are taken: ``strict``, ``add`` (the default) or ``reconcile``.
        storage_options: options for fsspec's file system (keys, endpoint).
        validators: picklable callables that are called with a batch before its commit (`streaming.validators`) and may
            refuse it.
        callbacks: picklable callables that get the `BatchSummary` of every batch afterwards. Their errors are logged
            and counted, and fail no batch. If a callback has a method ``after_upkeep``, it also gets an `UpkeepSummary`
            after each run of cleaning and archival, in the thread of that run.
        on_failure: picklable callables that get the `FailedBatch` of every failed batch, before its error is raised.
            Their errors are logged and counted. They are never called for a batch that is visible.

    Attributes:
        last_batch: summary of the last batch.
        callback_failures: how often a callback or a failure hook raised.

    Raises:
        InvalidConfigError: for an option that is unknown or refused, has a value that does not fit, or contradicts
            another.
    """

    def _start(self) -> None:
        super()._start()
        self._engine: SparkEngine | None = None
        self._watch: QueryWatch | None = None

    def __call__(self, batch: "DataFrame", batch_id: int | None = None) -> None:
        """Writes one micro-batch; Spark calls this.

        Args:
            batch: its rows.
            batch_id: Spark's id of it, the same when it is replayed; ``foreach`` gives none, and is refused.

        Raises:
            HudiError: the batch is not visible; Spark replays it when the query is started again.
        """
        batch_id = given_batch_id(self, batch_id)
        with self._one_batch(), self._watched(batch_id):
            try:
                opened = self._open_batch(batch, batch_id)
            except HudiError as error:
                self._writer.note_refused(batch_id, error)
                raise
            self._write_batch(opened, None)

    def _open_batch(self, batch: "DataFrame", batch_id: int) -> Batch:
        self._check_streams()
        engine = self._open_engine()
        opened = engine.open_micro_batch(batch, batch_id)
        if self._watch is not None:
            self._watch.note_batch(batch.sparkSession, opened.query_id)
        return replace(opened, frame=engine.frame_of(batch, opened.workers.schema))

    def _leave(self, is_over: Callable[[], bool]) -> bool:
        """Releases the table, as long as its query is over and nothing runs. A later batch takes it again.

        Returns:
            Whether that is done. Batches of a query that is started again do not wait for services: they come first.
        """
        with self._lock:
            if self._writer.is_busy or not is_over():
                return False
            if self._writer.lease.is_held:
                self._writer.leave()
                log.info("table_left", table=self._writer.table, reason="its query has ended; a batch takes it again")
            return True

    def _open_engine(self) -> "SparkEngine":
        if self._engine is None:
            try:
                from streaming.spark.engine import SparkEngine  # noqa: PLC0415 see the top of this module
                from streaming.spark.query_watch import QueryWatch  # noqa: PLC0415
            except ModuleNotFoundError as error:
                raise InvalidConfigError(
                    f"{needs_extra('a batch of Spark', 'spark')}, or run where Spark brings PySpark ({error})"
                ) from error
            self._engine = SparkEngine(self._options, self._storage_options, self._storage)
            self._writer.lease.is_over = self._engine.is_over
            self._watch = QueryWatch(self._leave)
        return self._engine

    def _check_streams(self) -> None:
        operation = self._options.effective_operation
        if operation.replaces and not self._options.overwrite.in_stream:
            raise InvalidConfigError(
                f"hoodie.datasource.write.operation={operation} in a stream: each micro-batch would replace the one "
                "before; use HudiSink.write(df), or set hudistream.overwrite.in.stream=true if that is what you want"
            )

    def write(self, rows: "DataFrame", operation: Operation | OperationName | None = None) -> BatchSummary:
        """Writes a DataFrame outside a stream: a backfill, which a stream then continues.

        Args:
            rows: the rows to write.
            operation: ``insert``, ``bulk_insert``, ``upsert``, ``delete``, ``insert_overwrite`` (of the partition paths
                of the rows), ``insert_overwrite_table`` or ``delete_partition`` (of the rows' partition paths,
                or those of ``hoodie.datasource.write.partitions.to.delete``); None means the sink's own.

        Returns:
            The summary of the write. A write is not remembered as a batch: an insert done twice adds its rows twice.

        Raises:
            InvalidConfigError: the rows are no Spark DataFrame, or a streaming DataFrame.
            HudiError: nothing of the write is visible.
        """
        engine = self._open_engine()
        engine.check(rows)
        with self._one_batch(), self._watched(None):
            return self._write_batch(engine.open_write(rows), operation)
