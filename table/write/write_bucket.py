"""Writes the rows of one bucket to one base file (HoodieCreateHandle, HoodieConcatHandle)."""

import numpy as np
import pyarrow as pa

from table.columns.take import take_rows
from table.errors import StorageError
from table.files.base.continued import Continued, continue_file
from table.files.base.stored_file import StoredBaseFile
from table.files.base.summary import BaseFileSummary
from table.files.base.writer import CopyInDoubtError
from table.files.key_changes import KeyChanges
from table.index.key_lookup import positions_of
from table.records.merge import last_of_each_key
from table.schema.avro_schema import RECORD_KEY
from table.storage.interface import join
from table.timeline.metadata.commit import WriteStat
from table.write.base_file import open_base_file
from table.write.bucket_file import BucketFile
from table.write.context import Attempt, Bucket, BucketType, WriteContext
from table.write.merge_bucket import Changes, merge_bucket


class BucketWriter:
    """Appends one bucket's rows to the next version of its file group, or to a new one.

    Use: `write` any number of times, then `close`; `abandon` after a failure.

    Args:
        bucket: the file group that the rows are assigned to.
        attempt: the attempt that writes the file.
    """

    def __init__(self, context: WriteContext, bucket: Bucket, attempt: Attempt) -> None:
        self._file = file = BucketFile(context, bucket, attempt)
        self._inserted = 0
        self._keys: list[pa.Array] = []  # of new rows, if write stats tell them
        self._again: list[pa.Table] = []  # new rows, in case the file must be written once more
        try:
            self._older = continue_file(file.stored, file.schema, context.settings)
            self._writer = open_base_file(file, self._older)
        except BaseException:
            self._file.abandon()
            raise

    def write(self, rows: pa.Table) -> None:
        """Adds new rows: table columns and ``_hoodie_record_key`` (Arrow)."""
        stamped = self._file.stamp(rows)
        self._writer.write(stamped)
        if self._file.changes is not None:
            self._file.changes.inserted(stamped)
        self._inserted += len(rows)
        if self._file.context.tells_keys:
            self._keys += rows.column(RECORD_KEY).chunks
        if self._writer.is_begun:
            self._again.clear()  # too many to keep
        elif self._older is not None and self._older.is_copied:
            self._again.append(stamped)

    def close(self) -> tuple[WriteStat, BaseFileSummary]:
        """Finishes the file. Returns its write stat, and the writer's report.

        If a check of its copied parts fails, it is written once more under its name, with all rows encoded.

        Raises:
            StorageError: the store fails, the instant has ended, or the check failed and the new rows are not held.
        """
        try:
            summary = self._writer.close()
        except CopyInDoubtError as doubt:
            if self._older is None or self._inserted > sum(map(len, self._again)):
                message = f"{self._file.path} was not written as it should be ({doubt.reason}): run the batch again"
                raise StorageError(message) from doubt
            self._writer = open_base_file(self._file, Continued(self._older.stored, doubt.reason))
            for rows in self._again:
                self._writer.write(rows)
            summary = self._writer.close()
        return self._file.report(summary, KeyChanges(tuple(self._keys)), inserted=self._inserted), summary

    def abandon(self) -> None:
        """Closes the open file after a failure. The rollback finds the file by its marker."""
        self._writer.abandon()
        self._file.abandon()


class InsertMerger:
    """Writes inserts into a file, and updates the rows of the same keys in that file, but in no other file.

    ``hoodie.merge.allow.duplicate.on.inserts=false`` selects it. It has the methods of `BucketWriter`.
    """

    def __init__(self, context: WriteContext, bucket: Bucket, attempt: Attempt) -> None:
        self._context, self._bucket, self._attempt = context, bucket, attempt
        self._held: list[pa.Table] = []

    def write(self, rows: pa.Table) -> None:
        """Adds new rows: table columns and ``_hoodie_record_key`` (Arrow)."""
        self._held.append(rows)

    def close(self) -> tuple[WriteStat, BaseFileSummary]:
        """Writes the file. Returns its write stat, and the writer's report."""
        rows = last_of_each_key(pa.concat_tables([empty_rows(self._context.schema), *self._held]))
        path = join(self._bucket.partition_path, self._bucket.base_file or "")
        with StoredBaseFile(self._context.storage, path, self._bucket.base_bytes or None) as stored:
            keys = rows.column(RECORD_KEY).combine_chunks()
            stored_keys = pa.chunked_array(stored.read_keys(range(len(stored.group_rows))), pa.string())
        found = positions_of(stored_keys, keys)
        hit = np.flatnonzero(found >= 0)
        fresh = np.setdiff1d(np.arange(len(rows)), found[hit])
        changes = Changes(rows, hit, found[hit], np.zeros(len(rows), np.bool_))
        return merge_bucket(self._context, self._bucket, self._attempt, changes, take_rows(rows, fresh))

    def abandon(self) -> None:
        """Does nothing: no file is open between the calls."""


def open_bucket(context: WriteContext, bucket: Bucket, attempt: Attempt) -> BucketWriter | InsertMerger:
    """The writer that writes inserts into a bucket."""
    if bucket.type is BucketType.UPDATE and not context.allow_duplicates:
        return InsertMerger(context, bucket, attempt)
    return BucketWriter(context, bucket, attempt)


def empty_rows(schema: pa.Schema) -> pa.Table:
    """No rows, with the columns that `BucketWriter.write` takes."""
    return pa.schema([*schema, pa.field(RECORD_KEY, pa.string())]).empty_table()
