"""One slice's base file and log files -> the base file of the slice to come (HoodieCompactor, HoodieMergeHandle).

Log records that fit into memory change the base file as the records of an upsert do: parts that they do not change are
copied.
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from table import clock
from table.files.base.stored_file import StoredBaseFile
from table.files.base.summary import BaseFileSummary
from table.files.names import build_write_token
from table.files.partition_metadata import create_partition_metadata
from table.index.key_lookup import positions_of
from table.records.merge import delete_flags
from table.scan.log_records import removes_of
from table.scan.merge_slice import (
    MORE_ROWS,
    LogRecords,
    SliceReading,
    in_pieces,
    load_records,
    merge_records,
    newest_records,
)
from table.schema.avro_schema import DELETE_MARKER, RECORD_KEY
from table.services.compaction.compacted_file import CompactedFile
from table.services.planned_slice import find_planned_slice
from table.timeline.metadata.commit import WriteStat
from table.timeline.metadata.compaction import CompactionOperation
from table.view.file_group import BaseFile, FileSlice
from table.write.announce import check_still_wanted
from table.write.base_file import write_base_file
from table.write.context import WriteContext
from table.write.merge_bucket import Changes, FileMerge


def compact_slice(
    context: WriteContext, reading: SliceReading, operation: CompactionOperation, number: int
) -> WriteStat:
    """Writes the base file of one operation. Its rows keep their commit times and sequence numbers.

    Args:
        context: the compaction's.
        reading: how slices are read: all columns.
        operation: the slice.
        number: of the operation in its plan.

    Returns:
        The file's stat.

    Raises:
        CorruptFileError: a file or a block is damaged.
        StorageError: the store fails, or a planned file is not there.
    """
    started_s = clock.monotonic_s()
    # an attempt of another process at the same plan has another name
    file = CompactedFile(context, operation, build_write_token(number, 0, clock.fresh_number(10**9)))
    found = _slice_of(context, operation)
    create_partition_metadata(context.storage, operation.partition_path, context.instant_time)
    records = load_records(context.storage, found, reading)
    if found.base_file is not None and (records is None or records.are_held_whole):
        summary = _change_base(file, found.base_file, records.held if records else [], reading)
    else:
        summary = _write_anew(file, found, records, reading)
    check_still_wanted(context, file.path)
    return _stat_of(file, found, summary, round((clock.monotonic_s() - started_s) * 1000))


def _change_base(file: CompactedFile, base: BaseFile, held: list[pa.Table], reading: SliceReading) -> BaseFileSummary:
    """The base file with the changes of log records; row groups and columns that none of them changes are copied."""
    newest = newest_records(held, reading)
    with StoredBaseFile(file.context.storage, base.path, base.size_bytes) as stored:
        changes, inserts = _split(stored, newest, reading)
        return FileMerge(replace(file, stored=stored), changes, inserts).write()


def _split(stored: StoredBaseFile, newest: pa.Table, reading: SliceReading) -> tuple[Changes, pa.Table]:
    """Log records of keys that the base file holds, and those of new keys, without deletes."""
    keys = pa.concat_arrays(newest.column(RECORD_KEY).chunks) if len(newest) else pa.array([], pa.string())
    wanted = pa.schema([reading.schema.field(RECORD_KEY)])
    rows, matches, at = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], 0
    for piece in in_pieces(stored.read_batches(wanted), len(newest) // MORE_ROWS) if len(newest) else ():
        found = positions_of(piece.column(0), keys)
        hits = np.flatnonzero(found >= 0)
        rows.append(hits + at)
        matches.append(found[hits])
        at += len(piece)
    matched = np.concatenate(matches)
    is_new = ~delete_flags(newest, reading.rules)
    is_new[matched] = False
    inserts = newest.filter(pa.array(is_new))
    if DELETE_MARKER not in reading.schema.names:
        inserts = inserts.drop_columns([DELETE_MARKER])
    return Changes(newest, np.concatenate(rows), matched, removes_of(newest)), inserts


def _write_anew(
    file: CompactedFile, found: FileSlice, records: LogRecords | None, reading: SliceReading
) -> BaseFileSummary:
    """All rows encoded: there is no base file, or the log records do not fit into memory."""
    merged = merge_records(file.context.storage, found.base_file, records, reading)
    return write_base_file(file, map(file.stamp, merged))


def _slice_of(context: WriteContext, operation: CompactionOperation) -> FileSlice:
    return find_planned_slice(
        context.storage,
        operation.partition_path,
        operation.file_id,
        operation.base_instant_time,
        operation.base_file,
        operation.log_files,
        f"the compaction {context.instant_time}",
    )


def _stat_of(file: CompactedFile, found: FileSlice, summary: BaseFileSummary, spent_ms: int) -> WriteStat:
    operation = file.operation
    return WriteStat(
        file_id=operation.file_id,
        path=file.path,
        partition_path=operation.partition_path,
        prev_commit=operation.base_instant_time,
        prev_base_file=operation.base_file,
        num_writes=summary.rows,
        total_write_bytes=summary.size_bytes,
        file_size_bytes=summary.size_bytes,
        upsert_ms=spent_ms,
        extra={
            "totalLogFilesCompacted": len(found.log_files),
            "totalLogSizeCompacted": sum(log.size_bytes for log in found.log_files),
        },
        ranges=file.context.ranges_of(summary),
    )
