"""Logs a line every few seconds while a batch runs.

The line needs no request to the storage or to Spark. It has the phase, the seconds since the batch began, and, once
the tasks are done, rows and files. Rows are not known while tasks write: the DataFrame API has no such figure that
works in both classic Spark and Spark Connect.
"""

import weakref
from collections.abc import Sequence

from table import clock, threads
from table.log import get_logger
from table.timeline.metadata.commit import WriteStat, total_rows

PROGRESS_S = 10.0

log = get_logger("hudistream.progress")


class Progress:
    """Logs that a batch still runs, inside a `with` block: phase ``write``, then ``commit``.

    Args:
        table: address of the table.
        batch_id: Spark's id, or None.
        instant_time: of its commit.
    """

    def __init__(self, table: str, batch_id: int | None, instant_time: str) -> None:
        self._facts: dict[str, object] = {"table": table, "batch_id": batch_id, "instant_time": instant_time}
        self._written: dict[str, object] = {"phase": "write"}
        self._ended = threads.make_signal()
        # if an interrupt comes after the thread starts and before the block, only this ends the thread
        weakref.finalize(self, self._ended.set)

    def __enter__(self) -> None:
        me, ended = weakref.ref(self), self._ended
        self._thread = threads.start_thread(lambda: _tell(me, ended), "hudistream-progress", daemon=True)

    def note_written(self, stats: Sequence[WriteStat]) -> None:
        """Notes that the tasks are done and that the commit follows.

        Args:
            stats: write stats of the files that the tasks wrote.
        """
        updated = sum(stat.num_update_writes for stat in stats)
        self._written = {"phase": "commit", "rows": total_rows(stats), "updated": updated, "files": len(stats)}

    def __exit__(self, *exc_info: object) -> None:
        self._ended.set()
        self._thread.join()

    def tell(self, seconds: float) -> None:
        """Logs one line.

        Args:
            seconds: how long the batch has run.
        """
        log.info("batch_running", **self._facts, **self._written, seconds=seconds)


def _tell(progress: "weakref.ref[Progress]", ended: threads.Signal) -> None:
    """Logs until the batch ends or the `Progress` object is gone: the thread does not keep it alive."""
    started_s = clock.monotonic_s()
    while not ended.wait(PROGRESS_S):
        found = progress()
        if found is None:
            return
        found.tell(round(clock.monotonic_s() - started_s, 1))
        del found
