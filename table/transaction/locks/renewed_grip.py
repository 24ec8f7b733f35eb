"""A held lock that expires unless it is renewed."""

from abc import ABC, abstractmethod
from collections.abc import Callable

from table import clock, threads
from table.errors import HudiError, StorageError, TableHeldError
from table.log import get_logger
from table.transaction.locks.patience import describe_holder
from table.transaction.locks.provider import CLOCK_DRIFT_MS, LockState

_RELEASES = 3
_RELEASES_AGAIN_S = 0.2

log = get_logger("hudistream.lock")


class RenewedGrip(ABC):
    """A held lock that its own thread renews. It is trusted for its validity, less the bound of clock drift.

    Args:
        place: where the lock is kept, for messages.
        describe: gives the state of the lock, for messages.
        validity_ms: milliseconds that the lock lasts after a renewal.
        renewal_s: seconds between two renewals.
    """

    def __init__(
        self, place: str, describe: Callable[[], LockState | None], validity_ms: int, renewal_s: float
    ) -> None:
        self._place, self._describe = place, describe
        self._validity_ms, self._renewal_s = validity_ms, renewal_s
        self._trusted_until_s = 0.0
        self._is_lost = False
        self._mutex = threads.make_lock()
        self._stopped = threads.make_signal()

    @abstractmethod
    def _write_renewal(self) -> bool:
        """Writes a new validity. Returns False if another writer has the lock.

        Raises:
            StorageError: the validity was not written, as far as is known.
        """

    @abstractmethod
    def _write_release(self) -> bool:
        """Writes that the lock is free. Returns and raises as `_write_renewal`."""

    def _has_ended(self) -> bool:
        """Whether the last written validity has ended, by the clock that other writers use."""
        return False

    def start(self) -> None:
        """Starts the thread that renews the lock."""
        threads.start_thread(self._keep, "hudistream-lock", daemon=True)

    def _keep(self) -> None:
        while not self._stopped.wait(self._renewal_s):
            try:
                with self._mutex:
                    if self._stopped.is_set() or not self._renew():
                        return
            except Exception as error:  # noqa: BLE001 whatever a backend raises, the next renewal may succeed
                log.warning("lock_not_renewed", lock=self._place, error=repr(error))

    def renew(self) -> bool:
        """Begins a new validity. Returns False if another writer has the lock.

        Raises:
            StorageError: the validity was not written, as far as is known.
        """
        with self._mutex:
            return self._renew()

    def _renew(self) -> bool:
        started_s = clock.monotonic_s()
        if not self._write_renewal():
            self._is_lost = True
            return False
        # counted from the time before the request, by a clock that never goes back
        self._trusted_until_s = started_s + (self._validity_ms - CLOCK_DRIFT_MS) / 1000
        return True

    def check(self) -> None:
        """Renews the lock, so that the caller has a whole validity left.

        Raises:
            CommitConflictError: the lock was taken over, or its validity has passed.
            StorageError: the lock was not renewed, as far as is known.
        """
        with self._mutex:
            if self._is_lost or not self._renew():
                raise TableHeldError(
                    f"the lock {self._place} is not held any more: its record is that of {self._holder()}; run it again"
                )
            if self._has_ended() or clock.monotonic_s() >= self._trusted_until_s:
                raise TableHeldError(
                    f"renewing the lock {self._place} took longer than it is valid ({self._validity_ms / 1000:g} s): "
                    "run it again, or let locks be valid for longer"
                )

    def _holder(self) -> str:
        try:
            return describe_holder(self._describe())
        except HudiError:
            return "an unknown writer"

    def release(self) -> None:
        """Writes that the lock is free.

        Raises:
            StorageError: the release could not be written: other writers wait until the validity has passed.
        """
        self._stopped.set()
        with self._mutex:
            if self._is_lost:
                return
            for number in range(_RELEASES):
                if number:
                    clock.sleep_s(_RELEASES_AGAIN_S)
                try:
                    if not self._write_release():
                        log.warning("lock_was_taken_over", lock=self._place)
                    return
                except StorageError:
                    if number + 1 == _RELEASES:
                        raise
