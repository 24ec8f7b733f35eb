"""Rewrites the slices of one group as new base files with their rows in order (MultipleSparkJobExecutionStrategy)."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing

import pyarrow as pa

from table import clock
from table.files.key_changes import KeyChanges
from table.files.names import build_write_token, parse_base_file, parse_log_file
from table.files.partition_metadata import create_partition_metadata
from table.scan.merge_slice import SliceReading, load_records, merge_records
from table.schema.avro_schema import RECORD_KEY
from table.services.compaction.compacted_file import CompactedFile
from table.services.planned_slice import find_planned_slice
from table.storage.interface import failed
from table.timeline.metadata.clustering import ClusteredSlice, ClusteringGroup
from table.timeline.metadata.commit import WriteStat
from table.timeline.metadata.compaction import CompactionOperation
from table.write.announce import check_still_wanted
from table.write.base_file import write_base_file
from table.write.context import MOST_MOVED_BYTES, Attempt, WriteContext
from table.write.sorted_rows import Ordering, SortedRows


def cluster_group(
    context: WriteContext,
    reading: SliceReading,
    ordering: Ordering,
    groups: Sequence[ClusteringGroup],
    number: int,
) -> tuple[WriteStat, ...]:
    """Writes the file groups that replace those of one group. Rows keep their commit times and sequence numbers.

    Args:
        context: the write context of the clustering's commit.
        reading: how slices are read; it takes all columns.
        ordering: the order of the rows.
        groups: of the plan. They record keys for a record index in equal shares: the driver holds the keys of all.
        number: which of them is rewritten.

    Returns:
        The stats of the written files: as many files as planned, or fewer if there are too few rows.

    Raises:
        CorruptFileError: a file or a block is damaged.
        StorageError: the store or the local disk fails, or a planned file is not there.
    """
    group = groups[number]
    create_partition_metadata(context.storage, group.partition_path, context.instant_time)
    token = build_write_token(number, ordering.number, clock.fresh_number(10**9))
    attempt = Attempt(token, MOST_MOVED_BYTES // len(groups))
    try:
        with closing(SortedRows(_rows_of(context, reading, group.slices), ordering)) as ordered:
            parts = _split(ordered, -(-ordered.count // group.files) or 1)
            return tuple(_write_file(context, group.partition_path, part, attempt) for part in parts)
    except OSError as error:
        raise failed("cluster the rows of", group.partition_path, error) from error


def _rows_of(context: WriteContext, reading: SliceReading, slices: Iterable[ClusteredSlice]) -> Iterator[pa.Table]:
    for one in slices:
        found = find_planned_slice(
            context.storage,
            one.partition_path,
            one.file_id,
            _base_instant_time(one),
            one.base_file,
            one.log_files,
            f"the clustering {context.instant_time}",
        )
        records = load_records(context.storage, found, reading)
        yield from merge_records(context.storage, found.base_file, records, reading)


def _base_instant_time(one: ClusteredSlice) -> str:
    base = parse_base_file(one.base_file) if one.base_file is not None else None
    if base is not None:
        return base.instant_time
    log = parse_log_file(one.log_files[0]) if one.log_files else None
    return log.base_instant_time if log is not None else ""


def _split(pieces: Iterable[pa.Table], rows_each: int) -> Iterator[Iterator[pa.Table]]:
    """Yields the rows of each file: `rows_each`, or the rest. The caller reads these before it asks for the next."""
    rest = iter(pieces)
    held: pa.Table | None = next(rest, None)

    def of_one_file() -> Iterator[pa.Table]:
        nonlocal held
        remaining = rows_each
        while held is not None and remaining:
            rows, more = held.slice(0, remaining), held.slice(remaining)
            remaining -= len(rows)
            held = more if len(more) else next(rest, None)
            yield rows

    while held is not None:
        yield of_one_file()


def _write_file(context: WriteContext, path: str, pieces: Iterable[pa.Table], attempt: Attempt) -> WriteStat:
    started_s = clock.monotonic_s()
    planned = CompactionOperation(path, f"{clock.fresh_uuid()}-0", context.instant_time, None, ())
    file = CompactedFile(context, planned, attempt.write_token)
    moved: list[pa.Array] = []
    noted = _noting_keys(pieces, moved, attempt.most_told_bytes) if context.tells_keys else pieces
    summary = write_base_file(file, map(file.stamp, noted))
    check_still_wanted(context, file.path)
    return WriteStat(
        file_id=planned.file_id,
        path=file.path,
        partition_path=path,
        num_writes=summary.rows,
        num_inserts=summary.rows,
        total_write_bytes=summary.size_bytes,
        file_size_bytes=summary.size_bytes,
        create_ms=round((clock.monotonic_s() - started_s) * 1000),
        ranges=context.ranges_of(summary),
        keys=context.keys_for_stat(attempt, KeyChanges(tuple(moved))),
    )


def _noting_keys(pieces: Iterable[pa.Table], keys: list[pa.Array], most_bytes: int) -> Iterator[pa.Table]:
    """Notes the keys of rows on their way into a file, and stops after the first piece that exceeds the bound."""
    noted_bytes = 0
    for rows in pieces:
        if noted_bytes <= most_bytes:
            chunks = rows.column(RECORD_KEY).chunks
            keys += chunks
            noted_bytes += KeyChanges(tuple(chunks)).size_bytes
        yield rows
