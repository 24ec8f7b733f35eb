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
