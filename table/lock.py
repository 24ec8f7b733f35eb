"""What a lock of a table is, and the lock of a table that no other engine writes."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from enum import Enum
from typing import Protocol


class Step(Enum):
    """What is done under the lock."""

    RECOVER = "what dead writers left is ended"
    BEGIN = "an instant is chosen and requested"
    COMPLETE = "the timeline is looked at, and an instant is completed because of what is there"
    SCHEDULE = "a service is planned and requested"


class HeldLock(Protocol):
    """A lock while it is held."""

    def check(self) -> None:
        """Makes sure that it is still held; called right before something becomes visible.

        Raises:
            CommitConflictError: it expired, or another writer took it over.
        """


class TableLock(Protocol):
    """A lock of one table. A thread that holds it may take it again: it keeps it until the outermost step ends.

    Attributes:
        clock_skew_ms: how far the clocks of those who take the lock are apart, in milliseconds.
    """

    clock_skew_ms: int

    def guarded(self, step: Step) -> AbstractContextManager[HeldLock]:
        """Holds the lock for one step.

        Args:
            step: which.

        Raises:
            CommitConflictError: others hold it for too long; nothing was done.
        """

    def close(self) -> None:
        """Ends what connects it with its keeper. A later step connects anew."""


class NoLock:
    """The lock where none is configured: the lease keeps other writers out, or the commit order keeps them apart."""

    clock_skew_ms = 0  # times of hudistream's own writers follow the timeline, not the clock alone

    @contextmanager
    def guarded(self, step: Step) -> Iterator[HeldLock]:  # noqa: ARG002 a lock would say whom it waits for
        """Holds nothing."""
        yield self

    def check(self) -> None:
        """Nothing can be lost."""

    def close(self) -> None:
        """There is no connection."""


NO_LOCK = NoLock()
