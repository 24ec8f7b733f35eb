"""The only source of time, of fresh ids and of strictly increasing instant times.

No other module of the project may ask for the time or for a random id (the linter enforces it), so a test can set the
time.

Instant times are ``yyyyMMddHHmmssSSS`` in the table's time zone (HoodieInstantTimeGenerator). Tables that this project
creates use UTC.
"""

import random
import time
import uuid
from dataclasses import dataclass
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
    """Milliseconds that have passed since `monotonic_s` returned `started_s`."""
    return round((monotonic_s() - started_s) * 1000, 3)


def sleep_s(seconds: float) -> None:
    """Waits `seconds` seconds."""
    time.sleep(seconds)


def fresh_uuid() -> str:
    """A random UUID as text."""
    return str(uuid.uuid4())


def named_uuid(name: str) -> str:
    """The UUID of a name as text: always the same (version 5)."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, name))


def fresh_number(below: int) -> int:
    """A random whole number in [0, below), made from a random UUID."""
    return uuid.UUID(fresh_uuid()).int % below


def jitter() -> float:
    """A random number in [0, 1), so that two writers that collide wait for different times before they try again."""
    return random.random()  # noqa: S311 no secret


def to_datetime(epoch_ms: int, zone: str = "UTC") -> datetime:
    """A moment as a datetime in the table's zone: ``UTC``, or ``LOCAL`` for the zone of this machine."""
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
    """Refuses a timeline that is ahead of this machine's clock by more than a minute.

    A writer that continued would create instants with future times, but retention by hours and the file slices of
    merge-on-read tables rely on real times. When local time goes back by an hour, instant times continue to increase.
    So the timeline may be ahead by that hour as long as the local clock shows the hour for the second time.

    Args:
        last_instant_time: greatest instant time on the timeline; a text that is not a time is ignored.
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
            "hoodie.table.timeline.timezone. If the clock of an earlier writer was ahead, wait until the time has "
            "passed, or read the rows (readers go on) and write them to a new table"
        )


def _went_back_ms(epoch_ms: int, zone: str) -> int:
    """Milliseconds that the local clock went back, while it shows the repeated times again; otherwise 0."""
    # a local time that occurs twice is parsed as the first of the two moments
    return epoch_ms - parse_instant_time(format_instant_time(epoch_ms, zone), zone)


def next_instant_time(last_instant_time: str | None, epoch_ms: int, zone: str = "UTC") -> str:
    """An instant time strictly greater than the last one of the timeline.

    Args:
        last_instant_time: greatest instant time on the timeline, in any state, or None.
        epoch_ms: now.
        zone: the table's zone.

    Returns:
        17 digits: now, or one millisecond after the last one if that is later.

    Raises:
        InvalidConfigError: when the last instant lies in the future (see `check_skew`), or is not a time and sorts
            after the present time.
    """
    now = format_instant_time(epoch_ms, zone)
    if last_instant_time is None:
        return now
    check_skew(last_instant_time, epoch_ms, zone)
    if now > last_instant_time[:INSTANT_TIME_LENGTH]:
        return now
    try:
        # computed in UTC: in the table's zone the same local time could occur twice
        after_ms = parse_instant_time(last_instant_time) + 1
    except ValueError as error:
        raise InvalidConfigError(
            f"the newest instant {last_instant_time} is no time, and no instant of now ({now}) comes after it: move "
            "its files out of .hoodie if they are not the table's"
        ) from error
    return format_instant_time(after_ms)


@dataclass(frozen=True)
class InstantClock:
    """Chooses the instant times of a table, for requests and for completions.

    A writer on another machine takes the lock next, and its clock may be slow by `skew_ms`. It must choose a greater
    time all the same. So a time is `skew_ms` old before the lock is free again (TimeGeneratorBase).

    Attributes:
        zone: the table's.
        skew_ms: how far the clocks of the table's writers are apart, in milliseconds; 0: all writers are ours.
    """

    zone: str = "UTC"
    skew_ms: int = 0

    def next_time(self, last_instant_time: str | None, later_ms: int = 0) -> str:
        """A time greater than the last one of the timeline, as `next_instant_time`.

        Args:
            last_instant_time: greatest instant time on the timeline, in any state, or None.
            later_ms: milliseconds to add to the present moment.

        Raises:
            InvalidConfigError: see `next_instant_time`.
        """
        time = next_instant_time(last_instant_time, now_ms() + later_ms, self.zone)
        self.let_pass(time)
        return time

    def let_pass(self, instant_time: str) -> None:
        """Waits until a chosen time is more than `skew_ms` old; called while the lock is held.

        A time that another clock put farther ahead is waited for no longer than clocks may be apart.
        """
        if not self.skew_ms:
            return
        left_ms = parse_instant_time(instant_time, self.zone) + self.skew_ms + 1 - now_ms()
        if left_ms > 0:
            sleep_s(min(left_ms, 2 * self.skew_ms) / 1000)
