"""Retired instants: what an archive takes, and what it gives back, whatever it is made of (HoodieArchivedTimeline)."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from table.timeline.instant import Instant
from table.timeline.metadata.commit import CommitMetadata


@dataclass(frozen=True)
class RetiredFile:
    """A file of an instant that leaves the active timeline.

    Attributes:
        instant: in the state of the file.
        data: the file's bytes.
        moved_at: when the instant came into that state, as an instant time.
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
        metadata: of a write: its files, and what it replaced; None for a service.
        undone: of a rollback: instants that it undid.
    """

    time: str
    metadata: CommitMetadata | None = None
    undone: tuple[str, ...] = ()


class Archive(Protocol):
    """The archive of one table."""

    @property
    def folder(self) -> str:
        """Where it is, relative to the table."""

    def read_files(self) -> Iterator[list[ArchivedCommit]]:
        """Completed commits of each file of the archive, newest file first, oldest commit first.

        Raises:
            CorruptFileError: a file is damaged.
        """

    def read_changes(self) -> Iterator[ArchivedChange]:
        """Completed instants, writes with their files; in memory is one file of the archive.

        Raises:
            CorruptFileError: a file is damaged.
        """

    def find_completions(self, times: Collection[str]) -> Mapping[str, str]:
        """When writes were completed, by the time of their request; what the archive does not know is left out.

        Args:
            times: of the requests.

        Raises:
            CorruptFileError: a file is damaged.
        """

    def find_passed(
        self, compactions: Collection[str], *, since: str = "", known: Mapping[str, str] | None = None
    ) -> Mapping[str, str]:
        """Delta commits that a compaction was requested behind, and that were completed after that request.

        Args:
            compactions: times of compactions that are not in the archive.
            since: what was retired before is known: instants of lesser times are not read.
            known: what was found then.

        Returns:
            Time of the request -> time of completion, `known` included. None where names of instants do not hold it.

        Raises:
            CorruptFileError: a file is damaged.
        """

    def append(self, files: Sequence[RetiredFile], batch: int) -> str:
        """Takes files of instants; they are in the archive when this returns.

        Args:
            files: by instant, lowest state first.
            batch: how many of them go together, where the archive has blocks.

        Returns:
            Path of the archive's new file, relative to the table.

        Raises:
            CorruptFileError: one of them does not hold what its name says; nothing is archived.
        """


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
