"""What partition folders contain, as a long-lived cleaner remembers it (IncrementalTimelineSyncFileSystemView).

A listing takes longer with each file of the folder, and a stream changes the same few folders with each commit. So a
folder is listed once. From there on the commits say which files came, and the cleans which files went.

What is remembered decides no deletion: a clean looks at the store again once its plan is durable (rule 10).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from table.files.names import parse_base_file, parse_log_file
from table.metadata_table.changes import Written, changes_of_commit
from table.snapshot import Snapshot
from table.storage.interface import FileInfo
from table.timeline.instant import Action, Instant
from table.timeline.metadata.clean import CleanMetadata
from table.timeline.timeline import Timeline
from table.view.file_group import CommittedInstants

MOST_FILES = 50_000  # about 15 MB
MOST_COMMITS = 64  # beyond as many unknown commits, listings cost less than what the commits say
MOST_LOOKS = 100  # then a folder is listed again, for files that no instant names
_UNDOING = (Action.ROLLBACK, Action.RESTORE)


@dataclass(frozen=True)
class Followed:
    """The part of a timeline that tells which files there are.

    Attributes:
        writes: times of the completed writes.
        first: the first of them.
        cleans: times of the completed cleans.
        undoing: times of rollbacks and restores in any state.
        layout: version of the timeline layout.
    """

    writes: frozenset[str]
    first: str | None
    cleans: frozenset[str]
    undoing: frozenset[str]
    layout: int

    @staticmethod
    def of(timeline: Timeline) -> "Followed":
        """That part of a timeline."""
        return Followed(
            timeline.committed_times,
            timeline.first_active_time,
            frozenset(instant.time for instant in timeline.completed_of(Action.CLEAN)),
            frozenset(instant.time for instant in timeline.instants if instant.action in _UNDOING),
            timeline.layout.version,
        )

    def leads_to(self, now: "Followed") -> bool:
        """Whether the instants that are new in `now` tell all that happened to committed files since (pure).

        Not so where commits were undone, or where the newest write that was known has left the timeline: then archival
        may have retired instants that were never seen here.
        """
        gone = self.writes - now.writes
        return (
            self.layout == now.layout
            and now.undoing <= self.undoing
            and max(self.writes, default=None) not in gone
            and all(now.first is not None and time < now.first for time in gone)
            and len(now.writes - self.writes) <= MOST_COMMITS
        )


@dataclass
class _Folder:
    files: dict[str, FileInfo]
    looks: int = 0


class KnownFolders:
    """The files of some partition paths. For one thread.

    Args:
        most_files: as many are remembered; the folders that were looked at longest ago go first.
    """

    def __init__(self, most_files: int = MOST_FILES) -> None:
        self._most_files = most_files
        self._folders: dict[str, _Folder] = {}
        self._count = 0
        self._followed: Followed | None = None

    def follow(self, snapshot: Snapshot, read_clean: Callable[[Instant], CleanMetadata]) -> None:
        """Brings what is remembered up to a timeline, or forgets it where the timeline does not tell enough.

        Args:
            snapshot: the table; its timeline is not older than the one before.
            read_clean: what a completed clean did.

        Raises:
            HudiError: an instant cannot be read; the next call follows from the same timeline.
        """
        now, before = Followed.of(snapshot.timeline), self._followed
        if self._folders and (
            before is None or not before.leads_to(now) or not self._apply(snapshot, before, read_clean)
        ):
            self._folders.clear()
        self._count = sum(len(folder.files) for folder in self._folders.values())
        self._followed = now

    def _apply(self, snapshot: Snapshot, before: Followed, read_clean: Callable[[Instant], CleanMetadata]) -> bool:
        """Whether each new instant could be read."""
        for write in snapshot.timeline.completed_writes:
            if write.time in before.writes:
                continue
            commit = snapshot.commits.find(write)
            if commit is None:
                return False
            for path, sizes in changes_of_commit(commit, Written()).added.items():
                self._files_of(path).update((name, FileInfo(name, size, 0, False)) for name, size in sizes.items())
        for clean in snapshot.timeline.completed_of(Action.CLEAN):
            if clean.time not in before.cleans:
                for path, names in read_clean(clean).deleted.items():
                    files = self._files_of(path)
                    for name in names:
                        files.pop(name, None)
        return True

    def _files_of(self, path: str) -> dict[str, FileInfo]:
        """What is remembered of a partition path; nothing of other ones."""
        folder = self._folders.get(path)
        return folder.files if folder is not None else {}

    def find(self, path: str) -> Sequence[FileInfo] | None:
        """The files of a partition path, as of the timeline that was followed last; None: list the folder.

        A file of a write that is not completed may be missing.
        """
        folder = self._folders.get(path)
        if folder is None or folder.looks == MOST_LOOKS:
            return None
        folder.looks += 1
        self._folders[path] = self._folders.pop(path)  # now the one that was looked at last
        return list(folder.files.values())

    def keep(self, path: str, entries: Iterable[FileInfo], committed: CommittedInstants) -> None:
        """Remembers a folder that was listed after the timeline which was followed last.

        Args:
            path: the partition path.
            entries: of its folder.
            committed: base files of other instants are left out: they may be deleted again, and no instant tells that.
        """
        files = {entry.name: entry for entry in entries if not entry.is_dir and _counts(entry.name, committed)}
        self._count += len(files) - self.count(path)
        self._folders.pop(path, None)
        self._folders[path] = _Folder(files)
        while self._count > self._most_files:
            oldest = next(iter(self._folders))
            self._count -= self.count(oldest)
            del self._folders[oldest]

    def count(self, path: str) -> int:
        """Number of files of a partition path, as far as it is remembered; 0 where it is not."""
        return len(self._files_of(path))


def _counts(name: str, committed: CommittedInstants) -> bool:
    """Whether it is a log file, or a base file of a completed write."""
    base = parse_base_file(name)
    return committed.includes(base.instant_time) if base is not None else parse_log_file(name) is not None
