"""Which files of a snapshot a clean may have deleted before a reader listed their folders (pure).

A reader lists the timeline, and then the folders. If it pauses in between, cleaning can delete files that its snapshot
shows, and the listing does not show that they are missing: the snapshot would have too few rows. The plan of the clean
names them.
"""

from collections.abc import Callable, Iterable, Mapping

from table.storage.interface import FileInfo
from table.timeline.metadata.clean import CleanPlan
from table.view.file_group import BaseFile, CommittedInstants, DataFile, FileSlice, parse_data_files


def lost_to(
    clean: CleanPlan, listed: Iterable[FileSlice], committed: CommittedInstants, is_wanted: Callable[[str], bool]
) -> str | None:
    """A file that the snapshot shows, that the listing did not show, and that a clean deletes; None: there is none.

    Args:
        clean: requested or completed after the timeline was listed.
        listed: the newest visible slice of each file group, as the folders showed them.
        committed: which files the snapshot shows.
        is_wanted: whether the reader needs the rows of a partition path.

    Returns:
        The path as the clean names it.
    """
    slices = {(found.partition_path, found.file_id): found for found in listed}
    for partition_path, files in clean.files.items():
        if is_wanted(partition_path):
            for path in files:
                if _is_missing(partition_path, path, slices, committed):
                    return path
    return None


def _is_missing(
    partition_path: str,
    path: str,
    slices: Mapping[tuple[str, str], FileSlice],
    committed: CommittedInstants,
) -> bool:
    for file in _parsed(partition_path, path.rpartition("/")[2]):
        if committed.is_replaced(partition_path, file.file_id):
            return False
        found = slices.get((partition_path, file.file_id))
        written = file.instant_time if isinstance(file, BaseFile) else file.base_instant_time
        is_shown = committed.includes(written)
        if found is None:
            return is_shown
        return is_shown and written >= found.base_instant_time and file.name not in {one.name for one in found.files}
    return False


def _parsed(partition_path: str, name: str) -> list[DataFile]:
    """The data file of a name; none where it is another file, or one that no snapshot reads."""
    bases, logs = parse_data_files(partition_path, [FileInfo(name, 0, 0, False)])
    return [*bases, *(one for one in logs if not one.suffix)]
