"""Retired instants, and the archive that holds them as a protocol for both file formats (HoodieArchivedTimeline)."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from table.timeline.instant import Instant
from table.timeline.metadata.commit import CommitMetadata


@dataclass(frozen=True)
class RetiredFile:
    """A file of an instant that leaves the active timeline.

    Attributes:
        instant: the instant, in the state of the file.
        data: the file's bytes.
        moved_at: when the instant reached that state, as an instant time.
    """

    instant: Instant
    data: bytes
    moved_at: str


@dataclass(frozen=True)
class ArchivedCommit:
    """A completed commit that left the active timeline.

    Attributes:
        time: its instant time.
        action: ``commit``, ``deltacommit`` or ``replacecommit``.
        metadata: operation and extra metadata; write stats are left out.
    """

    time: str
    action: str
    metadata: CommitMetadata


@dataclass(frozen=True)
class ArchivedChange:
    """What a completed instant did before it left the active timeline.

    Attributes:
        time: its instant time.
        metadata: files that a write wrote, and file groups that it replaced; None for a table service.
        undone: times of the instants that a rollback undid.
    """

    time: str
    metadata: CommitMetadata | None = None
    undone: tuple[str, ...] = ()


class Archive(Protocol):
    """The archive of one table."""

    @property
    def folder(self) -> str:
        """The archive's folder, relative to the table."""

    def read_files(self) -> Iterator[list[ArchivedCommit]]:
        """Completed commits of each file of the archive, newest file first, oldest commit first.

        Raises:
            CorruptFileError: a file is damaged.
        """

    def read_changes(self) -> Iterator[ArchivedChange]:
        """Completed instants, writes with their files. One file of the archive is in memory at a time.

        Raises:
            CorruptFileError: a file is damaged.
        """

    def find_commits(self, time: str) -> list[ArchivedCommit]:
        """A completed commit by its instant time, the last one; before it the earlier ones of the same file.

        As few files are read as their order allows. Nothing where the commit is not found.

        Raises:
            CorruptFileError: a file is damaged.
        """

    def find_completions(self, times: Collection[str]) -> Mapping[str, str]:
        """Request time -> completion time of archived writes. Writes that are not in the archive are left out.

        Args:
            times: request times.

        Raises:
            CorruptFileError: a file is damaged.
        """

    def find_passed(
        self, compactions: Collection[str], *, since: str = "", known: Mapping[str, str] | None = None
    ) -> Mapping[str, str]:
        """Delta commits that were requested before a compaction, and completed after the compaction's request.

        Args:
            compactions: request times of compactions that are not in the archive.
            since: files that hold only earlier instants are not read, because `known` covers them.
            known: the result of an earlier call.

        Returns:
            Request time -> completion time, `known` included. Empty where names of instants hold no completion time.

        Raises:
            CorruptFileError: a file is damaged.
        """

    def append(self, files: Sequence[RetiredFile], batch: int) -> str:
        """Archives files of instants. They are in the archive when this returns.

        Args:
            files: in order of instants, lowest state first.
            batch: number of records per block, where the archive has blocks.

        Returns:
            Path of the archive's new file, relative to the table.

        Raises:
            CorruptFileError: the content of a file does not match its name; nothing is archived.
        """


def up_to(time: str, commits: Iterable[ArchivedCommit]) -> list[ArchivedCommit]:
    """Commits by time, up to one of them; none where it is not among them (pure)."""
    found = sorted((commit for commit in commits if commit.time <= time), key=lambda commit: commit.time)
    return found if found and found[-1].time == time else []


def read_archived_commits(archive: Archive) -> Iterator[ArchivedCommit]:
    """Completed commits of the archive, file by file, newest file first.

    Raises:
        CorruptFileError: a file is damaged.
    """
    for commits in archive.read_files():
        yield from commits


def is_archived(archive: Archive, time: str) -> bool:
    """Whether a completed commit of that time left the active timeline."""
    return any(commit.time == time for commit in read_archived_commits(archive))
