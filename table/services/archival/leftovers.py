"""Finds and deletes files that would become visible when archival moves the line of visibility (rule 6 of safety.md).

A stray file below the line becomes visible, and so does a file group whose replace commit is archived while its files
still exist.
"""

from collections.abc import Collection, Iterable

from table.errors import InvalidConfigError, TimelineMovedError
from table.files.markers import list_marked_instants
from table.files.names import parse_base_file
from table.files.publication import is_final, may_publish_late
from table.hudi_table import HudiTable
from table.options.choices import TableType
from table.options.groups import CleanSettings
from table.references.decided import check_not_decided
from table.references.strays import delete_stray_files, find_stray_files, find_stray_logs
from table.references.undone import goes_with
from table.services.archival.plan import ArchivalPlan
from table.services.archival.retired import Retired
from table.snapshot import Snapshot
from table.timeline.archived_timeline import read_archived_commits
from table.timeline.end_record import ENDS_FOLDER
from table.timeline.instant import Action
from table.view.file_group import parse_data_files


def find_held(snapshot: Snapshot, plan: ArchivalPlan) -> frozenset[str]:
    """Commits of a plan that must stay on the active timeline, as a look at the store shows.

    A replace commit stays while its replaced files exist, or while a pending clean may have deleted them and has not
    entered in the lists of the metadata table. If the store has no fence, an instant with markers stays while one of
    its tasks may be alive.

    Raises:
        TimelineMovedError: a replace commit was archived or undone since the timeline was listed.
    """
    storage, held = snapshot.storage, set()
    untold = bool(snapshot.config.metadata_indexes and snapshot.timeline.pending_of(Action.CLEAN))
    for instant in plan.instants:
        if instant.action is Action.REPLACE_COMMIT:
            replaced = snapshot.commits.read(instant).replaced
            if untold or any(_holds_groups(snapshot.table, path, ids) for path, ids in replaced.items()):
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
        CorruptFileError: an instant below the line is decided to be committed, and is not on the timeline: nothing may
            be archived.
        CommitConflictError: a file that no commit names is of an instant in the archive: nothing may be archived.
        StorageError: a file cannot be deleted: nothing may be archived.
    """
    line, first = plan.first_active, snapshot.timeline.first_active_time
    if line is None or first is None:
        return ()
    ended = _list_ended(snapshot.table)
    lost = {time for time in ended if first <= time < line} - {instant.time for instant in snapshot.timeline}
    check_not_decided(snapshot, lost, "nothing is archived, and nothing was deleted")
    protected = ended if is_final(snapshot.storage) else frozenset()
    paths = {path for time, written in retired.paths.items() if time not in protected for path in written}
    undone = {done.instant_time for done in retired.rollbacks.values()}
    if any(first <= time < line and time not in protected for time in undone):
        paths.update(snapshot.table.store_listing.list_partition_paths())
    strays = [path for of in sorted(paths) for path in find_stray_files(snapshot.table, of, retired.named, first, line)]
    of_instants = {base.instant_time for path in strays if (base := parse_base_file(path.rpartition("/")[2]))}
    if snapshot.config.table_type == TableType.MERGE_ON_READ:
        known = snapshot.timeline.committed_times, frozenset[str]().union(*retired.named.values())
        for of in sorted(paths):
            found = find_stray_logs(snapshot.table, of, known, first, line)
            strays += found
            of_instants.update(time for times in found.values() for time in times)
    _check_not_archived(snapshot.table, of_instants - retired.named.keys() - undone)
    strays += [file for file in _undone_files(snapshot.table, plan, retired) if snapshot.storage.exists(file)]
    delete_stray_files(snapshot.table, strays, clean.parallelism)
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
            named = (_inside(table, file, path) for path, names in metadata.deleted.items() for file in names)
            files += [file for file in named if file is not None and goes_with(table.storage, file, metadata)]
    return files


def _inside(table: HudiTable, file: str, partition_path: str) -> str | None:
    """A file of a record, relative to the table; None where it lies outside of the table."""
    try:
        return table.storage.relative(file, partition_path)
    except InvalidConfigError:
        return None


def _list_ended(table: HudiTable) -> frozenset[str]:
    """Times of the instants that have an end record."""
    return frozenset(entry.name.partition(".")[0] for entry in table.storage.list_dir(ENDS_FOLDER))
