"""A lock among the threads of this process, by the table's address (InProcessLockProvider)."""

import os

from table import threads
from table.errors import InvalidConfigError
from table.options.lock_settings import LockProvider, LockSettings
from table.transaction.locks.patience import Deadline, Gate, Grip, PatientLock
from table.transaction.locks.provider import LockState

_MUTEX = threads.make_lock()
_GATES: dict[str, Gate] = {}  # the table's address -> its gate


def _forget_gates() -> None:
    """The child of a fork has none of the threads that hold a gate."""
    global _MUTEX  # noqa: PLW0603 of this process
    _MUTEX = threads.make_lock()
    _GATES.clear()


os.register_at_fork(after_in_child=_forget_gates)


class _Inside:
    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def check(self) -> None:
        """Does nothing: no other thread can take the lock over."""

    def release(self) -> None:
        self._gate.leave()


class InProcessLock(PatientLock):
    """Excludes the threads of this process that write the same table, and no other process.

    Args:
        base_uri: the table's address.
        settings: how long to wait.
    """

    def __init__(self, base_uri: str, settings: LockSettings) -> None:
        super().__init__(f"of {base_uri!r} in this process", settings)
        with _MUTEX:
            self._of_table = _GATES.setdefault(base_uri.replace("s3a://", "s3://", 1), Gate())

    @property
    def is_shared_between_processes(self) -> bool:
        """False: the lock excludes only threads of this process."""
        return False

    def _take(self, deadline: Deadline) -> Grip | None:
        return _Inside(self._of_table) if self._of_table.enter(self.place, deadline) else None

    def describe(self) -> LockState | None:
        """Whether a thread of this process holds the lock, and since when."""
        since_ms = self._of_table.since_ms
        if since_ms is None:
            return None
        return LockState(LockProvider.IN_PROCESS, self.place, True, "a thread of this process", since_ms)

    def break_lock(self) -> LockState | None:
        """Refuses: this lock cannot be broken.

        Raises:
            InvalidConfigError: always.
        """
        raise InvalidConfigError(
            f"the lock {self.place} exists in the memory of the process that holds it: it ends with that process"
        )
