"""A line in the log every few seconds of a long batch. It looks at nothing, so that nothing can hold it up."""

import structlog

from table import clock, threads

PROGRESS_S = 10.0

log = structlog.get_logger("hudistream.progress")


class Progress:
    """Says that a batch still runs, from `with` to its end.

    Args:
        table: address of the table.
        batch_id: Spark's id, or None.
        instant_time: of its commit.
    """

    def __init__(self, table: str, batch_id: int | None, instant_time: str) -> None:
        self._facts = {"table": table, "batch_id": batch_id, "instant_time": instant_time}
        self._ended = threads.make_signal()

    def __enter__(self) -> None:
        self._thread = threads.start_thread(self._tell, "hudistream-progress", daemon=True)

    def __exit__(self, *exc_info: object) -> None:
        self._ended.set()
        self._thread.join()

    def _tell(self) -> None:
        started_s = clock.monotonic_s()
        while not self._ended.wait(PROGRESS_S):
            log.info("batch_running", **self._facts, seconds=round(clock.monotonic_s() - started_s, 1))
