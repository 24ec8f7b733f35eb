"""Spark as the engine of a sink: it opens batches and knows which queries run."""

import weakref
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from streaming.batch.frames import Frame
from streaming.batch.workers import Batch
from streaming.spark.checkpoint import QueryCheckpoint, tell_temporary_checkpoint
from streaming.spark.driver_workers import CollectedRows, DriverWorkers, collect_rows
from streaming.spark.environment import (
    Environment,
    check_is_written_at_once,
    check_session,
    find_only_query,
    is_connect,
    is_query_over,
    is_seen_active,
    load_environment,
    mark_of_run,
    note_active,
)
from streaming.spark.spread import spread_over
from streaming.spark.workers import SparkWorkers
from streaming.task.in_process import count_cores
from table.errors import InvalidConfigError
from table.log import get_logger
from table.options.choices import WriteLocation
from table.options.write_options import WriteOptions
from table.storage.interface import Storage
from table.transaction.heartbeat import WriterIdentity

log = get_logger("hudistream.sink")


class SparkEngine:
    """Opens the batches of one sink.

    Args:
        options: of the sink.
        storage_options: what fsspec's file system gets (keys, endpoint), for the query's checkpoint.
        storage: of the table, or of the root of the tables.
    """

    def __init__(self, options: WriteOptions, storage_options: Mapping[str, Any], storage: Storage) -> None:
        self._options, self._storage = options, storage
        location = options.sink.checkpoint_location
        self._checkpoint = None if location is None else QueryCheckpoint(location, storage_options)
        self._environment: Environment | None = None
        self._asked_in_stream = False
        self._told_query_id: str | None = None
        self._job_group: str | None = None  # as the tasks told it that were asked last

    def open_micro_batch(self, rows: DataFrame, batch_id: int) -> Batch:
        """A micro-batch of a streaming query.

        Raises:
            InvalidConfigError: the session or the query is not supported.
        """
        if self._options.tasks.location is WriteLocation.DRIVER:
            return self._collect_micro_batch(rows, batch_id)
        environment = self._load_environment(rows, of_stream=True)
        is_other = is_query_over(environment.query_id)  # the sink serves another one now
        if is_other:
            environment = self._load_environment(rows, of_stream=True, anew=True)
        query_id = self._find_query_id(rows.sparkSession, environment.query_id)
        self._check_under_way(environment.query_id, batch_id)
        if is_other or query_id != environment.query_id or not is_seen_active(query_id):
            note_active(rows.sparkSession, query_id)  # else it was just asked
        return Batch(
            SparkWorkers(rows, environment.parallelism),
            batch_id,
            query_id,
            lambda: self._ask_query_id(rows),
            find_query=None if self._checkpoint is not None else lambda: find_only_query(rows.sparkSession),
            spread=spread_over(rows.sparkSession, environment.parallelism),
            positions=None if self._checkpoint is None else self._checkpoint.positions_of(batch_id),
        )

    def frame_of(self, rows: DataFrame, schema: pa.Schema) -> Frame:
        """The frame of a micro-batch, as a later call with the same number can be compared with it.

        Args:
            rows: the frame.
            schema: its columns (Arrow): frames that differ in the names of columns alone have one hash.
        """
        try:
            plan: tuple[int, pa.Schema] | None = (rows.semanticHash(), schema)
        except Exception as error:  # noqa: BLE001 a batch is written without it; only its own object is its repeat then
            log.debug("frame_has_no_hash", error=str(error))
            plan = None
        # the process remembers the frame longer than both live
        known, tell_group = weakref.ref(rows), weakref.WeakMethod(self._tell_group)

        def ask_group() -> str | None:
            tell = tell_group()
            return None if tell is None else tell()

        def ask_mark() -> str | None:
            found = known()
            return None if found is None else mark_of_run(found.sparkSession)

        return Frame(known, plan, ask_group, ask_mark)

    def _tell_group(self) -> str | None:
        return self._job_group

    def check(self, rows: object) -> None:
        """Refuses rows that cannot be written outside a stream.

        Raises:
            InvalidConfigError: the rows are no Spark DataFrame, or a streaming DataFrame.
        """
        check_is_written_at_once(rows)

    def open_write(self, rows: DataFrame) -> Batch:
        """Rows that are written outside a stream.

        Raises:
            InvalidConfigError: the session is not supported.
        """
        if self._options.tasks.location is WriteLocation.DRIVER:
            return self._driver_batch(self._collect(rows))
        parallelism = self._load_environment(rows).parallelism
        return Batch(SparkWorkers(rows, parallelism), spread=spread_over(rows.sparkSession, parallelism))

    def _collect(self, rows: DataFrame) -> CollectedRows:
        """The rows on the driver. Services run there, too."""
        check_session(rows.sparkSession)
        collected = collect_rows(rows, self._options.tasks.driver_bytes)
        self._job_group = collected.job_group
        return collected

    def _driver_batch(self, collected: CollectedRows) -> Batch:
        threads = self._options.tasks.insert_parallelism or count_cores()
        return Batch(DriverWorkers(collected, threads), driver_bytes=collected.size_bytes)

    def _collect_micro_batch(self, rows: DataFrame, batch_id: int) -> Batch:
        collected, spark = self._collect(rows), rows.sparkSession

        def ask() -> str | None:
            query_id = collected.query_id
            if query_id is None and self._checkpoint is None:  # there was no task
                query_id = self._collect(spark.range(1)).query_id
            return self._find_query_id(spark, query_id, is_new=True)

        query_id = ask()
        self._check_under_way(collected.query_id, batch_id)
        note_active(spark, query_id)
        self._tell_checkpoint(query_id)
        positions = None if self._checkpoint is None else self._checkpoint.positions_of(batch_id)
        batch = self._driver_batch(collected)
        return replace(batch, batch_id=batch_id, query_id=query_id, ask_query_id=ask, positions=positions)

    def _check_under_way(self, by_worker: str | None, batch_id: int) -> None:
        if self._checkpoint is not None and by_worker is None:  # always under Spark Connect
            self._checkpoint.check_under_way(batch_id)

    @staticmethod
    def is_over(writer: WriterIdentity) -> bool:
        """Whether the query of another writer in this application has ended."""
        return is_query_over(writer.query_id)

    def _ask_query_id(self, rows: DataFrame) -> str | None:
        environment = self._load_environment(rows, of_stream=True, anew=True)
        return self._find_query_id(rows.sparkSession, environment.query_id, is_new=True)

    def _find_query_id(self, spark: SparkSession, by_worker: str | None, *, is_new: bool = False) -> str | None:
        """The streaming query's id, from its checkpoint or from a worker.

        Args:
            by_worker: by a worker; None: it did not know.
            is_new: whether the worker told it for this batch.

        Raises:
            InvalidConfigError: under Spark Connect without ``hudistream.checkpoint.location``; the checkpoint is that
                of another query; or as `find_only_query`.
        """
        if self._checkpoint is not None:
            recorded = self._checkpoint.read_query_id()
            if is_new and by_worker not in (None, recorded):
                raise InvalidConfigError(
                    f"hudistream.checkpoint.location is the checkpoint of the query {recorded}, and the batch is of "
                    f"the query {by_worker}: give the checkpointLocation of the query that this sink belongs to; "
                    "nothing was written"
                )
            return recorded
        if by_worker is None and is_connect(spark):
            raise InvalidConfigError(
                "under Spark Connect the streaming query's id is not known to the sink: set "
                "hudistream.checkpoint.location to the query's checkpointLocation"
            )
        return by_worker or find_only_query(spark)

    def _load_environment(self, rows: DataFrame, *, of_stream: bool = False, anew: bool = False) -> Environment:
        """The environment, loaded once. For a stream it is loaded again if it came from a write outside a stream."""
        spark = rows.sparkSession
        check_session(spark)
        if self._environment is None or anew or (of_stream and not self._asked_in_stream):
            self._environment = load_environment(spark, self._options, self._storage)
            self._job_group = self._environment.job_group
            self._asked_in_stream = of_stream
            self._tell_checkpoint(self._environment.query_id)
        return self._environment

    def _tell_checkpoint(self, query_id: str | None) -> None:
        """Looks whether the checkpoint of a query is temporary, once for each query."""
        if query_id not in (None, self._told_query_id) and self._checkpoint is None:
            tell_temporary_checkpoint(query_id)
        self._told_query_id = query_id
