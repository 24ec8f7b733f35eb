"""Walks the partitions of a table for a writer that must know every file, also those that lost their metadata file.

Without its partition metadata file a partition is not found, and a batch would insert its keys again.
"""

from collections.abc import Iterator

from table.files.partition_metadata import PARTITION_METAFILE, create_partition_metadata
from table.snapshot import Snapshot
from table.view.file_group import FileGroup, first_instant
from table.view.file_system_view import confirm, confirmed_groups, walk_file_groups
from table.view.store_listing import StorageListing, walk_folders


def walk_table(snapshot: Snapshot) -> Iterator[tuple[str, tuple[FileGroup, ...]]]:
    """Every partition path with its file groups; each folder is listed once.

    A folder without a partition metadata file is a partition if a commit of the active timeline names a file in it;
    then the file is made again. Anything else, such as a copy of a folder, is left alone.

    Args:
        snapshot: the table.

    Raises:
        LostDataError: commits name a file that is gone or differs.
        StorageError: the store fails.
    """
    confirmed = snapshot.confirmed
    if not isinstance(snapshot.listing, StorageListing):
        yield from walk_file_groups(snapshot.listing, confirmed)
        return
    unseen = set(confirmed.named or ())
    for path, entries in walk_folders(snapshot.storage):
        is_found = any(entry.name == PARTITION_METAFILE for entry in entries)
        groups = confirmed_groups(path, entries, confirmed)
        files = [file for group in groups for file in group.files]
        if not is_found and files and path in unseen:
            is_found = True
            create_partition_metadata(snapshot.storage, path, first_instant(files))
        unseen.discard(path)
        if is_found:
            yield path, groups
    for path in sorted(unseen):  # folders that are gone
        confirm(path, (), confirmed)
