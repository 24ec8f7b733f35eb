"""Takes the lock that several writers share; no other module does so (`guarded`).

Hudi's writers take the table's lock around three steps (TransactionManager, BaseHoodieWriteClient): the request of an
instant, the conflict check with the completion that follows from it, and the planning of a service with its request.
Hudi 1.0.2 chooses the instant's time while it holds the lock an earlier time; here both are one step. No lock is held
while data files are written or a plan is carried out.

The lock keeps writers of other engines out. Writers of hudistream do not depend on it. A single writer holds the table
by its lease (`table.transaction.lease`). Several writers take places in the commit order
(`table.transaction.commit_order`). If two processes want different ends of an instant, one object decides
(`table.timeline.end_record`). Services and operators' commands look at the timeline again once their plan is durable.
So no write of hudistream is lost if a lock expires while its holder is paused.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from table import threads
from table.hudi_table import HudiTable
from table.lock import NO_LOCK, HeldLock, Step, TableLock
from table.log import get_logger
from table.options.lock_settings import LockProvider, LockSettings
from table.storage.interface import Storage
from table.transaction.locks import SharedLock, make_lock

__all__ = ["HeldLock", "Step", "StepLock", "TableLock", "guarded", "lock_for"]

log = get_logger("hudistream.lock")


def guarded(table: HudiTable, step: Step) -> AbstractContextManager[HeldLock]:
    """Holds the table's lock for one step.

    Args:
        step: the step.

    Raises:
        CommitConflictError: other writers hold the lock for too long; nothing was done.
    """
    return table.lock.guarded(step)


class StepLock:
    """A lock by one of Hudi's lock providers, taken around each step.

    A step within a step of the same thread keeps the lock that the outer step took.

    Args:
        lock: the provider's lock.
        clock_skew_ms: see `table.lock.TableLock`.
    """

    def __init__(self, lock: SharedLock, clock_skew_ms: int = 0) -> None:
        self._lock, self.clock_skew_ms = lock, clock_skew_ms
        self._held: dict[object, HeldLock] = {}  # by thread

    @contextmanager
    def guarded(self, step: Step) -> Iterator[HeldLock]:
        """See `table.lock.TableLock`."""
        me = threads.current_thread()
        outer = self._held.get(me)
        if outer is not None:
            yield outer
            return
        with self._lock.hold() as held:
            log.debug("lock_taken", step=step.name.lower())
            self._held[me] = held
            try:
                yield held
            finally:
                del self._held[me]

    def close(self) -> None:
        """See `table.lock.TableLock`."""
        self._lock.close()


def lock_for(storage: Storage, settings: LockSettings) -> TableLock:
    """The lock that options ask for; none where they name no provider.

    Args:
        settings: the provider, and how long to wait for the lock.

    Raises:
        InvalidConfigError: the provider cannot keep the lock of this table.
    """
    if settings.provider is None:
        return NO_LOCK
    has_one_clock = settings.provider is LockProvider.IN_PROCESS
    return StepLock(make_lock(storage, settings), 0 if has_one_clock else settings.clock_skew_ms)
