"""Finds and deletes files that would become visible when the line of visibility moves (rule 6 of safety.md).

On version 6 every base file older than the first completed write of the active timeline counts as committed. Archival,
and a table's first commit, move that line. Then a stray file below it becomes visible, and so does a file group whose
replace commit is archived while its files still exist.
"""

from collections.abc import Collection, Iterable, Mapping

from table import threads
from table.errors import StorageError, TimelineMovedError
from table.files.log.instants import is_written_by, read_instants
from table.files.markers import list_marked_instants
from table.files.names import may_be_of_instant, parse_base_file
from table.files.publication import is_final, may_publish_late
from table.hudi_table import HudiTable
from table.log import get_logger
from table.metadata_table.drop import drop_present_metadata_table
from table.options.choices import TableType
from table.options.groups import CleanSettings
from table.services.archival.plan import ArchivalPlan
from table.services.archival.retired import Retired
from table.services.rollback.rollback import goes_with
from table.snapshot import Snapshot
from table.storage.interface import join
from table.timeline.archived_timeline import read_archived_commits
from table.timeline.end_record import ENDS_FOLDER
from table.timeline.instant import Action
from table.transaction.commit_facts import load_rolled_back_time
from table.view.file_group import parse_data_files

log = get_logger("hudistream.leftovers")


def find_held(snapshot: Snapshot, plan: ArchivalPlan) -> frozenset[str]:
    """Commits of a plan that must stay on the active timeline, as a look at the store shows.

    A replace commit stays while its replaced files exist. If the store has no fence, an instant with markers stays
    while one of its tasks may be alive.

    Raises:
        TimelineMovedError: a replace commit was archived or undone since the timeline was listed.
    """
    storage, held = snapshot.storage, set()
    for instant in plan.instants:
        if instant.action is Action.REPLACE_COMMIT:
            replaced = snapshot.commits.read(instant).replaced
            if any(_holds_groups(snapshot.table, path, ids) for path, ids in replaced.items()):
                held.add(instant.time)
    if not is_final(storage):
        zone, line = snapshot.config.timezone, plan.first_active or snapshot.timeline.first_active_time or ""
        marked = list_marked_instants(storage)
        held |= {time for time in marked if time < line and may_publish_late(storage, time, zone)}
    return frozenset(held)


def _holds_groups(table: HudiTable, path: str, file_ids: Iterable[str]) -> bool:
    wanted = frozenset(file_ids)
    bases, logs = parse_data_files(path, table.store_listing.list_files(path))
    return not wanted.isdisjoint([*(base.file_id for base in bases), *(log.file_id for log in logs)])


def delete_leftovers(snapshot: Snapshot, plan: ArchivalPlan, retired: Retired, clean: CleanSettings) -> tuple[str, ...]:
    """Deletes files that would become visible when a plan's commits leave the active timeline.

    It looks at the partitions of commits that no end record of ours protects: commits of other engines, and all commits
    if the store has no fence. If another engine rolled back an instant, it looks at all partitions: the rollback names
    only the files that it found, and without markers Hudi finds no log file of ours.

    Args:
        snapshot: the table, with the timeline that the plan was made from.
        plan: what is to be retired.
        retired: the records of the plan's instants and of the timeline's rollbacks.
        clean: how many files are deleted at a time.

    Raises:
        CommitConflictError: a file that no commit names is of an instant in the archive: nothing may be archived.
        StorageError: a file cannot be deleted: nothing may be archived.
    """
    line, first = plan.first_active, snapshot.timeline.first_active_time
    if line is None or first is None:
        return ()
    protected = _protected(snapshot.table)
    paths = {path for time, written in retired.paths.items() if time not in protected for path in written}
    undone = {done.instant_time for done in retired.rollbacks.values()}
    if any(first <= time < line and time not in protected for time in undone):
        paths.update(snapshot.table.store_listing.list_partition_paths())
    strays = [path for of in sorted(paths) for path in find_strays(snapshot.table, of, retired.named, first, line)]
    of_instants = {base.instant_time for path in strays if (base := parse_base_file(path.rpartition("/")[2]))}
    if snapshot.config.table_type == TableType.MERGE_ON_READ:
        known = snapshot.timeline.committed_times, frozenset[str]().union(*retired.named.values())
        for of in sorted(paths):
            found = find_stray_logs(snapshot.table, of, known, first, line)
            strays += found
            of_instants.update(time for times in found.values() for time in times)
    _check_not_archived(snapshot.table, of_instants - retired.named.keys() - undone)
    strays += [file for file in _undone_files(snapshot.table, plan, retired) if snapshot.storage.exists(file)]
    _delete(snapshot.table, strays, clean.parallelism)
    return tuple(strays)


def _check_not_archived(table: HudiTable, times: Collection[str]) -> None:
    """Refuses to go on if an instant is in the archive: then its files are no strays.

    The instants are neither on the timeline nor undone, so they may have been archived.

    Raises:
        CommitConflictError: an instant is in the archive.
    """
    if not times:
        return
    for commit in read_archived_commits(table.archived_timeline):
        if commit.time in times:
            raise TimelineMovedError(
                f"commit {commit.time} is in the archive, and its files look like those of no commit: nothing is "
                "archived, and nothing was deleted; `hudistream check` examines the table"
            )


def _undone_files(table: HudiTable, plan: ArchivalPlan, retired: Retired) -> list[str]:
    """Files that rollbacks deleted, if the line is about to pass the undone instant. No other record names them."""
    files: list[str] = []
    for rollback, metadata in retired.rollbacks.items():
        if rollback in plan.instants or metadata.instant_time < (plan.first_active or ""):
            named = (table.storage.relative(file) for names in metadata.deleted.values() for file in names)
            files += [file for file in named if goes_with(table.storage, file, metadata)]
    return files


def _protected(table: HudiTable) -> frozenset[str]:
    if not is_final(table.storage):
        return frozenset()
    return frozenset(entry.name.partition(".")[0] for entry in table.storage.list_dir(ENDS_FOLDER))


def find_strays(table: HudiTable, path: str, named: Mapping[str, frozenset[str]], first: str, line: str) -> list[str]:
    """Base files of a partition that are older than the new line and that no commit names.

    Args:
        path: the partition.
        named: commit time -> paths that it names, for the commits that are to leave.
        first: the line now; older files count already.
        line: the new line.
    """
    found = []
    for entry in table.store_listing.list_files(path):  # the store itself: no commit names a stray file
        name = None if entry.is_dir else parse_base_file(entry.name)
        file = join(path, entry.name)
        if name is not None and first <= name.instant_time < line and file not in named.get(name.instant_time, ()):
            found.append(file)
    return found


def find_stray_logs(
    table: HudiTable, path: str, known: tuple[Collection[str], Collection[str]], first: str, line: str
) -> Mapping[str, frozenset[str]]:
    """Log files of a partition whose blocks would count once the line has moved, and that no commit wrote.

    A block counts once its instant is older than the line. A block that a rollback block takes back never counts.

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
    looked_at = [log for log in logs if log.base_instant_time < line and log.path not in named]
    instants = {log: read_instants(table.storage, log.path) for log in looked_at}
    taken_back: dict[str, set[str]] = {}
    for log, found in instants.items():
        taken_back.setdefault(log.file_id, set()).update(found.targets)
    strays = {}
    for log, found in instants.items():
        lost = {time for time in found.writers if first <= time < line and time not in completed}
        if not lost - taken_back[log.file_id]:
            continue
        if found.writers - lost or found.targets:
            raise StorageError(
                f"{log.path} holds blocks of {min(lost)}, which is not on the timeline, beside those of others: let "
                "Hudi compact its file group (`compaction`); until then nothing is archived"
            )
        strays[log.path] = frozenset(lost)
    return strays


def find_foreign_rollbacks(snapshot: Snapshot, seen: Collection[str]) -> dict[str, str]:
    """Instants that another engine rolled back: no end record of ours says so.

    Args:
        snapshot: the table as it is now.
        seen: times of rollbacks that were looked at before.

    Returns:
        Time of the instant -> time of its rollback, without rollbacks that were archived or undone meanwhile.
    """
    fresh = [rollback for rollback in snapshot.timeline.completed_of(Action.ROLLBACK) if rollback.time not in seen]
    if not fresh:
        return {}
    ended = {entry.name.partition(".")[0] for entry in snapshot.storage.list_dir(ENDS_FOLDER)}
    undone = {load_rolled_back_time(snapshot, rollback): rollback.time for rollback in fresh}
    return {time: rollback for time, rollback in undone.items() if time and time not in ended}


def delete_rolled_back_elsewhere(table: HudiTable, times: Collection[str]) -> tuple[str, ...]:
    """Deletes files of hudistream that belong to instants which another engine rolled back, and which it did not find.

    Without markers (``hoodie.rollback.using.markers=false``) Hudi looks for log files by the workload profile of the
    inflight file, which ours does not have. So every partition is looked at, whatever the rollback names. The name of a
    log file of ours tells its instant. The file is deleted only if its blocks say the same.

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
    _delete(table, strays, 1)
    return tuple(strays)


def delete_before_first_commit(table: HudiTable, time: str) -> tuple[str, ...]:
    """Deletes files that dead writers left in a table without a commit: its first commit would make them visible.

    Args:
        table: the table; the only pending write is that of `time`.
        time: the first commit's.
    """
    paths = table.store_listing.list_partition_paths()
    strays = [file for path in paths for file in find_strays(table, path, {}, "", time)]
    if table.config.table_type == TableType.MERGE_ON_READ:
        strays += [file for path in paths for file in find_stray_logs(table, path, ((), ()), "", time)]
    _delete(table, strays, 1)
    return tuple(strays)


def _delete(table: HudiTable, strays: list[str], parallelism: int) -> None:
    if not strays:
        return
    drop_present_metadata_table(table.storage)  # its lists may name them: Hudi makes them from a listing of the store
    with threads.make_pool(parallelism, "hudistream-archival") as pool:
        missed = table.storage.delete_many(strays, pool)
    if missed:
        raise StorageError(f"{min(missed)} belongs to no commit and cannot be deleted: nothing is archived")
    log.warning("strays_deleted", table=table.storage.base_uri, files=strays)
