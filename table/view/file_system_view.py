"""Builds file slices from a listing and the visible instants (AbstractTableFileSystemView)."""

from collections.abc import Iterable, Iterator

from table.errors import CorruptFileError, TimelineMovedError
from table.storage.interface import FileInfo
from table.timeline.archived_timeline import Archive, is_archived
from table.timeline.commit_cache import CommitCache
from table.timeline.instant import Action
from table.timeline.timeline import Timeline
from table.view.file_group import (
    CommittedInstants,
    FileGroup,
    FileSlice,
    build_file_groups,
    committed_instants,
    parse_data_files,
)
from table.view.known_files import find_lost, lost_error
from table.view.listing import Listing


def load_committed_instants(commits: CommitCache, timeline: Timeline, archive: Archive) -> CommittedInstants:
    """The instants whose files are visible. Reads the replace commits, which name the file groups replaced.

    Args:
        commits: decoded commits of the table.
        timeline: the table's.
        archive: says whether a replace commit that is gone was archived: then the file groups that it replaced had
            been cleaned before.

    Raises:
        CorruptFileError: a replace commit is damaged, or nothing is known of it.
        TimelineMovedError: the file of a replace commit is gone since the timeline was listed, and was not archived.
    """
    replaced: dict[str, set[str]] = {}
    for instant in timeline.completed_of(Action.REPLACE_COMMIT):
        metadata = commits.find(instant)
        if metadata is None and is_archived(archive, instant.time):
            continue
        if metadata is None:
            raise TimelineMovedError(
                f"{instant.path} was undone or deleted since the timeline was listed: run it again"
            )
        if metadata.is_empty:
            raise CorruptFileError(
                f"{instant.path} is empty, and no end record has its content: which file groups it replaced is not "
                "known, so their rows would be read beside the new ones. Bring the file back from a backup, or restore "
                "a savepoint from before (`hudistream check`)"
            )
        for path, file_ids in metadata.replaced.items():
            replaced.setdefault(path, set()).update(file_ids)
    return committed_instants(timeline, replaced)


def list_file_groups(listing: Listing, partition_path: str, committed: CommittedInstants) -> tuple[FileGroup, ...]:
    """File groups of one partition, from one listing of its folder.

    Raises:
        LostDataError: `committed` names a file that is gone or differs.
    """
    return confirmed_groups(partition_path, listing.list_files(partition_path), committed)


def list_latest_slices(listing: Listing, partition_path: str, committed: CommittedInstants) -> tuple[FileSlice, ...]:
    """The slices that a snapshot reader begins with in one partition, in order of file id."""
    return _latest(list_file_groups(listing, partition_path, committed))


def walk_file_groups(listing: Listing, committed: CommittedInstants) -> Iterator[tuple[str, tuple[FileGroup, ...]]]:
    """Every partition path with its file groups; each folder is listed once.

    Raises:
        LostDataError: `committed` names a file that is gone or differs.
    """
    unseen = set(committed.named or ())
    for path, entries in listing.walk():
        yield path, confirmed_groups(path, entries, committed)
        unseen.discard(path)
    for path in sorted(unseen):  # folders that are gone
        confirm(path, (), committed)


def confirmed_groups(
    partition_path: str, entries: Iterable[FileInfo], committed: CommittedInstants
) -> tuple[FileGroup, ...]:
    """File groups of one partition, if its folder has the files that `committed` names.

    Raises:
        LostDataError: a file is gone or differs.
    """
    confirm(partition_path, entries, committed)
    return build_file_groups(partition_path, entries, committed)


def confirm(partition_path: str, entries: Iterable[FileInfo], committed: CommittedInstants) -> None:
    """Compares a folder with the files that `committed` names.

    Raises:
        LostDataError: a file is gone or differs.
    """
    if committed.named is None:
        return
    lost = list(find_lost(partition_path, *parse_data_files(partition_path, entries), committed))
    if lost:
        raise lost_error(lost)


def _latest(groups: Iterable[FileGroup]) -> tuple[FileSlice, ...]:
    return tuple(group.latest_slice for group in groups)
