"""Finds the snapshot, or the range of commits, for the times that a user gives.

Time travel compares the request time of a write in both timeline layouts, as Hudi does: for file slices in
AbstractTableFileSystemView.getLatestMergedFileSlicesBeforeOrOn, for replaced file groups in its
isFileGroupReplacedBeforeOrOn, for blocks of log files in BaseHoodieLogRecordReader. So a write that was requested
before a time and completed after it is part of the snapshot as of that time. In layout 2, Hudi leaves such a write out
if a compaction was requested between the two times, because Hudi looks for the log file in the compaction's slice.
hudistream does not: a later compaction changes no earlier snapshot.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime

from table import clock
from table.config.readable import check_can_read
from table.errors import InvalidConfigError, UnsupportedTableError
from table.hudi_table import HudiTable
from table.scan.change_range import EARLIEST, ChangeRange, choose_range
from table.scan.kept_times import is_kept_request_time
from table.scan.moments import moment_of
from table.snapshot import Snapshot
from table.timeline.history import HistoryArchive
from table.timeline.instant import Action
from table.timeline.kept_from import find_kept_from

AsOf = str | date | datetime

_INSTANT = re.compile(r"\d{14}(\d{3,})?")
_EARLIEST = re.compile(r"0{1,14}|earliest")  # the spellings in Hudi's incremental queries


def instant_time_of(as_of: AsOf, zone: str, name: str = "as_of") -> str:
    """Converts a user's time to an instant time.

    Args:
        as_of: an instant time of 14 digits (up to the end of that second) or of 17; an ISO date or time; a date; a
            datetime. A time without a zone is in the table's zone.
        zone: the table's, ``UTC`` or ``LOCAL``.
        name: of the argument, for the error.

    Raises:
        InvalidConfigError: the value is no time.
    """
    if isinstance(as_of, str) and _INSTANT.fullmatch(as_of.strip()):
        digits = as_of.strip()
        return digits + "999" if len(digits) == 14 else digits
    try:
        return clock.format_instant_time(round(moment_of(as_of, zone).timestamp() * 1000), zone)
    except (ValueError, OverflowError, AttributeError) as error:
        raise InvalidConfigError(
            f"{name}={as_of!r} is no time: give an instant time such as 20240229125959123, an ISO time such as "
            "2024-02-29T12:59:59, or a datetime"
        ) from error


def load_snapshot(table: HudiTable, as_of: AsOf | None = None) -> Snapshot:
    """The newest snapshot of a table, or an earlier one.

    Args:
        as_of: as `instant_time_of`; None means now.

    Raises:
        UnsupportedTableError: the table version is not supported.
        InvalidConfigError: the time lies before the first active commit, or in the future, or cleaning may have deleted
            files that were visible then. The error names the bounds.
    """
    check_can_read(table.config)
    snapshot = Snapshot.load(table)
    if as_of is None:
        return snapshot
    time = instant_time_of(as_of, table.config.timezone)
    _check_bounds(snapshot, _in_words("as_of", as_of, time), time)
    return Snapshot(table, snapshot.timeline, time, snapshot.commits)


def load_changes(
    table: HudiTable, since: AsOf, until: AsOf | None = None
) -> tuple[Snapshot, Snapshot, ChangeRange | None]:
    """The newest snapshot, the snapshot at the end of the range for a user's times, and the commits of the range.

    Args:
        since: as `instant_time_of`, exclusive; or ``earliest``, or zeros.
        until: as `instant_time_of`, inclusive; None: the last commit before which no write is pending.

    Returns:
        The range is None where the table has no such commit yet.

    Raises:
        InvalidConfigError: as `load_snapshot` for a time that cannot be read any more; or the range ends before it
            begins, lies in the future, or contains a pending write.
        UnsupportedTableError: rows of the table do not say which commit wrote them.
    """
    check_can_read(table.config)
    if not table.config.populate_meta_fields:
        raise UnsupportedTableError(
            "the table has hoodie.populate.meta.fields=false: its rows do not say which commit wrote them; ask for "
            "changes with deletes=True, which compares rows, or compare two scans with as_of"
        )
    snapshot, chosen, _, requests = _load_range(table, since, until)
    if chosen is None:
        return snapshot, snapshot, None
    at_end = snapshot.at(snapshot.timeline.visible_until(chosen.until))
    return snapshot, at_end, _within(requests, _with_times(at_end, chosen))


def load_range(table: HudiTable, since: AsOf, until: AsOf | None = None) -> tuple[Snapshot, ChangeRange | None, str]:
    """The newest snapshot, the range of commits for a user's times, and these times in words.

    The end of the range can be read; its start is not looked at (`check_kept`).

    Args:
        since: as in `load_changes`.
        until: as in `load_changes`.

    Returns:
        The range is None where the table has no such commit yet.

    Raises:
        UnsupportedTableError: the table version is not supported.
        InvalidConfigError: as `load_changes`; or a time is a request time from before the upgrade of the table, and no
            moment has exactly the commits that were requested until then.
    """
    snapshot, chosen, asked, requests = _load_range(table, since, until)
    if chosen is None:
        return snapshot, None, asked
    for request in (requests.since, requests.until):
        if request is not None:
            _check_moment(snapshot, asked, request)
    begin = chosen.since if requests.since is None else _end_of(snapshot, requests.since)
    return snapshot, replace(chosen, since=begin), asked


def _check_moment(snapshot: Snapshot, asked: str, request: str) -> None:
    """Refuses a request time if commits that were requested later were completed before all until then were."""
    end = _end_of(snapshot, request)
    others = [time for time, done in snapshot.timeline.visible_times.items() if time > request and done <= end]
    if others:
        raise InvalidConfigError(
            f"{asked}: {request} is a request time from before the upgrade of the table, and {others[0]} was completed "
            "before all commits until then: no snapshot lies between them. Read the table anew, and follow it from "
            "table.newest_instant on"
        )


def _load_range(
    table: HudiTable, since: AsOf, until: AsOf | None
) -> "tuple[Snapshot, ChangeRange | None, str, _KeptRequests]":
    check_can_read(table.config)
    zone = table.config.timezone
    snapshot = Snapshot.load(table)
    timeline = snapshot.timeline
    first = since_time(since, zone)
    last = instant_time_of(until, zone, "until") if until is not None else None
    asked = _in_words("since", since, first)
    if last is not None:
        assert until is not None
        asked = f"{asked}, {_in_words('until', until, last)}"
    requests = _kept_requests(snapshot, first, last, asked)
    if last is not None:
        last = _end_of(snapshot, last) if requests.until is not None else last
        _check_bounds(snapshot, asked, last, timeline.visible_until(last).committed_times)
    elif first != EARLIEST:
        _check_not_future(snapshot, asked, first)
    chosen = choose_range(timeline, first, last, asked)
    if chosen is not None and last is None:
        _check_bounds(snapshot, asked, chosen.until, timeline.visible_until(chosen.until).committed_times)
    return snapshot, chosen, asked, requests


def check_kept(snapshot: Snapshot, asked: str, times: Iterable[str]) -> None:
    """Refuses times whose snapshots cannot be read any more.

    Args:
        snapshot: the newest one.
        asked: the user's times, for the error.
        times: as in `Timeline.visible_times`.

    Raises:
        InvalidConfigError: names the first time that can be read.
    """
    timeline = snapshot.timeline
    kept = _Kept(snapshot)
    for time in times:
        _check_bounds(snapshot, asked, time, timeline.visible_until(time).committed_times, kept)


@dataclass(frozen=True)
class _KeptRequests:
    """The bounds of a range that are request times from before the upgrade of the table; None where one is not."""

    since: str | None
    until: str | None


def _kept_requests(snapshot: Snapshot, first: str, last: str | None, asked: str) -> _KeptRequests:
    since = first if first != EARLIEST and is_kept_request_time(snapshot, first, asked) else None
    until = last if last is not None and is_kept_request_time(snapshot, last, asked) else None
    return _KeptRequests(since, until)


def _end_of(snapshot: Snapshot, request: str) -> str:
    """When the writes that were requested until a time were all completed."""
    visible = snapshot.timeline.visible_times
    return max((done for time, done in visible.items() if time <= request), default=request)


def _within(requests: _KeptRequests, found: ChangeRange) -> ChangeRange:
    """The commits of a range whose request times are in the bounds, where the bounds are request times."""
    since, until = requests.since, requests.until
    if found.times is None or (since is None and until is None):
        return found
    after = (time for time in found.times if since is None or time > since)
    return replace(found, times=frozenset(time for time in after if until is None or time <= until))


def commits_between(snapshot: Snapshot, since: str, until: str) -> ChangeRange:
    """The commits of a range whose end may have been cleaned or archived; then later archived ones may be among them.

    Args:
        snapshot: the newest one.
        since: a time as in `Timeline.visible_times`; exclusive.
        until: inclusive.
    """
    return _with_times(snapshot, ChangeRange(since, until))


def _with_times(snapshot: Snapshot, chosen: ChangeRange) -> ChangeRange:
    """Adds the request times of the range's commits if the layout orders by completion. Reads the archive if needed."""
    if not snapshot.layout.completes_in_order or chosen.since == EARLIEST:
        return chosen
    times = frozenset(instant.time for instant in snapshot.timeline.writes_between(chosen.since, chosen.until))
    visible = snapshot.timeline.visible_times.values()
    archive = snapshot.table.archived_timeline
    if isinstance(archive, HistoryArchive) and chosen.since < min(visible, default=chosen.since):
        times |= archive.find_completed_after(chosen.since)
    return replace(chosen, times=times)


def since_time(since: AsOf, zone: str) -> str:
    """The start of a range, as an instant time, or `EARLIEST`."""
    if isinstance(since, str) and _EARLIEST.fullmatch(since.strip().lower()):
        return EARLIEST
    return instant_time_of(since, zone, "since")


def _in_words(name: str, given: AsOf, time: str) -> str:
    return f"{name}={given!r}" if str(given) == time else f"{name}={given!r} (instant {time})"


def _check_not_future(snapshot: Snapshot, asked: str, time: str) -> None:
    newest = max(snapshot.timeline.visible_times.values(), default="")
    latest = max(newest, clock.format_instant_time(clock.now_ms(), snapshot.config.timezone))
    if time > latest:
        raise InvalidConfigError(
            f"{asked} lies in the future: the newest commit is {newest or '(none)'}, and it is {latest} now"
        )


class _Kept:
    """Which commits' files are all still there after cleaning: cleans are read once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._first: tuple[str | None] | None = None

    def first(self) -> str | None:
        """The first such commit; None where no clean has run."""
        if self._first is None:
            timeline = self._snapshot.timeline
            found = find_kept_from(self._snapshot.storage, timeline)
            # the newest snapshot is whole: a restore may have undone the commit from which cleaning kept everything
            self._first = (None if found is None else min(found, max(timeline.committed_times)),)
        return self._first[0]


def _check_bounds(
    snapshot: Snapshot,
    asked: str,
    time: str,
    committed: frozenset[str] | None = None,
    known: _Kept | None = None,
) -> None:
    """Refuses a time whose snapshot does not exist any more, or not yet.

    Args:
        asked: the user's times, for the error.
        time: the instant time to check.
        committed: request times of the writes visible then; None: of the writes requested up to that time.
        known: what is known of cleaning, for callers that check several times.
    """
    timeline = snapshot.timeline
    first, visible = timeline.first_active_time, timeline.visible_times
    if first is None:
        raise InvalidConfigError(f"{asked}: the table has no commit yet")
    _check_not_future(snapshot, asked, time)
    newest = max(timeline.committed_times)
    if committed is not None:
        first, newest = min(visible.values()), max(visible.values())
    if time < first:
        raise InvalidConfigError(
            f"{asked} lies before the first active commit: ask for a time from {first} to {newest}; the table began "
            "then, or earlier commits were archived, and their files may have been cleaned"
        )
    seen = max(commit for commit in committed or timeline.committed_times if commit <= time)
    kept = (known or _Kept(snapshot)).first()
    if kept is not None and seen < kept and timeline.find(seen, Action.SAVEPOINT) is None:
        raise InvalidConfigError(
            f"{asked}: files that were visible after commit {seen} may have been cleaned; ask for a time from "
            f"{kept if committed is None else visible.get(kept, kept)} to {newest}, or for a savepoint"
        )
