import pytest

from table.files.bloom.bloom_filter import can_extend, filter_bytes_per_key, fitted_filter
from table.files.bloom.filter_size import fitted_entries
from table.options.groups import BaseFileSettings

FULL = BaseFileSettings(full_bytes=100_000)  # of rows of 15.2 bytes, and 4.8 bytes of filter: 5,000


@pytest.mark.parametrize(
    ("settings", "keys", "data_bytes", "entries"),
    [
        (FULL, 100, 1521, 200),  # far from full: twice the keys
        (FULL, 2400, 36_500, 4800),
        (FULL, 2600, 39_540, 5000),  # no more than the file will get
        (FULL, 4990, 75_890, 5000),
        (FULL, 5100, 77_561, 5100),  # somewhat too large: its own keys
        (FULL, 6300, 95_811, 12_600),  # it does not stop at a full one's size
        (FULL, 2600, 0, 5200),  # not known what they take
        (FULL, 0, 0, 0),
        (BaseFileSettings(), 2600, 39_540, 5200),  # there is no full size
        (BaseFileSettings(full_bytes=100_000, bloom_headroom=0.5), 2600, 39_540, 1300),
    ],
)
def test_a_filter_has_no_room_for_keys_that_its_file_will_not_get(settings, keys, data_bytes, entries):
    assert fitted_entries(settings, keys, data_bytes) == pytest.approx(entries, rel=0.002)


@pytest.mark.parametrize("data_bytes", [15_210, 152_100, 1_521_000])
def test_a_file_that_is_filled_keeps_the_filter_of_its_second_half(data_bytes):
    keys = data_bytes * 10 // 152
    settings = BaseFileSettings(full_bytes=2 * data_bytes)
    bloom = fitted_filter(settings, keys, data_bytes)
    full = int(settings.full_bytes / (data_bytes / keys + filter_bytes_per_key(settings)))
    assert keys < full < 2 * keys
    assert can_extend(bloom, settings, full)
    assert full * data_bytes / keys + len(bloom.encode()) == pytest.approx(settings.full_bytes, rel=0.01)


@pytest.mark.parametrize(
    ("settings", "digits"),
    [
        ({}, 9.585),
        ({"full_bytes": 10**6}, 4.792),
        ({"full_bytes": 10**6, "bloom_headroom": 0.5}, 2.396),
        ({"full_bytes": 10**6, "bloom_fpp": 1e-3}, 2.396),
        ({"bloom_entries": 5}, 0),
        ({"bloom_type": "DYNAMIC_V0"}, 0),
    ],
)
def test_what_a_key_takes_in_the_filter_of_a_full_file(settings, digits):
    assert filter_bytes_per_key(BaseFileSettings(**settings)) == pytest.approx(digits, rel=0.001)
