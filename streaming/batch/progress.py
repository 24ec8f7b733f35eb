"""A line in the log every few seconds of a long batch.

The line says what this process knows without a request to the storage or to Spark: the phase and the seconds since
the batch was begun, and the rows and files once the tasks have written them. While they write, their number is not
known here: the DataFrame API has no such figure that classic Spark and Spark Connect share.
"""

import weakref
from collections.abc import Sequence

from table import clock, threads
from table.log import get_logger
from table.timeline.metadata.commit import WriteStat, total_rows

PROGRESS_S = 10.0

log = get_logger("hudistream.progress")


class Progress:
    """Says that a batch still runs, from `with` to its end: phase ``write``, then ``commit``.

    Args:
        table: address of the table.
        batch_id: Spark's id, or None.
        instant_time: of its commit.
    """

    def __init__(self, table: str, batch_id: int | None, instant_time: str) -> None:
        self._facts: dict[str, object] = {"table": table, "batch_id": batch_id, "instant_time": instant_time}
        self._written: dict[str, object] = {"phase": "write"}
        self._ended = threads.make_signal()
        # an interrupt may come between the start of the thread and the block: then nothing else ends the thread
        weakref.finalize(self, self._ended.set)

    def __enter__(self) -> None:
        me, ended = weakref.ref(self), self._ended
        self._thread = threads.start_thread(lambda: _tell(me, ended), "hudistream-progress", daemon=True)

    def note_written(self, stats: Sequence[WriteStat]) -> None:
        """The tasks are done; what follows is the commit.

        Args:
            stats: of the files that they wrote.
        """
        updated = sum(stat.num_update_writes for stat in stats)
        self._written = {"phase": "commit", "rows": total_rows(stats), "updated": updated, "files": len(stats)}

    def __exit__(self, *exc_info: object) -> None:
        self._ended.set()
        self._thread.join()

    def tell(self, seconds: float) -> None:
        """One line of the log.

        Args:
            seconds: for which the batch has run.
        """
        log.info("batch_running", **self._facts, **self._written, seconds=seconds)


def _tell(progress: "weakref.ref[Progress]", ended: threads.Signal) -> None:
    """Ends with the batch, and with the object: the thread does not keep it alive."""
    started_s = clock.monotonic_s()
    while not ended.wait(PROGRESS_S):
        found = progress()
        if found is None:
            return
        found.tell(round(clock.monotonic_s() - started_s, 1))
        del found
