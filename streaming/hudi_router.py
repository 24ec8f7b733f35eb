"""HudiRouter: one stream into many tables, for ``writeStream.foreachBatch``."""

import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from streaming.batch.exactly_once import check_is_of_checkpoint
from streaming.batch.workers import Batch
from streaming.router.aside import OWN_FOLDER, delete_files
from streaming.router.query import check_serves
from streaming.router.sort_out import KnownTables, Sorter
from streaming.router.template import RouterLimits, RouterTemplate
from streaming.router.waiting_room import WaitingRoom
from streaming.router.write_tables import TableWriters
from streaming.table_sink import Callback, FailureHook, given_batch_id
from streaming.validators import Validator
from table import threads
from table.errors import TableHeldError
from table.options.choices import BadRows, IndexType, SchemaMode, TableType
from table.options.operation import Operation, OperationName
from table.options.short_names import ColumnNames
from table.storage.opening import open_storage
from table.transaction.heartbeat import WriterIdentity
from table.transaction.lease import Lease

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from streaming.spark.engine import SparkEngine
    from streaming.spark.query_watch import QueryWatch

_LEASE_NAME = "router"


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
        columns = {"key": key, "partition_by": partition_by, "order_by": order_by}
        kinds = {"operation": operation, "table_type": table_type, "index": index}
        self._template = RouterTemplate(
            root=os.fspath(root),
            table=table,
            options=dict(options or {}),
            own={name: dict(own) for name, own in (tables or {}).items()},
            short_names={**columns, **kinds, "bad_rows": bad_rows, "schema": schema},
            storage_options=dict(storage_options or {}),
            schemas=dict(schemas or {}),
            unfold=unfold,
            keeps_name=keeps_name,
            limits=limits or RouterLimits(),
            hooks=(tuple(validators), tuple(callbacks), tuple(on_failure)),
        )
        self._template.check()
        self._start()

    def _start(self) -> None:
        template = self._template
        self._place = open_storage(template.root, template.storage_options)
        self._storage = self._place.below(OWN_FOLDER)
        self._lease = Lease(self._storage, template.shared.heartbeat)
        self._waiting, known = WaitingRoom(self._storage, self._place.base_uri), KnownTables(self._place)
        self._sorter = Sorter(template, self._place, self._storage, known)
        self._writers = TableWriters(template, self._place, self._storage, self._waiting, known)
        self._serves: str | None = None  # the query whose batches it writes
        self._engine: SparkEngine | None = None
        self._watch: QueryWatch | None = None
        self._lock = threads.make_lock()
        weakref.finalize(self, threads.run_apart, self._lease.release, "hudistream-release")

    def __getstate__(self) -> dict[str, Any]:
        return {"_template": self._template}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

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
            if self._watch is not None:
                self._watch.note_batch(batch.sparkSession, opened.query_id)
            self._hold(opened)
            self._writers.read_schemas(batch.sparkSession)
            pieces, query_id = self._sorter.split(batch, batch_id)
            try:
                if query_id is None and pieces and opened.find_query is not None:
                    query_id = opened.find_query()
                self._check_query(opened, query_id)
                # the id that the tasks saw counts: a thread that writes a table could not ask for it
                known = query_id or opened.query_id
                opened = replace(opened, query_id=known, ask_query_id=None, find_query=None)
                arrived = self._sorter.sort_out(opened, pieces)
            except BaseException:
                delete_files(self._storage, pieces)
                raise
            errors = self._writers.write_all(batch.sparkSession, opened, arrived)
            if errors:
                # another router may have taken over, and swept the files of this batch: it writes the batch anew
                self._lease.confirm()
                self._writers.set_aside(opened, arrived, errors)
            self._writers.close_idle()

    def stop(self) -> None:
        """Waits for the running batch and services, and releases the tables: also soon after the query has ended."""
        with self._lock:
            self._close()

    def _leave(self, is_over: Callable[[], bool]) -> bool:
        """Releases the tables, as long as the query is over and nothing runs. Returns whether that is done."""
        with self._lock:
            if self._writers.is_busy or not is_over():
                return False
            self._close()
            return True

    def _close(self) -> None:
        self._writers.close()
        self._lease.release()
        self._serves = None

    def _open_engine(self) -> "SparkEngine":
        if self._engine is None:
            from streaming.spark.engine import SparkEngine  # noqa: PLC0415 pyspark is needed with the first batch
            from streaming.spark.query_watch import QueryWatch  # noqa: PLC0415

            self._engine = SparkEngine(self._template.shared, self._template.storage_options, self._storage)
            self._lease.is_over = self._writers.is_over = self._engine.is_over
            self._watch = QueryWatch(self._leave)
        return self._engine

    def _hold(self, opened: Batch) -> None:
        """Takes the root: two routers would take turns at the same tables."""
        if not self._lease.is_held:
            self._waiting.leave()  # another router may have written what waited
        try:
            self._lease.hold(WriterIdentity(_LEASE_NAME, opened.query_id, self._lease.owner))
        except TableHeldError as error:
            raise TableHeldError(f"another router writes the tables below {self._place.base_uri!r}: {error}") from error
        self._waiting.enter()

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
