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
        ended: a method of the sink, called once for each query that has ended. The watch does not keep the sink alive.
    """

    def __init__(self, ended: Callable[[], None]) -> None:
        self._ended = weakref.WeakMethod(ended)
        self._query_id: str | None = None

    def note_batch(self, spark: SparkSession, query_id: str | None) -> None:
        """Called for each batch: begins to watch its query, unless that is watched.

        Args:
            spark: the session of the batch.
            query_id: of its query; None outside a stream.
        """
        if query_id in (None, self._query_id) or is_connect(spark) or not is_seen_active(query_id):
            return
        self._query_id = query_id
        threads.start_thread(lambda: self._watch(query_id), "hudistream-query", daemon=True)

    def _watch(self, query_id: str | None) -> None:
        while self._query_id == query_id and self._ended() is not None:
            clock.sleep_s(_EVERY_S)
            try:
                if not is_query_over(query_id):
                    continue
            except Exception as error:  # noqa: BLE001 Spark is gone, and the process probably with it
                log.debug("query_not_watched", query_id=query_id, error=str(error))
                return
            ended = self._ended()
            if self._query_id == query_id and ended is not None:
                self._query_id = None
                ended()
            return
