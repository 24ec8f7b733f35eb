"""Deletes the markers of a completed commit: few on a disk at once, others in a thread beside the next batch.

Markers of a completed instant have no effect: its fence is up, and its commit says which files belong to it. If a
process dies before it deletes them, the next writer deletes them when it begins (`table.services.rollback.rollback`).
"""

from table import threads
from table.errors import HudiError
from table.log import get_logger
from table.storage.interface import Storage
from table.timeline.metadata.commit import WriteStat
from table.transaction.commit import clean_up_commit
from table.transaction.heartbeat import delete_heartbeat

FEW_FILES = 64  # their markers are deleted in less time than a thread is worth

log = get_logger("hudistream.sink")


class MarkerCleanup:
    """Deletes the markers of one commit after another, in a thread where there are many."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._time = ""
        self._thread: threads.RunningThread | None = None

    @property
    def under_way(self) -> frozenset[str]:
        """The instant whose markers the thread deletes right now; the rest of this process leaves them alone."""
        return frozenset((self._time,)) if self._thread is not None and self._thread.is_alive() else frozenset()

    def run(self, instant_time: str, stats: tuple[WriteStat, ...]) -> None:
        """Cleans up after a commit. A thread deletes the markers of a large commit, and those on an object store.

        Args:
            instant_time: the commit, completed.
            stats: what it wrote.

        Raises:
            StorageError: the store fails. A failure in the thread is logged, and the next batch deletes the rest.
        """
        is_near = self._storage.calls_at_once == 1
        if is_near and len(stats) <= FEW_FILES:
            clean_up_commit(self._storage, instant_time, stats)
            return
        if is_near:
            delete_heartbeat(self._storage, instant_time)
        self.wait()
        self._time = instant_time
        # not a daemon: the interpreter waits until it is done
        self._thread = threads.start_thread(lambda: self._clean_up(instant_time, stats), "hudistream-markers")

    def _clean_up(self, instant_time: str, stats: tuple[WriteStat, ...]) -> None:
        try:
            clean_up_commit(self._storage, instant_time, stats)
        except HudiError as error:
            log.warning("upkeep_failed", table=self._storage.base_uri, instant_time=instant_time, error=str(error))

    def wait(self) -> None:
        """Waits for the thread, if it runs."""
        if self._thread is not None:
            self._thread.join()
