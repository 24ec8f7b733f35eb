"""The outcome of an attempt to complete a commit, as a value: the caller decides what follows (pure)."""

from dataclasses import dataclass

from table.errors import WriteConflictError
from table.timeline.instant import Instant
from table.timeline.metadata.commit import CommitMetadata


@dataclass(frozen=True)
class CompletedCommit:
    """A commit that is visible.

    Attributes:
        instant: completed.
        metadata: what its file holds.
    """

    instant: Instant
    metadata: CommitMetadata


@dataclass(frozen=True)
class LostCommit:
    """A commit that must not become visible, because of what other writers did meanwhile. Its instant is still pending.

    Attributes:
        why: for people.
        file_groups: (partition path, file id) of the file groups that another commit changed, too, if that is the only
            conflict; else empty.
    """

    why: str
    file_groups: frozenset[tuple[str, str]] = frozenset()

    def error(self) -> WriteConflictError:
        """The same as an error, for callers that cannot go on."""
        error = WriteConflictError(f"{self.why}; the batch is not visible and can be run again")
        error.file_groups = self.file_groups
        return error
