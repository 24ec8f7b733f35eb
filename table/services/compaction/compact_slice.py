"""One slice's base file and log files -> the base file of the slice to come (HoodieCompactor, HoodieMergeHandle)."""

from dataclasses import dataclass

import pyarrow as pa

from table import clock
from table.errors import StorageError
from table.files.base.repeated_columns import REPEATED_META_COLUMNS, restamp_carried_rows
from table.files.base.summary import BaseFileSummary
from table.files.base.writer import BaseFileWriter
from table.files.markers import CREATE, MERGE
from table.files.names import BaseFileName, MarkerName, build_write_token
from table.files.partition_metadata import create_partition_metadata
from table.scan.merge_slice import SliceReading, merge_slice
from table.storage.interface import Stage, join
from table.timeline.metadata.commit import WriteStat
from table.timeline.metadata.compaction import CompactionOperation
from table.view.file_group import BaseFile, FileSlice, parse_data_files
from table.view.listing import StorageListing
from table.write.announce import announce, check_not_ended, check_still_wanted
from table.write.context import WriteContext


@dataclass(frozen=True)
class CompactedFile:
    """The base file that an operation makes: its name, and how it is announced.

    Attributes:
        context: the compaction's.
        operation: what is compacted.
        write_token: of the attempt.
    """

    context: WriteContext
    operation: CompactionOperation
    write_token: str

    @property
    def path(self) -> str:
        """Relative to the table."""
        name = BaseFileName(self.operation.file_id, self.write_token, self.context.instant_time)
        return join(self.operation.partition_path, str(name))

    def announce(self) -> Stage:
        """Announces the file before it is opened. Returns where it waits."""
        return announce(self.context, MarkerName(self.path, MERGE if self.operation.base_file else CREATE))

    def check_not_ended(self) -> None:
        """Whether it is still wanted; raises when it is not."""
        check_not_ended(self.context, self.path)


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
    storage = context.storage
    # an attempt of another process at the same plan has another name
    file = CompactedFile(context, operation, build_write_token(number, 0, clock.now_ms() % 10**9))
    found = _slice_of(context, operation)
    create_partition_metadata(storage, operation.partition_path, context.instant_time)
    writer = BaseFileWriter(storage, file.path, reading.schema, context.avro_schema, context.settings, announced=file)
    try:
        for rows in merge_slice(storage, found, reading):
            writer.write(restamp_carried_rows(_encoded(rows), file.path.rpartition("/")[2]))
        summary = writer.close()
    except BaseException:
        writer.abandon()
        raise
    check_still_wanted(context, file.path)
    return _stat_of(file, found, summary, round((clock.monotonic_s() - started_s) * 1000))


def _slice_of(context: WriteContext, operation: CompactionOperation) -> FileSlice:
    """The planned slice: its files and no others."""
    path, wanted = operation.partition_path, {*operation.log_files, operation.base_file}
    entries = [entry for entry in StorageListing(context.storage).list_files(path) if entry.name in wanted]
    bases, logs = parse_data_files(path, entries)
    missing = sorted(name for name in wanted - {entry.name for entry in entries} if name)
    if missing:
        raise StorageError(f"{join(path, missing[0])}, which the compaction {context.instant_time} reads, is not there")
    base: BaseFile | None = bases[0] if bases else None
    ordered = tuple(sorted(logs, key=lambda log: log.order))
    return FileSlice(path, operation.file_id, operation.base_instant_time, base, ordered)


def _encoded(rows: pa.Table) -> pa.Table:
    """Rows with the columns of few values as dictionaries, as a base file's writer takes them."""
    for name in REPEATED_META_COLUMNS:
        index = rows.schema.get_field_index(name)
        if not pa.types.is_dictionary(rows.schema.field(index).type):
            encoded = rows.column(index).dictionary_encode()
            rows = rows.set_column(index, pa.field(name, encoded.type), encoded)
    return rows


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
    )
