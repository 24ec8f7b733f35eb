"""What partition folders contain, as a long-lived cleaner remembers it (IncrementalTimelineSyncFileSystemView).

A listing takes longer with each file of the folder, and a stream changes the same few folders with each commit. So a
folder is listed once. From there on the commits say which files came, and the cleans which files went.

Only files of completed writes are remembered: others may be deleted, and no instant says so. In timeline layout 1
the name of a log file does not say who wrote it, so nothing is remembered of a merge-on-read table there.

What is remembered decides no deletion: a clean looks at the store again once its plan is durable (rule 10).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from table.errors import CorruptFileError
from table.files.names import parse_base_file, parse_log_file
from table.metadata_table.changes import Written, changes_of_commit
from table.services.clean.plan import PENDING_WRITES
from table.snapshot import Snapshot
from table.storage.interface import FileInfo
from table.timeline.change import Change
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
    """The part of a timeline that says which files there are.

    Attributes:
        writes: times of the completed writes.
        pending: times of the writes that are not completed.
        cleans: times of the completed cleans.
        undoing: times of rollbacks and restores in any state.
        is_undoing: whether one of those is not completed.
        layout: version of the timeline layout.
    """

    writes: frozenset[str]
    pending: frozenset[str]
    cleans: frozenset[str]
    undoing: frozenset[str]
    is_undoing: bool
    layout: int

    @staticmethod
    def of(timeline: Timeline) -> "Followed":
        """That part of a timeline."""
        return Followed(
            timeline.committed_times,
            frozenset(instant.time for instant in timeline.pending_of(*PENDING_WRITES)),
            frozenset(instant.time for instant in timeline.completed_of(Action.CLEAN)),
            frozenset(instant.time for instant in timeline.instants if instant.action in _UNDOING),
            bool(timeline.pending_of(*_UNDOING)),
            timeline.layout.version,
        )

    def leads_to(self, now: "Followed") -> bool:
        """Whether the instants that are new in `now` say all that happened to committed files since (pure).

        Not so where commits were undone, or where archival may have retired instants that were never seen here.
        """
        writes, cleans = Change.between(self.writes, now.writes), Change.between(self.cleans, now.cleans)
        return (
            self.layout == now.layout
            and not (self.is_undoing or now.is_undoing)
            and now.undoing <= self.undoing
            and writes.is_gapless
            and cleans.is_gapless
            and not writes.undone
            and self.pending <= now.pending | now.writes
            and len(writes.came) <= MOST_COMMITS
        )


@dataclass
class _Folder:
    files: dict[str, FileInfo]
    looks: int = 0


class KnownFolders:
    """The files of some partition paths. For one thread.

    Args:
        most_files: as many are remembered, a folder counted as one more; the folders that were looked at longest ago go
            first.
    """

    def __init__(self, most_files: int = MOST_FILES) -> None:
        self._most_files = most_files
        self._folders: dict[str, _Folder] = {}
        self._count = 0
        self._followed: Followed | None = None

    def follow(self, snapshot: Snapshot, read_clean: Callable[[Instant], CleanMetadata]) -> None:
        """Brings what is remembered up to a timeline, or forgets it where the timeline does not say enough.

        Args:
            snapshot: the table; its timeline is not older than the one before.
            read_clean: what a completed clean did.

        Raises:
            HudiError: an instant cannot be read; the next call follows from the same timeline.
        """
        now, before = Followed.of(snapshot.timeline), self._followed
        if before is None or not before.leads_to(now) or not self._apply(snapshot, before, read_clean):
            self.forget_all()
        self._count = sum(1 + len(folder.files) for folder in self._folders.values())
        self._evict()
        self._followed = now

    def _apply(self, snapshot: Snapshot, before: Followed, read_clean: Callable[[Instant], CleanMetadata]) -> bool:
        """Whether each new commit could be read."""
        if not self._folders:
            return True
        for write in snapshot.timeline.completed_writes:
            if write.time not in before.writes and not self._add(snapshot, write):
                return False
        for clean in snapshot.timeline.completed_of(Action.CLEAN):
            if clean.time not in before.cleans:
                for path, names in read_clean(clean).deleted.items():
                    files = self._files_of(path)
                    for name in names:
                        files.pop(name, None)
        return True

    def _add(self, snapshot: Snapshot, write: Instant) -> bool:
        """Adds the files of a commit. Returns whether it could be read."""
        try:
            commit = snapshot.commits.find_filled(write)
        except CorruptFileError:  # a store that creates a file before it fills the file shows a part of it
            return False
        if commit is None:
            return False
        for path, sizes in changes_of_commit(commit, Written()).added.items():
            self._files_of(path).update((name, FileInfo(name, size, 0, False)) for name, size in sizes.items())
        return True

    def _evict(self) -> None:
        while self._count > self._most_files:
            self.forget(next(iter(self._folders)))

    def forget_all(self) -> None:
        """Forgets what is remembered."""
        self._folders.clear()
        self._count = 0

    def forget(self, path: str) -> None:
        """Forgets a folder."""
        if path in self._folders:
            self._count -= 1 + len(self._folders.pop(path).files)

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

    def keep(self, path: str, entries: Iterable[FileInfo], committed: CommittedInstants, *, has_logs: bool) -> None:
        """Remembers a folder that was listed after the timeline which was followed last.

        Args:
            path: the partition path.
            entries: of its folder.
            committed: the writes of that timeline.
            has_logs: whether the table may have log files.
        """
        self.forget(path)
        followed = self._followed
        if followed is None or followed.is_undoing or (has_logs and not committed.logs_name_writers):
            return
        files = {entry.name: entry for entry in entries if _counts(entry, committed, followed.pending)}
        self._folders[path] = _Folder(files)
        self._count += 1 + len(files)
        self._evict()

    def count(self, path: str) -> int:
        """Number of files of a partition path, as far as it is remembered; 0 where it is not."""
        return len(self._files_of(path))


def _counts(entry: FileInfo, committed: CommittedInstants, pending: frozenset[str]) -> bool:
    """Whether it is a data file of a completed write, in a table whose log files name their writers."""
    if entry.is_dir:
        return False
    base, log = parse_base_file(entry.name), parse_log_file(entry.name)
    time = base.instant_time if base is not None else log.base_instant_time if log is not None else None
    return time is not None and time not in pending and committed.includes(time)
