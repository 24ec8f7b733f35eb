"""Keeps the lists of files up: each action that changes files writes a delta commit into the metadata table.

The delta commit has the time of the action, and is completed before the action is (HoodieBackedTableMetadataWriter).
It is written when the end of the action is decided. So it is never taken back, and each process that carries the end
out writes the same files. What cannot be kept up is dropped, which is always right: readers then ask the store.
"""

from contextlib import suppress

from table.config.metadata_indexes import FILES, check_maintained
from table.config.table_config import TableConfig, load_table_config, update_properties
from table.errors import CorruptFileError, UnsupportedTableError
from table.files.hfile.write_hfile import encode_hfile
from table.files.log.framing import BlockType, Header, LogBlock, encode_block
from table.files.names import LogFileName, log_write_token, may_be_of_instant
from table.log import get_logger
from table.metadata_table.changes import FileChanges
from table.metadata_table.drop import drop_metadata_table
from table.metadata_table.file_lists import first_known
from table.metadata_table.metadata_table import (
    FILE_ID,
    METADATA_FOLDER,
    MetadataTable,
    compactions_of,
    newest_base,
)
from table.metadata_table.record_codec import schema_of
from table.storage.interface import FileInfo, Storage, join
from table.timeline.active_timeline import begin_instant, create_settled, load_timeline
from table.timeline.instant import Action, State
from table.timeline.layout import layout_of, name_instant
from table.timeline.metadata.commit import CommitMetadata, WriteStat
from table.timeline.timeline import Timeline
from table.view.file_group import LogFile, parse_data_files

_TASK = "0-0-0"
_TRIES = 100

log = get_logger("hudistream.metadata_table")


def keep_lists(storage: Storage, time: str, completion_time: str | None, changes: FileChanges) -> None:
    """Tells the table's metadata table what an action changed, or drops it. Does nothing if the table has none.

    The caller has decided how the action ends, and has not completed it. Can be repeated, also by several processes.

    Args:
        storage: of the table.
        time: request time of the action.
        completion_time: its completion time; None in timeline layout 1.
        changes: the files that it added and deleted.

    Raises:
        StorageError: the store fails; the end must be carried out again.
    """
    config = load_table_config(storage)
    if config is None or not config.metadata_indexes:
        return
    try:
        keep_files_alone(storage, config)
        own = MetadataTable.open(storage)
        delta = _Delta(own, own.load_timeline(), time, completion_time)
        delta.write(changes)
        delta.check(load_timeline(storage, layout_of(config.layout_version, config.timeline_folder)))
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


def keep_files_alone(storage: Storage, config: TableConfig) -> TableConfig:
    """Drops the statistics of a metadata table, which are not maintained here: property first, folders second.

    Args:
        storage: of the table.
        config: its properties.

    Returns:
        The changed properties.

    Raises:
        UnsupportedTableError: the metadata table has indexes besides lists of files and statistics.
        StorageError: the store fails.
    """
    found = config.metadata_indexes
    check_maintained(found)
    if found == {FILES}:
        return config
    changes = {"hoodie.table.metadata.partitions": FILES, "hoodie.table.metadata.partitions.inflight": ""}
    changed = update_properties(storage, changes)
    for name in sorted(found - {FILES}):
        storage.delete_metafolder(join(METADATA_FOLDER, name))
    log.warning("metadata_indexes_dropped", table=storage.base_uri, indexes=sorted(found - {FILES}))
    return changed


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
        self._own, self._time = own, time
        self._named = own.layout.names.hold_completion  # the log file, by the instant that writes it
        self._completion_time = completion_time if self._named else None
        if self._named and completion_time is None:
            raise UnsupportedTableError("it has a later timeline layout than the table")
        self._found = timeline.find(time, Action.DELTA_COMMIT)
        # in layout 1 the names of log files hold their slice, and are counted within it
        self._entries = [] if self._named else own.list_files()
        self._slice_time = self._completion_time or _slice_of(self._entries, timeline, time)

    def write(self, changes: FileChanges) -> None:
        """Writes log file and instant, unless another process has.

        Raises:
            UnsupportedTableError: other processes wrote too many log files of the instant.
            StorageError: the store fails.
        """
        if self._found is not None and self._found.is_completed:
            return
        requested = name_instant(self._own.layout, self._time, Action.DELTA_COMMIT, State.REQUESTED)
        self._own.storage.create_exclusive(requested.path, b"", durable=True)
        begun = begin_instant(self._own.storage, requested)
        # a write without files has a delta commit, too: readers see by it that the lists know the write
        stats = (self._write_log(changes),) if changes else ()
        metadata = CommitMetadata(stats, "UPSERT_PREPPED")
        completed = begun.to(State.COMPLETED, self._completion_time)
        # another process may have completed it with a log file of another version: either content is right
        create_settled(self._own.storage, completed.path, self._own.layout.encode_commit(metadata))

    def _write_log(self, changes: FileChanges) -> WriteStat:
        """Writes the log file, or finds it. A file of the same instant with other content stays: both are read."""
        schema = schema_of(self._own.config.version)
        header: dict[int, str] = {Header.INSTANT_TIME: self._time, Header.SCHEMA: schema}
        entries = changes.encode()
        data = encode_block(LogBlock(BlockType.HFILE_DATA, header, encode_hfile(entries, schema)))
        at = self._time if self._named else self._slice_time
        first = 1 if self._named else _first_version(self._entries, self._time, at)
        token = log_write_token(_TASK, self._time, has_deletes=True)
        for version in range(first, first + _TRIES):
            name = str(LogFileName(FILE_ID, at, version, token))
            if create_settled(self._own.storage, join(FILES, name), data) == data:
                return _stat(name, self._slice_time, len(entries), len(data))
        raise UnsupportedTableError(f"{_TRIES} log files of {self._time} were written by others")

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
        files = [instant for instant in timeline if instant.time == self._time]
        is_pending = bool(files) and not any(instant.is_completed for instant in files)
        if not is_pending:
            if self._found is None:
                raise UnsupportedTableError(f"the action {self._time} had ended before its delta commit was written")
            return
        now = self._own.load_timeline()
        if any(one.time > self._slice_time and one.time != self._time for one in compactions_of(now)):
            raise UnsupportedTableError(f"a compaction passed the delta commit {self._time}")


def _slice_of(entries: list[FileInfo], timeline: Timeline, time: str) -> str:
    """Layout 1: the slice of the delta commit's log file; where the file exists, the one in its name."""
    written = [name.base_instant_time for name in _logs(entries) if may_be_of_instant(name.write_token, time)]
    return max(written, default="") or newest_base(timeline, entries)


def _first_version(entries: list[FileInfo], time: str, slice_time: str) -> int:
    """Layout 1: the version of the log file that the delta commit has written, or else the next one of the slice."""
    logs = [found for found in _logs(entries) if found.base_instant_time == slice_time]
    own = [found.version for found in logs if may_be_of_instant(found.write_token, time)]
    return min(own) if own else max((found.version for found in logs), default=0) + 1


def _logs(entries: list[FileInfo]) -> list[LogFile]:
    return parse_data_files(FILES, entries)[1]


def _stat(name: str, base_instant_time: str, count: int, size: int) -> WriteStat:
    return WriteStat(
        FILE_ID,
        join(FILES, name),
        FILES,
        prev_commit=base_instant_time,
        num_writes=count,
        num_update_writes=count,
        total_write_bytes=size,
        file_size_bytes=size,
        extra={"logVersion": 1, "logOffset": 0, "baseFile": "", "logFiles": [name]},
    )
