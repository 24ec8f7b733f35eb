"""Walks the partitions of a table for a writer that must know every file, also those that lost their metadata file.

Without its partition metadata file a partition is not found, and a batch would insert its keys again.
"""

from collections.abc import Iterator

from table.files.partition_metadata import PARTITION_METAFILE, create_partition_metadata
from table.snapshot import Snapshot
from table.view.file_group import FileGroup, build_file_groups, first_instant
from table.view.file_system_view import walk_file_groups
from table.view.store_listing import StorageListing, walk_folders


def walk_table(snapshot: Snapshot) -> Iterator[tuple[str, tuple[FileGroup, ...]]]:
    """Every partition path with its file groups; each folder is listed once.

    A folder without a partition metadata file is a partition if a commit of the active timeline names a file in it;
    then the file is made again. Anything else, such as a copy of a folder, is left alone.

    Args:
        snapshot: the table. Commits are read only if such a folder with data files is found.

    Raises:
        StorageError: the store fails.
    """
    if not isinstance(snapshot.listing, StorageListing):
        yield from walk_file_groups(snapshot.listing, snapshot.slicing)
        return
    for path, entries in walk_folders(snapshot.storage):
        is_found = any(entry.name == PARTITION_METAFILE for entry in entries)
        groups = build_file_groups(path, entries, snapshot.slicing)
        files = [file for group in groups for file in group.files]
        if not is_found and files and _is_named(snapshot, frozenset(file.path for file in files)):
            is_found = True
            create_partition_metadata(snapshot.storage, path, first_instant(files))
        if is_found:
            yield path, groups


def _is_named(snapshot: Snapshot, paths: frozenset[str]) -> bool:
    commits = (snapshot.commits.find(instant) for instant in snapshot.timeline.completed_writes)
    return any(not paths.isdisjoint(commit.named_paths) for commit in commits if commit is not None)
