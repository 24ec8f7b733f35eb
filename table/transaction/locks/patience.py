"""How a writer waits for a lock: attempts with pauses between them (LockManager), one thread at a time."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from table import clock, threads
from table.errors import BrokenInvariantError, HudiError, StorageError, TableHeldError
from table.log import get_logger
from table.options.lock_settings import LockSettings
from table.transaction.locks.provider import HeldLock, LockState

WARNS_AFTER_S = 30.0
_LOOKS_AGAIN_S = 1.0

log = get_logger("hudistream.lock")


class Grip(HeldLock, Protocol):
    """A lock that was taken and is to be released."""

    def release(self) -> None:
        """Releases the lock. A lost lock is not an error.

        Raises:
            StorageError: it is not known whether other writers can take the lock now.
        """


class Deadline:
    """A moment until which a thread waits.

    Args:
        wait_ms: milliseconds from now.
        long_wait: is called when the thread still waits.
    """

    def __init__(self, wait_ms: int, long_wait: "LongWait | None" = None) -> None:
        self._at_s = clock.monotonic_s() + wait_ms / 1000
        self._long_wait = long_wait

    def still_waits(self) -> None:
        """Tells operators, where the wait has become long. Whoever waits otherwise than by `pause` calls it."""
        if self._long_wait is not None:
            self._long_wait.tell()

    @property
    def left_s(self) -> float:
        """Seconds until the deadline; 0 or less: it has passed."""
        return self._at_s - clock.monotonic_s()

    def extend(self, wait_ms: int) -> None:
        """Moves the deadline `wait_ms` milliseconds further away."""
        self._at_s += wait_ms / 1000

    def pause(self, seconds: float) -> bool:
        """Waits `seconds` seconds, or until the deadline if it is earlier. Returns whether time is left."""
        if self.left_s <= 0:
            return False
        clock.sleep_s(min(seconds, self.left_s))
        self.still_waits()
        return self.left_s > 0


class LongWait:
    """Warns that a lock has been waited for since long: after 30 s, and each time the wait has doubled.

    Args:
        place: where the lock is kept.
        look: finds the state of the lock; None: its state is not known.
    """

    def __init__(self, place: str, look: Callable[[], LockState | None]) -> None:
        self._place, self._look = place, look
        self._started_s, self._next_s = clock.monotonic_s(), WARNS_AFTER_S

    def tell(self) -> None:
        """Warns if it is time. The state of the lock is looked at only then."""
        waited_s = clock.monotonic_s() - self._started_s
        if waited_s < self._next_s:
            return
        self._next_s *= 2
        state = self._look()
        since_ms = None if state is None else state.since_ms
        log.warning(
            "lock_waits_long",
            lock=self._place,
            waited_s=round(waited_s, 1),
            holder=describe_holder(state),
            created=None if since_ms is None else _moment(since_ms),
            hint="`hudistream lock show PATH` shows the holder; `hudistream lock break PATH` if its process is dead",
        )


class PatientLock(ABC):
    """Waits for a lock; the base class of all locks.

    Args:
        place: where the lock is kept, for messages.
        settings: how long to wait and how often.
    """

    def __init__(self, place: str, settings: LockSettings) -> None:
        self.place, self.settings = place, settings
        self._gate = Gate()

    @abstractmethod
    def _take(self, deadline: Deadline) -> Grip | None:
        """Tries once to take the lock. None: another writer holds it. A StorageError counts as a failed attempt."""

    @abstractmethod
    def describe(self) -> LockState | None:
        """As `table.transaction.locks.provider.SharedLock`."""

    def close(self) -> None:  # noqa: B027 most have no connection of their own
        """As `table.transaction.locks.provider.SharedLock`."""

    @contextmanager
    def hold(self) -> Iterator[HeldLock]:
        """As `table.transaction.locks.provider.SharedLock`."""
        started_s = clock.monotonic_s()
        self._pass_gate(started_s)
        try:
            grip = self._take_patiently(started_s, LongWait(self.place, self._look))
            log.debug("lock_taken", lock=self.place, waited_ms=clock.ms_since(started_s))
            try:
                yield grip
            finally:
                self._let_go(grip)
        finally:
            self._gate.leave()

    def _pass_gate(self, started_s: float) -> None:
        """Makes threads that share this object wait for each other, before one of them asks for the lock itself."""
        long_wait = LongWait(self.place, self._look)
        for number in range(self.settings.attempts_more + 1):
            if number:
                clock.sleep_s(self.settings.pause_ms / 1000)
            if self._gate.enter(self.place, Deadline(self.settings.wait_ms, long_wait)):
                return
        raise self._refusal("another thread of this process", started_s)

    def _take_patiently(self, started_s: float, long_wait: LongWait) -> Grip:
        failure: StorageError | None = None
        for number in range(self.settings.attempts_more + 1):
            if number:
                clock.sleep_s(self.settings.pause_ms / 1000)
                long_wait.tell()
            try:
                grip = self._take(Deadline(self.settings.wait_ms, long_wait))
            except StorageError as error:
                log.warning("lock_not_asked", lock=self.place, error=str(error), attempt=number + 1)
                failure = error
                continue
            failure = None
            if grip is not None:
                return grip
            log.info("lock_waited_for", lock=self.place, holder=self._holder(), attempt=number + 1)
        if failure is not None:
            raise StorageError(f"the lock {self.place} could not be taken: {failure}") from failure
        raise self._refusal(self._holder(), started_s)

    def _holder(self) -> str:
        return describe_holder(self._look())

    def _look(self) -> LockState | None:
        try:
            return self.describe()
        except HudiError:
            return None

    def _refusal(self, holder: str, started_s: float) -> TableHeldError:
        waited_s = clock.ms_since(started_s) / 1000
        return TableHeldError(
            f"the lock {self.place} is held by {holder}; waited {waited_s:.1f} s: run it again, wait longer "
            "(hoodie.write.lock.wait_time_ms, hoodie.write.lock.client.num_retries), or look at it with "
            "`hudistream lock show`"
        )

    def _let_go(self, grip: Grip) -> None:
        try:
            grip.release()
        except HudiError as error:
            log.warning("lock_not_released", lock=self.place, error=str(error))


def describe_holder(state: LockState | None) -> str:
    """The holder of a lock, in words."""
    if state is None or not (state.holder or state.note):
        return "an unknown writer"
    holder = state.holder or state.note
    if state.until_ms is not None:
        holder += f", valid until {_moment(state.until_ms)}"
    elif state.since_ms is not None:
        holder += f", since {_moment(state.since_ms)}"
    return holder


def _moment(at_ms: int) -> str:
    return clock.to_datetime(at_ms).isoformat(timespec="milliseconds")


class Gate:
    """Lets one thread in at a time; the others wait for a signal, at most until their deadlines."""

    def __init__(self) -> None:
        self._mutex = threads.make_lock()
        self._holder: object = None
        self._left: threads.Signal | None = None
        self.since_ms: int | None = None

    def enter(self, place: str, deadline: Deadline) -> bool:
        """Waits until the gate is free. Returns whether this thread has entered.

        Raises:
            BrokenInvariantError: this thread has entered already.
        """
        me = threads.current_thread()
        while True:
            with self._mutex:
                left = self._left
                if left is None:
                    self._holder, self._left, self.since_ms = me, threads.make_signal(), clock.now_ms()
                    return True
                if self._holder is me:
                    raise BrokenInvariantError(f"a thread takes the lock {place} for the second time")
            while not left.wait(min(max(0.0, deadline.left_s), _LOOKS_AGAIN_S)):
                if deadline.left_s <= 0:
                    return False
                deadline.still_waits()

    def leave(self) -> None:
        """Lets the next thread in."""
        with self._mutex:
            left, self._left, self._holder, self.since_ms = self._left, None, None, None
        if left is not None:
            left.set()
