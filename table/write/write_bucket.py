"""Rows of one bucket -> one base file and its WriteStat (HoodieCreateHandle, HoodieConcatHandle, HoodieMergeHandle).

The order is what safety rests on: partition metadata, marker, data. The stat is returned only when
the file is whole.
"""

import pyarrow as pa

from table import clock
from table.errors import BrokenInvariantError, StorageError
from table.files.base_file import file_schema, restamp_carried_rows
from table.files.base_file_writer import BaseFileSummary, BaseFileWriter
from table.files.file_names import parse_base_file
from table.files.hudi_footer import filter_of_footer
from table.files.markers import CREATE, MERGE, create_marker, marker_exists
from table.files.partition_metadata import create_partition_metadata
from table.files.stored_file import StoredBaseFile
from table.schema import RECORD_KEY, with_meta_columns
from table.storage import join
from table.timeline.commit_metadata import NO_PREVIOUS_COMMIT, WriteStat
from table.write.context import Bucket, BucketType, WriteContext
from table.write.merge import last_of_each_key, merge_stored_rows
from table.write.meta_columns import stamp_new_rows


class BucketWriter:
    """Writes one bucket's rows into the next version of its file group, or into a new one.

    Use: `write` any number of times, then `close`; `abandon` after a failure.

    Args:
        context: the commit's.
        bucket: where the rows go.
        write_token: this attempt's; its first part goes into sequence numbers.
    """

    def __init__(self, context: WriteContext, bucket: Bucket, write_token: str) -> None:
        self._context, self._bucket = context, bucket
        self._task = int(write_token.split("-", 1)[0])
        self._name = context.base_file_name(bucket, write_token)
        self._path = join(bucket.partition_path, self._name)
        self._schema = with_meta_columns(context.schema)
        self._started_s = clock.monotonic_s()
        self._inserted = self._updated = 0
        self._held: list[pa.Table] = []
        self._kind = CREATE if bucket.type is BucketType.INSERT else MERGE
        self._stored = self._open_stored()
        try:
            self._writer = self._open()
        except BaseException:
            self._close_stored()
            raise

    def _open_stored(self) -> StoredBaseFile | None:
        bucket = self._bucket
        self._previous = parse_base_file(bucket.base_file or "")
        if bucket.type is BucketType.INSERT:
            return None
        if bucket.base_file is None or self._previous is None:
            raise BrokenInvariantError(f"bucket {bucket} has no base file to continue")
        return StoredBaseFile(self._context.storage, join(bucket.partition_path, bucket.base_file))

    def _open(self) -> BaseFileWriter:
        context, bucket = self._context, self._bucket
        if bucket.type is BucketType.INSERT:
            create_partition_metadata(context.storage, bucket.partition_path, context.instant_time)
        create_marker(context.storage, context.instant_time, self._path, self._kind)
        merges = self._looks_for_keys and self._stored is not None
        carried = None
        if merges and self._stored is not None:
            carried = filter_of_footer(self._stored.footer.key_values, context.settings.bloom_max_entries)
        return BaseFileWriter(
            context.storage,
            self._path,
            self._schema,
            context.avro_schema,
            context.settings,
            stored=None if merges else self._stored,
            carried_filter=carried,
        )

    def _close_stored(self) -> None:
        if self._stored is not None:
            self._stored.close()

    @property
    def _looks_for_keys(self) -> bool:
        return self._bucket.type is BucketType.UPDATE and not self._context.allow_duplicates

    def _merge_stored(self, stored: StoredBaseFile, incoming: pa.Table) -> pa.Table:
        """Writes the stored rows, merged with incoming ones; returns incoming rows with new keys."""
        context = self._context
        unmatched = set(range(len(incoming)))
        for rows in stored.read_batches(file_schema(self._schema)):
            merged = merge_stored_rows(
                restamp_carried_rows(rows, self._name),
                incoming,
                context.ordering_field,
                event_time_order=context.event_time_order,
            )
            unmatched.difference_update(merged.matched.tolist())
            self._updated += merged.updated
            self._writer.write(merged.rows, carried=True)
        return incoming.take(pa.array(sorted(unmatched), pa.int64()))

    def write(self, rows: pa.Table) -> None:
        """Takes new rows: table columns and ``_hoodie_record_key`` (Arrow)."""
        if self._looks_for_keys:
            self._held.append(rows)
        else:
            self._append(rows)

    def _append(self, rows: pa.Table) -> None:
        self._writer.write(self._stamp(rows))
        self._inserted += len(rows)

    def _stamp(self, rows: pa.Table) -> pa.Table:
        context = self._context
        return stamp_new_rows(
            rows,
            context.schema,
            context.instant_time,
            self._bucket.partition_path,
            self._name,
            self._task,
            self._writer.rows,
        )

    def close(self) -> tuple[WriteStat, BaseFileSummary]:
        """Finishes the file. Returns its stat, and how it was written."""
        if self._looks_for_keys and self._stored is not None:
            held = pa.concat_tables([empty_rows(self._context.schema), *self._held])
            fresh = self._merge_stored(self._stored, self._stamp(last_of_each_key(held)))
            self._writer.write(fresh)
            self._inserted += len(fresh)
        summary = self._writer.close()
        self._close_stored()
        self._check_still_wanted()
        spent_ms = round((clock.monotonic_s() - self._started_s) * 1000)
        previous = self._previous
        stat = WriteStat(
            file_id=self._bucket.file_id,
            path=self._path,
            partition_path=self._bucket.partition_path,
            prev_commit=previous.instant_time if previous else NO_PREVIOUS_COMMIT,
            prev_base_file=str(previous) if previous else None,
            num_writes=summary.rows,
            num_inserts=self._inserted,
            num_update_writes=self._updated,
            total_write_bytes=summary.size_bytes,
            file_size_bytes=summary.size_bytes,
            create_ms=0 if previous else spent_ms,
            upsert_ms=spent_ms if previous else 0,
        )
        return stat, summary

    def _check_still_wanted(self) -> None:
        """A rollback that ran while we wrote has looked for this file before it was there: it must go.

        The rollback takes the markers away before it looks a second time, so one of the two sees the other.
        """
        context = self._context
        if not marker_exists(context.storage, context.instant_time, self._path, self._kind):
            context.storage.delete(self._path)
            raise StorageError(f"instant {context.instant_time} was rolled back while {self._path} was being written")

    def abandon(self) -> None:
        """Lets go of the open file after a failure; markers tell the rollback about it."""
        self._writer.abandon()
        self._close_stored()


def empty_rows(schema: pa.Schema) -> pa.Table:
    """No rows, with the columns that `BucketWriter.write` takes."""
    return pa.schema([*schema, pa.field(RECORD_KEY, pa.string())]).empty_table()
