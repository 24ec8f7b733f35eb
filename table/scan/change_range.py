"""The range of commits of an incremental query (pure; IncrementalRelationV1 and V2).

A range begins after one time and ends with another time. They are request times in timeline layout 1, and completion
times in layout 2 (`Timeline.visible_times`). A row belongs to the range if the commit that wrote it does:
``_hoodie_commit_time`` is the request time of that commit.

In layout 1, a pending write may still complete with a time inside the range. So a range ends before the first pending
write, and reading the same range later gives the same commits (TimelineUtils.handleHollowCommitIfNeeded).
"""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from table.errors import InvalidConfigError
from table.scan.predicate import Predicate
from table.schema.avro_schema import COMMIT_TIME
from table.timeline.instant import WRITE_ACTIONS
from table.timeline.timeline import Timeline
from table.view.file_group import FileSlice

EARLIEST = "00000000000000000"  # before every instant


@dataclass(frozen=True)
class ChangeRange:
    """The commits whose rows are wanted.

    Attributes:
        since: a time as in `Timeline.visible_times`; exclusive.
        until: a time as in `Timeline.visible_times`; inclusive.
        times: request times of the commits, where comparing is not enough; None: since < request time <= until.
    """

    since: str
    until: str
    times: frozenset[str] | None = None

    def restrict(self, predicate: Predicate | None) -> Predicate:
        """Adds the range to a condition on rows.

        Args:
            predicate: the condition; None: there is none.
        """
        written = ds.field(COMMIT_TIME)
        inside: pc.Expression = (written > pa.scalar(self.since)) & (written <= pa.scalar(self.until))
        if self.times is not None:
            inside = written.isin(pa.array(sorted(self.times), pa.string()))
        if predicate is None:
            return Predicate(inside, frozenset({COMMIT_TIME}))
        return Predicate(predicate.expression & inside, predicate.columns | {COMMIT_TIME}, predicate.keys)

    def may_hold(self, found: FileSlice) -> bool:
        """Whether a slice can hold a row of the range. A base file holds no row of a later commit.

        In layout 2, the name of a log file contains the commit that wrote it. In layout 1, it contains the base file's
        instant, and so do log files that were written before an upgrade to layout 2.
        """
        base = found.base_file
        if self.times is None:
            return bool(found.log_files) or (base is not None and base.instant_time > self.since)
        first = min(self.times, default=None)
        is_young = base is not None and first is not None and base.instant_time >= first
        named_after = self.times | ({base.instant_time} if base is not None else set())
        return is_young or any(log.base_instant_time in named_after for log in found.log_files)


def first_pending_write(timeline: Timeline) -> str | None:
    """Time of the first pending write, which may yet complete with an earlier time than completed writes.

    None where there is none, and in timeline layout 2, whose times of completion increase. Compactions are ignored:
    they change no rows.
    """
    if timeline.layout.completes_in_order:
        return None
    pending = timeline.pending_of(*WRITE_ACTIONS)
    return pending[0].time if pending else None


def newest_settled(timeline: Timeline) -> str | None:
    """The visible time of the newest completed write before which no write is pending; None where there is none.

    A reader that has read up to this time misses no commit later.
    """
    hole = first_pending_write(timeline)
    return max((seen for time, seen in timeline.visible_times.items() if hole is None or time < hole), default=None)


def choose_range(timeline: Timeline, since: str, until: str | None, asked: str) -> ChangeRange | None:
    """Chooses the range for an incremental query.

    Args:
        timeline: the active one.
        since: instant time.
        until: instant time; None: up to `newest_settled`.
        asked: the user's times, for the error.

    Returns:
        None where `newest_settled` is None.

    Raises:
        InvalidConfigError: the range ends before it begins, or a pending write would lie in it.
    """
    settled = newest_settled(timeline)
    if until is None:
        return ChangeRange(since, max(since, settled)) if settled is not None else None
    if until < since:
        raise InvalidConfigError(f"{asked}: the range ends before it begins; since is exclusive, until is inclusive")
    hole = first_pending_write(timeline)
    if hole is not None and hole <= until:
        way = f"ask for changes until {settled}, or leave until out" if settled is not None else "ask again later"
        raise InvalidConfigError(
            f"{asked}: the write {hole} is not completed, and its rows would belong to the range: {way}. The next "
            "writer rolls back what a dead one left"
        )
    return ChangeRange(since, until)


def range_of_commit(timeline: Timeline, time: str) -> tuple[str, str] | None:
    """The times between which a commit of the active timeline became visible, and no other one (pure).

    Args:
        timeline: of the table.
        time: request time of the commit.

    Returns:
        The first is exclusive, as in `ChangeRange`. None: there is no such commit.
    """
    times = timeline.visible_times
    visible = times.get(time)
    if visible is None:
        return None
    # a time of a commit: between two, another one may have been under way that was undone since
    before = max((at for at in times.values() if at < visible), default=None)
    return before or str(int(visible) - 1).zfill(len(visible)), visible
