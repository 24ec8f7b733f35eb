"""A line in the log every few seconds of a long batch.

The line says what this process knows without a request to the storage or to Spark: the phase and the seconds since
the batch was begun, and the rows and files once the tasks have written them. While they write, their number is not
known here: the DataFrame API has no such figure that classic Spark and Spark Connect share.
"""

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

    def __enter__(self) -> None:
        self._thread = threads.start_thread(self._tell, "hudistream-progress", daemon=True)

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

    def _tell(self) -> None:
        started_s = clock.monotonic_s()
        while not self._ended.wait(PROGRESS_S):
            seconds = round(clock.monotonic_s() - started_s, 1)
            log.info("batch_running", **self._facts, **self._written, seconds=seconds)
