"""Lists a partition path that a task writes to and that the driver does not know."""

from collections.abc import Iterable

from streaming.plan.task_plan import TaskPlan
from table.files.partition_metadata import PARTITION_METAFILE, create_partition_metadata
from table.storage.interface import FileInfo
from table.view.file_group import FileGroup, first_instant
from table.view.file_system_view import confirmed_groups


def list_path(plan: TaskPlan, path: str) -> tuple[FileGroup, ...]:
    """The file groups of a path, from a listing of its folder.

    If the path has files and its partition metadata file is gone, the file is made again: Java readers, and everything
    here that looks for partitions in the store, would not see the path.

    Args:
        plan: of the task.
        path: the partition path.

    Raises:
        LostDataError: commits name a file that is gone or differs.
        StorageError: the store fails.
    """
    entries = plan.listing.list_files(path)
    groups = confirmed_groups(path, entries, plan.committed)
    files = [file for group in groups for file in group.files]
    if files and is_metafile_gone(entries):
        create_partition_metadata(plan.context.storage, path, first_instant(files))
    return groups


def is_metafile_gone(entries: Iterable[FileInfo]) -> bool:
    """Whether a listing shows that a partition has no partition metadata file (pure).

    The lists of a metadata table do not name that file, and have no modification times: they show nothing.

    Args:
        entries: of the partition's folder.
    """
    listed = {entry.name: entry.modified_ms for entry in entries}
    return PARTITION_METAFILE not in listed and any(listed.values())
