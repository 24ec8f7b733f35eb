"""Which snapshot a user means who names a time."""

import re
from datetime import date, datetime, timezone

from table import clock
from table.errors import InvalidConfigError
from table.hudi_table import HudiTable
from table.snapshot import Snapshot
from table.timeline.active_timeline import find_instant
from table.timeline.instant import Action
from table.timeline.metadata.clean import decode_clean_metadata
from table.timeline.timeline import Timeline

AsOf = str | date | datetime

_INSTANT = re.compile(r"\d{14}(\d{3,})?")


def instant_time_of(as_of: AsOf, zone: str) -> str:
    """The instant time that a user's time stands for.

    Args:
        as_of: an instant time of 14 digits (the whole second is meant) or of 17; an ISO date or time; a date; a
            datetime. What names no zone is in the table's.
        zone: the table's, ``UTC`` or ``LOCAL``.

    Raises:
        InvalidConfigError: it is no time.
    """
    if isinstance(as_of, str) and _INSTANT.fullmatch(as_of.strip()):
        digits = as_of.strip()
        return digits + "999" if len(digits) == 14 else digits
    moment = as_of if isinstance(as_of, datetime) else _parse_iso(as_of)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc) if zone == "UTC" else moment.astimezone()
    return clock.format_instant_time(round(moment.timestamp() * 1000), zone)


def _parse_iso(as_of: str | date) -> datetime:
    text = as_of.strip() if isinstance(as_of, str) else as_of.isoformat()
    # Python 3.10 reads neither Z nor other fractions than of three and six digits
    text = re.sub(r"[zZ]$", "+00:00", text)
    text = re.sub(r"\.(\d{1,6})", lambda found: "." + found[1].ljust(6, "0"), text)
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidConfigError(
            f"as_of={as_of!r} is no time: give an instant time such as 20240229125959123, an ISO time such as "
            "2024-02-29T12:59:59, or a datetime"
        ) from error


def load_snapshot(table: HudiTable, as_of: AsOf | None = None) -> Snapshot:
    """The newest snapshot of a table, or an earlier one.

    Args:
        table: the table.
        as_of: as `instant_time_of`; None means now.

    Raises:
        InvalidConfigError: the time lies before the first active commit, or in the future, or cleaning may have deleted
            files that were visible then. The error names the bounds.
    """
    timeline = table.load_timeline()
    if as_of is None:
        return Snapshot(table, timeline)
    time = instant_time_of(as_of, table.config.timezone)
    _check_bounds(table, timeline, as_of, time)
    return Snapshot(table, timeline, time)


def _check_bounds(table: HudiTable, timeline: Timeline, as_of: AsOf, time: str) -> None:
    asked = f"as_of={as_of!r}" if str(as_of) == time else f"as_of={as_of!r} (instant {time})"
    first = timeline.first_active_time
    if first is None:
        raise InvalidConfigError(f"{asked}: the table has no commit yet")
    newest = max(timeline.committed_times)
    latest = max(newest, clock.format_instant_time(clock.now_ms(), table.config.timezone))
    if time > latest:
        raise InvalidConfigError(f"{asked} lies in the future: the newest commit is {newest}, and it is {latest} now")
    if time < first:
        raise InvalidConfigError(
            f"{asked} lies before the first active commit: ask for a time from {first} to {newest}; earlier "
            "commits were archived, and their files may have been cleaned"
        )
    seen = max(commit for commit in timeline.committed_times if commit <= time)
    kept = _earliest_kept(table, timeline, newest)
    if kept is not None and seen < kept and timeline.find(seen, Action.SAVEPOINT) is None:
        raise InvalidConfigError(
            f"{asked}: files that were visible after commit {seen} may have been cleaned; ask for a time from {kept} "
            f"to {newest}, or for a savepoint"
        )


def _earliest_kept(table: HudiTable, timeline: Timeline, newest: str) -> str | None:
    """The first commit of which cleaning left every file; None where nothing was cleaned."""
    cleans = timeline.completed_of(Action.CLEAN)
    data = find_instant(table.storage, cleans[-1]) if cleans else None
    if data is None:
        return None
    done = decode_clean_metadata(data, cleans[-1].file_name)
    return done.plan.earliest[0] if done.plan.earliest is not None else newest
