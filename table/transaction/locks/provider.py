"""The interface of a table's lock, the same for all providers (pure)."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from table.options.lock_settings import LockProvider

CLOCK_DRIFT_MS = 500  # Hudi's bound for the difference between two machines' clocks (StorageBasedLockProvider)


@dataclass(frozen=True, slots=True)
class LockState:
    """The known state of a lock, for display.

    Attributes:
        provider: the provider of the lock.
        place: where the lock is kept.
        is_held: whether a writer holds it; an expired lock counts as free.
        holder: the writer that holds the lock or held it last; "" if the protocol does not say.
        since_ms: begin of the hold, in milliseconds since the epoch; None if the protocol does not say.
        until_ms: end of validity without a renewal, in milliseconds since the epoch; None: no end is known.
        note: further remarks.
    """

    provider: LockProvider
    place: str
    is_held: bool
    holder: str = ""
    since_ms: int | None = None
    until_ms: int | None = None
    note: str = ""


class HeldLock(Protocol):
    """A lock while it is held. It belongs to the thread that took it."""

    def check(self) -> None:
        """Checks that the lock is still ours. Call it just before a change that the lock protects becomes final.

        Raises:
            CommitConflictError: the lock has expired, or was taken over or broken: no change under it may become final.
            StorageError: the lock could not be checked; it must count as lost.
        """


class SharedLock(Protocol):
    """The lock of one table. It lives on the driver and is not pickled. Several threads may share one."""

    @property
    def is_shared_between_processes(self) -> bool:
        """Whether the lock excludes writers of other processes."""

    def hold(self) -> AbstractContextManager[HeldLock]:
        """Waits for the lock, holds it for the block, and releases it.

        A failed release is logged and raises no error, because the work under the lock is complete.

        Raises:
            CommitConflictError: other writers held it for too long; names the holder if known. Nothing was done.
            StorageError: the store that keeps the lock could not be asked. Nothing was done.
            BrokenInvariantError: this thread holds it already.
        """

    def describe(self) -> LockState | None:
        """The known state of the lock; None if the lock has left no trace.

        Raises:
            StorageError: the store that keeps the lock could not be asked.
        """

    def break_lock(self) -> LockState | None:
        """Takes the lock from its holder, if the protocol has a way to do it.

        The holder may still be working. A writer of hudistream finds out with its next `HeldLock.check`.

        Returns:
            The state of the broken lock; None if the lock was free.

        Raises:
            InvalidConfigError: the protocol has no way to do it; says what to do instead.
            CommitConflictError: the lock changed hands meanwhile; nothing was done.
            StorageError: the store that keeps it could not be asked.
        """

    def close(self) -> None:
        """Closes connections. Must not be called while the lock is held. The lock may be taken again afterwards."""
