"""Compacts the metadata table: in each file group a base file with all records takes the place of many log files.

Hudi's writers do so after ten delta commits (hoodie.metadata.compact.max.delta.commits). All that the compaction writes
follows from its time and from the log files of earlier delta commits. So several processes may carry one out.
"""

from collections.abc import Iterable, Mapping

from table import clock
from table.config.metadata_indexes import FILES, RECORD_INDEX
from table.config.table_config import load_table_config
from table.errors import UnsupportedTableError
from table.files.hfile.read_hfile import HFile
from table.files.hfile.write_hfile import encode_hfile
from table.files.names import BaseFileName
from table.log import get_logger
from table.metadata_table.column_stats import widened_value
from table.metadata_table.file_lists import read_lists
from table.metadata_table.groups import read_records
from table.metadata_table.location_codec import newest_location
from table.metadata_table.metadata_table import (
    GroupKey,
    MetadataTable,
    find_slice,
    is_making,
    planned_groups,
    slices_in,
    unfinished_times,
)
from table.metadata_table.record_codec import encode_record, schema_of
from table.metadata_table.records import ALL_PARTITIONS, ListRecord, RecordType
from table.storage.interface import FileInfo, Storage, join
from table.timeline.active_timeline import begin_instant, create_settled, delete_instant_file
from table.timeline.end_record import find_end
from table.timeline.instant import DECIDED_ACTIONS, Action, Instant, State
from table.timeline.layout import name_instant
from table.timeline.metadata.commit import CommitMetadata, WriteStat
from table.timeline.metadata.compaction import CompactionOperation, CompactionPlan, encode_compaction_plan
from table.timeline.timeline import Timeline
from table.view.file_group import CommittedInstants, FileSlice, committed_instants, parse_data_files

DELTA_COMMITS = 10
_MOST = 20  # times as many log files: then what hinders the compaction will not go away
# a base file of a record index is written anew at a quarter of its size, or behind so many log files
_GROWTH, _MOST_LOGS = 4, 100
_EXTENSION = ".hfile"
_TASK = "0-0-0"

log = get_logger("hudistream.metadata_table")


def compact_lists(storage: Storage, timeline: Timeline, delta_commits: int = DELTA_COMMITS) -> bool:
    """Compacts the lists of files if enough delta commits were written since, or finishes what is pending.

    Args:
        storage: of the table.
        timeline: of the table, listed before this call.
        delta_commits: number of log files from which on a compaction is due.

    Returns:
        Whether a compaction was completed.

    Raises:
        UnsupportedTableError: a file has a form that is not known here.
        CorruptFileError: a file is damaged.
        FileNotFoundError: there is no metadata table, or it was dropped meanwhile.
        StorageError: the store fails; the next call finishes the compaction.
    """
    own = MetadataTable.open(storage)
    now = own.load_timeline()
    committed = committed_instants(now, {})
    found = find_slice(own.list_files(), committed)
    pending = next(iter(now.pending_of(Action.COMPACTION)), None)
    begins = found.base_instant_time
    deltas = [one for one in now.completed_of(Action.DELTA_COMMIT) if one.time > begins and not is_making(one.time)]
    if pending is None and min(len(found.log_files), len(deltas)) < delta_commits:
        return False
    waits = now.pending_of(Action.DELTA_COMMIT) or _has_decided(storage, timeline) or unfinished_times(now, timeline)
    if waits:
        if len(found.log_files) > _MOST * delta_commits:
            raise UnsupportedTableError(f"{len(found.log_files)} log files of the lists could not be compacted")
        return False
    config = load_table_config(storage)
    indexes = config.metadata_indexes - {FILES} if config is not None else frozenset()
    others = (one for name in sorted(indexes) for one in slices_in(name, own.list_files(name), committed))
    slices = [found, *(one for one in others if _is_due(one))]
    pending = pending or _request(own, now, slices)
    return pending is not None and _carry_out(own, own.load_timeline(), pending)


def _is_due(found: FileSlice) -> bool:
    """Whether a file group is compacted together with the lists of files (pure).

    A record index is as large as the table has rows. So a base file of it is written when its log files have grown.
    """
    if found.partition_path != RECORD_INDEX or found.base_file is None:
        return bool(found.log_files)
    logs_bytes = sum(log.size_bytes for log in found.log_files)
    return len(found.log_files) > _MOST_LOGS or logs_bytes * _GROWTH > found.base_file.size_bytes


def _request(own: MetadataTable, now: Timeline, slices: Iterable[FileSlice]) -> Instant | None:
    """Requests a compaction; None where a delta commit was requested meanwhile, which may not have seen the request."""
    request = name_instant(own.layout, _choose_time(now), Action.COMPACTION, State.REQUESTED)
    if now.find(request.time, Action.DELTA_COMMIT) is not None:
        return None
    made = own.storage.create_exclusive(request.path, encode_compaction_plan(_plan(slices)), durable=True)
    if made and own.load_timeline().pending_of(Action.DELTA_COMMIT):
        delete_instant_file(own.storage, request)
        return None
    return request


def _has_decided(storage: Storage, timeline: Timeline) -> bool:
    """Whether a pending action has decided its completion time: its delta commit may come, and lie before ours."""
    ends = (find_end(storage, one.time, one.action) for one in timeline.pending if one.action in DECIDED_ACTIONS)
    return any(end is not None and end.is_commit for end in ends)


def _choose_time(own: Timeline) -> str:
    """The time of a compaction: just after all that it merges; each later delta commit lies behind it (pure)."""
    deltas = (one for one in own.completed_of(Action.DELTA_COMMIT) if not is_making(one.time))
    last = max(one.completion_time or one.time[:17] for one in deltas)
    return clock.format_instant_time(clock.parse_instant_time(last) + 1)


def _plan(slices: Iterable[FileSlice]) -> CompactionPlan:
    return CompactionPlan(
        tuple(
            CompactionOperation(
                found.partition_path,
                found.file_id,
                found.base_instant_time,
                found.base_file.name if found.base_file is not None else None,
                tuple(log.name for log in found.log_files),
            )
            for found in slices
        )
    )


def _carry_out(own: MetadataTable, now: Timeline, pending: Instant) -> bool:
    """Writes the base files of a requested compaction, and completes it.

    Args:
        own: the metadata table.
        now: its timeline, listed after the request.
        pending: the compaction.
    """
    committed = committed_instants(now, {})
    begun = begin_instant(own.storage, name_instant(own.layout, pending.time, Action.COMPACTION, State.REQUESTED))
    stats = tuple(_compact_group(own, group, pending.time, committed) for group in sorted(planned_groups(own, pending)))
    at = clock.format_instant_time(clock.parse_instant_time(pending.time) + 1)
    completed = begun.to(State.COMPLETED, at if own.layout.names.hold_completion else None)
    content = own.layout.encode_commit(CommitMetadata(stats, "COMPACT", compacted=True))
    create_settled(own.storage, completed.path, content)
    log.info("metadata_table_compacted", table=own.storage.base_uri, instant_time=pending.time, groups=len(stats))
    return True


def _compact_group(own: MetadataTable, group: GroupKey, time: str, committed: CommittedInstants) -> WriteStat:
    """Writes the base file of a file group, or finds it."""
    index, file_id = group
    entries = [entry for entry in own.list_files(index) if _is_before(entry, time, committed)]
    found = next((one for one in slices_in(index, entries, committed) if one.file_id == file_id), None)
    if found is None:
        raise UnsupportedTableError(f"the file group {file_id} of the metadata table has no files")
    version = own.config.version
    if index == FILES:
        left: Iterable[tuple[bytes, bytes]] = sorted(
            records_of_lists(read_lists(own, found, committed).entries()).items()
        )
    else:
        records = read_records(own, found, committed).entries()
        merge = newest_location if index == RECORD_INDEX else widened_value
        merged = ((key, merge(values, version)) for key, values in records)
        left = ((key, value) for key, value in merged if value is not None)
    data = encode_hfile(left, schema_of(version), is_base_file=True)
    name = str(BaseFileName(file_id, _TASK, time, _EXTENSION))
    if create_settled(own.storage, join(index, name), data) != data:
        raise UnsupportedTableError(f"the base file {name} of the metadata table has other entries than its log files")
    return WriteStat(
        file_id, join(index, name), index, found.base_instant_time, num_writes=HFile(data).entry_count,
        total_write_bytes=len(data), file_size_bytes=len(data),
    )  # fmt: skip


def _is_before(entry: FileInfo, time: str, committed: CommittedInstants) -> bool:
    """Whether a compaction of that time merges the file (pure)."""
    bases, logs = parse_data_files("", [entry])
    if not committed.logs_name_writers:
        return any(file.instant_time < time for file in bases) or any(log.base_instant_time < time for log in logs)
    done = [committed.completed_at(log.base_instant_time) for log in logs]
    return any(file.instant_time < time for file in bases) or any(at is not None and at < time for at in done)


def records_of_lists(lists: Mapping[str, Mapping[str, int]]) -> dict[bytes, bytes]:
    """The records of the lists of files, by key.

    Args:
        lists: key of a record -> names with sizes in bytes; `ALL_PARTITIONS` is among the keys.
    """
    return {
        key.encode(): encode_record(
            RecordType.ALL_PARTITIONS if key == ALL_PARTITIONS else RecordType.FILES,
            ListRecord({name: (size, False) for name, size in sorted(sizes.items())}),
        )
        for key, sizes in lists.items()
        if sizes or key == ALL_PARTITIONS
    }
