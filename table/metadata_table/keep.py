"""Keeps the metadata table up: each action that changes files writes a delta commit into it, before its own end.

The delta commit has the time of the action, and is completed before the action is (HoodieBackedTableMetadataWriter).
It is written when the end of the action is decided. So it is never taken back, and each process that carries the end
out writes the same files. What cannot be kept up is dropped, which is always right: readers then ask the store.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from table import clock
from table.config.held_change import withdraw_for_action
from table.config.metadata_indexes import (
    COLUMN_STATS,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
    STATISTICS,
    check_maintained,
)
from table.config.table_config import PROPERTIES_FILE, TableConfig, load_table_config, update_properties
from table.errors import CorruptFileError, UnsupportedTableError
from table.files.hfile.write_hfile import HFileEntries, encode_hfile
from table.files.log.delete_block import encode_deletes
from table.files.log.framing import BlockType, Header, LogBlock, encode_block
from table.files.names import LogFileName, log_write_token, may_be_of_instant
from table.log import get_logger
from table.metadata_table.changes import FileChanges
from table.metadata_table.drop import delete_metadata_files, drop_metadata_table, list_metadata_files
from table.metadata_table.file_lists import first_known
from table.metadata_table.file_ranges import read_ranges
from table.metadata_table.index_definitions import check_is_global, define_statistics, load_statistics
from table.metadata_table.index_keys import file_id_of
from table.metadata_table.known_lists import KnownLists, SeenLists
from table.metadata_table.lost_files import NamedFiles, name_files
from table.metadata_table.metadata_table import (
    FILE_ID,
    METADATA_FOLDER,
    MetadataTable,
    compactions_of,
    count_groups,
    newest_base,
)
from table.metadata_table.record_codec import schema_of
from table.metadata_table.record_index import NewLocations, new_locations
from table.metadata_table.statistics import (
    GroupRecords,
    NewStatistics,
    Statistics,
    agree_columns,
    find_untold,
    new_statistics,
)
from table.schema.avro_schema import from_avro, without_meta_columns
from table.storage.at_once import each_at_once
from table.storage.interface import FileInfo, Storage, join
from table.timeline.active_timeline import begin_instant, create_settled, load_timeline
from table.timeline.instant import Action, State
from table.timeline.layout import layout_of, name_instant
from table.timeline.metadata.commit import CommitMetadata, WriteStat
from table.timeline.timeline import Timeline
from table.view.file_group import parse_data_files

_TASK = "0-0-0"
_TRIES = 100

log = get_logger("hudistream.metadata_table")


def keep_lists(
    storage: Storage, time: str, completion_time: str | None, changes: FileChanges, known: KnownLists
) -> None:
    """Tells the table's metadata table what an action changed, or drops it. One that is being made is not named then.

    The caller has decided how the action ends, and has not completed it. Can be repeated, also by several processes.

    Args:
        storage: of the table.
        time: request time of the action.
        completion_time: its completion time; None in timeline layout 1.
        changes: the files that it added and deleted.
        known: what this process knows of the metadata table.

    Raises:
        StorageError: the store fails; the end must be carried out again.
    """
    config = load_table_config(storage)
    if config is None:
        return
    config = withdraw_for_action(storage, config)
    if not config.metadata_indexes:
        return
    try:
        check_maintained(config.metadata_indexes, tells_keys=config.tells_keys)
        own, timeline, seen = known.open(storage, config)
        config, locations = _new_locations(storage, config, changes, time, is_checked=seen is not None)
        kept, statistics = _new_statistics(storage, config, changes, seen.statistics if seen else None)
        delta = _Delta(own, timeline, time, completion_time)
        new = _NewRecords(GroupRecords(HFileEntries.of(changes.encode())), statistics, locations)
        counts = delta.write(new, seen.group_counts if seen else {})
        if delta.wrote is not None:
            known.note_named(delta.wrote)
        delta.check(load_timeline(storage, layout_of(config.layout_version, config.timeline_folder)))
        known.remember(SeenLists(config, own.config, time, timeline.files, kept, counts))
    except (UnsupportedTableError, CorruptFileError, FileNotFoundError) as error:
        log.warning("metadata_table_not_kept", table=storage.base_uri, instant_time=time, why=str(error))
        drop_metadata_table(storage, config)


def drop_lists_with(storage: Storage, time: str) -> None:
    """Drops the table's metadata table if it may list files of an instant that is about to be undone.

    Args:
        storage: of the table.
        time: request time of the instant.

    Raises:
        UnsupportedTableError: tables of this version and type are not written here.
        StorageError: the store fails.
    """
    config = load_table_config(storage)
    if config is None or not config.metadata_indexes:
        return
    with suppress(UnsupportedTableError, CorruptFileError, FileNotFoundError):
        timeline = MetadataTable.open(storage).load_timeline()
        if first_known(timeline) < time and not any(instant.time == time for instant in timeline):
            return
    drop_metadata_table(storage, config)


@dataclass(frozen=True)
class _NewRecords:
    """What an action adds to each index; None: the table has no such index."""

    files: GroupRecords
    statistics: NewStatistics | None
    locations: NewLocations | None

    @property
    def indexes(self) -> list[str]:
        """The indexes besides the lists of files that get records."""
        found = [RECORD_INDEX] if self.locations is not None and len(self.locations) else []
        if self.statistics is not None:
            found += [COLUMN_STATS, *([PARTITION_STATS] if self.statistics.of_partitions else [])]
        return found

    def by_group(self, counts: Mapping[str, int]) -> dict[tuple[str, int], GroupRecords]:
        """The records by index and number of the file group.

        Args:
            counts: number of file groups of each of `indexes`.
        """
        groups = {(FILES, 0): self.files} if len(self.files) else {}
        if self.statistics is not None:
            groups |= self.statistics.by_group(counts)
        if self.locations is not None and len(self.locations):
            groups |= self.locations.by_group(counts[RECORD_INDEX])
        return groups


def _new_locations(
    storage: Storage, config: TableConfig, changes: FileChanges, time: str, *, is_checked: bool
) -> tuple[TableConfig, NewLocations | None]:
    """What the action adds to the record index. An index in which a key would be missing is dropped.

    Args:
        storage: of the table.
        config: its properties.
        changes: of the action.
        time: request time of the action.
        is_checked: whether this process knows that the index has one record for each key of the table.

    Returns:
        The properties of the table, changed if the index was dropped, and the new records.
    """
    if RECORD_INDEX not in config.metadata_indexes:
        return config, None
    try:
        if not is_checked:
            check_is_global(storage)
        made_ms = clock.parse_instant_time(time, config.timezone)
        return config, new_locations(changes.keys, config.version, made_ms)
    except UnsupportedTableError as error:
        return drop_indexes(storage, config, frozenset({RECORD_INDEX}), str(error)), None


def _new_statistics(
    storage: Storage, config: TableConfig, changes: FileChanges, known: Statistics | None
) -> tuple[Statistics | None, NewStatistics | None]:
    """The statistics that the table keeps, and what the action adds to them. Those in which a file would be missing are
    dropped.

    Args:
        storage: of the table.
        config: its properties.
        changes: of the action.
        known: the statistics that the table kept before the action; None: they must be read.
    """
    if not config.metadata_indexes & STATISTICS:
        return None, None
    try:
        kept = known or load_statistics(storage, config)
        kinds: Mapping[str, pa.DataType] = dict.fromkeys(kept.columns, pa.null())
        ranges = changes.ranges
        if any(changes.added.values()):
            before = changes.load_before() if changes.load_before is not None else None
            kinds = agree_columns(kept, without_meta_columns(from_avro(changes.schema)), before)
            read = read_ranges(storage, find_untold(changes.added, ranges, kinds), tuple(kinds))
            ranges = {path: {**ranges.get(path, {}), **read.get(path, {})} for path in {*ranges, *read}}
            if len(kinds) > len(kept.columns):
                define_statistics(storage, kept, kinds)
        new = new_statistics(kept, config.version, kinds, ranges, changes.deleted)
        return replace(kept, columns=tuple(kinds)), new
    except (UnsupportedTableError, CorruptFileError) as error:
        drop_indexes(storage, config, STATISTICS, str(error))
        return None, None


def drop_indexes(storage: Storage, config: TableConfig, indexes: frozenset[str], why: str) -> TableConfig:
    """Drops indexes of a metadata table: property first, folders second. Hudi makes them anew at its next write.

    Args:
        storage: of the table.
        config: its properties.
        indexes: which; those that the table does not have count for nothing.
        why: the reason, for the log.

    Returns:
        The changed properties.
    """
    dropped = config.metadata_indexes & indexes
    names = frozenset[str]().union(*(list_metadata_files(storage, name) for name in dropped))
    changed = update_properties(storage, partial(_without_indexes, dropped=dropped))
    if not storage.exists(join(METADATA_FOLDER, PROPERTIES_FILE)):  # another process dropped it meanwhile
        changed = update_properties(storage, {"hoodie.table.metadata.partitions": ""})
    delete_metadata_files(storage, names)
    log.warning("metadata_indexes_dropped", table=storage.base_uri, indexes=sorted(dropped), why=why)
    return changed


def _without_indexes(properties: Mapping[str, str], dropped: frozenset[str]) -> Mapping[str, str]:
    kept = {name for name in properties.get("hoodie.table.metadata.partitions", "").split(",") if name} - dropped
    return {
        "hoodie.table.metadata.partitions": ",".join(sorted(kept)),
        "hoodie.table.metadata.partitions.inflight": "",
    }


class _Delta:
    """The delta commit of one action.

    Args:
        own: the metadata table.
        timeline: its timeline, before the delta commit.
        time: request time of the action.
        completion_time: of the action.

    Raises:
        UnsupportedTableError: the metadata table has a later timeline layout than the table.
    """

    def __init__(self, own: MetadataTable, timeline: Timeline, time: str, completion_time: str | None) -> None:
        self._own, self._time, self._timeline = own, time, timeline
        self.wrote: NamedFiles | None = None
        self._named = own.layout.names.hold_completion  # the log file, by the instant that writes it
        self._completion_time = completion_time if self._named else None
        if self._named and completion_time is None:
            raise UnsupportedTableError("it has a later timeline layout than the table")
        self._found = timeline.find(time, Action.DELTA_COMMIT)
        # in layout 1 the names of log files hold their slice, and are counted within it
        self._slice_time = self._completion_time or self._place(FILES, FILE_ID, own.list_files())[0]

    def write(self, new: _NewRecords, known: Mapping[str, int]) -> Mapping[str, int]:
        """Writes log files and instant, unless another process has.

        Args:
            new: the records.
            known: index -> number of its file groups, where this process knows it.

        Returns:
            What it knows of these numbers now.

        Raises:
            UnsupportedTableError: other processes wrote too many log files of the instant.
            StorageError: the store fails.
        """
        if self._found is not None and self._found.is_completed:
            return known
        counts = dict(known)
        unknown = [index for index in new.indexes if index not in counts]
        names = unknown if self._named else [FILES, *new.indexes]
        listed = dict(zip(names, each_at_once(self._own.storage, self._own.list_files, names), strict=True))
        counts |= {index: count_groups(listed[index]) for index in unknown}
        # a write without files has a delta commit, too: readers see by it that the lists know the write
        logs = [self._place_log(*group, records, listed) for group, records in new.by_group(counts).items()]
        requested = name_instant(self._own.layout, self._time, Action.DELTA_COMMIT, State.REQUESTED)
        self._own.storage.create_exclusive(requested.path, b"", durable=True)
        begun = begin_instant(self._own.storage, requested)
        stats = tuple(each_at_once(self._own.storage, self._write_log, logs))
        metadata = CommitMetadata(stats, "UPSERT_PREPPED")
        completed = begun.to(State.COMPLETED, self._completion_time)
        # another process may have completed it with log files of another version: either content is right
        create_settled(self._own.storage, completed.path, self._own.layout.encode_commit(metadata))
        self.wrote = name_files(completed, stats)
        return counts

    def _place_log(
        self, index: str, number: int, records: GroupRecords, listed: Mapping[str, list[FileInfo]]
    ) -> "_PlacedLog":
        """Where a log file goes. Layout 1 names the slice, which is decided before the request.

        A process that stands still after it finds another slice if the metadata table was made anew meanwhile: the new
        one begins after the action, so that its readers pass over a log file of the earlier slice.
        """
        file_id = file_id_of(index, number)
        base, first = (self._slice_time, 1) if self._named else self._place(index, file_id, listed[index])
        return _PlacedLog(index, file_id, base, first, records)

    def _write_log(self, log: "_PlacedLog") -> WriteStat:
        """Writes a log file, or finds it. A file of the same instant with other content stays: both are read."""
        data = self._encode(log.index, log.records)
        at = self._time if self._named else log.base
        token = log_write_token(_TASK, self._time, has_deletes=True)
        for version in range(log.version, log.version + _TRIES):
            name = str(LogFileName(log.file_id, at, version, token))
            if create_settled(self._own.storage, join(log.index, name), data) == data:
                return _stat(log, name, len(data))
        raise UnsupportedTableError(f"{_TRIES} log files of {self._time} were written by others")

    def _encode(self, index: str, records: GroupRecords) -> bytes:
        schema = schema_of(self._own.config.version)
        header: dict[int, str] = {Header.INSTANT_TIME: self._time, Header.SCHEMA: schema}
        blocks = []
        if len(records.added):
            blocks.append(LogBlock(BlockType.HFILE_DATA, header, encode_hfile(records.added, schema)))
        if len(records.deleted):
            deletes = encode_deletes(records.deleted, index, pa.table({}))
            blocks.append(LogBlock(BlockType.DELETE, header, deletes))
        return b"".join(map(encode_block, blocks))

    def _place(self, index: str, file_id: str, entries: list[FileInfo]) -> tuple[str, int]:
        """Layout 1: the slice of the delta commit's log file, and the version with which its files begin.

        Where the file exists, both are in its name.
        """
        logs = [log for log in parse_data_files(index, entries)[1] if log.file_id == file_id]
        written = [log for log in logs if may_be_of_instant(log.write_token, self._time)]
        base = max((log.base_instant_time for log in written), default="")
        base = base or newest_base(self._own, self._timeline, (index, file_id), entries)
        own = [log.version for log in written if log.base_instant_time == base]
        others = (log.version for log in logs if log.base_instant_time == base)
        return base, min(own) if own else max(others, default=0) + 1

    def check(self, timeline: Timeline) -> None:
        """Proves that readers see the delta commit, and that it did not come too late.

        A compaction that was requested before the delta commit was complete may have left it out. If the log file
        belongs to a slice before that compaction, readers would miss its entries. If another process completed the
        action long ago, later delta commits may have deleted what this one adds again.

        Args:
            timeline: of the table, listed after `write`. The process that completed the action has made this check.

        Raises:
            UnsupportedTableError: names what happened.
        """
        files = [one for one in timeline if one.time == self._time and one.action is not Action.SAVEPOINT]
        if len(files) > 1:  # one delta commit cannot tell both
            raise UnsupportedTableError(f"{len(files)} actions of the table have the time {self._time}")
        is_pending = bool(files) and not any(instant.is_completed for instant in files)
        if not is_pending:
            if self._found is None:
                raise UnsupportedTableError(f"the action {self._time} had ended before its delta commit was written")
            return
        now = self._own.load_timeline()
        if any(one.time > self._slice_time and one.time != self._time for one in compactions_of(now)):
            raise UnsupportedTableError(f"a compaction passed the delta commit {self._time}")


@dataclass(frozen=True)
class _PlacedLog:
    """A log file that is to be written: its slice begins at `base`, and the versions of its names at `version`."""

    index: str
    file_id: str
    base: str
    version: int
    records: GroupRecords


def _stat(log: _PlacedLog, name: str, size: int) -> WriteStat:
    return WriteStat(
        log.file_id,
        join(log.index, name),
        log.index,
        prev_commit=log.base,
        num_writes=len(log.records.added),
        num_update_writes=len(log.records.added),
        num_deletes=len(log.records.deleted),
        total_write_bytes=size,
        file_size_bytes=size,
        extra={"logVersion": 1, "logOffset": 0, "baseFile": "", "logFiles": [name]},
    )
