"""Notices that the streaming query of a sink has ended: the sink then leaves its table to others."""

import weakref
from collections.abc import Callable

from pyspark.sql import SparkSession

from streaming.spark.environment import is_connect, is_query_over, is_seen_active
from table import clock, threads
from table.log import get_logger

_EVERY_S = 5.0

log = get_logger("hudistream.sink")


class QueryWatch:
    """Watches the query whose batches a sink writes, in a thread of its own.

    Under Spark Connect nothing is watched: there the process of the sink ends with the query.

    Args:
        leave: a method of the sink, called when a query has ended, and again later until it returns True. It gets a
            function that says whether the query is still over: it may have been started again. The watch does not keep
            the sink alive.
    """

    def __init__(self, leave: Callable[[Callable[[], bool]], bool]) -> None:
        self._leave = weakref.WeakMethod(leave)
        self._query_id: str | None = None
        self._lock = threads.make_lock()

    def note_batch(self, spark: SparkSession, query_id: str | None) -> None:
        """Called for each batch: begins to watch its query, unless that is watched.

        Args:
            spark: the session of the batch.
            query_id: of its query; None outside a stream.
        """
        if is_connect(spark) or not is_seen_active(query_id):
            return
        with self._lock:
            if query_id != self._query_id:
                self._query_id = query_id
                threads.start_thread(lambda: self._watch(query_id), "hudistream-query", daemon=True)

    def _watch(self, query_id: str | None) -> None:
        while self._is_watched(query_id):
            clock.sleep_s(_EVERY_S)
            try:
                leave = self._leave() if self._is_over(query_id) else None
                if leave is None or not leave(lambda: self._is_over(query_id)):
                    continue
                with self._lock:
                    if self._is_over(query_id):  # else a batch came meanwhile, and found that it is watched
                        self._query_id = None
            except Exception as error:  # noqa: BLE001 Spark is gone, and the process probably with it
                log.debug("query_not_watched", query_id=query_id, error=str(error))
                with self._lock:
                    if self._query_id == query_id:
                        self._query_id = None

    def _is_watched(self, query_id: str | None) -> bool:
        return self._query_id == query_id and self._leave() is not None

    def _is_over(self, query_id: str | None) -> bool:
        return self._query_id == query_id and is_query_over(query_id)
