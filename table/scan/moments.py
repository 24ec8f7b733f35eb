"""Times that users give (pure): what names no zone is in the table's."""

import re
from datetime import date, datetime, timezone


def moment_of(given: str | date | datetime, zone: str) -> datetime:
    """A time with its zone.

    Args:
        given: an ISO date or time, a date (its midnight), or a datetime.
        zone: the table's, ``UTC`` or ``LOCAL``, for what names none.

    Raises:
        ValueError: the text is no time.
    """
    moment = given if isinstance(given, datetime) else _parse_iso(given)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc) if zone == "UTC" else moment.astimezone()
    return moment


def _parse_iso(given: str | date) -> datetime:
    text = given.strip() if isinstance(given, str) else given.isoformat()
    # Python 3.10 does not parse Z, and parses only fractions of three or six digits
    text = re.sub(r"[zZ]$", "+00:00", text)
    text = re.sub(r"\.(\d{1,6})", lambda found: "." + found[1].ljust(6, "0"), text)
    return datetime.fromisoformat(text)
