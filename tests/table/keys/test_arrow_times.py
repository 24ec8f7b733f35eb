"""Partition values from times in Arrow columns, beside what Python's clock and calendar say."""

from datetime import date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from table.keys.arrow_times import format_times
from table.keys.time_partition import TimePartition

ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"]
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
TIMES = st.integers(31_536_000, 4_733_510_400).map(
    lambda second: EPOCH.replace(tzinfo=None) + timedelta(seconds=second)
)


def one(settings, value, kind=None):
    return format_times(settings, pa.chunked_array([pa.array([value], kind)])).to_pylist()[0]


@given(TIMES, st.sampled_from(ZONES))
def test_seconds_are_shown_by_the_clock_of_the_zone(time, zone):
    settings = TimePartition("UNIX_TIMESTAMP", "yyyy-MM-dd HH:mm:ss", output_timezone=zone)
    moment = time.replace(tzinfo=timezone.utc)
    shown = moment.astimezone(ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M:%S")
    assert one(settings, int(moment.timestamp())) == shown


@given(TIMES, st.sampled_from(ZONES), st.sampled_from(ZONES))
def test_texts_go_from_one_zone_to_another(time, source, target):
    settings = TimePartition("DATE_STRING", "yyyy/MM/dd/HH/mm", target, ("yyyy-MM-dd HH:mm:ss",), input_timezone=source)
    written = time.strftime("%Y-%m-%d %H:%M:%S")
    # fold=0: the first of two moments, and the offset before a time that the clock skips
    moment = time.replace(tzinfo=ZoneInfo(source), fold=0).astimezone(timezone.utc)
    shown = moment.astimezone(ZoneInfo(target)).strftime("%Y/%m/%d/%H/%M") if source != target else None
    assert one(settings, written) == (shown or time.strftime("%Y/%m/%d/%H/%M"))


@pytest.mark.parametrize(
    ("unit", "number", "shown"),
    [
        ("DAYS", 19_000, "2022-01-08 00:00"),
        ("HOURS", 456_000, "2022-01-08 00:00"),
        ("MINUTES", 27_360_001, "2022-01-08 00:01"),
        ("SECONDS", 1_641_600_060, "2022-01-08 00:01"),
        ("MILLISECONDS", 1_641_600_060_000, "2022-01-08 00:01"),
        ("MICROSECONDS", -1, "1970-01-01 00:00"),  # rounded towards zero
        ("NANOSECONDS", -60_000_000_001, "1969-12-31 23:59"),
    ],
)
def test_numbers_have_a_unit(unit, number, shown):
    assert one(TimePartition("SCALAR", "yyyy-MM-dd HH:mm", scalar_unit=unit), number) == shown


@pytest.mark.parametrize(
    ("value", "kind", "shown"),
    [
        (None, pa.int64(), "1970-01-01 00:00:01"),  # Hudi takes 1 for a null number
        (12.9, pa.float64(), "1970-01-01 00:00:12"),
        (date(1970, 1, 3), pa.date32(), "1970-01-01 00:00:02"),
        (EPOCH + timedelta(microseconds=5_000_000), pa.timestamp("us", "UTC"), "1970-02-27 20:53:20"),
    ],
)
def test_a_number_is_made_of_each_type(value, kind, shown):
    assert one(TimePartition("UNIX_TIMESTAMP", "yyyy-MM-dd HH:mm:ss"), value, kind) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2024-02-29", "20240229"),
        ("29.02.2024", "20240229"),  # the second form
        ("2023-02-29", None),  # no such day
        ("2024-13-01", None),
        ("today", None),
        (None, "19700101"),
    ],
)
def test_a_text_has_the_first_form_that_fits_or_no_value(text, shown):
    settings = TimePartition("DATE_STRING", "yyyyMMdd", input_formats=("yyyy-MM-dd", "dd.MM.yyyy"))
    assert one(settings, text, pa.string()) == shown


def test_quoted_text_stands_in_the_path_as_it_is():
    assert one(TimePartition("UNIX_TIMESTAMP", "'y='yyyy'/d''s'"), 0, pa.int64()) == "y=1970/d's"


def test_fixed_offsets_are_understood_in_both_directions():
    settings = TimePartition("DATE_STRING", "yyyy-MM-dd HH", "GMT+8:00", ("yyyy-MM-dd HH",), "GMT-5")
    assert one(settings, "2024-01-01 20") == "2024-01-02 09"
