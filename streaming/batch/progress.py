"""Logs a line every few seconds while a batch runs, from its first second on.

The line needs no request to the storage or to Spark, and so it also comes while a store hangs. It has the phase, the
seconds since the batch began, and, once the tasks are done, rows and files. Rows are not known while tasks write: the
DataFrame API has no such figure that works in both classic Spark and Spark Connect.
"""

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from streaming.batch.failed_batch import BatchProgress
from table import clock, threads
from table.log import get_logger

PROGRESS_S = 10.0
ENDED = "ended"

log = get_logger("hudistream.progress")


@dataclass(frozen=True)
class RunningBatch:
    """A batch that takes long, for callbacks that have a method ``while_running``.

    Attributes:
        table: the table's address.
        batch_id: Spark's id, or None.
        phase: as in `BatchProgress`, or ``ended``: the batch is over, whatever came of it.
        seconds: since the batch began; 0 where it is over.
    """

    table: str
    batch_id: int | None
    phase: str
    seconds: float


Listener = Callable[[RunningBatch], None]


class Progress:
    """Logs that a batch still runs, inside a `with` block.

    Args:
        table: address of the table.
        batch_id: Spark's id, or None.
        batch: how far the batch is; the writer notes it there.
        listeners: are called with each line, and once more when a batch of which they heard is over.
    """

    def __init__(
        self, table: str, batch_id: int | None, batch: BatchProgress, listeners: Sequence[Listener] = ()
    ) -> None:
        self._table, self._batch_id, self._batch, self._listeners = table, batch_id, batch, listeners
        self._was_told = False
        self._ended = threads.make_signal()
        # if an interrupt comes after the thread starts and before the block, only this ends the thread
        weakref.finalize(self, self._ended.set)

    def __enter__(self) -> None:
        me, ended = weakref.ref(self), self._ended
        self._thread = threads.start_thread(lambda: _tell(me, ended), "hudistream-progress", daemon=True)

    def __exit__(self, *exc_info: object) -> None:
        self._ended.set()
        self._thread.join()
        if self._was_told:
            self._tell_listeners(ENDED, 0.0)

    def tell(self, seconds: float) -> None:
        """Logs one line.

        Args:
            seconds: how long the batch has run.
        """
        batch, self._was_told = self._batch, True
        begun = {} if batch.instant_time is None else {"instant_time": batch.instant_time}
        facts = {"phase": batch.phase, **batch.written}
        log.info("batch_running", table=self._table, batch_id=self._batch_id, **begun, **facts, seconds=seconds)
        self._tell_listeners(batch.phase, seconds)

    def _tell_listeners(self, phase: str, seconds: float) -> None:
        for listener in self._listeners:
            listener(RunningBatch(self._table, self._batch_id, phase, seconds))


def _tell(progress: "weakref.ref[Progress]", ended: threads.Signal) -> None:
    """Logs until the batch ends or the `Progress` object is gone: the thread does not keep it alive."""
    started_s = clock.monotonic_s()
    while not ended.wait(PROGRESS_S):
        found = progress()
        if found is None:
            return
        found.tell(round(clock.monotonic_s() - started_s, 1))
        del found
