"""BaseFile, LogFile, FileSlice, FileGroup: file names and a timeline -> what a reader sees (pure; HoodieFileGroup).

A file slice is a base file and the log files on top of it. `log_slicing` decides by the timeline's layout which slice a
log file belongs to, and whether it counts. A base file counts if its instant is completed, or older than the first
active commit (then the base file's instant was retired to the archive).
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from table.files.names import parse_base_file, parse_log_file
from table.storage.interface import FileInfo, join
from table.timeline.instant import WRITE_ACTIONS, State
from table.timeline.named_files import NamedFiles
from table.timeline.timeline import Timeline
from table.view.log_slicing import SLICE_TIMES


@dataclass(frozen=True, slots=True)
class BaseFile:
    """One base file of a partition.

    Attributes:
        partition_path: "" in a non-partitioned table.
        file_id: file group.
        instant_time: instant that wrote the file.
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


def base_file_of(partition_path: str, name: str, size_bytes: int) -> BaseFile:
    """The base file of a name that a listing, a write stat or our own writer gave."""
    parsed = parse_base_file(name)
    assert parsed is not None, name
    # files of one commit share the text of its time: a plan of a million files holds them all
    return BaseFile(partition_path, name, parsed.file_id, sys.intern(parsed.instant_time), size_bytes)


@dataclass(frozen=True, slots=True)
class LogFile:
    """One log file of a partition.

    Attributes:
        partition_path: "" in a non-partitioned table.
        file_id: file group.
        base_instant_time: the instant in its name: in timeline layout 1 the base instant of its slice, in layout 2 the
            delta commit that wrote it.
        version: counts the log files of one slice, from 1.
        write_token: identifies the task attempt that wrote the file; "" where the name has none.
        suffix: ``.cdc`` for a change file, else "".
    """

    partition_path: str
    name: str
    file_id: str
    base_instant_time: str
    version: int
    write_token: str
    suffix: str
    size_bytes: int

    @property
    def path(self) -> str:
        """Relative to the table."""
        return join(self.partition_path, self.name)

    @property
    def order(self) -> tuple[str, int, str, str]:
        """The sort key of log files, oldest first (HoodieLogFile.LogFileComparator)."""
        return self.base_instant_time, self.version, self.write_token, self.suffix


DataFile = BaseFile | LogFile


@dataclass(frozen=True, slots=True)
class FileSlice:
    """One version of a file group: a base file, and the log files that change its records.

    Attributes:
        partition_path: "" in a non-partitioned table.
        file_id: file group.
        base_instant_time: instant of the base file; without one, the instant in the name of the oldest log file.
        base_file: None where the slice has only log files.
        log_files: oldest first, in the order of `LogFile.order`; none in a copy-on-write table.
        change_files: those beside its base file: they say what the commit changed, and no snapshot reads them.
    """

    partition_path: str
    file_id: str
    base_instant_time: str
    base_file: BaseFile | None
    log_files: tuple[LogFile, ...] = ()
    change_files: tuple[LogFile, ...] = ()

    @property
    def files(self) -> tuple[BaseFile | LogFile, ...]:
        """Base file first, then log files: what a reader opens."""
        return (*((self.base_file,) if self.base_file is not None else ()), *self.log_files)

    @property
    def all_files(self) -> tuple[BaseFile | LogFile, ...]:
        """What is deleted with the slice: change files, too."""
        return (*self.files, *self.change_files)


@dataclass(frozen=True, slots=True)
class FileGroup:
    """All slices of one file group, newest first.

    Attributes:
        partition_path: "" in a non-partitioned table.
        slices: at least one.
    """

    partition_path: str
    file_id: str
    slices: tuple[FileSlice, ...]

    @property
    def latest_slice(self) -> FileSlice:
        """The slice that a reader begins with: the newest one with a base file, else the newest.

        A reader also reads the log files of newer slices without a base file: `merged_slice` has them.
        """
        return next((found for found in self.slices if found.base_file is not None), self.slices[0])

    @property
    def merged_slice(self) -> FileSlice:
        """The newest base file, and the log files of its slice and of all newer ones, oldest first.

        While a compaction is pending, log files of two slices change the records of the older slice's base file
        (AbstractTableFileSystemView.getLatestMergedFileSlicesBeforeOrOn).
        """
        newest = next((at for at, found in enumerate(self.slices) if found.base_file is not None), len(self.slices) - 1)
        logs = tuple(log for found in reversed(self.slices[: newest + 1]) for log in found.log_files)
        found = self.slices[newest]
        return found if logs == found.log_files else replace(found, log_files=logs)

    @property
    def files(self) -> tuple[BaseFile | LogFile, ...]:
        """The files of all slices."""
        return tuple(file for found in self.slices for file in found.all_files)

    @property
    def current_files(self) -> tuple[BaseFile | LogFile, ...]:
        """The files of the newest slice with a base file, and of newer slices, change files among them."""
        newest = next((at for at, found in enumerate(self.slices) if found.base_file is not None), len(self.slices) - 1)
        return tuple(file for found in self.slices[: newest + 1] for file in found.all_files)

    @property
    def is_plain(self) -> bool:
        """Whether its newest slice is a base file alone: no log file changes its rows."""
        return self.slices[0].base_file is not None and not self.slices[0].log_files

    @property
    def latest_base_file(self) -> BaseFile | None:
        """The newest base file (HoodieFileGroup.getLatestDataFile); None where there are only log files."""
        return self.latest_slice.base_file

    @property
    def base_files(self) -> tuple[BaseFile, ...]:
        """Base files, newest first."""
        return tuple(found.base_file for found in self.slices if found.base_file is not None)

    @property
    def log_files(self) -> tuple[LogFile, ...]:
        """Log files of all slices, oldest first."""
        return tuple(log for found in reversed(self.slices) for log in found.log_files)


@dataclass(frozen=True)
class CommittedInstants:
    """The instants whose files are visible, and the replaced file groups. Small: it is sent to workers.

    Attributes:
        times: completed writes of the active timeline.
        first_time: the first of `times`; files of older instants count, too.
        replaced: partition path -> file ids that a replace commit replaced.
        inflight: writes of the active timeline that are inflight; blocks of log files that they wrote do not count.
        layout_version: version of the timeline layout, which decides which slice a log file belongs to.
        completions: request time -> completion time of writes; empty in layout 1, which has no completion times.
        named: the files that these writes name, for callers that build on files; None: listings are taken as they are.
    """

    times: frozenset[str]
    first_time: str | None
    replaced: Mapping[str, frozenset[str]]
    inflight: frozenset[str] = frozenset()
    layout_version: int = 1
    completions: Mapping[str, str] = field(default_factory=dict)
    named: NamedFiles | None = field(default=None, compare=False)

    @property
    def logs_name_writers(self) -> bool:
        """Whether the name of a log file contains the instant that wrote it, and not the base instant of its slice."""
        return self.layout_version != 1

    def includes(self, time: str) -> bool:
        """Whether files of that instant are visible."""
        if time in self.times:
            return True
        return self.first_time is not None and time < self.first_time and time not in self.inflight

    def includes_block(self, time: str) -> bool:
        """Whether blocks of log files that the instant wrote are visible (AbstractHoodieLogRecordScanner)."""
        return self.includes(time) and time not in self.inflight

    def completed_at(self, time: str) -> str | None:
        """The completion time of a write; its request time where that is unknown; None if it is not completed."""
        return self.completions.get(time, time) if self.includes_block(time) else None

    def is_replaced(self, partition_path: str, file_id: str) -> bool:
        """Whether a replace commit replaced the file group."""
        return file_id in self.replaced.get(partition_path, frozenset())


def committed_instants(timeline: Timeline, replaced: Mapping[str, Iterable[str]]) -> CommittedInstants:
    """The visible part of a timeline."""
    return CommittedInstants(
        timeline.committed_times,
        timeline.first_active_time,
        {path: frozenset(ids) for path, ids in replaced.items()},
        frozenset(i.time for i in timeline.pending_of(*WRITE_ACTIONS) if i.state is State.INFLIGHT),
        timeline.layout.version,
        _completions(timeline),
    )


def _completions(timeline: Timeline) -> Mapping[str, str]:
    """Request time -> completion time. A metadata table may have two writes of one time: the later end counts."""
    found: dict[str, str] = {}
    for one in timeline.completed_writes:
        if one.completion_time is not None:
            found[one.time] = max(one.completion_time, found.get(one.time, ""))
    return found


def first_instant(files: Iterable[DataFile]) -> str:
    """The earliest instant in the names of files, of which there is at least one."""
    return min(file.instant_time if isinstance(file, BaseFile) else file.base_instant_time for file in files)


def build_file_groups(
    partition_path: str, entries: Iterable[FileInfo], committed: CommittedInstants
) -> tuple[FileGroup, ...]:
    """File groups of one partition, in order of file id.

    Args:
        entries: entries of the partition's folder.
        committed: which instants count.

    Returns:
        Groups that are not replaced, each with at least one slice; see `group_files`.
    """
    return group_files(partition_path, *parse_data_files(partition_path, entries), committed)


def parse_data_files(partition_path: str, entries: Iterable[FileInfo]) -> tuple[list[BaseFile], list[LogFile]]:
    """The base files and the log files among the entries of a folder, committed or not."""
    bases: list[BaseFile] = []
    logs: list[LogFile] = []
    for entry in entries:
        if entry.is_dir:
            continue
        if parse_base_file(entry.name) is not None:
            bases.append(base_file_of(partition_path, entry.name, entry.size_bytes))
            continue
        log = parse_log_file(entry.name)
        if log is not None:
            logs.append(
                LogFile(
                    partition_path,
                    entry.name,
                    log.file_id,
                    log.base_instant_time,
                    log.version,
                    log.write_token,
                    log.suffix,
                    entry.size_bytes,
                )
            )
    return bases, logs


def group_files(
    partition_path: str, base_files: Iterable[BaseFile], log_files: Iterable[LogFile], committed: CommittedInstants
) -> tuple[FileGroup, ...]:
    """File groups of one partition, in order of file id (AbstractTableFileSystemView, HoodieFileGroup).

    Args:
        base_files: all base files of the partition; files of instants that do not count are skipped.
        log_files: all log files of the partition. If a slice has no base file, its log files hold the first writes of a
            file group, or in timeline layout 1 the writes after the request of a pending compaction.
        committed: which instants count.
    """
    bases: dict[str, list[BaseFile]] = {}
    logs: dict[str, list[LogFile]] = {}
    for base in base_files:
        if committed.includes(base.instant_time):
            bases.setdefault(base.file_id, []).append(base)
    for log in log_files:
        logs.setdefault(log.file_id, []).append(log)
    return tuple(
        FileGroup(partition_path, file_id, slices)
        for file_id in sorted(bases.keys() | logs.keys())
        if not committed.is_replaced(partition_path, file_id)
        and (slices := _build_slices(bases.get(file_id, ()), logs.get(file_id, ()), committed))
    )


def unknown_completions(
    base_files: Iterable[BaseFile], log_files: Iterable[LogFile], committed: CommittedInstants
) -> frozenset[str]:
    """Retired writes whose completion time is unknown, although it decides to which slice their log files belong.

    Args:
        base_files: of a partition.
        log_files: of the partition.
        committed: which instants count.
    """
    if committed.layout_version == 1 or committed.first_time is None:
        return frozenset()
    newest: dict[str, str] = {}
    for base in base_files:
        newest[base.file_id] = max(base.instant_time, newest.get(base.file_id, ""))
    retired = (log for log in log_files if log.base_instant_time < committed.first_time)
    undecided = {log.base_instant_time for log in retired if log.base_instant_time < newest.get(log.file_id, "")}
    return frozenset(undecided - committed.completions.keys())


def _build_slices(
    bases: Sequence[BaseFile], logs: Iterable[LogFile], committed: CommittedInstants
) -> tuple[FileSlice, ...]:
    """The slices of one file group, newest first. Change files without the base file of their commit are left out."""
    ordered, changes = [], dict[str, list[LogFile]]()
    for log in sorted(logs, key=lambda log: log.order):
        if log.suffix:  # its name holds the instant of the base file in every layout
            changes.setdefault(log.base_instant_time, []).append(log)
        else:
            ordered.append(log)
    slice_times = SLICE_TIMES[committed.layout_version]
    times = slice_times(
        [base.instant_time for base in bases], [log.base_instant_time for log in ordered], committed.completed_at
    )
    logs_of: dict[str, list[LogFile]] = {}
    for log, time in zip(ordered, times, strict=True):
        if time is not None:
            logs_of.setdefault(time, []).append(log)
    slices = []
    for base in sorted(bases, key=lambda base: (base.instant_time, base.name), reverse=True):
        # a failed attempt left a second base file of one instant: it is a slice of its own, without log files
        time = base.instant_time
        mine = tuple(logs_of.pop(time, ())), tuple(changes.pop(time, ()))
        slices.append(FileSlice(base.partition_path, base.file_id, time, base, *mine))
    for time, found in logs_of.items():
        slices.append(FileSlice(found[0].partition_path, found[0].file_id, time, None, tuple(found)))
    return tuple(sorted(slices, key=lambda found: found.base_instant_time, reverse=True))
