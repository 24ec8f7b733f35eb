"""Follows a table with limited batches, and up to a target instant; Python sources can do this from Spark 4.2 on."""

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from pyspark_hudistream.offsets import Offset, choose_end, make_offset
from pyspark_hudistream.stream_reader import ChangesReader
from table.scan.change_range import EARLIEST, newest_settled
from table.snapshot import Snapshot


class LimitedStreamReader(ChangesReader, SupportsTriggerAvailableNow):
    """Reads as many commits per batch as the options allow. ``availableNow`` reads the commits present at the start.

    Args:
        asked: the options.
        schema: the columns, with Spark's types.
    """

    _target: str | None = None

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 Spark's name
        """A limit of Spark's type that says to `latestOffset` whether the limits of the options apply."""
        if self._asked.max_bytes is not None:
            return ReadMaxBytes(self._asked.max_bytes)
        return ReadMaxFiles(self._asked.max_instants) if self._asked.max_instants is not None else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 Spark's name
        """Makes the query end with the instant that is the newest now."""
        self._target = newest_settled(self._open().load_timeline()) or ""

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 Spark's name
        """The instant with which the next batch ends; the start where there is nothing new.

        Args:
            start: where the batch begins.
            limit: of `getDefaultReadLimit`, or all that is available.
        """
        self._renew()
        snapshot = Snapshot.load(self._open())
        newest = newest_settled(snapshot.timeline) or ""
        if self._target is not None:
            newest = min(newest, self._target)
        if newest <= start["instant"]:
            return start
        feed = self._asked.feed
        # from the earliest on, all rows are inserts: the commits before may have been cleaned
        is_first = feed is not None and not feed.each_commit and start["instant"] == EARLIEST
        unlimited = isinstance(limit, ReadAllAvailable) or not self._asked.is_limited or is_first
        end = newest if unlimited else self._end(snapshot, start["instant"], newest)
        # an offset that Spark 4.0 or 4.1 wrote after a restart does not say where the stream began
        return make_offset(end, start.get("began_after", start["instant"]))

    def _end(self, snapshot: Snapshot, since: str, newest: str) -> str:
        """The end of the batch according to the limits."""
        asked = self._asked
        writes, visible = snapshot.timeline.writes_between(since, newest), snapshot.timeline.visible_times
        sizes = [0] * len(writes)
        if asked.max_bytes is not None:
            sizes = [sum(stat.file_size_bytes for stat in snapshot.commits.read(one).stats) for one in writes]
        times = [visible[one.time] for one in writes]
        return choose_end(list(zip(times, sizes, strict=True)), asked.max_instants, asked.max_bytes)
