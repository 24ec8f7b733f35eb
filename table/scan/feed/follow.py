"""Follows a table: one change feed after the other, without a gap and without an overlap."""

from collections.abc import Iterator
from dataclasses import replace

from table import clock
from table.errors import InvalidConfigError
from table.scan.as_of import AsOf, load_range
from table.scan.change_range import EARLIEST
from table.scan.feed.feed import ChangeFeed
from table.scan.feed.steps import changes_rows
from table.scan.pinned import HeldPin, pin_moment
from table.snapshot import Snapshot
from table.timeline.commit_cache import CommitCache


def follow(feed: ChangeFeed, wait_s: float | None, most_commits: int | None) -> Iterator[ChangeFeed]:
    """The changes of a table as they come.

    Each feed has a range of its own: it begins where the one before it ended. Compactions and clusterings alone make
    none. Cleaning keeps the rows before the next change as long as the caller reads on.

    Args:
        feed: what is asked for; its start is where to begin.
        wait_s: seconds between two looks at the table; None: ends where there is nothing new.
        most_commits: most commits of a feed that change rows; None means all that are there. The first feed from the
            earliest commit on has all rows that are there, unless each commit is asked for.

    Raises:
        InvalidConfigError: an argument does not fit. While it runs, errors as those of `ChangeFeed.to_arrow`.
    """
    if wait_s is not None and not wait_s > 0:
        raise InvalidConfigError(f"wait_s={wait_s!r}: give a number of seconds above 0, or None to end when caught up")
    is_whole = isinstance(most_commits, int) and not isinstance(most_commits, bool)
    if most_commits is not None and not (is_whole and most_commits >= 1):
        raise InvalidConfigError(f"most_commits={most_commits!r}: give a whole number, 1 or more, or None")
    return _follow(feed, wait_s, most_commits)


def _follow(feed: ChangeFeed, wait_s: float | None, most_commits: int | None) -> Iterator[ChangeFeed]:
    commits = CommitCache(feed.table.storage)
    pin = HeldPin(feed.table.storage)
    start: AsOf = feed.since
    try:
        while True:
            snapshot, chosen, _ = load_range(feed.table, start)
            found = None
            if chosen is not None:
                start = chosen.since
                known = Snapshot(feed.table, snapshot.timeline, commits=commits)
                found = _end_of_next(known, chosen.since, chosen.until, feed, most_commits)
            if found is not None:
                yield replace(feed, since=start, until=found)
                start = found
                pin, old = pin_moment(feed.table, snapshot.timeline, found, feed.pin_s), pin
                old.release()
            elif wait_s is None:
                return
            else:
                pin.renew()
                clock.sleep_s(wait_s)
    finally:
        pin.release()


def _end_of_next(snapshot: Snapshot, since: str, newest: str, feed: ChangeFeed, most_commits: int | None) -> str | None:
    """The end of the next feed; None where no commit has changed rows."""
    timeline = snapshot.timeline
    writes = timeline.writes_between(since, newest)
    if since == EARLIEST and not feed.choices.each_commit:
        return newest if writes else None  # every row that is there is an insert
    found = 0
    for write in writes:
        found += changes_rows(snapshot.commits.read(write))
        if most_commits is not None and found == most_commits:
            return timeline.visible_times[write.time]
    return newest if found else None
