"""The common base of the sinks: options, one batch at a time, and callbacks."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from inspect import signature
from typing import Any

import pyarrow as pa
from structlog.contextvars import bound_contextvars

from streaming.batch.failed_batch import FailedBatch, is_interruption
from streaming.batch.micro_batch import MicroBatchWriter
from streaming.batch.progress import RunningBatch
from streaming.batch.replay import replay_rows
from streaming.batch.services import TableServices
from streaming.batch.summary import BatchSummary
from streaming.batch.upkeep_summary import UpkeepSummary
from streaming.batch.workers import Batch
from streaming.task.arrow_rows import Rows, open_rows
from streaming.validators import Validator
from table import threads
from table.columns.near_name import did_you_mean
from table.errors import HudiError, InvalidConfigError
from table.failures import describe
from table.hudi_table import HudiTable
from table.log import get_logger
from table.options.choices import BadRows, IndexType, SchemaMode, TableType
from table.options.operation import Operation, OperationName
from table.options.short_names import ColumnNames, with_index, with_short_names
from table.options.write_groups import OPERATION
from table.options.write_options import WriteOptions, parse_options
from table.quarantine.read import open_bad_rows
from table.services.kept_settings import keep_settings, settings_of
from table.storage.interface import Storage
from table.storage.opening import open_storage
from table.storage.reserve import keep_reserve
from table.transaction.lease_record import this_process

Callback = Callable[[BatchSummary], None]
FailureHook = Callable[[FailedBatch], None]

log = get_logger("hudistream.sink")


class TableSink:
    """A writer of one table, for any engine that holds the rows. Picklable.

    Args:
        path: where the table is: a folder, ``file:///…``, ``s3a://…``.
        options: ``hoodie.*`` keys and values as strings, or `WriteOptions`. A value of None means that the option is
            not given. Where an option and one of the short names (`key`, `partition_by`, `order_by` …) are
            both given, they must agree.
        storage_options: what fsspec's file system gets (keys, endpoint).
        validators: picklable callables that are called with a batch before its commit (`streaming.validators`) and may
            refuse it.
        callbacks: picklable callables that get the `BatchSummary` of every batch afterwards. Their errors are logged
            and counted, and fail no batch. If a callback has a method ``after_upkeep``, it also gets an `UpkeepSummary`
            after each run of cleaning and archival, in the thread of that run. If it has a method ``while_running``,
            it gets a `RunningBatch` every ten seconds of a batch, in a thread of its own, and one when that batch ends.
        on_failure: picklable callables that get the `FailedBatch` of every failed batch, before its error is raised.
            Their errors are logged and counted. They are never called for a batch that is visible.
        key: column or columns that identify a row; a new table needs it.
        partition_by: column or columns that make the partition path; without it, a new table has no partitions.
        order_by: column or columns that order the records of one key: the greatest value stays; without it, the record
            that arrives last stays.
        operation: the operation of a batch; ``upsert`` by default.
        table_type: ``cow`` (copy on write) or ``mor`` (merge on read) for a new table; ``cow`` where it is not named.
        index: how keys are found: ``bloom``, ``simple``, ``bucket``, ``global_bloom`` …; ``bloom`` if it is not named.
        bad_rows: what becomes of rows that cannot be stored: ``fail`` (the batch fails, the default) or ``quarantine``.
        schema: how columns that differ are taken: ``strict``, ``add`` (the default) or ``reconcile``.

    Attributes:
        last_batch: summary of the last batch.
        callback_failures: how often a callback or a failure hook raised.

    Raises:
        InvalidConfigError: for an option that is unknown or refused, has a value that does not fit, or contradicts
            another.
    """

    def __init_subclass__(cls, **given: object) -> None:
        """Shows editors and ``help`` the parameters: Python would take those of `__new__`."""
        super().__init_subclass__(**given)
        shown = signature(cls.__init__)
        cls.__signature__ = shown.replace(parameters=[*shown.parameters.values()][1:])  # type: ignore[attr-defined]

    def __new__(cls, *args: object, **given: object) -> "TableSink":  # noqa: PYI034 Self is younger than Python 3.10
        """Refuses a call without a path, or with an unknown name, in the name of the sink itself (TypeError)."""
        if not args and "path" not in given:
            raise TypeError(f"{cls.__name__}() needs the path of a table, as in {cls.__name__}('/data/lake/events')")
        known = [name for name in signature(cls.__init__).parameters if name != "self"]
        for name in given:
            if name not in known:
                raise TypeError(f"{cls.__name__}() has no parameter {name!r}{did_you_mean(name, known)}")
        return super().__new__(cls)

    def __init__(  # noqa: PLR0913 one parameter per thing that users say; all but the first two by name
        self,
        path: str | os.PathLike[str],
        options: Mapping[str, Any] | WriteOptions | None = None,
        storage_options: Mapping[str, Any] | None = None,
        validators: Sequence[Validator] = (),
        callbacks: Sequence[Callback] = (),
        on_failure: Sequence[FailureHook] = (),
        *,
        key: ColumnNames | None = None,
        partition_by: ColumnNames | None = None,
        order_by: ColumnNames | None = None,
        operation: Operation | OperationName | None = None,
        table_type: TableType | str | None = None,
        index: IndexType | str | None = None,
        bad_rows: BadRows | str | None = None,
        schema: SchemaMode | str | None = None,
    ) -> None:
        self._path = os.fspath(path)
        given = _read_options(options, self._path, index)
        self._options = with_short_names(
            given, key, partition_by, order_by, operation, table_type, index, bad_rows=bad_rows, schema=schema
        )
        _tell_unused_ordering(self._options)
        _tell_unused_logs(self._options)
        self._storage_options = dict(storage_options or {})
        self._validators, self._callbacks = tuple(validators), tuple(callbacks)
        self._on_failure = tuple(on_failure)
        self._start()

    def _start(self) -> None:
        self.last_batch: BatchSummary | None = None
        self.callback_failures = 0
        self._lock = threads.make_lock()
        self._busy: object | None = None  # the thread whose batch is under way
        self._stopping = self._has_reserve = False
        self._process = this_process()
        self._storage = self._open_storage()
        self._path = self._storage.base_uri  # also for a process that is forked in another working directory
        self._default_name = self._storage.base_uri.rstrip("/").rsplit("/", 1)[-1]
        self._writer = self._make_writer(self._options)
        self._writer.services.listeners.append(self._tell_upkeep)
        self._writer.running_listeners.append(self._tell_running)

    def _open_storage(self) -> Storage:
        return open_storage(self._path, self._storage_options)

    def _make_writer(self, options: WriteOptions) -> MicroBatchWriter:
        quarantine = self._open_bad_rows() if options.bad_rows.action is BadRows.QUARANTINE else None
        return MicroBatchWriter(self._storage, options, self._default_name, self._validators, quarantine)

    def _own_after_fork(self) -> None:
        """Gives a forked child its own writer, as after unpickling: a writer's identity belongs to one process.

        Raises:
            InvalidConfigError: a batch of the parent was under way when the child was forked.
        """
        if self._process == this_process():
            return
        if self._busy is not None:
            raise InvalidConfigError(
                f"process {this_process()} was forked from process {self._process} while a batch of this sink was "
                f"under way: make another {type(self).__name__} in the child; the batch goes on in the parent"
            )
        self._start()

    def __getnewargs__(self) -> tuple[str]:
        return (self._path,)

    def __getstate__(self) -> dict[str, Any]:
        kept = ("_path", "_options", "_storage_options", "_validators", "_callbacks", "_on_failure")
        return {name: self.__dict__[name] for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

    @contextmanager
    def _one_batch(self) -> Iterator[None]:
        """Runs one batch at a time. Refuses a callback that writes through its own sink: it would wait for itself."""
        self._own_after_fork()
        if self._busy == threads.current_thread():
            raise InvalidConfigError(
                "a validator or callback of this sink writes through the same sink: the batch that called it is not "
                f"done yet; write from another place, or through another {type(self).__name__}"
            )
        with self._lock:
            self._busy = threads.current_thread()
            try:
                yield
            finally:
                self._busy = None
                if self._stopping:  # a callback asked for it
                    self._writer.lease.release()

    def _write_batch(self, batch: Batch, operation: Operation | OperationName | None) -> BatchSummary:
        """Writes one batch and calls the callbacks; the caller holds `_one_batch`."""
        named = None if operation is None else OPERATION.read("operation", operation)
        summary = self._writer.write(replace(batch, operation=named))
        if summary.instant_time is not None and not self._has_reserve:
            keep_reserve(self._storage)
            settings = settings_of(self._options, self._options.sink.id)
            keep_settings(self._storage, settings, of_stream=batch.batch_id is not None)
            self._has_reserve = True
        self._tell(summary)
        return summary

    def __repr__(self) -> str:
        """The table, and what a batch does with it: options may hold secrets."""
        keys = ",".join(self._options.keys.record_key_fields or ()) or "no key"
        return f"{type(self).__name__}({self._path!r}, {self._options.effective_operation} by {keys})"

    def _open_bad_rows(self) -> Storage:
        return open_bad_rows(self._storage, self._options.bad_rows.path, self._storage_options)

    def replay(self, rows: Rows) -> BatchSummary:
        """Writes bad rows that were corrected, each once, as one commit.

        The rows come from `read_bad_rows` and keep the two columns that name their place, ``_hudistream_file`` and
        ``_hudistream_row``. Columns of that function that are not the table's are left out. A row that was replayed
        before is passed over, also where the process died between its commit and its record. A row that is bad still is
        put aside anew, as another bad row.

        Args:
            rows: as `ArrowSink.write` takes them.

        Returns:
            What was written; `skipped` where every row was replayed before.

        Raises:
            InvalidConfigError: the rows do not name their place.
            HudiError: nothing of it is visible.
        """
        with self._one_batch(), self._watched(None):
            table = HudiTable.at(self._storage)
            opened = open_rows(rows)
            held = opened if isinstance(opened, pa.Table) else opened.read_all()
            summary = replay_rows(self._writer, table, self._open_bad_rows(), held)
            self._tell(summary)
            return summary

    @property
    def services(self) -> TableServices:
        """Cleaning and archival of the table: whether they run, and how often they failed."""
        self._own_after_fork()
        return self._writer.services

    def stop(self) -> None:
        """Waits for the running batch and clean, starts no other clean, and releases the table.

        The interpreter's exit waits for them, too. Call this method if the driver goes on without this sink. A callback
        of this sink may call it: it then returns at once, and the running clean is the last one. In a forked child it
        does not touch the parent's hold on the table.
        """
        if self._process != this_process():
            return
        if self._busy == threads.current_thread():
            self._writer.services.start_no_more()
            self._stopping = True
            return
        with self._lock:
            self._writer.stop()

    @contextmanager
    def _watched(self, batch_id: int | None) -> Iterator[None]:
        """Wraps one batch: its log events name table and batch, and the failure hooks get its error."""
        table, progress = self._writer.table, self._writer.progress
        progress.reset()
        with bound_contextvars(table=table, batch_id=batch_id):
            try:
                yield
            except Exception as error:
                failed = progress.failed(table, batch_id, error)
                if failed is None:
                    log.exception("failed_after_commit", instant_time=progress.instant_time)
                elif is_interruption(error):
                    hint = (
                        "the query was stopped, or its job cancelled; the batch comes again when the query is started"
                    )
                    log.info("batch_interrupted", instant_time=progress.instant_time, hint=hint)
                else:
                    self._tell_failure(failed)
                    _explain(error)
                raise

    def _tell_failure(self, failed: FailedBatch) -> None:
        log.error(
            "batch_failed",
            table=failed.table,
            batch_id=failed.batch_id,
            instant_time=failed.instant_time,
            error=describe(failed.error),
            outcome_unknown=failed.outcome_unknown,
            why=_page_of(failed.error),
        )
        for hook in self._on_failure:
            self._call(hook, failed, failed.batch_id)

    def _tell(self, summary: BatchSummary) -> None:
        self.last_batch = summary
        for callback in self._callbacks:
            self._call(callback, summary, summary.batch_id)

    def _tell_upkeep(self, summary: UpkeepSummary) -> None:
        self._tell_method("after_upkeep", summary, None)

    def _tell_running(self, running: RunningBatch) -> None:
        self._tell_method("while_running", running, running.batch_id)

    def _tell_method(self, name: str, event: Any, batch_id: int | None) -> None:
        for callback in self._callbacks:
            method = getattr(callback, name, None)
            if method is not None:
                self._call(method, event, batch_id)

    def _call(self, callback: Callable[[Any], None], event: Any, batch_id: int | None) -> None:
        try:
            callback(event)
        except Exception as error:  # noqa: BLE001 an error in a caller's code does not change the outcome of a batch
            self.callback_failures += 1
            log.warning("callback_failed", table=event.table, batch_id=batch_id, error=repr(error))


def given_batch_id(sink: object, batch_id: int | None) -> int:
    """The id that Spark gave with a micro-batch.

    Raises:
        InvalidConfigError: there is none: ``foreach`` calls the sink on a worker, with one row.
    """
    if batch_id is None:
        raise InvalidConfigError(
            f"a {type(sink).__name__} writes micro-batches, and foreach gives it single rows: use "
            "writeStream.foreachBatch(sink)"
        )
    return batch_id


def _page_of(error: Exception) -> str | None:
    """The command that explains an error; None for errors of others."""
    return f"hudistream why {type(error).__name__}" if isinstance(error, HudiError) else None


def _explain(error: Exception) -> None:
    """Ends the traceback of an error with the command that explains it, where Python can (3.11 and later)."""
    page = _page_of(error)
    if page is not None and hasattr(error, "add_note"):
        error.add_note(f"[{page}]")


def _read_options(
    options: Mapping[str, Any] | WriteOptions | None, path: str, index: IndexType | str | None
) -> WriteOptions:
    """The given options, typed. Options without effect are logged, as warnings where the user may wait for one."""
    if isinstance(options, WriteOptions):
        return options
    parsed = parse_options(with_index(options or {}, index), path)
    for key, reason in parsed.without_effect.items():
        tell = log.warning if key in parsed.missed else log.info
        tell("option_without_effect", key=key, reason=reason)
    return parsed.options


def _tell_unused_ordering(options: WriteOptions) -> None:
    """Logs that an ordering column has no effect, if the sink only inserts and compares no rows."""
    duplicates, names = options.duplicates, options.keys.ordering_fields
    compares = duplicates.combine_before_insert or duplicates.drop_on_insert or not duplicates.allow_on_insert
    if options.operation is Operation.INSERT and names and not compares:
        log.info(
            "ordering_field_without_effect",
            ordering_field=",".join(names),
            operation="insert",
            reason="insert adds every row, also where the table has its key; upsert keeps one row per key, the one "
            "with the greatest ordering value",
        )


def _tell_unused_logs(options: WriteOptions) -> None:
    """Logs that the batches of a sink that only inserts make base files, in a merge-on-read table, too."""
    asked = options.table.table_type is TableType.MERGE_ON_READ
    inserts = options.operation in (Operation.INSERT, Operation.BULK_INSERT)
    if asked and inserts and not options.index.type.has_buckets:
        log.info(
            "table_type_without_effect",
            table_type=str(options.table.table_type),
            operation=str(options.operation),
            reason="new rows go to base files: only changes of rows go to log files, and an insert changes none; "
            "COPY_ON_WRITE is read by more engines",
        )
