"""Compacts the metadata table: in each file group a base file with all records takes the place of many log files.

Hudi's writers do so after ten delta commits (hoodie.metadata.compact.max.delta.commits). All that the compaction writes
follows from its time and from the log files of earlier delta commits. So several processes may carry one out.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum

import pyarrow as pa

from table import clock
from table.config.metadata_indexes import FILES, RECORD_INDEX
from table.config.table_config import TableConfig, load_table_config
from table.errors import CorruptFileError, UnsupportedTableError
from table.files.hfile.read_hfile import HFile
from table.files.hfile.write_hfile import HFileEntries, encode_hfile
from table.files.names import BaseFileName
from table.log import get_logger
from table.metadata_table.column_stats import widened_value
from table.metadata_table.file_lists import read_lists
from table.metadata_table.find_keys import read_layers
from table.metadata_table.groups import read_records
from table.metadata_table.known_layers import merge_layers
from table.metadata_table.location_codec import newest_location
from table.metadata_table.lost_files import WRITES, NamedFiles, check_whole, read_named
from table.metadata_table.metadata_table import (
    GroupKey,
    MetadataTable,
    count_groups,
    find_slice,
    is_making,
    is_whole,
    planned_groups,
    slices_in,
    token_of_group,
    unfinished_times,
)
from table.metadata_table.record_codec import encode_record, schema_of
from table.metadata_table.records import ALL_PARTITIONS, ListRecord, RecordType, Value
from table.metadata_table.stored_bytes import StoredBytes
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
# a record index is written anew when its log files have a quarter of its size, or after so many times as many commits
_GROWTH, _PATIENCE = 4, 5
_MOST_AT_ONCE = 64 << 20  # bytes of a slice of the record index that is merged as columns: some hundred MB unpacked
_MOST_KEYS_AT_ONCE = 256 << 20  # bytes of their keys
_EXTENSION = ".hfile"
_SUFFIX = "001"

log = get_logger("hudistream.metadata_table")


class Compaction(Enum):
    """What came of a look at the metadata table."""

    NOT_DUE = "too few delta commits for its size"
    HINDERED = "it is due, and has to wait for an action of the table"
    DONE = "it was completed"


def compact_lists(storage: Storage, timeline: Timeline, delta_commits: int = DELTA_COMMITS) -> Compaction:
    """Compacts all file groups of the metadata table if enough delta commits were written, or finishes what is pending.

    Args:
        storage: of the table.
        timeline: of the table, listed before this call.
        delta_commits: number of log files from which on a compaction is due; with a large record index it is due later.

    Raises:
        UnsupportedTableError: a file has a form that is not known here.
        CorruptFileError: a file is damaged.
        FileNotFoundError: there is no metadata table, or it was dropped meanwhile.
        StorageError: the store fails; the next call finishes the compaction.
    """
    own = MetadataTable.open(storage)
    now = own.load_timeline()
    committed = committed_instants(now, {})
    lists = own.list_files()
    found = find_slice(lists, committed)
    pending = next(iter(now.pending_of(Action.COMPACTION)), None)
    begins = found.base_instant_time
    deltas = [one for one in now.completed_of(Action.DELTA_COMMIT) if one.time > begins and not is_making(one.time)]
    written = min(len(found.log_files), len(deltas))
    if pending is None and written < delta_commits:
        return Compaction.NOT_DUE
    config = load_table_config(storage)
    indexes = config.metadata_indexes - {FILES} if config is not None else frozenset()
    entries = {FILES: lists, **{name: own.list_files(name) for name in sorted(indexes)}}
    index = slices_in(RECORD_INDEX, entries.get(RECORD_INDEX, []), committed)
    if pending is None and written < _due_from(delta_commits, index):
        return Compaction.NOT_DUE
    waits = now.pending_of(Action.DELTA_COMMIT) or _has_decided(storage, timeline) or unfinished_times(now, timeline)
    if pending is None and not waits:
        time = choose_time(now, timeline)
        latest = max((begins, *(one.time for one in now.completed_of(Action.COMMIT))))
        if time > latest and not any(one.time == time for one in (*now, *timeline)):
            merged = {name: [one for one in of if _is_before(one, time, committed)] for name, of in entries.items()}
            slices = (one for name, of in merged.items() for one in slices_in(name, of, committed))
            pending = _request(own, time, [one for one in slices if one.log_files])
    if pending is None or waits:
        if len(found.log_files) > _MOST * delta_commits:
            raise UnsupportedTableError(f"{len(found.log_files)} log files of the lists could not be compacted")
        return Compaction.HINDERED
    _carry_out(own, own.load_timeline(), pending)
    return Compaction.DONE


def _due_from(delta_commits: int, index: Sequence[FileSlice]) -> int:
    """The number of delta commits from which on a compaction is due (pure).

    A record index is as large as the table has rows, and a compaction writes it anew: it waits until the log files have
    grown. It cannot be left out. Hudi reads a block only while its delta commit is on an active timeline, and takes it
    that a compaction has merged all earlier ones.
    """
    base_bytes = sum(one.base_file.size_bytes for one in index if one.base_file is not None)
    logs_bytes = sum(log.size_bytes for one in index for log in one.log_files)
    return delta_commits if logs_bytes * _GROWTH >= base_bytes else _PATIENCE * delta_commits


def find_unmerged(storage: Storage, config: TableConfig) -> frozenset[str]:
    """The times of the actions whose delta commits no compaction has merged.

    Hudi reads their blocks only while these actions are on the table's active timeline, before 1.0 (TimelineArchiver
    does not archive what is newer than the last compaction of the metadata table).

    Args:
        storage: of the table.
        config: its properties.

    Returns:
        The times; none where there is no metadata table that could be read.

    Raises:
        StorageError: the store fails.
    """
    if not config.metadata_indexes:
        return frozenset()
    try:
        now = MetadataTable.open(storage).load_timeline()
    except (FileNotFoundError, CorruptFileError):
        return frozenset()
    merged = max((one.time for one in now.completed_of(Action.COMMIT)), default="")
    return frozenset(
        one.time for one in now.completed_of(Action.DELTA_COMMIT) if (one.completion_time or one.time) >= merged
    )


def _request(own: MetadataTable, time: str, slices: Iterable[FileSlice]) -> Instant | None:
    """Requests a compaction; None where a delta commit was requested meanwhile, which may not have seen the request."""
    request = name_instant(own.layout, time, Action.COMPACTION, State.REQUESTED)
    made = own.storage.create_exclusive(request.path, encode_compaction_plan(_plan(slices)), durable=True)
    if made and own.load_timeline().pending_of(Action.DELTA_COMMIT):
        delete_instant_file(own.storage, request)
        return None
    return request


def _has_decided(storage: Storage, timeline: Timeline) -> bool:
    """Whether a pending action has decided its completion time: its delta commit may come, and lie before ours."""
    ends = (find_end(storage, one.time, one.action) for one in timeline.pending if one.action in DECIDED_ACTIONS)
    return any(end is not None and end.is_commit for end in ends)


def choose_time(own: Timeline, timeline: Timeline) -> str:
    """The time of a compaction: after all that it merges, and never that of an action of the table (pure).

    In layout 2 it is the completion time of the last delta commit, which stays on top of it. An action that begins
    later has a later time. Layout 1 has no completion times. So the compaction comes before each action that is still
    pending, and its time has three digits more (so does HoodieBackedTableMetadataWriter in tables of version 6).

    Args:
        own: timeline of the metadata table.
        timeline: of the table.
    """
    deltas = (one for one in own.completed_of(Action.DELTA_COMMIT) if not is_making(one.time))
    last = max(one.completion_time or one.time[:17] for one in deltas)
    if own.layout.names.hold_completion:
        return last
    telling = DECIDED_ACTIONS - {Action.SAVEPOINT}
    before = min((one.time for one in timeline.pending if one.action in telling), default=None)
    if before is not None and before <= last:
        last = clock.format_instant_time(clock.parse_instant_time(before) - 1)
    return last + _SUFFIX


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


def _carry_out(own: MetadataTable, now: Timeline, pending: Instant) -> None:
    """Writes the base files of a requested compaction, and completes it.

    Args:
        own: the metadata table.
        now: its timeline, listed after the request.
        pending: the compaction.

    Raises:
        UnsupportedTableError: the metadata table was made anew meanwhile, or a file group has lost files.
        CorruptFileError: a file is gone.
    """
    begun = begin_instant(own.storage, name_instant(own.layout, pending.time, Action.COMPACTION, State.REQUESTED))
    earlier = [one for one in now.completed_of(*WRITES) if (one.completion_time or one.time) < pending.time]
    named = read_named(own, earlier)
    groups = sorted(planned_groups(own, pending))
    stats = tuple(_compact_group(own, group, pending.time, now, named) for group in groups)
    at = clock.format_instant_time(clock.parse_instant_time(pending.time) + 1)
    completed = begun.to(State.COMPLETED, at if own.layout.names.hold_completion else None)
    content = own.layout.encode_commit(CommitMetadata(stats, "COMPACT", compacted=True))
    _check_is_there(own, begun)
    create_settled(own.storage, completed.path, content)
    _check_is_there(own, begun)  # a pause just before: readers refuse such a compaction until it is gone
    log.info("metadata_table_compacted", table=own.storage.base_uri, instant_time=pending.time, groups=len(stats))


def _check_is_there(own: MetadataTable, begun: Instant) -> None:
    if not own.storage.exists(begun.path):
        raise UnsupportedTableError(f"the metadata table was made anew beside the compaction {begun.time}")


def _compact_group(
    own: MetadataTable, group: GroupKey, time: str, now: Timeline, named: Collection[NamedFiles]
) -> WriteStat:
    """Writes the base file of a file group, or finds it."""
    index, file_id = group
    committed = committed_instants(now, {})
    whole = own.list_files(index)
    token = token_of_group(file_id, count_groups(whole))
    entries = [entry for entry in whole if _is_before(entry, time, committed)]
    found = next((one for one in slices_in(index, entries, committed) if one.file_id == file_id), None)
    if found is None or not is_whole(found):
        raise UnsupportedTableError(f"the file group {file_id} of the metadata table has lost files")
    there = {entry.name for entry in whole if entry.size_bytes}
    check_whole(found, named, there)
    version = own.config.version
    merged_entries: HFileEntries | Iterable[tuple[bytes, bytes]]
    if index == FILES:
        merged_entries = sorted(records_of_lists(read_lists(own, found, committed).entries()).items())
    elif index == RECORD_INDEX and _fits_in_memory(own, found):
        merged_entries = _merged_locations(own, found, committed)
    else:
        merge = newest_location if index == RECORD_INDEX else widened_value
        records = read_records(own, found, committed).entries()
        merged = ((key, merge(values, version)) for key, values in records)
        merged_entries = ((key, value) for key, value in merged if value is not None)
    data = encode_hfile(merged_entries, schema_of(version), is_base_file=True)
    name = str(BaseFileName(file_id, token, time, _EXTENSION))
    if create_settled(own.storage, join(index, name), data) != data:
        raise UnsupportedTableError(f"the base file {name} of the metadata table has other entries than its log files")
    return WriteStat(
        file_id, join(index, name), index, found.base_instant_time, num_writes=HFile(data).entry_count,
        total_write_bytes=len(data), file_size_bytes=len(data),
    )  # fmt: skip


def _fits_in_memory(own: MetadataTable, found: FileSlice) -> bool:
    """Whether the keys of a slice of the record index may be merged as columns. Long keys that are alike pack well."""
    if sum(file.size_bytes for file in found.files) > _MOST_AT_ONCE:
        return False
    base = found.base_file
    return base is None or HFile(StoredBytes(own.storage, base.path, base.size_bytes)).key_bytes <= _MOST_KEYS_AT_ONCE


def _merged_locations(own: MetadataTable, found: FileSlice, committed: CommittedInstants) -> HFileEntries:
    """The newest location of each key of a slice of the record index."""
    merged = merge_layers(read_layers(own, found, committed))
    locations = (newest_location([Value(data or None, schema)], own.config.version) for data, schema in merged.values)
    values = pa.array([value or b"" for value in locations], pa.binary())
    return HFileEntries(merged.keys, values.take(pa.array(merged.numbers)))


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
