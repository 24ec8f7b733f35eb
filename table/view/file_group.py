"""BaseFile, FileSlice, FileGroup: file names and a timeline -> what a reader sees (HoodieFileGroup).

Copy-on-write: a slice is a base file. A base file counts when its instant is completed, or older
than the first active commit (its own instant was retired to the archive).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from table.files.names import parse_base_file, parse_log_file
from table.storage.interface import FileInfo, join
from table.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class BaseFile:
    """One base file of a partition.

    Attributes:
        partition_path: "" in a non-partitioned table.
        name: file name.
        file_id: file group.
        instant_time: instant that wrote it.
        size_bytes: its size.
    """

    partition_path: str
    name: str
    file_id: str
    instant_time: str
    size_bytes: int

    @property
    def path(self) -> str:
        """Relative to the table."""
        return join(self.partition_path, self.name)


@dataclass(frozen=True)
class FileGroup:
    """All committed versions of one file, newest first, and whether it has log files."""

    partition_path: str
    file_id: str
    base_files: tuple[BaseFile, ...]
    log_files: tuple[str, ...] = ()

    @property
    def latest(self) -> BaseFile | None:
        """The version a snapshot reader sees."""
        return self.base_files[0] if self.base_files else None


@dataclass(frozen=True)
class CommittedInstants:
    """Which instants' files are visible, and which file groups were replaced: small, goes to workers.

    Attributes:
        times: completed writes of the active timeline.
        first_time: the first of them; files of older instants count too.
        replaced: partition path -> file ids that a replace commit took out of sight.
    """

    times: frozenset[str]
    first_time: str | None
    replaced: Mapping[str, frozenset[str]]

    def includes(self, time: str) -> bool:
        """Whether files of that instant are visible."""
        return time in self.times or (self.first_time is not None and time < self.first_time)

    def is_replaced(self, partition_path: str, file_id: str) -> bool:
        """Whether a replace commit took the file group out of sight."""
        return file_id in self.replaced.get(partition_path, frozenset())


def committed_instants(timeline: Timeline, replaced: Mapping[str, Iterable[str]]) -> CommittedInstants:
    """The visible part of a timeline."""
    return CommittedInstants(
        timeline.committed_times,
        timeline.first_active_time,
        {path: frozenset(ids) for path, ids in replaced.items()},
    )


def build_file_groups(
    partition_path: str, entries: Iterable[FileInfo], committed: CommittedInstants
) -> tuple[FileGroup, ...]:
    """File groups of one partition, in order of file id.

    Args:
        partition_path: the partition.
        entries: its folder's listing.
        committed: which instants count.

    Returns:
        Groups with at least one committed file and not replaced.
    """
    bases: dict[str, list[BaseFile]] = {}
    logs: dict[str, list[str]] = {}
    for entry in entries:
        if entry.is_dir:
            continue
        base = parse_base_file(entry.name)
        if base is not None:
            if committed.includes(base.instant_time):
                found = BaseFile(partition_path, entry.name, base.file_id, base.instant_time, entry.size_bytes)
                bases.setdefault(base.file_id, []).append(found)
            continue
        log = parse_log_file(entry.name)
        if log is not None:
            logs.setdefault(log.file_id, []).append(entry.name)
    groups = []
    for file_id in sorted(bases.keys() | logs.keys()):
        if committed.is_replaced(partition_path, file_id):
            continue
        versions = sorted(bases.get(file_id, ()), key=lambda f: (f.instant_time, f.name), reverse=True)
        groups.append(FileGroup(partition_path, file_id, tuple(versions), tuple(sorted(logs.get(file_id, ())))))
    return tuple(groups)
