import time
from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from table import clock
from table.errors import InvalidConfigError

NOON = 1_795_262_400_123  # 2026-11-21 12:00:00.123 UTC


def test_instant_time_of_a_moment():
    assert clock.format_instant_time(NOON, "UTC") == "20261121120000123"
    assert clock.format_instant_time(NOON, "LOCAL") == "20261121070000123"  # the tests run in New York


@given(st.integers(0, 4_000_000_000_000), st.sampled_from(["UTC"]))
def test_instant_times_round_trip(moment, zone):
    assert clock.parse_instant_time(clock.format_instant_time(moment, zone), zone) == moment


def test_seconds_only_count_as_their_last_millisecond():
    assert clock.parse_instant_time("20261121120000") == NOON - 123 + 999


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (None, "20261121120000123"),
        ("20261121120000122", "20261121120000123"),
        ("20261121120000123", "20261121120000124"),
        ("20261121120000999", "20261121120001000"),
        ("20261121120030000", "20261121120030001"),
        ("20261121120000123456", "20261121120000124"),  # a metadata table's longer ones
    ],
)
def test_next_instant_is_greater_than_the_last(last, expected):
    assert clock.next_instant_time(last, NOON) == expected


def test_an_instant_from_the_future_is_refused_with_zone_and_skew():
    with pytest.raises(InvalidConfigError, match=r"61 s ahead.*zone UTC"):
        clock.next_instant_time("20261121120101123", NOON)


SECOND, MINUTE, HOUR = 1000, 60_000, 3_600_000
# in Berlin the clocks go back from three to two, in Lord Howe from two to half past one
BACK = {
    "Europe/Berlin": int(datetime(2026, 10, 25, 1, tzinfo=timezone.utc).timestamp()) * 1000,
    "Australia/Lord_Howe": int(datetime(2026, 4, 4, 15, tzinfo=timezone.utc).timestamp()) * 1000,
}


@pytest.fixture
def local(monkeypatch):
    def use(zone):
        monkeypatch.setenv("TZ", zone)
        time.tzset()

    yield use
    monkeypatch.undo()
    time.tzset()


def test_the_next_instant_takes_no_time_when_local_time_went_back(local, monkeypatch):
    local("Europe/Berlin")
    asked = []
    spelled = clock.format_instant_time
    monkeypatch.setattr(clock, "format_instant_time", lambda *args: asked.append(args) or spelled(*args))
    last = clock.next_instant_time(None, BACK["Europe/Berlin"] - 10 * SECOND, "LOCAL")
    assert last == "20261025025950000"
    assert clock.next_instant_time(last, BACK["Europe/Berlin"] + 5 * SECOND, "LOCAL") == "20261025025950001"
    assert len(asked) < 10


@pytest.mark.parametrize("zone", BACK)
@pytest.mark.parametrize("pace_ms", [SECOND, 7 * SECOND])
def test_instants_increase_and_nobody_is_refused_while_local_time_is_shown_twice(local, zone, pace_ms):
    local(zone)
    last, twice = None, 0
    for now in range(BACK[zone] - 3 * SECOND, BACK[zone] + 2 * HOUR, pace_ms):
        # a commit, a clean, a rollback
        for _ in range(3):
            new = clock.next_instant_time(last, now, "LOCAL")
            assert last is None or new > last
            twice += new != clock.format_instant_time(now, "LOCAL")
            last = new
    assert twice > HOUR / 3 / pace_ms
    assert abs(clock.parse_instant_time(last, "LOCAL") - now) < SECOND


def test_a_clock_that_lags_is_still_told_from_local_time_that_went_back(local):
    local("Europe/Berlin")
    back = BACK["Europe/Berlin"]
    for now, last in [
        (back - 2 * HOUR, back - 2 * HOUR + 2 * MINUTE),
        (back + HOUR + MINUTE, back + HOUR + 4 * MINUTE),
        (back + 10 * MINUTE, back + 72 * MINUTE),
    ]:
        with pytest.raises(InvalidConfigError, match="ahead of this machine"):
            clock.next_instant_time(clock.format_instant_time(last, "LOCAL"), now, "LOCAL")


def test_an_instant_that_is_no_time_and_that_no_time_comes_after_is_named():
    assert clock.next_instant_time("00000000000001", NOON) == clock.format_instant_time(NOON)
    with pytest.raises(InvalidConfigError, match="99999999999999 is no time"):
        clock.next_instant_time("99999999999999", NOON)


@given(st.integers(0, 4_000_000_000_000), st.integers(-MINUTE, MINUTE))
def test_the_next_instant_is_now_or_one_millisecond_later_than_the_last(moment, ahead):
    last = clock.format_instant_time(max(0, moment + ahead))
    new = clock.next_instant_time(last, moment)
    assert new > last
    assert clock.parse_instant_time(new) == max(moment, clock.parse_instant_time(last) + 1)


class Moving:
    """A clock that moves when the code under test sleeps."""

    def __init__(self, monkeypatch, at_ms):
        self.at_ms, self.slept_ms = at_ms, []
        monkeypatch.setattr(clock, "now_ms", lambda: self.at_ms)
        monkeypatch.setattr(clock, "sleep_s", self._sleep)

    def _sleep(self, seconds):
        self.slept_ms.append(round(seconds * 1000))
        self.at_ms += round(seconds * 1000)


@pytest.mark.parametrize(
    ("last_ms_ago", "slept_ms"),
    [(60_000, 201), (1, 201), (0, 202), (-50, 252), (-5_000, 400)],
    ids=["long ago", "just before", "now", "a clock that is ahead", "too far ahead"],
)
def test_a_time_is_as_old_as_clocks_may_differ_when_the_lock_is_free(monkeypatch, last_ms_ago, slept_ms):
    moving = Moving(monkeypatch, 1_700_000_000_500)
    begun = clock.format_instant_time(moving.at_ms)
    last = clock.format_instant_time(moving.at_ms - last_ms_ago)
    chosen = clock.InstantClock("UTC", 200).next_time(last)
    # never before the present moment: another writer may hold a time that is not on the timeline yet
    assert chosen > last
    assert chosen >= begun
    assert moving.slept_ms == [slept_ms]
    behind = clock.format_instant_time(moving.at_ms - 200)  # what another machine's clock may show now
    assert (behind > chosen) == (last_ms_ago > -5_000)


def test_where_all_writers_are_ours_a_time_is_not_waited_for(monkeypatch):
    moving = Moving(monkeypatch, 1_700_000_000_500)
    now = clock.format_instant_time(moving.at_ms)
    assert clock.InstantClock().next_time(None) == now
    assert clock.InstantClock().next_time(now) == clock.format_instant_time(moving.at_ms + 1)
    assert moving.slept_ms == []
