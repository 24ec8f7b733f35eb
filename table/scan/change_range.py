"""Which commits a question for changes means (pure; IncrementalRelationV1 and V2).

A range begins after one time and ends with another one. They are times of requests in timeline layout 1, and times of
completion in layout 2 (`Timeline.visible_times`). A row belongs to the range when the commit that wrote it does:
``_hoodie_commit_time`` names the request of that commit.

In layout 1 a write that is pending may still complete with a time inside of the range. So a range ends before the first
pending write: what is read once is never read differently later (TimelineUtils.handleHollowCommitIfNeeded).
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
    """Commits of which the rows are wanted.

    Attributes:
        since: a time as in `Timeline.visible_times`; exclusive.
        until: a time as in `Timeline.visible_times`; inclusive.
        times: requests of the commits, where they cannot be told by comparing; None: since < request <= until.
    """

    since: str
    until: str
    times: frozenset[str] | None = None

    def restrict(self, predicate: Predicate | None) -> Predicate:
        """A condition on rows that also asks for a commit in the range.

        Args:
            predicate: what else is asked; None: nothing.
        """
        written = ds.field(COMMIT_TIME)
        inside: pc.Expression = (written > pa.scalar(self.since)) & (written <= pa.scalar(self.until))
        if self.times is not None:
            inside = written.isin(pa.array(sorted(self.times), pa.string()))
        if predicate is None:
            return Predicate(inside, frozenset({COMMIT_TIME}))
        return Predicate(predicate.expression & inside, predicate.columns | {COMMIT_TIME}, predicate.keys)

    def may_hold(self, found: FileSlice) -> bool:
        """Whether a slice can hold a row of the range: a base file holds no row that is younger than itself.

        In layout 2 the name of a log file says which commit wrote it. In layout 1 it names the base file, and so do
        those that came with an upgrade from it.
        """
        base = found.base_file
        if self.times is None:
            return bool(found.log_files) or (base is not None and base.instant_time > self.since)
        first = min(self.times, default=None)
        is_young = base is not None and first is not None and base.instant_time >= first
        named_after = self.times | ({base.instant_time} if base is not None else set())
        return is_young or any(log.base_instant_time in named_after for log in found.log_files)


def first_pending_write(timeline: Timeline) -> str | None:
    """Time of the first write that may complete with an earlier time than others; None without one.

    Compactions write no row anew.
    """
    if timeline.layout.completes_in_order:
        return None
    pending = timeline.pending_of(*WRITE_ACTIONS)
    return pending[0].time if pending else None


def newest_settled(timeline: Timeline) -> str | None:
    """Since when the newest completed write is visible before which no write is pending; None where there is none.

    A reader that has read up to here misses nothing later.
    """
    hole = first_pending_write(timeline)
    return max((seen for time, seen in timeline.visible_times.items() if hole is None or time < hole), default=None)


def choose_range(timeline: Timeline, since: str, until: str | None, asked: str) -> ChangeRange | None:
    """The range that a question means.

    Args:
        timeline: the active one.
        since: instant time.
        until: instant time; None: as far as everything is settled.
        asked: the question, for the error.

    Returns:
        None where no commit is settled yet.

    Raises:
        InvalidConfigError: the range ends before it begins, or a write that is pending would lie in it.
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
