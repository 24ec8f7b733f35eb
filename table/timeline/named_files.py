"""Which data files the commits of a table name, and with which size: what must be on the store.

A write stat of a commit is the only record that says that a file exists. A listing alone shows what is left, and
cannot distinguish an older version of a file group from the newest one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from table.files.names import parse_base_file, parse_log_file
from table.storage.interface import join
from table.timeline.change import Change
from table.timeline.instant import Instant
from table.timeline.metadata.commit import CommitMetadata, WriteStat
from table.timeline.timeline import Timeline

MOST_NAMED = 250_000  # files of the active timeline that one process remembers: 60 MB


FindNamed = Callable[[Sequence[Instant]], Iterable[tuple[Instant, "tuple[NamedFile, ...] | None"]]]


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A data file as a commit names it.

    Attributes:
        name: of the file.
        partition_path: "" in a non-partitioned table.
        file_id: file group.
        time: instant time of the commit.
        size_bytes: of a base file its size; of a log file the least size, because others append. 0: not known.
        rows: written into the file, carried rows included; with deletes, for a log file.
        folded: name of the base file whose slice a compaction folded into this one: that slice shows the same rows.
    """

    name: str
    partition_path: str
    file_id: str
    time: str
    size_bytes: int
    rows: int = 0
    folded: str = ""

    @property
    def path(self) -> str:
        """Relative to the table."""
        return join(self.partition_path, self.name)

    @property
    def slice_time(self) -> str:
        """The instant in the name of a log file: in timeline layout 1 the base instant of its slice."""
        log = parse_log_file(self.name)
        return log.base_instant_time if log is not None else self.time

    @property
    def is_log(self) -> bool:
        """Whether it is a log file."""
        return self.name.startswith(".")


def names_of(time: str, commit: CommitMetadata) -> tuple[NamedFile, ...]:
    """The data files that a commit names (pure).

    Args:
        time: instant time of the commit.
        commit: its metadata. Change logs are left out: readers of a snapshot do not open them.
    """
    return tuple(found for stat in commit.stats if (found := _name_of(time, stat, commit)) is not None)


def _name_of(time: str, stat: WriteStat, commit: CommitMetadata) -> NamedFile | None:
    name = stat.path.rpartition("/")[2]
    base, log = parse_base_file(name), parse_log_file(name)
    if (base is None and log is None) or (log is not None and log.suffix):
        return None
    # HoodieAppendHandle counts the bytes that it appended, from an offset on
    offset = stat.extra.get("logOffset") if log is not None else 0
    size_bytes = stat.file_size_bytes + (offset if isinstance(offset, int) and stat.file_size_bytes else 0)
    rows = stat.num_writes + (stat.num_deletes if log is not None else 0)
    folded = stat.prev_base_file or "" if commit.compacted else ""
    return NamedFile(name, stat.partition_path, stat.file_id, time, size_bytes, rows, folded)


Groups = Mapping[str, tuple[NamedFile, ...]]
"""File id -> the newest base file, and the log files."""


Left = Mapping[str, tuple[str, int | None]]
"""Path of a file, relative to the table -> the newest commit that had written it when it was lost, and the bytes that
were left of it; None: none."""


class NamedFiles:
    """The files that commits name: of each file group the newest base file, and log files. Immutable.

    Args:
        by_path: partition path -> its file groups.
    """

    def __init__(self, by_path: Mapping[str, Groups] | None = None) -> None:
        self._by_path = by_path or {}

    @staticmethod
    def collect(files: Iterable[NamedFile], *, prunes: bool = False) -> "NamedFiles":
        """The newest files among those that some commits name, in any order.

        Args:
            files: of the commits.
            prunes: as of `including`.
        """
        return NamedFiles().including(files, prunes=prunes)

    def of(self, path: str) -> Groups:
        """The file groups of a partition path."""
        return self._by_path.get(path, {})

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_path)

    def __len__(self) -> int:
        """Number of files."""
        return sum(len(files) for groups in self._by_path.values() for files in groups.values())

    def including(self, files: Iterable[NamedFile], *, prunes: bool = False) -> "NamedFiles":
        """These and others. An older base file of a file group is left out.

        Args:
            files: the others.
            prunes: whether log files of a slice below the base file are left out, too. Their names say it in timeline
                layout 1 alone: in layout 2 a late write belongs above a base file that has a greater time.
        """
        by_path = dict(self._by_path)
        changed: dict[str, dict[str, tuple[NamedFile, ...]]] = {}
        for file in files:
            path = file.partition_path
            groups = changed.get(path)
            if groups is None:
                groups = changed[path] = dict(by_path.get(path, {}))
            known = _with(groups.get(file.file_id, ()), file)
            groups[file.file_id] = _pruned(known) if prunes else known
        by_path.update(changed)
        return NamedFiles(by_path)

    def since(self, time: str) -> "NamedFiles":
        """Those that a commit of that time or a later one names."""
        return self.where(lambda file: file.time >= time)

    def accepting(self, left: Left) -> "NamedFiles":
        """With losses that were accepted. A commit that wrote to the file after the loss counts.

        Args:
            left: what was left.
        """
        every = (file for groups in self._by_path.values() for files in groups.values() for file in files)
        lost = [file for file in every if file.path in left and file.time <= left[file.path][0]] if left else []
        gone = {file.path for file in lost}
        cut = [replace(file, size_bytes=size) for file in lost if (size := left[file.path][1]) is not None]
        return self.where(lambda file: file.path not in gone).including(cut) if lost else self

    def where(self, keeps: Callable[[NamedFile], bool]) -> "NamedFiles":
        """Those for which a function is true."""
        by_path: dict[str, Groups] = {}
        for path, groups in self._by_path.items():
            kept = {file_id: chosen for file_id, files in groups.items() if (chosen := tuple(filter(keeps, files)))}
            if kept:
                by_path[path] = kept
        return NamedFiles(by_path)

    def newest_first(self) -> list[str]:
        """The partition paths, those with the newest commit first."""
        newest = {
            path: max(file.time for files in groups.values() for file in files)
            for path, groups in self._by_path.items()
        }
        return sorted(newest, key=newest.__getitem__, reverse=True)

    def within(self, paths: Iterable[str], most: int) -> "NamedFiles":
        """Those of some partition paths, as many paths as fit.

        Args:
            paths: the first ones are the most important.
            most: the largest number of files.
        """
        by_path: dict[str, Groups] = {}
        for path in paths:
            groups = self.of(path)
            most -= sum(map(len, groups.values()))
            if most < 0:
                break
            if groups:
                by_path[path] = groups
        return NamedFiles(by_path)

    def __reduce__(self) -> tuple[Callable[[bytes], "NamedFiles"], tuple[bytes]]:
        """Packed as columns: one by one, twenty thousand files take three times as long."""
        rows = [file for groups in self._by_path.values() for files in groups.values() for file in files]
        columns = pa.RecordBatch.from_pydict(
            {name: pa.array([getattr(file, name) for file in rows], kind) for name, kind in _COLUMNS.items()}
        )
        out = pa.BufferOutputStream()
        with pa.ipc.new_stream(out, columns.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_batch(columns)
        return _unpack, (out.getvalue().to_pybytes(),)


_COLUMNS = {
    "name": pa.string(),
    "partition_path": pa.string(),
    "file_id": pa.string(),
    "time": pa.string(),
    "size_bytes": pa.int64(),
    "rows": pa.int64(),
    "folded": pa.string(),
}


def _unpack(packed: bytes) -> NamedFiles:
    columns = pa.ipc.open_stream(packed).read_all().to_pydict()
    return NamedFiles.collect(NamedFile(*row) for row in zip(*(columns[name] for name in _COLUMNS), strict=True))


def _with(known: tuple[NamedFile, ...], file: NamedFile) -> tuple[NamedFile, ...]:
    """The files of a group with one more: a base file takes the place of an older one."""
    if any(one.name == file.name for one in known):
        # several commits appended to one log file: the greatest size counts
        return tuple(
            max(one, file, key=lambda each: each.size_bytes) if one.name == file.name else one for one in known
        )
    if file.is_log:
        return (*known, file)
    older = next((one for one in known if not one.is_log), None)
    if older is not None and older.time > file.time:
        return known
    return (file, *(one for one in known if one.is_log))


def _pruned(known: tuple[NamedFile, ...]) -> tuple[NamedFile, ...]:
    base = known[0].time if not known[0].is_log else ""
    return tuple(file for file in known if not file.is_log or file.slice_time >= base)


class FollowedNames:
    """The files that the active timeline of a table names, followed from one look to the next. For one thread."""

    def __init__(self) -> None:
        self._seen: frozenset[str] = frozenset()
        self._first: str | None = None
        self._named = self._shown = NamedFiles()
        self._accepted: Left = {}

    def follow(self, timeline: Timeline, find_named: FindNamed) -> NamedFiles:
        """The files that the completed writes of a timeline name, accepted losses left out.

        Args:
            timeline: the table's active timeline.
            find_named: reads those of its commits that this object does not know (`CommitCache.find_named`).

        Raises:
            CorruptFileError: the file of a commit is damaged.
        """
        times, first = timeline.committed_times, timeline.first_active_time
        if Change.between(self._seen, times).undone:
            self._seen, self._named = frozenset(), NamedFiles()
        before, unseen = self._named, [one for one in timeline.completed_writes if one.time not in self._seen]
        found = {instant.time: files for instant, files in find_named(unseen) if files is not None}
        if found:
            every = (file for files in found.values() for file in files)
            self._named = self._named.including(every, prunes=not timeline.layout.completes_in_order)
            if len(self._named) > MOST_NAMED:
                self._named = _newest(self._named, MOST_NAMED)
        if first is not None and first != self._first:
            self._named = self._named.since(first)
        self._seen, self._first = (self._seen | found.keys()) & times, first
        if self._named is not before:
            self._shown = self._named.accepting(self._accepted)
        return self._shown

    def knows(self, time: str) -> bool:
        """Whether the files of a commit are known."""
        return time in self._seen

    def accept(self, left: Left) -> None:
        """Sets the losses that were accepted.

        Args:
            left: as of `NamedFiles.accepting`.
        """
        self._accepted = left
        self._shown = self._named.accepting(left)


def _newest(named: NamedFiles, most: int) -> NamedFiles:
    """The files of the newest commits, at most so many."""
    times = sorted((file.time for path in named for files in named.of(path).values() for file in files), reverse=True)
    return named.since(times[most - 1])
