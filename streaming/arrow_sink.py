"""ArrowSink: a Hudi table written from Python alone, without Spark."""

import os
from collections.abc import Collection, Mapping, Sequence
from numbers import Integral
from typing import Any

import pyarrow as pa

from streaming.batch.frames import ANY_ROWS
from streaming.batch.summary import BatchSummary
from streaming.batch.workers import Batch
from streaming.table_sink import Callback, FailureHook, TableSink
from streaming.task.arrow_rows import Rows, open_rows
from streaming.task.in_process import InProcessWorkers, count_cores
from streaming.validators import PendingBatch, Validator
from table.config.metadata_indexes import RECORD_INDEX
from table.errors import InvalidConfigError
from table.hudi_table import HudiTable
from table.log import get_logger
from table.options.choices import BadRows, IndexType, SchemaMode, TableType
from table.options.operation import Operation, OperationName
from table.options.short_names import ColumnNames
from table.options.write_options import WriteOptions
from table.scan.plan import load_read_schema
from table.scan.predicate import Where
from table.scan.rows_beside import check_no_rows_beside, identity_of
from table.scan.scan import make_scan
from table.snapshot import Snapshot
from table.timeline.change import Change

log = get_logger("hudistream.sink")


class ArrowSink(TableSink):
    """Writes Arrow rows, pandas and Polars frames into a Hudi table, without Spark.

    ``with ArrowSink(path, key="id", partition_by="day", order_by="ts") as sink: sink.write(rows, batch_id=7)``

    Options, operations and guarantees are those of `HudiSink`. The table is created by the first write. A sink holds
    the table from its first write with a batch id, or from its first write within ``with``, until `stop`. Any other
    write holds it only while it runs.

    Args:
        path: where the table is: a folder, ``file:///…``, ``s3a://…``.
        options: ``hoodie.*`` keys and values as strings, or `WriteOptions`. A value of None means that the option is
            not given. Where an option and one of the short names (`key`, `partition_by`, `order_by` …) are
            both given, they must agree.
        storage_options: what fsspec's file system gets (keys, endpoint).
        validators: callables that are called with a batch before its commit (`streaming.validators`) and may refuse it.
        callbacks: callables that get the `BatchSummary` of every batch afterwards. Their errors are logged and counted,
            and fail no batch. If a callback has a method ``after_upkeep``, it also gets an `UpkeepSummary` after each
            run of cleaning and archival, in the thread of that run.
        on_failure: callables that get the `FailedBatch` of every failed batch, before its error is raised. Their errors
            are logged and counted. They are never called for a batch that is visible.
        key: column or columns that identify a row; a new table needs it.
        partition_by: column or columns that make the partition path; without it, a new table has no partitions.
        order_by: column or columns that order the records of one key: the greatest value stays; without it, the record
            that arrives last stays.
        operation: the operation of a batch; ``upsert`` by default.
        table_type: ``cow`` (copy on write) or ``mor`` (merge on read) for a new table; ``cow`` where it is not named.
        index: how keys are found: ``bloom``, ``simple``, ``bucket``, ``global_bloom`` …; ``bloom`` if it is not named.
        bad_rows: what becomes of rows that cannot be stored: ``fail`` (the batch fails, the default) or ``quarantine``.
        schema: how columns that differ are taken: ``strict``, ``add`` (the default) or ``reconcile``.
        workers: threads that write a batch; None: one for each core. With one thread, the same rows lead to the same
            sequence of storage calls, except that a thread deletes the markers of a batch of more than 64 files beside
            the next batch.

    Attributes:
        last_batch: summary of the last batch.
        callback_failures: how often a callback or a failure hook raised.

    Raises:
        InvalidConfigError: for an option that is unknown or refused, has a value that does not fit, or contradicts
            another.
    """

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
        workers: int | None = None,
    ) -> None:
        if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
            raise InvalidConfigError(f"workers={workers!r}: give a whole number of threads, 1 or more, or None")
        self._workers = workers or count_cores()
        super().__init__(
            path,
            options,
            storage_options,
            validators,
            callbacks,
            on_failure,
            key=key,
            partition_by=partition_by,
            order_by=order_by,
            operation=operation,
            table_type=table_type,
            index=index,
            bad_rows=bad_rows,
            schema=schema,
        )

    def _start(self) -> None:
        super()._start()
        self._keeps_table = False

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_workers": self._workers}

    def __enter__(self) -> "ArrowSink":  # noqa: PYI034 typing.Self is younger than Python 3.10
        self._keeps_table = True
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._keeps_table = False
        self.stop()

    def write(
        self, rows: Rows, batch_id: int | None = None, operation: Operation | OperationName | None = None
    ) -> BatchSummary:
        """Writes rows as one commit.

        Args:
            rows: a `pyarrow.Table`, `RecordBatch` or `RecordBatchReader`, a pandas or Polars frame, or any other object
                with ``__arrow_c_stream__``. A reader is read piece by piece: its rows need not fit into memory
                (``hudistream.task.memory.bytes``).
            batch_id: the caller's number of this batch. It makes the write exactly once: a batch that was committed
                before is skipped. Numbers must rise, and the same batch must get the same number when it is written
                again. Each source that writes numbered batches into the same table needs its own
                ``hoodie.datasource.write.streaming.checkpoint.identifier``. None: the write is not remembered.
            operation: ``insert``, ``bulk_insert``, ``upsert``, ``delete``, ``insert_overwrite`` (of the partition paths
                of the rows), ``insert_overwrite_table`` or ``delete_partition`` (of the rows' partition paths,
                or those of ``hoodie.datasource.write.partitions.to.delete``); None means the sink's own.

        Returns:
            The summary of the batch, also if it was skipped.

        Raises:
            InvalidConfigError: the rows are of another kind, or batch id or operation is not valid.
            CommitConflictError: another live writer holds the table, or the batch id is below the last one.
            HudiError: nothing of the batch is visible.
        """
        return self._write(rows, batch_id, operation)

    def _write(
        self,
        rows: Rows,
        batch_id: int | None,
        operation: Operation | OperationName | None,
        checks: tuple[Validator, ...] = (),
        index: IndexType | None = None,
    ) -> BatchSummary:
        given: Any = batch_id
        is_whole = isinstance(given, Integral) and not isinstance(given, bool)  # numpy's numbers are, too
        if given is not None and not (is_whole and given >= 0):
            raise InvalidConfigError(f"batch_id={batch_id!r}: give a whole number, 0 or more, or None")
        batch_id = None if batch_id is None else int(batch_id)
        with self._one_batch(), self._watched(batch_id):
            most = self._options.tasks.insert_parallelism or self._workers
            workers = InProcessWorkers(open_rows(rows), parallelism=most, workers=self._workers)
            keeps = self._keeps_table or batch_id is not None
            batch = Batch(workers, batch_id, keeps_table=keeps, checks=checks, index=index, frame=ANY_ROWS)
            return self._write_batch(batch, operation)

    def delete(
        self, rows: Rows | Collection[Any] | None = None, batch_id: int | None = None, *, where: Where | None = None
    ) -> BatchSummary:
        """Deletes rows by their keys, or the rows for which a condition is true.

        Args:
            rows: rows with the columns of record key and partition path, as `write` takes them; other columns are
                ignored. Or the values of the record key alone, if it is one column and the partition path is not made
                of other columns.
            batch_id: as of `write`.
            where: in the place of `rows`: which rows, as in `HudiTable.scan`. The newest snapshot is asked. A row that
                another writer adds meanwhile stays. Where rows share a key (inserts), the condition must be true for
                all rows of a key or for none.

        Returns:
            What was written.

        Raises:
            InvalidConfigError: neither or both of `rows` and `where` are given; the table has no rows; a column of the
                key is missing, or the condition names a column that is not in the table; or it is true for a row and
                not for another one with the same key, also if that came meanwhile.
            HudiError: nothing of it is visible.
        """
        if (rows is None) == (where is None):
            raise InvalidConfigError("delete takes rows, or where: give one of them")
        if where is not None:
            return self._delete_where(where, batch_id)
        if isinstance(rows, list | tuple | set | frozenset | pa.Array | pa.ChunkedArray):
            rows = self._key_rows(rows)
        return self.write(rows, batch_id, Operation.DELETE)

    def _delete_where(self, where: Where, batch_id: int | None) -> BatchSummary:
        table = HudiTable.at(self._storage)
        fields = (*table.config.record_key_fields, *table.config.partition_fields)
        columns = list(dict.fromkeys(name.partition(".")[0] for name in fields))
        # the record index knows the rows that lie in log files alone; without it, that index looks into log files
        index, knows = self._options.index.type, RECORD_INDEX in table.config.metadata_indexes
        if (knows or table.config.has_rows_in_logs) and not index.has_buckets:
            index = IndexType.RECORD_INDEX
        identity = identity_of(table, by_path=not index.is_global)
        seen = table.load_timeline().committed_times
        found = make_scan(table, list(dict.fromkeys([*columns, *identity])), where).to_arrow()
        keys = found.select(identity)
        check_no_rows_beside(table, where, keys)

        def check(_: PendingBatch) -> None:
            """What came since the look is judged before the commit."""
            now = HudiTable.at(self._storage).load_timeline().committed_times
            if not Change.between(seen, now).is_none:
                check_no_rows_beside(table, where, keys)

        summary = self._write(found.select(columns), batch_id, Operation.DELETE, (check,), index)
        # log files delete by key: rows that share one count once there
        in_logs = table.config.table_type == TableType.MERGE_ON_READ
        read = len(keys.group_by(identity).aggregate([])) if in_logs else len(found)
        if not summary.skipped and summary.rows_deleted < read:
            log.warning(
                "rows_not_deleted",
                table=self._path,
                found=read,
                deleted=summary.rows_deleted,
                hint="the index of this sink did not find the other rows by their keys, or another writer changed them "
                "meanwhile: rows that stayed in another partition path need a global index, and rows that lie in log "
                "files alone the index that they were written with, or `hudistream compact PATH` first",
            )
        return summary

    def _key_rows(self, keys: Collection[Any]) -> pa.Table:
        table = HudiTable.at(self._storage)
        fields = table.config.record_key_fields
        if len(fields) != 1:
            raise InvalidConfigError(
                f"the record key of {self._path!r} is made of {', '.join(fields)}: give rows with these columns, not "
                "values"
            )
        strangers = [key for key in keys if isinstance(key, Mapping | list | tuple)]
        if strangers:
            raise InvalidConfigError(
                f"{strangers[0]!r} is no value of a record key: give rows as a pyarrow Table, or values of {fields[0]}"
            )
        if isinstance(keys, pa.Array | pa.ChunkedArray):
            return pa.table({fields[0]: keys})
        schema = load_read_schema(Snapshot.load(table))[1]
        kind = schema.field(fields[0]).type if fields[0] in schema.names else None
        try:
            return pa.table({fields[0]: pa.array(list(keys), kind)})
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise InvalidConfigError(f"{error}: the record key {fields[0]!r} has values of type {kind}") from error


def write_hudi(  # noqa: PLR0913 one parameter per thing that users say; all but the first two by name
    path: str | os.PathLike[str],
    rows: Rows,
    *,
    key: ColumnNames | None = None,
    partition_by: ColumnNames | None = None,
    order_by: ColumnNames | None = None,
    operation: Operation | OperationName | None = None,
    table_type: TableType | str | None = None,
    index: IndexType | str | None = None,
    bad_rows: BadRows | str | None = None,
    schema: SchemaMode | str | None = None,
    batch_id: int | None = None,
    options: Mapping[str, Any] | WriteOptions | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> BatchSummary:
    """Writes rows into a Hudi table as one commit, without Spark; the table is created where there is none.

    To write more than once, keep an `ArrowSink`: it remembers what it learned about the table.

    Args:
        path: where the table is.
        rows: as in `ArrowSink.write`.
        key: column or columns that identify a row; a new table needs it.
        partition_by: column or columns that make the partition path.
        order_by: column or columns that order the records of one key: the greatest value stays.
        operation: ``upsert`` where it is not named; see `ArrowSink.write`.
        table_type: ``cow`` (copy on write) or ``mor`` (merge on read) for a new table; ``cow`` where it is not named.
        index: how keys are found: ``bloom``, ``simple``, ``bucket``, ``global_bloom`` …; ``bloom`` if it is not named.
        bad_rows: what becomes of rows that cannot be stored: ``fail`` (the batch fails, the default) or ``quarantine``.
        schema: how columns that differ are taken: ``strict``, ``add`` (the default) or ``reconcile``.
        batch_id: makes the write exactly once; see `ArrowSink.write`.
        options: ``hoodie.*`` keys and values, or `WriteOptions`.
        storage_options: what fsspec's file system gets.

    Returns:
        The summary of the batch, also if it was skipped.

    Raises:
        HudiError: nothing of the batch is visible.
    """
    with ArrowSink(
        path,
        options,
        storage_options,
        key=key,
        partition_by=partition_by,
        order_by=order_by,
        operation=operation,
        table_type=table_type,
        index=index,
        bad_rows=bad_rows,
        schema=schema,
    ) as sink:
        return sink.write(rows, batch_id)
