"""What is where: lists a partition once and says what its listing means (AbstractTableFileSystemView)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from table import threads
from table.files.partition_metadata import PARTITION_METAFILE
from table.storage.interface import METAFOLDER, FileInfo, Storage, join
from table.timeline.active_timeline import find_instant
from table.timeline.instant import Action
from table.timeline.metadata.commit import decode_commit
from table.timeline.timeline import Timeline
from table.view.file_group import BaseFile, CommittedInstants, FileGroup, build_file_groups, committed_instants


def load_committed_instants(storage: Storage, timeline: Timeline) -> CommittedInstants:
    """Which files are visible; reads the replace commits, which say what they replaced."""
    replaced: dict[str, set[str]] = {}
    for instant in timeline.completed_of(Action.REPLACE_COMMIT):
        data = find_instant(storage, instant)
        if data is None:
            continue  # archived since: what it replaced had been cleaned before
        metadata = decode_commit(data, instant.file_name)
        for path, file_ids in metadata.replaced.items():
            replaced.setdefault(path, set()).update(file_ids)
    return committed_instants(timeline, replaced)


def list_file_groups(storage: Storage, partition_path: str, committed: CommittedInstants) -> tuple[FileGroup, ...]:
    """File groups of one partition, from one listing of its folder."""
    return build_file_groups(partition_path, storage.list_dir(partition_path), committed)


def list_latest_base_files(storage: Storage, partition_path: str, committed: CommittedInstants) -> tuple[BaseFile, ...]:
    """The base files a snapshot reader sees in one partition."""
    return _latest(list_file_groups(storage, partition_path, committed))


def list_partition_paths(storage: Storage) -> list[str]:
    """Every partition of the table, sorted: the folders that hold a partition metadata file."""
    return sorted(path for path, _ in _walk_partitions(storage))


def walk_latest_base_files(
    storage: Storage, committed: CommittedInstants
) -> Iterator[tuple[str, tuple[BaseFile, ...]]]:
    """Every partition of the table and the base files a snapshot reader sees there; each folder is listed once."""
    for path, entries in _walk_partitions(storage):
        yield path, _latest(build_file_groups(path, entries, committed))


def _latest(groups: Iterable[FileGroup]) -> tuple[BaseFile, ...]:
    return tuple(group.latest for group in groups if group.latest is not None)


def _walk_partitions(storage: Storage) -> Iterator[tuple[str, Sequence[FileInfo]]]:
    """Partition paths and their entries, level by level; several folders at a time where a listing is a request."""
    if storage.calls_at_once == 1:
        yield from _walk_levels(storage, map)
        return
    with threads.make_pool(storage.calls_at_once, "hudistream-list") as pool:
        yield from _walk_levels(storage, pool.map)


def _walk_levels(storage: Storage, each: Callable[..., Iterable[Any]]) -> Iterator[tuple[str, Sequence[FileInfo]]]:
    level = [""]
    while level:
        below: list[str] = []
        for folder, entries in zip(level, each(storage.list_dir, level), strict=True):
            if any(entry.name == PARTITION_METAFILE for entry in entries):
                yield folder, entries
            below += [join(folder, e.name) for e in entries if e.is_dir and (folder or e.name != METAFOLDER)]
        level = below
