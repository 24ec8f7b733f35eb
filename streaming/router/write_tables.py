"""Writes the rows of a router's tables: what waits first, then the batch; the rows of a table that fails wait."""

from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from streaming.batch.failed_batch import is_interruption
from streaming.batch.workers import Batch
from streaming.router.aside import KnownPositions, Waiting, delete_files, put_into_file
from streaming.router.open_tables import OpenTables
from streaming.router.routed_table import Arrived, RoutedTable, columns_for, open_small
from streaming.router.sort_out import KnownTables
from streaming.router.template import RouterTemplate
from streaming.router.waiting_room import Attempts, NotYetError, WaitingRoom
from table import clock, threads
from table.errors import BatchOrderError, HudiError
from table.failures import describe
from table.log import get_logger
from table.storage.interface import Storage
from table.transaction.heartbeat import WriterIdentity

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_AT_ONCE = 4  # small tables that are written at the same time
_SMALL_BYTES = 16 * 1024 * 1024  # rows that the driver writes by itself
_LONGEST_WAIT_S = 300.0  # between two attempts at a table that fails

log = get_logger("hudistream.router")


class TableWriters:
    """The writers of a router's tables.

    Args:
        template: of the router.
        place: the root.
        storage: the router's folder.
        waiting: the batches that wait.
        known: the tables that are known to exist.
    """

    def __init__(
        self, template: RouterTemplate, place: Storage, storage: Storage, waiting: WaitingRoom, known: KnownTables
    ) -> None:
        self._template, self._place, self._storage = template, place, storage
        self._waiting, self._known = waiting, known
        self._open = OpenTables(self._make_table, template.limits.open_tables, template.limits.idle_s)
        self._gate = threads.make_gate(template.limits.services)
        self._attempts: dict[str, Attempts] = {}
        self._schemas: Mapping[str, pa.Schema] | None = None
        self._has_written = False
        self.is_over: Callable[[WriterIdentity], bool] = lambda _: False

    def __len__(self) -> int:
        return len(self._open)

    @property
    def is_busy(self) -> bool:
        """Whether something runs for one of the open tables, such as services."""
        return self._open.is_busy

    def read_schemas(self, spark: "SparkSession") -> None:
        """Reads the schemas that users gave as Spark's text, once.

        Raises:
            ParseException: of Spark, if one is no schema.
        """
        if self._schemas is None:
            from streaming.spark.schema import to_arrow_schema  # noqa: PLC0415

            self._schemas = {
                name: given
                if isinstance(given, pa.Schema)
                else to_arrow_schema(spark.createDataFrame([], given).schema)
                for name, given in self._template.schemas.items()
            }

    def write_all(
        self, spark: "SparkSession", opened: Batch, arrived: Mapping[str, Arrived]
    ) -> Mapping[str, Exception]:
        """Writes each table: small ones side by side in this process, large ones one after another on the cluster.

        Args:
            spark: the session of the batch.
            opened: the batch.
            arrived: its rows, by table.

        Returns:
            The errors of the tables that failed, for `set_aside`.

        Raises:
            BatchOrderError: a table has a batch that this one contradicts, so that no later attempt can succeed.
            HudiError: every table failed, and none was ever written.
        """
        todo = {name: arrived.get(name) for name in {**dict.fromkeys(self._waiting), **arrived}}
        small = [name for name, own in todo.items() if self._is_small(name, own)]
        errors: dict[str, Exception] = {}
        with threads.make_pool(_AT_ONCE, "hudistream-router") as pool:
            running = {
                # a thread does not inherit the logging context of the thread that started it
                name: pool.submit(copy_context().run, self._write_table, spark, opened, name, todo[name])
                for name in small
            }
        for name, own in todo.items():
            error = running[name].exception() if name in running else self._try(spark, opened, name, own)
            if error is None:
                continue
            if not isinstance(error, Exception) or is_interruption(error):
                raise error
            errors[name] = error
        for error in errors.values():
            if isinstance(error, BatchOrderError):  # no later attempt can succeed: it says what is to be done
                raise error
        self._has_written |= len(errors) < len(todo)
        if errors and not self._has_written:
            raise next(iter(errors.values()))
        return errors

    def set_aside(self, opened: Batch, arrived: Mapping[str, Arrived], errors: Mapping[str, Exception]) -> None:
        """Stores the rows of tables that failed, or fails the batch if that has gone on for too long.

        The caller has confirmed that it still holds the root.

        Args:
            opened: the batch.
            arrived: its rows, by table.
            errors: of the tables that failed.

        Raises:
            HudiError: the error of a table of which too many batches wait.
        """
        for name, error in errors.items():
            waiting = self._waiting.batches_of(name)
            if not isinstance(error, NotYetError):
                self._attempts.setdefault(name, Attempts()).note(describe(error), _LONGEST_WAIT_S)
            if name not in arrived or any(each.is_batch(opened.query_id, opened.batch_id) for each in waiting):
                continue
            if len(waiting) >= self._template.limits.batches_aside:
                raise HudiError(
                    f"{len(waiting)} batches wait for the table {name!r}, which fails: {describe(error)}. Remove the "
                    "cause and start the query again; the other tables of this batch are written"
                ) from error
            self._waiting.add(self._of_batch(opened, arrived[name], error))
            log.error(
                "table_set_aside", root=self._place.base_uri, table=name, batch_id=opened.batch_id,
                batches=len(waiting) + 1, error=describe(error),
            )  # fmt: skip

    def _of_batch(self, opened: Batch, own: Arrived, error: Exception) -> Waiting:
        assert opened.batch_id is not None
        at = opened.positions
        positions = None if at is None else KnownPositions(at.load_start(), at.load_end())
        sink_id = self._template.options_of(own.name).sink.id
        return Waiting(
            own.name, opened.batch_id, opened.query_id, own.pieces, describe(error), sink_id, positions=positions
        )

    def close_idle(self) -> None:
        """Stops the writers that have had no rows for long."""
        self._open.close_idle()

    def close(self) -> None:
        """Stops all writers, and waits for their services."""
        self._open.close()

    def _make_table(self, name: str) -> RoutedTable:
        template = self._template
        table = RoutedTable(
            self._place.below(name), template.options_of(name), template.storage_options, template.hooks
        )
        table.belong_to(self._gate, self.is_over)
        return table

    def _is_small(self, name: str, own: Arrived | None) -> bool:
        waiting = [Arrived(name, each.pieces) for each in self._waiting.batches_of(name)]
        return all(each.size_bytes <= _SMALL_BYTES for each in [*waiting, *([own] if own else [])])

    def _try(self, spark: "SparkSession", opened: Batch, name: str, own: Arrived | None) -> BaseException | None:
        try:
            self._write_table(spark, opened, name, own)
        except Exception as error:  # noqa: BLE001 the rows of the table wait, and the others are written
            return error
        return None

    def _write_table(self, spark: "SparkSession", opened: Batch, name: str, own: Arrived | None) -> None:
        """Writes what waits for a table, oldest first, and then its rows of this batch."""
        attempts = self._attempts.get(name)
        if attempts is not None and clock.monotonic_s() < attempts.next_s:
            raise NotYetError(attempts.error)
        with self._open.use(name) as table:
            for each in self._waiting.batches_of(name):
                self._write_waiting(spark, table, opened, each)
            if own is not None:
                self._write_rows(spark, table, opened, own)
                delete_files(self._storage, own.pieces)
        if attempts is not None:
            log.info("waiting_batches_written", root=self._place.base_uri, table=name)
            del self._attempts[name]

    def _write_waiting(self, spark: "SparkSession", table: RoutedTable, opened: Batch, waiting: Waiting) -> None:
        sink_id = waiting.sink_id if waiting.sink_id != table.sink_id else None
        batch = replace(
            opened, batch_id=waiting.batch_id, query_id=waiting.query_id, positions=waiting.positions,
            sink_id=sink_id, keeps_table=True,
        )  # fmt: skip
        try:
            self._write_rows(spark, table, batch, Arrived(waiting.name, waiting.pieces))
        except BatchOrderError as error:
            raise waiting.refused(self._storage, error) from error
        self._waiting.end(waiting)

    def _write_rows(self, spark: "SparkSession", table: RoutedTable, batch: Batch, own: Arrived) -> None:
        columns = columns_for(self._storage, own, table, self._template.unfold, self._schemas or {})
        if own.size_bytes <= _SMALL_BYTES:
            table.write_rows(replace(batch, workers=open_small(self._storage, own, columns)), columns)
        else:
            from streaming.spark.split_frame import frame_of  # noqa: PLC0415
            from streaming.spark.workers import SparkWorkers  # noqa: PLC0415

            pieces = [put_into_file(self._storage, piece) for piece in own.pieces]
            workers = SparkWorkers(frame_of(spark, self._storage, pieces, columns), len(pieces))
            try:
                table.write_rows(replace(batch, workers=workers), columns)
            finally:
                delete_files(self._storage, [piece for piece in pieces if piece not in own.pieces])
        self._known.add(own.name)
