"""A table gets another version: its timeline and its archive are copied, and one change of its properties switches it.

Before the properties say so, no reader looks at the copy, and afterwards none looks at the original. So a conversion
that dies leaves a table of the old version or of the new one. The next conversion deletes what it left of either
layout. One that stands still until others write the table does not switch it (`table.config.held_change`).
"""

from collections.abc import Mapping
from dataclasses import replace

from table import clock
from table.config.held_change import change_held, mark_change
from table.config.table_config import UPGRADED_UNTIL, load_table_config
from table.config.writable import check_version_written
from table.errors import ActionPendingError, TableNotFoundError, UnsupportedTableError
from table.hudi_table import HudiTable
from table.log import get_logger
from table.metadata_table.drop import drop_metadata_table
from table.options.choices import CompactionStrategy, TableType
from table.options.groups import (
    KEEP_LATEST_FILE_VERSIONS,
    BaseFileSettings,
    CleanSettings,
    CompactionSettings,
    HeartbeatSettings,
)
from table.scan.stored_key import with_key_encoding
from table.services.clean.clean import carry_out_cleans, schedule_clean
from table.services.compaction.compaction import schedule_compaction
from table.services.compaction.execution import carry_out_compactions
from table.services.conversion.instants import completion_times, convert_file, files_of_rows, later_files
from table.services.conversion.properties import change_properties, check_convertible
from table.services.rollback.rollback import roll_back_failed_writes
from table.snapshot import Snapshot
from table.storage.interface import METAFOLDER, Storage, join
from table.timeline.active_timeline import create_settled, read_instant
from table.timeline.archive_log import LogArchive
from table.timeline.history import HistoryArchive
from table.timeline.instant import REQUEST_TIME_NAMES, Instant, State
from table.timeline.layout import TimelineLayout, layout_of
from table.transaction.heartbeat import WriterIdentity
from table.transaction.lease import Lease, hold_table

_EVERYTHING = CompactionSettings(strategy=CompactionStrategy.UNBOUNDED)
_SUPERSEDED = CleanSettings(policy=KEEP_LATEST_FILE_VERSIONS, versions_retained=1, grace_ms=0)
_ROUNDS = 3
_BATCH = 10  # instants in a block of the archive log

log = get_logger("hudistream.conversion")


def convert_table(table: HudiTable, to: int, heartbeat: HeartbeatSettings | None = None) -> HudiTable:
    """Gives a table another version. Holds it meanwhile; no other engine may write it.

    First the pending writes of dead writers are ended. A metadata table is dropped. Of a merge-on-read table all log
    files are folded into base files. On the way to version 6 a clean deletes superseded versions of files, because the
    names of log files mean something else there. If a conversion dies, the next one finishes it.

    Args:
        to: 6, 8 or 9.
        heartbeat: when a writer counts as dead.

    Returns:
        The table as it is now.

    Raises:
        InvalidConfigError: the version is not written.
        UnsupportedTableError: the version cannot hold the table; names the property.
        CommitConflictError: a writer lives, or something is pending that its own writer has to finish.
        StorageError: the store failed; run it again.
    """
    check_version_written(table.config, "convert")
    check_convertible(_with_encoding(table).config, to)
    with hold_table(table.storage, "hudistream convert") as lease:
        table = _reopened(table)
        check_version_written(table.config, "convert")
        table = _with_encoding(table)
        check_convertible(table.config, to)
        _delete_remains(table)
        if table.config.version == to:
            return table
        table = replace(table, config=drop_metadata_table(table.storage, table.config))
        before, change = table.config, change_properties(table.config, to)
        target = layout_of(int(change.written["hoodie.timeline.layout.version"]))
        switches = target.version != table.layout.version
        if switches:
            _settle(table, lease, heartbeat or HeartbeatSettings(), folds_all=target.version == 1)
        mark_change(table.storage, lease)
        if switches:  # an action that others complete from here on prevents the switch
            _check_settled(table, is_folded=target.version == 1)
            last = _copy_timeline(table, target, lease)
            if target.completes_in_order:
                change = replace(change, written={**change.written, UPGRADED_UNTIL: last})
            _copy_archive(table, target, change.written)
        lease.confirm()  # a writer of an earlier version withdraws no change
        table = replace(table, config=change_held(table.storage, lease, change.written, change.removed))
        lease.check()  # another conversion may have begun
        _delete_remains(table)
    log.warning("table_converted", table=table.storage.base_uri, before=before.version, now=to)
    return table


def _reopened(table: HudiTable) -> HudiTable:
    config = load_table_config(table.storage)
    if config is None:
        raise TableNotFoundError(f"there is no Hudi table at {table.storage.base_uri!r} any more")
    return replace(table, config=config)


def _with_encoding(table: HudiTable) -> HudiTable:
    """The table, with properties that say how its record keys are spelled."""
    return with_key_encoding(Snapshot.load(table)).table


def _settle(table: HudiTable, lease: Lease, heartbeat: HeartbeatSettings, *, folds_all: bool) -> None:
    """Ends all that is pending, and folds the log files of a merge-on-read table.

    Args:
        lease: the caller's.
        heartbeat: when a writer counts as dead.
        folds_all: whether no log file may be left, also of superseded slices.

    Raises:
        CommitConflictError: a writer lives.
    """
    roll_back_failed_writes(table, WriterIdentity("hudistream convert", None, lease.owner), heartbeat)
    carry_out_cleans(schedule_clean(table, _SUPERSEDED, due=False), _SUPERSEDED)
    if table.config.table_type == TableType.MERGE_ON_READ:
        for _ in range(_ROUNDS):
            if not carry_out_compactions(schedule_compaction(table, _EVERYTHING), BaseFileSettings()):
                break
        if folds_all:
            carry_out_cleans(schedule_clean(table, _SUPERSEDED), _SUPERSEDED)


def _check_settled(table: HudiTable, *, is_folded: bool) -> None:
    """Raises an error where something is pending, or where a log file is left that should not be.

    Args:
        is_folded: whether no log file may be left.

    Raises:
        ActionPendingError: something is pending yet.
        UnsupportedTableError: log files are left that a savepoint or a reader holds.
    """
    for pending in table.load_timeline().pending:
        raise ActionPendingError(f"{pending.file_name} is pending: let the writer that began it finish it first")
    if not is_folded or table.config.table_type != TableType.MERGE_ON_READ:
        return
    for path, entries in table.store_listing.walk():
        found = next((entry.name for entry in entries if ".log." in entry.name), None)
        if found is not None:
            raise UnsupportedTableError(
                f"{join(path, found)} is held by a savepoint or by a reader, and in version 6 its name would mean "
                "another file slice: delete the savepoint, or wait for the reader; the table is as it was"
            )


def _copy_timeline(table: HudiTable, target: TimelineLayout, lease: Lease) -> str:
    """Copies the active timeline in the target's names and encodings; completed files last, in their order.

    Returns:
        The newest time of completion; an empty text where nothing was completed.
    """
    storage, snapshot = table.storage, Snapshot.load(table)
    completed = _completions(snapshot)
    pending = sorted(file for file in snapshot.timeline.files if file.state is not State.COMPLETED)
    for file in (*pending, *sorted(completed, key=lambda one: (completed[one], one.time))):
        lease.check()  # another conversion may have switched the table to what is copied here
        data = read_instant(storage, file)
        converted, content = convert_file(file, data, target, completed.get(file))
        create_settled(storage, converted.path, content)
    return max(completed.values(), default="")


def _completions(snapshot: Snapshot) -> dict[Instant, str]:
    """Completed file -> when it was completed."""
    files = [file for file in snapshot.timeline.files if file.state is State.COMPLETED]
    if snapshot.layout.completes_in_order:
        return {file: file.completion_time or file.time for file in files}
    names = snapshot.layout.names
    entries = {entry.name: entry.modified_ms for entry in snapshot.storage.list_dir(names.folder)}
    return completion_times(
        {file: entries.get(file.file_name, clock.now_ms()) for file in files}, snapshot.config.timezone
    )


def _copy_archive(table: HudiTable, target: TimelineLayout, written: Mapping[str, str]) -> None:
    """Copies the archive, file by file. A file that the archive holds twice is copied once."""
    source = table.archived_timeline
    folder = written["hoodie.timeline.history.path" if target.version > 1 else "hoodie.archivelog.folder"]
    copy = target.open_archive(table.storage, folder)
    table.storage.make_dir(copy.folder)
    seen = set[Instant]()
    if isinstance(source, LogArchive):
        batches = (later_files(files, target) for files in source.read_retired())
    else:
        assert isinstance(source, HistoryArchive)
        batches = (files_of_rows(rows, table.layout, target) for rows in source.read_rows())
    for files in batches:
        fresh = [file for file in files if file.instant not in seen]
        seen.update(file.instant for file in fresh)
        if fresh:
            copy.append(fresh, _BATCH)


def _delete_remains(table: HudiTable) -> None:
    """Deletes files of the layout that the table does not have: a conversion left them when it died or was done."""
    storage = table.storage
    if not table.layout.completes_in_order:
        storage.delete_metafolder(join(METAFOLDER, "timeline"))
        return
    for entry in storage.list_dir(METAFOLDER):
        if not entry.is_dir and REQUEST_TIME_NAMES.parse(entry.name) is not None:
            storage.delete_metafile(join(METAFOLDER, entry.name))
    _delete_log(storage, join(METAFOLDER, table.config.extra.get("hoodie.archivelog.folder") or "archived"))


def _delete_log(storage: Storage, folder: str) -> None:
    for path in LogArchive(storage, folder).list_files():
        storage.delete_metafile(path)
