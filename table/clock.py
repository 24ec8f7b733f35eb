"""The only source of time, of fresh ids and of strictly increasing instant times.

Nothing else in the project may ask for the time or for a random id (the linter enforces it), so a
test can say what the clock showed.

Instant times are ``yyyyMMddHHmmssSSS`` in the table's time zone (HoodieInstantTimeGenerator); tables
that we create use UTC.
"""

import random
import time
import uuid
from datetime import datetime, timedelta, timezone

from table.errors import InvalidConfigError

INSTANT_TIME_LENGTH = 17
MAX_CLOCK_SKEW_MS = 60_000


def now_ms() -> int:
    """Milliseconds since the epoch, by the system's clock."""
    return time.time_ns() // 1_000_000


def monotonic_s() -> float:
    """Seconds of a clock that never goes back; for durations."""
    return time.perf_counter()


def ms_since(started_s: float) -> float:
    """Milliseconds since `monotonic_s` said that."""
    return round((monotonic_s() - started_s) * 1000, 3)


def sleep_s(seconds: float) -> None:
    """Waits that many seconds."""
    time.sleep(seconds)


def fresh_uuid() -> str:
    """A random UUID as text."""
    return str(uuid.uuid4())


def fresh_number(below: int) -> int:
    """A random whole number of [0, below), as unlike others as the id that it is made of."""
    return uuid.UUID(fresh_uuid()).int % below


def jitter() -> float:
    """A random number of [0, 1): who meets another tries again after another while than the other."""
    return random.random()  # noqa: S311 no secret


def to_datetime(epoch_ms: int, zone: str = "UTC") -> datetime:
    """The moment in the table's zone: ``UTC``, or ``LOCAL`` for the zone of this machine."""
    moment = datetime.fromtimestamp(epoch_ms / 1000, tz=timezone.utc)
    return moment if zone == "UTC" else moment.astimezone()


def format_instant_time(epoch_ms: int, zone: str = "UTC") -> str:
    """Instant time of a moment.

    Args:
        epoch_ms: milliseconds since the epoch.
        zone: ``UTC`` or ``LOCAL`` (``hoodie.table.timeline.timezone``).

    Returns:
        17 digits, ``yyyyMMddHHmmssSSS``.
    """
    moment = to_datetime(epoch_ms, zone)
    return moment.strftime("%Y%m%d%H%M%S") + f"{epoch_ms % 1000:03d}"


def parse_instant_time(text: str, zone: str = "UTC") -> int:
    """Milliseconds since the epoch of an instant time of 14 or 17 digits (or longer, cut to 17).

    Raises:
        ValueError: when the text is no instant time.
    """
    moment = datetime.strptime(text[:14], "%Y%m%d%H%M%S")
    millis = int(text[14:17].ljust(3, "0")) if len(text) > 14 else 999
    aware = moment.replace(tzinfo=timezone.utc) if zone == "UTC" else moment.astimezone()
    return round((aware + timedelta(milliseconds=millis)).timestamp() * 1000)


def check_skew(last_instant_time: str, epoch_ms: int, zone: str = "UTC") -> None:
    """Refuses a timeline that is ahead of our clock by more than a minute.

    Writing all the same would give out instants of the future, and retention by hours and
    merge-on-read slices depend on instants being real times. In the hour that a local clock shows a second
    time, the timeline may be ahead by that hour: instants continue to increase when local time goes back.

    Args:
        last_instant_time: greatest instant time on the timeline; what is no time is passed over.
        epoch_ms: now.
        zone: the table's zone.

    Raises:
        InvalidConfigError: names the zone and the skew.
    """
    try:
        ahead_ms = parse_instant_time(last_instant_time, zone) - epoch_ms
    except ValueError:
        return
    if ahead_ms > MAX_CLOCK_SKEW_MS + _went_back_ms(epoch_ms, zone):
        raise InvalidConfigError(
            f"the newest instant {last_instant_time} is {ahead_ms / 1000:.0f} s ahead of this machine's "
            f"clock ({format_instant_time(epoch_ms, zone)}, zone {zone}): correct the clock, or the zone in "
            "hoodie.table.timeline.timezone, or wait until the time has passed"
        )


def _went_back_ms(epoch_ms: int, zone: str) -> int:
    """How far the local clock has gone back, while it shows times for the second time; 0 at all other moments."""
    # a local time that there is twice is read as the first of the two
    return epoch_ms - parse_instant_time(format_instant_time(epoch_ms, zone), zone)


def next_instant_time(last_instant_time: str | None, epoch_ms: int, zone: str = "UTC") -> str:
    """An instant time strictly greater than the last one of the timeline.

    Args:
        last_instant_time: greatest instant time on the timeline, in any state, or None.
        epoch_ms: now.
        zone: the table's zone.

    Returns:
        17 digits: now, or one millisecond after the last one where that is not less.

    Raises:
        InvalidConfigError: when the last instant lies in the future (see `check_skew`), or is no time at all and
            greater than every time.
    """
    now = format_instant_time(epoch_ms, zone)
    if last_instant_time is None:
        return now
    check_skew(last_instant_time, epoch_ms, zone)
    if now > last_instant_time[:INSTANT_TIME_LENGTH]:
        return now
    try:
        # arithmetic on the digits: as a moment of the zone it could be one that comes again
        after_ms = parse_instant_time(last_instant_time) + 1
    except ValueError as error:
        raise InvalidConfigError(
            f"the newest instant {last_instant_time} is no time, and no instant of now ({now}) comes after it: move "
            "its files out of .hoodie if they are not the table's"
        ) from error
    return format_instant_time(after_ms)
