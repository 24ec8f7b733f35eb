"""Rows of one bucket -> one base file and its WriteStat (HoodieCreateHandle, HoodieConcatHandle, HoodieMergeHandle).

The order is what safety rests on: partition metadata, marker, data. The stat is returned only when
the file is whole.
"""

import pyarrow as pa

from table import clock
from table.errors import BrokenInvariantError, StorageError
from table.files.base_file import BaseFileWriter, file_schema, filter_of_footer, read_batches, read_footer
from table.files.bloom_filter import AnyBloomFilter
from table.files.file_names import BaseFileName, parse_base_file
from table.files.markers import CREATE, MERGE, create_marker, marker_exists
from table.files.partition_metadata import create_partition_metadata
from table.schema import RECORD_KEY, with_meta_columns
from table.storage import join
from table.timeline.commit_metadata import NO_PREVIOUS_COMMIT, WriteStat
from table.write.context import Bucket, BucketType, WriteContext
from table.write.merge import last_of_each_key, merge_stored_rows
from table.write.meta_columns import restamp_carried_rows, stamp_new_rows


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
        self._carried_filter = self._load_filter()
        self._writer = self._open()
        self._previous = self._continue_base_file()

    def _open(self) -> BaseFileWriter:
        context, bucket = self._context, self._bucket
        if bucket.type is BucketType.INSERT:
            create_partition_metadata(context.storage, bucket.partition_path, context.instant_time)
        create_marker(context.storage, context.instant_time, self._path, self._kind)
        return BaseFileWriter(
            context.storage,
            self._path,
            self._schema,
            context.avro_schema,
            context.settings,
            self._carried_filter,
        )

    def _load_filter(self) -> AnyBloomFilter | None:
        if self._bucket.base_file is None:
            return None
        context = self._context
        footer = read_footer(context.storage, join(self._bucket.partition_path, self._bucket.base_file))
        return filter_of_footer(footer, context.settings.bloom_max_entries)

    def _continue_base_file(self) -> BaseFileName | None:
        bucket = self._bucket
        if bucket.type is BucketType.INSERT:
            return None
        previous = parse_base_file(bucket.base_file or "")
        if previous is None:
            raise BrokenInvariantError(f"bucket {bucket} has no base file to continue")
        if self._context.allow_duplicates:
            self._carry_over()
        return previous

    @property
    def _looks_for_keys(self) -> bool:
        return self._bucket.type is BucketType.UPDATE and not self._context.allow_duplicates

    def _carry_over(self, incoming: pa.Table | None = None) -> pa.Table | None:
        """Copies the stored rows, merged with incoming ones if given; returns incoming rows with new keys."""
        assert self._bucket.base_file is not None
        path = join(self._bucket.partition_path, self._bucket.base_file)
        context = self._context
        unmatched = None if incoming is None else set(range(len(incoming)))
        for stored in read_batches(context.storage, path, file_schema(self._schema)):
            rows = restamp_carried_rows(stored, self._name)
            if incoming is not None and unmatched is not None:
                merged = merge_stored_rows(
                    rows, incoming, context.ordering_field, event_time_order=context.event_time_order
                )
                unmatched.difference_update(merged.matched.tolist())
                self._updated += merged.updated
                rows = merged.rows
            self._writer.write(rows, carried=True)
        if incoming is None or unmatched is None:
            return None
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

    def close(self) -> tuple[WriteStat, int]:
        """Finishes the file. Returns its stat and how many of its bytes are footer."""
        if self._looks_for_keys:
            held = pa.concat_tables([empty_rows(self._context.schema), *self._held])
            incoming = self._stamp(last_of_each_key(held))
            fresh = self._carry_over(incoming)
            assert fresh is not None
            self._writer.write(fresh)
            self._inserted += len(fresh)
        summary = self._writer.close()
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
        return stat, summary.footer_bytes

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


def empty_rows(schema: pa.Schema) -> pa.Table:
    """No rows, with the columns that `BucketWriter.write` takes."""
    return pa.schema([*schema, pa.field(RECORD_KEY, pa.string())]).empty_table()
