"""HudiRouter: one stream into many tables, for ``writeStream.foreachBatch``."""

import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from streaming.batch.exactly_once import check_is_of_checkpoint
from streaming.batch.failed_batch import is_interruption
from streaming.batch.workers import Batch
from streaming.router.aside import OWN_FOLDER, KnownPositions, Waiting, delete_files, put_into_file
from streaming.router.nameless import check_nameless, open_folder, put_nameless_aside
from streaming.router.open_tables import OpenTables
from streaming.router.query import check_serves
from streaming.router.routed_table import Arrived, RoutedTable, columns_for, gather, open_small
from streaming.router.split import STAGED_FOLDER, Piece, SplitRules, Splitter
from streaming.router.waiting_room import Attempts, NotYetError, WaitingRoom
from streaming.table_sink import Callback, FailureHook, given_batch_id
from streaming.validators import Validator
from table import clock, threads
from table.config.table_config import PROPERTIES_FILE
from table.errors import BatchOrderError, HudiError, InvalidConfigError, TableHeldError
from table.failures import describe
from table.log import get_logger
from table.options.choices import BadRows, IndexType, SchemaMode, TableType, WriteLocation
from table.options.operation import Operation, OperationName
from table.options.short_names import ColumnNames, with_short_names
from table.options.write_options import WriteOptions, parse_options
from table.quarantine.place import ENDING
from table.storage.folder_names import address_below
from table.storage.interface import Storage, join
from table.storage.opening import open_storage
from table.transaction.heartbeat import WriterIdentity
from table.transaction.lease import Lease

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from streaming.spark.engine import SparkEngine

_LEASE_NAME = "router"
_AT_ONCE = 4  # small tables that are written at the same time
_SMALL_BYTES = 16 * 1024 * 1024  # rows that the driver writes by itself
_LONGEST_WAIT_S = 300.0  # between two attempts at a table that fails
_SHOWN = 5

log = get_logger("hudistream.router")


@dataclass(frozen=True)
class RouterLimits:
    """What a router may take.

    Attributes:
        new_tables: most tables that a batch may make; a batch with more fails before anything is written.
        open_tables: most tables whose writers are kept from batch to batch.
        idle_s: after so many seconds without rows a table's writer gives back its thread, its lease and its cache.
        services: most tables whose services run at the same time.
        batches_aside: most batches of a failing table that wait; with more, the query fails. 0: it fails at once, after
            the other tables are written.
    """

    new_tables: int = 100
    open_tables: int = 64
    idle_s: float = 60.0
    services: int = 2
    batches_aside: int = 100


class HudiRouter:
    """Writes every micro-batch of a stream into the tables that its rows name, each exactly once.

    ``router = HudiRouter("/data/lake", table="source_table", key="id", order_by="ts")``, then
    ``df.writeStream.foreachBatch(router).option("checkpointLocation", …).start()``

    The rows of a batch are read once. A table is the folder below `root` with the name that the row brings, and is made
    by the first rows for it. Each table gets its own commit, with its own columns. A table that fails does not hold up
    the others: its rows wait in ``<root>/.hudistream_router``, and are written, in order, when it can be written again.

    Args:
        root: folder of the tables: a folder, ``file:///…``, ``s3a://…``.
        table: the column with the table's name, or a function that makes it (DataFrame -> Column).
        options: for every table, as of `HudiSink`.
        tables: table -> options that are its own; they count more than `options`.
        storage_options: options for fsspec's file system (keys, endpoint).
        schemas: table -> its columns: an Arrow schema, or Spark's (``id bigint, name string``). A table that is not
            named gets the columns that it has, and those in which the batch has a value for it.
        unfold: a struct column whose fields become columns; or a text column with a JSON object, for tables that
            `schemas` names.
        keeps_name: whether the column with the table's name is a column of the tables, too.
        limits: what the router may take.
        key: as of `HudiSink`.
        partition_by: as of `HudiSink`.
        order_by: as of `HudiSink`.
        operation: as of `HudiSink`.
        table_type: as of `HudiSink`.
        index: as of `HudiSink`.
        bad_rows: as of `HudiSink`, for each table. Rows whose name cannot be a table's fail the batch, or with
            ``quarantine`` go to ``<root>/_bad_rows`` (or to ``hudistream.bad.rows.path``).
        schema: as of `HudiSink`.
        validators: as of `HudiSink`, for each table.
        callbacks: get the `BatchSummary` of each table.
        on_failure: get the `FailedBatch` of each table that failed.

    Attributes:
        failing: table -> error, of the tables whose rows wait.

    Raises:
        InvalidConfigError: for an option that is unknown or refused, or contradicts another.
    """

    def __init__(  # noqa: PLR0913 one parameter per thing that users say; all but the first two by name
        self,
        root: str | os.PathLike[str],
        table: "str | Callable[[DataFrame], Column]",
        options: Mapping[str, Any] | None = None,
        *,
        tables: Mapping[str, Mapping[str, Any]] | None = None,
        storage_options: Mapping[str, Any] | None = None,
        schemas: Mapping[str, Any] | None = None,
        unfold: str | None = None,
        keeps_name: bool = False,
        limits: RouterLimits | None = None,
        key: ColumnNames | None = None,
        partition_by: ColumnNames | None = None,
        order_by: ColumnNames | None = None,
        operation: Operation | OperationName | None = None,
        table_type: TableType | str | None = None,
        index: IndexType | str | None = None,
        bad_rows: BadRows | str | None = None,
        schema: SchemaMode | str | None = None,
        validators: Sequence[Validator] = (),
        callbacks: Sequence[Callback] = (),
        on_failure: Sequence[FailureHook] = (),
    ) -> None:
        self._given_root, self._table = os.fspath(root), table
        columns = {"key": key, "partition_by": partition_by, "order_by": order_by}
        kinds = {"operation": operation, "table_type": table_type, "index": index}
        self._short: dict[str, Any] = {**columns, **kinds, "bad_rows": bad_rows, "schema": schema}
        self._template, self._tables = dict(options or {}), {name: dict(own) for name, own in (tables or {}).items()}
        self._storage_options = dict(storage_options or {})
        self._schemas, self._unfold, self._keeps_name = dict(schemas or {}), unfold, keeps_name
        self._limits = limits or RouterLimits()
        self._hooks = (tuple(validators), tuple(callbacks), tuple(on_failure))
        self._options = self._options_of("")
        if self._options.effective_operation.replaces:
            raise InvalidConfigError(
                f"hoodie.datasource.write.operation={self._options.effective_operation} in a router: each micro-batch "
                "would replace the one before; use insert, upsert or delete"
            )
        for name in ("", *self._tables):
            if self._options_of(name).tasks.location is WriteLocation.DRIVER:
                raise InvalidConfigError(
                    "hudistream.write.location=driver in a router: its tables are written with executors; leave the "
                    "option out, or write each table with a HudiSink of its own"
                )
        self._start()

    def _start(self) -> None:
        self._place = open_storage(self._given_root, self._storage_options)
        self._storage: Storage = self._place.below(OWN_FOLDER)
        self._lease = Lease(self._storage, self._options.heartbeat)
        self._open = OpenTables(self._make_table, self._limits.open_tables, self._limits.idle_s)
        self._gate, self._lock = threads.make_gate(self._limits.services), threads.make_lock()
        self._root = self._place.base_uri
        self._waiting = WaitingRoom(self._storage, self._root)
        self._serves: str | None = None  # the query whose batches it writes
        self._attempts: dict[str, Attempts] = {}
        self._engine: SparkEngine | None = None
        self._exists: set[str] = set()
        self._arrow_schemas: dict[str, pa.Schema] | None = None
        self._has_written = False
        weakref.finalize(self, threads.run_apart, self._lease.release, "hudistream-release")

    def __getstate__(self) -> dict[str, Any]:
        kept = (
            "_given_root", "_table", "_short", "_template", "_tables", "_storage_options", "_schemas", "_unfold",
            "_keeps_name", "_limits", "_hooks", "_options",
        )  # fmt: skip
        return {name: self.__dict__[name] for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

    def _options_of(self, name: str) -> WriteOptions:
        own = {**self._template, **self._tables.get(name, {})}
        return with_short_names(parse_options(own, address_below(self._given_root, name)).options, **self._short)

    @property
    def failing(self) -> dict[str, str]:
        """Table -> error, of the tables whose rows wait."""
        return self._waiting.errors

    def __call__(self, batch: "DataFrame", batch_id: int | None = None) -> None:
        """Writes one micro-batch; Spark calls this.

        Args:
            batch: its rows.
            batch_id: Spark's id of it, the same when it is replayed; ``foreach`` gives none, and is refused.

        Raises:
            BatchOrderError: a table has a batch that this one contradicts, so that no later attempt can succeed.
            InvalidConfigError: the batch is of another query than those before; nothing of it is visible.
            HudiError: every table failed, or one has failed for too long, or rows name no table. Tables that were
                written stay written; Spark replays the batch when the query is started again, and they skip it.
        """
        batch_id = given_batch_id(self, batch_id)
        with self._lock:
            opened = self._open_engine().open_micro_batch(batch, batch_id)
            self._hold(opened)
            self._read_schemas(batch.sparkSession)
            pieces, query_id = self._split(batch, batch_id)
            try:
                self._check_query(opened, query_id)
                # the id that the tasks saw counts: a thread that writes a table could not ask for it
                opened = replace(opened, query_id=query_id or opened.query_id, ask_query_id=None)
                arrived = self._sort_out(opened, pieces)
            except BaseException:
                delete_files(self._storage, pieces)
                raise
            self._write_all(batch.sparkSession, opened, arrived)
            self._open.close_idle()

    def stop(self) -> None:
        """Waits for the running batch and services, and releases the tables."""
        with self._lock:
            self._open.close()
            self._lease.release()
            self._serves = None

    def _open_engine(self) -> "SparkEngine":
        if self._engine is None:
            from streaming.spark.engine import SparkEngine  # noqa: PLC0415 pyspark is needed with the first batch

            self._engine = SparkEngine(self._options, self._storage_options, self._storage)
            self._lease.is_over = self._engine.is_over
        return self._engine

    def _hold(self, opened: Batch) -> None:
        """Takes the root: two routers would take turns at the same tables."""
        if not self._lease.is_held:
            self._waiting.leave()  # another router may have written what waited
        try:
            self._lease.hold(WriterIdentity(_LEASE_NAME, opened.query_id, self._lease.owner))
        except TableHeldError as error:
            raise TableHeldError(f"another router writes the tables below {self._root!r}: {error}") from error
        self._waiting.enter()

    def _read_schemas(self, spark: "SparkSession") -> None:
        if self._arrow_schemas is None:
            from streaming.spark.schema import to_arrow_schema  # noqa: PLC0415

            self._arrow_schemas = {
                name: given
                if isinstance(given, pa.Schema)
                else to_arrow_schema(spark.createDataFrame([], given).schema)
                for name, given in self._schemas.items()
            }

    def _split(self, batch: "DataFrame", batch_id: int) -> tuple[list[Piece], str | None]:
        from streaming.spark.schema import to_arrow_schema  # noqa: PLC0415
        from streaming.spark.split_frame import split_frame  # noqa: PLC0415

        arriving = to_arrow_schema(batch.schema)
        if isinstance(self._table, str) and not self._keeps_name and self._table in arriving.names:
            arriving = arriving.remove(arriving.get_field_index(self._table))
        folder = join(STAGED_FOLDER, f"{batch_id}-{clock.fresh_uuid()}")
        aside = (self._options_of(name).bad_rows for name in ("", *self._tables))
        is_kept = any(one.action is BadRows.QUARANTINE and one.path is None for one in aside)
        rules = SplitRules(self._unfold, self._options.tasks.memory_bytes, ENDING if is_kept else None)
        return split_frame(batch, self._table, Splitter(self._storage, folder, arriving, rules))

    def _check_query(self, opened: Batch, query_id: str | None) -> None:
        """Refuses a second query: its batches have the numbers of the first one's.

        Args:
            query_id: the query whose rows the tasks split; None: they saw none, or there are no rows.

        Raises:
            InvalidConfigError: it is another query than that of the batches before, or of the checkpoint.
        """
        if query_id is None:
            return
        if opened.positions is not None:
            check_is_of_checkpoint(opened.query_id, query_id, opened.batch_id)
        check_serves(self._serves, query_id, opened.batch_id)
        self._serves = query_id

    def _sort_out(self, opened: Batch, pieces: Sequence[Piece]) -> dict[str, Arrived]:
        """The rows of each table. Rows that name none are put aside, or refused.

        Raises:
            InvalidRecordError: rows name no table.
            InvalidConfigError: the batch would make more tables than expected.
        """
        found = gather(pieces)
        nameless = found.pop(None, None)
        bad_rows, own = self._options.bad_rows, nameless.pieces if nameless is not None else ()
        if own:
            all_rows = sum(piece.rows for piece in pieces)
            check_nameless(self._storage, own, all_rows, opened.batch_id, bad_rows)
        arrived = {name: rows for name, rows in found.items() if name is not None}
        self._check_new(arrived)
        if own:
            folder = open_folder(self._place, bad_rows.path, self._storage_options)
            put_nameless_aside(self._storage, own, folder, opened, self._options.sink.id)
            delete_files(self._storage, own)
        return arrived

    def _check_new(self, arrived: Mapping[str, Arrived]) -> None:
        """Refuses a batch that would make more tables than expected: the column may not be what it is taken for."""
        unknown = [name for name in arrived if name not in self._exists]
        if not unknown:
            return
        self._exists |= {name for name in unknown if self._place.exists(join(name, PROPERTIES_FILE))}
        new = sorted(name for name in unknown if name not in self._exists)
        if len(new) > self._limits.new_tables:
            raise InvalidConfigError(
                f"the batch would make {len(new)} tables ({', '.join(new[:_SHOWN])} …), and limits.new_tables is "
                f"{self._limits.new_tables}: is {self._table!r} the column with the table's name? Nothing was written"
            )

    def _write_all(self, spark: "SparkSession", opened: Batch, arrived: Mapping[str, Arrived]) -> None:
        """Writes each table: small ones side by side in this process, large ones one after another on the cluster."""
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
        self._set_aside(opened, arrived, errors)

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
            log.info("waiting_batches_written", root=self._root, table=name)
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
        columns = columns_for(self._storage, own, table, self._unfold, self._arrow_schemas or {})
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
        self._exists.add(own.name)

    def _set_aside(self, opened: Batch, arrived: Mapping[str, Arrived], errors: Mapping[str, Exception]) -> None:
        """Stores the rows of tables that failed, or fails the batch if that has gone on for too long.

        Raises:
            TableHeldError: another router has taken over, and swept the files of this batch: it writes the batch anew.
            HudiError: the error of a table of which too many batches wait.
        """
        if errors:
            self._lease.confirm()
        for name, error in errors.items():
            waiting = self._waiting.batches_of(name)
            if not isinstance(error, NotYetError):
                self._attempts.setdefault(name, Attempts()).note(describe(error), _LONGEST_WAIT_S)
            if name not in arrived or any(each.is_batch(opened.query_id, opened.batch_id) for each in waiting):
                continue
            if len(waiting) >= self._limits.batches_aside:
                raise HudiError(
                    f"{len(waiting)} batches wait for the table {name!r}, which fails: {describe(error)}. Remove the "
                    "cause and start the query again; the other tables of this batch are written"
                ) from error
            assert opened.batch_id is not None
            at = opened.positions
            positions = None if at is None else KnownPositions(at.load_start(), at.load_end())
            sink_id, pieces = self._options_of(name).sink.id, arrived[name].pieces
            self._waiting.add(
                Waiting(name, opened.batch_id, opened.query_id, pieces, describe(error), sink_id, positions=positions)
            )
            log.error(
                "table_set_aside", root=self._root, table=name, batch_id=opened.batch_id, batches=len(waiting) + 1,
                error=describe(error),
            )  # fmt: skip

    def _make_table(self, name: str) -> RoutedTable:
        table = RoutedTable(self._place.below(name), self._options_of(name), self._storage_options, self._hooks)
        assert self._engine is not None
        table.belong_to(self._gate, self._engine.is_over)
        return table
