"""The interface of a table's lock, the same for all providers (pure)."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from table.options.lock_settings import LockProvider

CLOCK_DRIFT_MS = 500  # Hudi's bound of how far two machines' clocks are apart (StorageBasedLockProvider)


@dataclass(frozen=True, slots=True)
class LockState:
    """What is known of a lock, for people.

    Attributes:
        provider: the provider of the lock.
        place: where it is kept.
        is_held: whether a writer holds it; an expired lock counts as free.
        holder: the writer that holds it or held it last, as far as the protocol says; "" where it does not.
        since_ms: since when, in milliseconds since the epoch; None where the protocol does not say.
        until_ms: until when it is valid unless it is renewed, in milliseconds since the epoch; None: no end is known.
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
        """Looks whether the lock is still ours. Call it just before a change that the lock protects becomes final.

        Raises:
            CommitConflictError: it has expired or was taken over or broken: nothing that it protects may be made final.
            StorageError: the lock could not be looked at; it must be taken for lost.
        """


class SharedLock(Protocol):
    """The lock of one table. It lives on the driver and is not pickled. Several threads may share one."""

    @property
    def is_shared_between_processes(self) -> bool:
        """Whether it keeps writers of other processes out."""

    def hold(self) -> AbstractContextManager[HeldLock]:
        """Waits for the lock, holds it for the block, and releases it.

        A release that fails is logged and raises nothing: what was done under the lock is done.

        Raises:
            CommitConflictError: other writers held it for too long; names the holder if known. Nothing was done.
            StorageError: the store that keeps the lock could not be asked. Nothing was done.
            BrokenInvariantError: this thread holds it already.
        """

    def describe(self) -> LockState | None:
        """What is known of the lock; None where there is no trace of one.

        Raises:
            StorageError: the store that keeps it could not be asked.
        """

    def break_lock(self) -> LockState | None:
        """Takes the lock from its holder, by the means that the protocol has for it.

        The holder may still be at work. A writer of hudistream finds out with its next `HeldLock.check`.

        Returns:
            The state of the broken lock; None if the lock was free.

        Raises:
            InvalidConfigError: the protocol has no means for it; says what to do instead.
            CommitConflictError: the lock changed hands meanwhile; nothing was done.
            StorageError: the store that keeps it could not be asked.
        """

    def close(self) -> None:
        """Ends connections, if there are any. Not while the lock is held. The lock may be taken again afterwards."""
