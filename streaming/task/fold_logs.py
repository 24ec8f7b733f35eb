"""Merges base file, log and changes into the next base file, where a change has a key that the log deletes.

Such a change must not go to the log. It could bring back the deleted row until a compaction
(`table.records.behind_deletes`). And if a planned compaction leaves the key out of the base file, an index that looks
for keys in base files would not find a row in the log.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from streaming.plan.task_plan import TaskPlan
from streaming.task.slice_reading import reading_of
from table.columns.take import take_rows
from table.files.base.repeated_columns import file_schema, restamp_carried_rows
from table.files.base.summary import BaseFileSummary
from table.files.key_changes import KeyChanges, KeyFates
from table.index.key_lookup import positions_of
from table.records.behind_deletes import any_behind_delete, may_forget_deletes
from table.records.merge import MergeRules, combine_rows, delete_flags, merge_rows
from table.scan.log_deletes import read_slice_deletes
from table.scan.merge_slice import merge_slice
from table.schema.avro_schema import RECORD_KEY
from table.timeline.metadata.commit import WriteStat
from table.view.file_group import FileSlice
from table.write.base_file import write_base_file
from table.write.bucket_file import BucketFile
from table.write.context import Attempt, Bucket, BucketType
from table.write.merge_bucket import Changes


def meets_delete(met: pa.Table, changes: Changes, rules: MergeRules, *, leaves_out: bool) -> bool:
    """Whether changes must not go to a slice's log, because the log deletes one of their keys (pure).

    Args:
        met: those deletes of the log that have a key of the changes, as from `read_met_deletes`.
        changes: records for the file group.
        rules: decide which record wins.
        leaves_out: whether a pending compaction will leave deleted keys out of the base file in which the next batch
            looks for them. The next batch would take such a key for new and write it into a second file group.
    """
    incoming = changes.incoming
    are_rows = ~(delete_flags(incoming, rules) | changes.removes)
    if leaves_out and are_rows[met.column("at").to_numpy()].any():
        return True
    return may_forget(incoming, rules) and any_behind_delete(incoming, changes.removes, met, rules)


def may_forget(incoming: pa.Table, rules: MergeRules) -> bool:
    """Whether readers of a log may forget a delete that records of its key follow (pure)."""
    return may_forget_deletes(rules) and {*rules.ordering_fields} <= {*incoming.column_names}


def read_met_deletes(plan: TaskPlan, file_slice: FileSlice, incoming: pa.Table) -> pa.Table:
    """Those deletes of a slice's log that have a key of incoming records.

    Args:
        plan: from the driver.
        file_slice: base file and log files that readers merge.
        incoming: the records, with ``_hoodie_record_key``.

    Returns:
        A row for each delete, oldest first: `at` (int64), the position of the record with its key; `removes` (bool),
        whether it ignores the ordering value; and the ordering columns.

    Raises:
        CorruptFileError: a log file is damaged.
        UnsupportedTableError: a log file has a block that is not supported.
        StorageError: a log file cannot be read.
    """
    context = plan.context
    ordering = pa.schema([field for field in context.schema if field.name in context.merge.ordering_fields])
    schema = pa.schema([*ordering, ("at", pa.int64()), ("removes", pa.bool_())])
    keys, tables = incoming.column(RECORD_KEY).combine_chunks(), [schema.empty_table()]
    for deletes in read_slice_deletes(context.storage, file_slice, plan.committed, ordering):
        found = positions_of(pa.chunked_array([deletes.keys]), keys)
        met = found >= 0
        order = (column.filter(pa.array(met)) for column in deletes.order.columns)
        columns = [*order, pa.array(found[met]), pa.array(deletes.removes[met])]
        tables.append(pa.Table.from_arrays(columns, schema=schema))
    return pa.concat_tables(tables)


def fold_logs(
    plan: TaskPlan, file_slice: FileSlice, attempt: Attempt, changes: Changes
) -> tuple[WriteStat, BaseFileSummary]:
    """Writes the next base file of a file group. Its log files then belong to the older slice.

    Args:
        plan: from the driver.
        file_slice: base file and log files that readers merge.
        attempt: the attempt at the task.
        changes: records for the file group.

    Returns:
        The stat, and how the file was written.

    Raises:
        CorruptFileError: a file is damaged.
        UnsupportedTableError: a log file has a block that is not supported.
        StorageError: the store fails.
    """
    base = file_slice.base_file
    kind = BucketType.INSERT if base is None else BucketType.UPDATE
    bucket = Bucket(kind, file_slice.partition_path, file_slice.file_id, None if base is None else base.name)
    file = BucketFile(plan.context, bucket, attempt)
    try:
        fold = _Fold(plan, file, changes)
        summary = write_base_file(file, fold.rows(file_slice))
        stat = file.report(summary, fold.keys, inserted=fold.inserted, updated=fold.updated, deleted=fold.deleted)
        return stat, summary
    except BaseException:
        file.abandon()
        raise


class _Fold:
    """The rows of the next base file, how many were inserted, updated and deleted, and which keys came and went."""

    def __init__(self, plan: TaskPlan, file: BucketFile, changes: Changes) -> None:
        self._plan, self._file = plan, file
        incoming, self._removes = changes.incoming, changes.removes
        if not self._removes.any():  # without an index that finds keys, one key may come several times
            incoming = combine_rows(incoming, plan.context.merge)
            self._removes = np.zeros(len(incoming), np.bool_)
        self._incoming = file.stamp(incoming)
        self._keys = incoming.column(RECORD_KEY).combine_chunks()
        self._deletes = delete_flags(self._incoming, plan.context.merge) | self._removes
        self._fates = KeyFates(self._keys)
        self.inserted = self.updated = self.deleted = 0

    @property
    def keys(self) -> KeyChanges:
        """The keys that the file group gets and loses, after the last of `rows`."""
        return self._fates.changes(self._deletes)

    def rows(self, file_slice: FileSlice) -> Iterator[pa.Table]:
        """The rows of the slice with the changes applied, then the new rows."""
        context, changes = self._plan.context, self._file.changes
        for rows in merge_slice(context.storage, file_slice, reading_of(self._plan)):
            found = positions_of(rows.column(RECORD_KEY), self._keys)
            carried = self._carried(rows)
            merged = merge_rows(carried, self._incoming, found, context.merge, self._removes)
            if changes is not None:
                changes.updated(take_rows(carried, merged.changed), merged.fresh)
                changes.deleted(take_rows(carried, merged.gone))
            self._fates.note(found, merged.gone)
            self.updated, self.deleted = self.updated + merged.updated, self.deleted + merged.deleted
            yield merged.rows
        is_new = self._fates.find_new(self._deletes)
        self.inserted = int(is_new.sum())
        fresh = self._incoming.filter(pa.array(is_new))
        if changes is not None:
            changes.inserted(fresh)
        yield fresh

    def _carried(self, rows: pa.Table) -> pa.Table:
        schema, columns = file_schema(self._file.schema), []
        for field, column in zip(schema, rows.columns, strict=True):
            is_plain = pa.types.is_dictionary(field.type) and not pa.types.is_dictionary(column.type)
            columns.append(column.dictionary_encode() if is_plain else column)
        return restamp_carried_rows(pa.Table.from_arrays(columns, schema=schema), self._file.name)
