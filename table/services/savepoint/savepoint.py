"""Savepoints: the files of a commit, held against cleaning (SavepointActionExecutor)."""

from collections.abc import Mapping

from table import clock
from table.config.writable import check_version_written
from table.errors import ActionPendingError, CorruptFileError, InvalidConfigError, WriteConflictError
from table.files.log.instants import read_instants
from table.hudi_table import HudiTable
from table.log import get_logger
from table.references.undone import load_rolled_back_time
from table.services.savepoint.completeness import find_lacking, find_needed
from table.snapshot import Snapshot
from table.storage.interface import join
from table.takes_path import takes_path
from table.timeline.active_timeline import (
    delete_instant_file,
    read_instant,
)
from table.timeline.instant import WRITE_ACTIONS, Action, Instant, State
from table.timeline.kept_from import find_kept_from
from table.timeline.layout import name_instant
from table.timeline.metadata.savepoint import SavepointMetadata, decode_savepoint, encode_savepoint
from table.timeline.timeline import Timeline
from table.transaction.commit_facts import load_cleaned
from table.transaction.completion import complete_service
from table.view.file_group import BaseFile, DataFile

log = get_logger("hudistream.savepoint")


@takes_path
def load_savepoints(table: HudiTable) -> list[tuple[str, SavepointMetadata | None]]:
    """The savepoints of a table, oldest first: instant time, and what each holds; None where its file is damaged.

    Args:
        table: the table, or its path.

    Raises:
        StorageError: the store fails.
    """
    found: list[tuple[str, SavepointMetadata | None]] = []
    for instant in table.load_timeline().completed_of(Action.SAVEPOINT):
        try:
            metadata = decode_savepoint(read_instant(table.storage, instant), instant.file_name)
        except CorruptFileError:
            metadata = None
        found.append((instant.time, metadata))
    return found


@takes_path
def create_savepoint(table: HudiTable, time: str | None = None, user: str = "", comment: str = "") -> str:
    """Keeps the files that readers of a commit see: cleaning does not delete them, archival stops before them.

    The savepoint is made durable first, and verified afterwards (rule 10): a clean that was planned before that does
    not know of it. Cleans look for savepoints after their plan is durable. So either the clean sees the savepoint, or
    the savepoint's check sees the clean. The records of commits prove which files the commit shows. A listing does not,
    because it does not show a file that was deleted before.

    Args:
        table: the table, or its path.
        time: instant time of a completed commit; None means the newest.
        user: who wants it.
        comment: why.

    Returns:
        The instant time of the commit.

    Raises:
        InvalidConfigError: there is no such commit, or some of its files may have been cleaned.
        CommitConflictError: a write that began before the commit is pending; or a clean that is under way deletes some
            of its files: the savepoint was withdrawn.
    """
    check_version_written(table.config, "make a savepoint of")
    snapshot = Snapshot.load(table)
    storage, timeline = snapshot.storage, snapshot.timeline
    commits = timeline.writes_by_time
    chosen = next((i for i in reversed(commits) if time is None or i.time == time), None)
    if chosen is None:
        known = ", ".join(i.time for i in commits[-5:]) or "none"
        raise InvalidConfigError(
            f"there is no completed commit {time + ' ' if time else ''}on the active timeline; the newest: {known}"
        )
    if timeline.contains(timeline.completed_file(chosen.time, Action.SAVEPOINT)):
        return chosen.time
    _check_settled(timeline, chosen)
    _check_not_cleaned(snapshot, chosen)
    files = _held_files(snapshot, chosen.time)
    begun = name_instant(timeline.layout, chosen.time, Action.SAVEPOINT, State.INFLIGHT)
    storage.create_exclusive(begun.path, b"", durable=True)
    content = encode_savepoint(SavepointMetadata(user, clock.now_ms(), comment, files))
    complete_service(table, begun, content, clock.fresh_uuid())
    problem = _find_hole(snapshot, chosen, files)
    if problem is not None:
        for file in reversed(table.load_timeline().files_of(chosen.time, Action.SAVEPOINT)):
            delete_instant_file(storage, file)
        raise WriteConflictError(
            f"{problem} while the savepoint of {chosen.time} was made: it was withdrawn; finish the clean "
            "(`hudistream clean`) or the undoing, then make it again, of a later commit if need be"
        )
    log.info("savepoint_created", table=storage.base_uri, instant_time=chosen.time, files=sum(map(len, files.values())))
    return chosen.time


def _check_settled(timeline: Timeline, chosen: Instant) -> None:
    """Refuses a commit after a pending write: once that write ends, readers of the commit would see it, too."""
    for pending in timeline.pending_of(*WRITE_ACTIONS, Action.CLUSTERING):
        if pending.time < chosen.time:
            raise ActionPendingError(
                f"{pending.file_name} began before the commit {chosen.time} and is pending: readers of that commit may "
                "yet see more; make the savepoint once it has ended, or of an earlier commit"
            )


def _held_files(snapshot: Snapshot, time: str) -> dict[str, tuple[str, ...]]:
    """Partition path -> names of the files that readers of a commit see.

    Of a merge-on-read table these are the newest base file of each file group and the log files on top of it, including
    the log files after a pending compaction. Files that later commits wrote are left out, because a restore deletes
    them.
    """
    snapshot = Snapshot(snapshot.table, snapshot.timeline, time, snapshot.commits)
    commits = [(instant.time, snapshot.commits.read(instant)) for instant in snapshot.timeline.completed_writes]
    written = {stat.path: at for at, commit in commits for stat in commit.stats}
    files = {}
    for path in snapshot.list_partition_paths():
        seen = (file for group in snapshot.list_file_groups(path) for file in group.current_files)
        held = tuple(file.name for file in seen if _is_seen(snapshot, file, written.get(file.path), time))
        if held:
            files[path] = held
    return files


def _is_seen(snapshot: Snapshot, file: DataFile, written_at: str | None, time: str) -> bool:
    """Whether readers of a commit need a file: its slice may also hold log files of pending and of later commits.

    Args:
        snapshot: as of the commit.
        file: of a slice that is read.
        written_at: the commit of the active timeline that names it; None where there is none.
        time: the commit's.
    """
    if isinstance(file, BaseFile):
        return True
    if written_at is not None:
        return written_at <= time
    found = read_instants(snapshot.storage, file.path)
    return bool(found.rollbacks) or any(map(snapshot.committed.includes_block, found.writers))


def _find_hole(before: Snapshot, chosen: Instant, files: Mapping[str, tuple[str, ...]]) -> str | None:
    """Why a durable savepoint does not hold all files of its commit, or None."""
    snapshot = before.again()
    now = snapshot.timeline
    if now.find(chosen.time, chosen.action) is None:
        return f"commit {chosen.time} was undone or archived"
    undoing = [*now.pending_of(Action.RESTORE), *now.pending_of(Action.ROLLBACK)]
    if any(i.action is Action.RESTORE or load_rolled_back_time(snapshot, i) == chosen.time for i in undoing):
        return f"commit {chosen.time} is, or may be, about to be undone"
    known = {i.time for i in before.timeline.completed_of(Action.CLEAN)}
    for instant in now:
        if instant.action is Action.CLEAN and instant.time not in known:
            try:
                taken = load_cleaned(snapshot.storage, instant)
            except WriteConflictError as error:  # the clean was archived since: the files that it took are not known
                return str(error)
            lost = [join(path, name) for path, names in files.items() for name in names if join(path, name) in taken]
            if lost:
                return f"the clean {instant.time} deletes {lost[0]}"
    gone = find_missing_file(snapshot.table, files)
    if gone is not None:
        return f"{gone} was deleted"
    # a clean that was archived since may have deleted a file before its folder was listed
    commits = [(instant.time, snapshot.commits.read(instant)) for instant in now.writes_by_time]
    return find_lacking(find_needed(commits, chosen.time), files)


def find_missing_file(table: HudiTable, files: Mapping[str, tuple[str, ...]]) -> str | None:
    """The path of a file of a savepoint that is not there, relative to the table, or None.

    Args:
        files: partition path to names of the files that the savepoint holds.
    """
    there = {path: {entry.name for entry in table.listing.list_files(path)} for path in files}
    return next((join(path, name) for path, names in files.items() for name in names if name not in there[path]), None)


def _check_not_cleaned(snapshot: Snapshot, chosen: Instant) -> None:
    found = find_kept_from(snapshot.storage, snapshot.timeline)
    if found is None:
        return
    bound = min(found, snapshot.timeline.writes_by_time[-1].time)
    if chosen.time < bound:
        raise InvalidConfigError(
            f"files of {chosen.time} may have been cleaned: a savepoint can be made of {bound} and later commits"
        )


@takes_path
def delete_savepoint(table: HudiTable, time: str) -> None:
    """Deletes a savepoint; the next clean may take its files.

    Args:
        table: the table, or its path.
        time: instant time of its commit.

    Raises:
        UnsupportedTableError: tables of this version and type are not written here.
        InvalidConfigError: there is none at that commit.
    """
    check_version_written(table.config, "delete a savepoint of")
    timeline = table.load_timeline()
    files = timeline.files_of(time, Action.SAVEPOINT)
    if not files:
        known = ", ".join(i.time for i in timeline.completed_of(Action.SAVEPOINT)) or "none"
        raise InvalidConfigError(f"there is no savepoint {time}; there are: {known}")
    for file in reversed(files):
        delete_instant_file(table.storage, file)
    log.info("savepoint_deleted", table=table.storage.base_uri, instant_time=time)
