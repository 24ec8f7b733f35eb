"""The thread that renews a writer's signs of life, and does nothing else (rule 8 of docs/concepts/safety.md)."""

from table import clock, threads
from table.log import get_logger
from table.storage.interface import Storage
from table.transaction.heartbeat import WriterIdentity, delete_heartbeat, write_heartbeat
from table.transaction.signs import give_sign

log = get_logger("hudistream.lease")


class Keeper:
    """Touches a writer's signs of life, and the heartbeat of the instant that it is writing.

    Args:
        owner: the writer's identity.
        interval_ms: milliseconds between two renewals.

    Attributes:
        missed: number of failed renewals.
        shared_sign: owner of the sign that all members touch; None if the writer is not a member of a shared lease.
    """

    def __init__(self, storage: Storage, owner: str, interval_ms: int) -> None:
        self._storage, self._owner, self._interval_ms = storage, owner, interval_ms
        self.missed = 0
        self.shared_sign: str | None = None
        self._renewed_s = 0.0
        self._beating: tuple[str, WriterIdentity, str | None] | None = None
        self._stopped: threads.Signal | None = None
        self._thread: threads.RunningThread | None = None

    @property
    def silent_ms(self) -> float:
        """Milliseconds since the writer last gave a sign of life."""
        return (clock.monotonic_s() - self._renewed_s) * 1000

    def start(self) -> None:
        """Starts the thread, unless it runs."""
        if self._thread is None:
            self._stopped = stopped = threads.make_signal()
            self._thread = threads.start_thread(lambda: self._keep(stopped), "hudistream-lease", daemon=True)

    def stop(self) -> None:
        """Ends the thread, without waiting for it."""
        if self._stopped is not None:
            self._stopped.set()
        self._thread = self._stopped = None
        self.shared_sign = None

    def renew(self) -> None:
        """Gives a sign of life now.

        Raises:
            StorageError: the store fails.
        """
        started_s = clock.monotonic_s()
        give_sign(self._storage, self._owner)
        self._renewed_s = started_s
        if self.shared_sign is not None:
            give_sign(self._storage, self.shared_sign)

    def beat_for(self, instant_time: str | None, identity: WriterIdentity | None, sight: str | None) -> None:
        """See `Lease.beat_for`."""
        self._beating = None if instant_time is None or identity is None else (instant_time, identity, sight)

    def _keep(self, stopped: threads.Signal) -> None:
        while not stopped.wait(self._interval_ms / 1000):
            try:
                self.renew()
                beating = self._beating
                if beating is not None:
                    write_heartbeat(self._storage, *beating)
                    if self._beating != beating:
                        delete_heartbeat(self._storage, beating[0])  # the batch ended during the write
            except Exception as error:  # noqa: BLE001 whatever a backend raises, the next renewal may succeed
                self.missed += 1
                log.warning("lease_not_renewed", table=self._storage.base_uri, error=repr(error), missed=self.missed)
