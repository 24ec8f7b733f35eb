"""The file that receives a bucket's rows: announced before it is opened, reported when it is whole.

Safety depends on the order of the steps: partition metadata, marker, check that the instant has not ended, data. The
file waits where no reader sees it until it is whole. It is then published, unless the instant was fenced.
"""

from contextlib import suppress

import pyarrow as pa

from table import clock
from table.errors import BrokenInvariantError, StorageError
from table.files.base.stored_file import StoredBaseFile
from table.files.base.summary import BaseFileSummary
from table.files.key_changes import KeyChanges
from table.files.markers import CREATE, MERGE
from table.files.names import MarkerName, parse_base_file
from table.files.partition_metadata import create_partition_metadata
from table.schema.avro_schema import with_meta_columns
from table.storage.at_once import together
from table.storage.interface import Stage, join
from table.timeline.metadata.commit import CHANGE_FILES, NO_PREVIOUS_COMMIT, WriteStat
from table.write.announce import announce, check_not_ended, check_still_wanted
from table.write.change_file import ChangeFile
from table.write.context import Attempt, Bucket, BucketType, WriteContext
from table.write.meta_columns import stamp_new_rows, without_meta_values


class BucketFile:
    """One base file that a commit writes: its name, its path, and the version that it continues.

    Args:
        bucket: the file group.
        attempt: the attempt that writes the file; it numbers the rows.

    Attributes:
        name: name of the new file.
        path: relative to the table.
        schema: meta columns and table columns (Arrow).
        stored: the open older version that this file continues; None in a new file group.
        changes: the change file beside it; None in a new file group, and where a table has none.
    """

    def __init__(self, context: WriteContext, bucket: Bucket, attempt: Attempt) -> None:
        self.context, self.bucket = context, bucket
        self._attempt = attempt
        self.name = context.base_file_name(bucket, attempt.write_token)
        self.path = join(bucket.partition_path, self.name)
        self.schema = with_meta_columns(context.schema)
        self._started_s = clock.monotonic_s()
        self._marker = MarkerName(self.path, CREATE if bucket.type is BucketType.INSERT else MERGE)
        self._previous = parse_base_file(bucket.base_file or "")
        self.stored: StoredBaseFile | None = None
        self._stage: Stage | None = None  # until the file is announced there
        has_changes = context.change_files is not None and bucket.type is BucketType.UPDATE
        self.changes = ChangeFile(context, attempt, bucket.partition_path, bucket.file_id) if has_changes else None
        try:
            together(context.storage, self._prepare, self._choose_stage)
        except BaseException:
            self.close()
            raise

    def announce(self) -> Stage:
        """Announces the file before it is opened. Returns the place where the file waits until it is published.

        Raises:
            StorageError: the instant has ended; a late task must not write the file.
        """
        stage, self._stage = self._stage, None
        return announce(self.context, self._marker, stage)

    def check_not_ended(self) -> None:
        """Checks that the instant is still open.

        Raises:
            StorageError: the instant has ended.
        """
        check_not_ended(self.context, self.path)

    def flush(self, size_bytes: int) -> None:
        """Begins to flush the published file, of this size, to the disk; the flush is complete before the attempt ends.

        Raises:
            StorageError: the store fails.
        """
        self._attempt.flushes.begin(self.context.storage, self.path, size_bytes)

    def _prepare(self) -> None:
        """Opens the older version; a new file group's folder gets its partition metadata."""
        bucket = self.bucket
        if bucket.type is BucketType.INSERT:
            create_partition_metadata(self.context.storage, bucket.partition_path, self.context.instant_time)
            return
        if bucket.base_file is None or self._previous is None:
            raise BrokenInvariantError(f"bucket {bucket} has no base file to continue")
        path = join(bucket.partition_path, bucket.base_file)
        self.stored = StoredBaseFile(self.context.storage, path, bucket.base_bytes or None)

    def _choose_stage(self) -> None:
        self._stage = self.context.storage.stage(self.context.instant_time, self.path)

    def close(self) -> None:
        """Closes the older version. The file cannot be published any more, unless it is announced."""
        if self.stored is not None:
            self.stored.close()
        stage, self._stage = self._stage, None
        if stage is not None:
            with suppress(StorageError):  # nothing was written there
                self.context.storage.revoke(self.path, stage.ticket)

    def abandon(self) -> None:
        """Closes all files after a failure."""
        self.close()
        if self.changes is not None:
            self.changes.abandon()

    def stamp(self, rows: pa.Table) -> pa.Table:
        """Puts the meta columns before new rows (table columns and ``_hoodie_record_key``)."""
        context = self.context
        if not context.settings.has_meta_fields:
            return without_meta_values(rows, context.schema)
        return stamp_new_rows(
            rows,
            context.schema,
            context.instant_time,
            self.bucket.partition_path,
            self.name,
            (self._attempt.task, self._attempt.take_numbers(len(rows))),
        )

    def report(
        self, summary: BaseFileSummary, keys: KeyChanges, *, inserted: int, updated: int = 0, deleted: int = 0
    ) -> WriteStat:
        """The write stat of the finished file.

        Args:
            summary: the writer's report.
            keys: record keys that the file group gets and loses, if the context asks for them.
            inserted: number of rows that are new to the table.
            updated: number of rows that replaced others.
            deleted: number of rows that were deleted.

        Raises:
            StorageError: the instant was rolled back while the file was being written.
        """
        change_files = self.changes.close() if self.changes is not None else None
        self.close()
        check_still_wanted(self.context, self.path)
        spent_ms = round((clock.monotonic_s() - self._started_s) * 1000)
        previous = self._previous
        return WriteStat(
            file_id=self.bucket.file_id,
            path=self.path,
            partition_path=self.bucket.partition_path,
            prev_commit=previous.instant_time if previous else NO_PREVIOUS_COMMIT,
            prev_base_file=str(previous) if previous else None,
            num_writes=summary.rows,
            num_inserts=inserted,
            num_update_writes=updated,
            num_deletes=deleted,
            total_write_bytes=summary.size_bytes,
            file_size_bytes=summary.size_bytes,
            create_ms=0 if previous else spent_ms,
            upsert_ms=spent_ms if previous else 0,
            extra={} if change_files is None else {CHANGE_FILES: change_files},
            ranges=self.context.ranges_of(summary),
            keys=self.context.keys_for_stat(self._attempt, keys),
        )
