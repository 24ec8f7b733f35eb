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
        metadata: content of its completed file.
    """

    instant: Instant
    metadata: CommitMetadata


@dataclass(frozen=True)
class LostCommit:
    """A commit that must not become visible, because of changes by other writers. Its instant is still pending.

    Attributes:
        why: the conflict in words, for the error message.
        file_groups: (partition path, file id) of the file groups that another commit changed as well, if that is the
            only conflict; else empty.
        is_of_clustering: whether only clusterings are in the way, completed or planned.
    """

    why: str
    file_groups: frozenset[tuple[str, str]] = frozenset()
    is_of_clustering: bool = False

    def error(self) -> WriteConflictError:
        """This outcome as an error, for callers that cannot continue."""
        error = WriteConflictError(f"{self.why}; the batch is not visible and can be run again")
        error.file_groups = self.file_groups
        return error
