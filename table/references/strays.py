"""Finds the files of instants that ended which no commit names, and deletes them. `judge` has the rules.

On version 6 every base file older than the first completed write of the active timeline counts as committed. Archival,
and a table's first commit, move that line of visibility. A stray file below it would become visible (rule 6 of
safety.md).
"""

from collections.abc import Collection, Mapping

from table import threads
from table.errors import CorruptFileError, StorageError
from table.files.log.instants import is_written_by, read_instants
from table.files.names import may_be_of_instant
from table.files.publication import delete_announced, forget_stray, walk_markers
from table.hudi_table import HudiTable
from table.log import get_logger
from table.metadata_table.drop import drop_present_metadata_table
from table.options.choices import TableType
from table.references.decided import check_not_decided, find_decided
from table.references.judge import find_turning_files, find_turning_logs
from table.references.undone import load_rolled_back_time
from table.snapshot import Snapshot
from table.storage.interface import Storage
from table.timeline.end_record import ENDS_FOLDER
from table.timeline.instant import Action
from table.view.file_group import parse_data_files

log = get_logger("hudistream.strays")


def find_referenced(snapshot: Snapshot, time: str) -> frozenset[str] | None:
    """Files that the instant's commit names; empty if the instant was undone; None if its outcome is not known.

    If the instant's files were lost, its end record says what it committed.
    """
    timeline = snapshot.timeline
    for instant in timeline.completed_writes:
        if instant.time == time:
            commit = snapshot.commits.find_filled(instant)
            # None: archived since the timeline was listed; or empty, which means that nothing is known
            return commit.named_paths if commit is not None else None
    for rollback in timeline.completed_of(Action.ROLLBACK):
        if rollback.time > time and load_rolled_back_time(snapshot, rollback) == time:
            return frozenset()
    first = timeline.first_active_time
    if first is not None and time <= first:
        return None
    try:
        return find_decided(snapshot, (time,)).get(time, frozenset())
    except CorruptFileError:
        return None


def delete_strays(storage: Storage, time: str, referenced: frozenset[str], *, are_late: bool = False) -> bool:
    """Deletes files that markers announce and the commit does not name (HoodieTable.reconcileAgainstMarkers).

    Args:
        time: the commit.
        referenced: the files that it names.
        are_late: whether the commit has ended: then lists of files that were made since may name the strays.

    Returns:
        Whether markers announced such files.
    """
    found = False
    for marker in walk_markers(storage, time):
        if marker.data_file not in referenced:
            found = True
            if are_late:
                drop_present_metadata_table(storage)
            if delete_announced(storage, time, marker):
                log.warning("stray_file_deleted", table=storage.base_uri, instant_time=time, path=marker.data_file)
            forget_stray(storage, time, marker)
    return found


def find_stray_files(
    table: HudiTable, path: str, named: Mapping[str, frozenset[str]], first: str, line: str
) -> list[str]:
    """Paths of base files of a partition that the new line would make visible, and that no commit names.

    Args:
        path: the partition.
        named: commit time -> paths that it names, for the commits that are to leave.
        first: the line now.
        line: the new line.
    """
    bases, _ = parse_data_files(path, table.store_listing.list_files(path))  # no commit names a stray file
    return [file.path for file in find_turning_files(bases, named, first, line)]


def find_stray_logs(
    table: HudiTable, path: str, known: tuple[Collection[str], Collection[str]], first: str, line: str
) -> Mapping[str, frozenset[str]]:
    """Log files of a partition whose blocks would count once the line has moved, and that no commit wrote.

    Args:
        path: the partition.
        known: completed writes; and the paths that the commits name which are to leave.
        first: the line now.
        line: the new line.

    Returns:
        Path of each log file -> the instants whose blocks would count.

    Raises:
        StorageError: such a block is in one file with blocks of commits: nothing may be archived.
    """
    completed, named = known
    _, logs = parse_data_files(path, table.store_listing.list_files(path))
    unnamed = [log for log in logs if log.base_instant_time < line and log.path not in named]
    found = {log: read_instants(table.storage, log.path) for log in unnamed}
    return find_turning_logs(found, completed, first, line)


def delete_rolled_back_elsewhere(table: HudiTable, times: Collection[str]) -> tuple[str, ...]:
    """Deletes files of hudistream that belong to instants which another engine rolled back, and which it did not find.

    Without markers (``hoodie.rollback.using.markers=false``) Hudi looks for log files by the workload profile of the
    inflight file, which ours does not have. So every partition is looked at, whatever the rollback names. The name of a
    log file of ours names its instant. The file is deleted only if its blocks say the same.

    Args:
        table: the table; nothing of the instants is being written any more.
        times: of the instants.

    Returns:
        Paths of the files that were deleted, relative to the table.

    Raises:
        StorageError: a file cannot be deleted.
    """
    strays = []
    for path in table.store_listing.list_partition_paths() if times else ():
        bases, logs = parse_data_files(path, table.store_listing.list_files(path))
        strays += [base.path for base in bases if base.instant_time in times]
        ours = ((log.path, time) for log in logs for time in times if may_be_of_instant(log.write_token, time))
        strays += [log_path for log_path, time in ours if is_written_by(table.storage, log_path, time)]
    delete_stray_files(table, strays, 1)
    return tuple(strays)


def delete_before_first_commit(table: HudiTable, time: str) -> tuple[str, ...]:
    """Deletes files that dead writers left in a table without a commit: its first commit would make them visible.

    Args:
        table: the table; the only pending write is that of `time`.
        time: the first commit's.

    Raises:
        CorruptFileError: an end record says that an instant was committed, and the timeline does not have it; or the
            archive has commits.
        StorageError: a file cannot be deleted.
    """
    paths = table.store_listing.list_partition_paths()
    strays = [file for path in paths for file in find_stray_files(table, path, {}, "", time)]
    if table.config.table_type == TableType.MERGE_ON_READ:
        strays += [file for path in paths for file in find_stray_logs(table, path, ((), ()), "", time)]
    if strays:
        if any(table.archived_timeline.read_files()):
            raise CorruptFileError(
                f"{table.storage.base_uri!r} has archived commits, and no commit on its timeline: the last was rolled "
                "back, or its file is lost. The rows are in the files that are there. Nothing was deleted or "
                "committed; restore .hoodie from a copy, or write into another path"
            )
        snapshot = Snapshot.load(table)
        times = {entry.name.partition(".")[0] for entry in table.storage.list_dir(ENDS_FOLDER)}
        lost = times - {instant.time for instant in snapshot.timeline}
        check_not_decided(snapshot, lost, "nothing was deleted, and nothing is committed")
    delete_stray_files(table, strays, 1)
    return tuple(strays)


def delete_stray_files(table: HudiTable, strays: list[str], parallelism: int) -> None:
    """Deletes files that belong to no commit.

    Args:
        strays: their paths.
        parallelism: how many are deleted at a time.

    Raises:
        StorageError: a file cannot be deleted.
    """
    if not strays:
        return
    drop_present_metadata_table(table.storage)  # its lists may name them: Hudi makes them from a listing of the store
    with threads.make_pool(parallelism, "hudistream-archival") as pool:
        missed = table.storage.delete_many(strays, pool)
    if missed:
        raise StorageError(f"{min(missed)} belongs to no commit and cannot be deleted: nothing is archived")
    log.warning("strays_deleted", table=table.storage.base_uri, files=strays)
