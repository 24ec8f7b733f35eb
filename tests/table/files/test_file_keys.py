"""The filter, the range and the keys of a file while it is written."""

from types import SimpleNamespace

import pyarrow as pa
import pytest

from table.files.base.file_keys import FileKeys
from table.files.base.hudi_footer import encode_entries
from table.options.groups import BaseFileSettings

SETTINGS = BaseFileSettings(bloom_fpp=0.001)


def keys_of(*texts):
    return [pa.array(texts, pa.string())]


def unread():
    raise AssertionError("the keys of copied row groups are not read")


def older(*texts):
    """What is read of the footer of an older file with these keys."""
    keys = FileKeys(SETTINGS)
    keys.add(keys_of(*texts), carried=False)
    bloom, found = keys.summarize(len(texts), 1000, list)
    entries = encode_entries("{}", bloom, found)
    return SimpleNamespace(entries={name: value.encode() for name, value in entries.items()}, is_sealed=False)


def test_a_new_file_has_a_filter_and_a_range_of_its_keys():
    keys = FileKeys(SETTINGS)
    keys.add(keys_of("m", "a"), carried=False)
    keys.add(keys_of("z"), carried=False)
    bloom, bounds = keys.summarize(3, 1000, list)
    assert bounds == ("a", "z")
    assert bloom.may_contain(pa.array(["m", "a", "z"])).all()
    assert [key for chunk in keys.written for key in chunk.to_pylist()] == ["m", "a", "z"]


def test_a_file_without_rows_has_no_range():
    bloom, bounds = FileKeys(SETTINGS).summarize(0, 10, list)
    assert bounds is None
    assert not bloom.may_contain(pa.array(["a"])).any()


def test_the_older_filter_and_range_are_extended_without_reading_its_keys():
    keys = FileKeys(SETTINGS, older("d", "k"), knows_bounds=True)
    keys.add(keys_of("z"), carried=False)
    bloom, bounds = keys.summarize(3, 1000, unread)
    assert bounds == ("d", "z")
    assert bloom.may_contain(pa.array(["d", "k", "z"])).all()


def test_a_caller_that_drops_rows_gets_the_range_of_those_that_remain():
    keys = FileKeys(SETTINGS, older("a", "d", "z"))
    keys.add(keys_of("d"), carried=True)
    keys.add(keys_of("f"), carried=False)
    bloom, bounds = keys.summarize(2, 1000, list)
    assert bounds == ("d", "f")
    assert bloom.may_contain(pa.array(["d", "f"])).all()


def test_a_filter_without_room_is_made_anew_from_all_keys():
    texts = [f"k{number:03d}" for number in range(8)]
    keys = FileKeys(SETTINGS, older(*texts), knows_bounds=True)
    more = [f"k{number:03d}" for number in range(8, 400)]
    keys.add(keys_of(*more), carried=False)
    bloom, bounds = keys.summarize(400, 1000, lambda: keys_of(*texts))
    assert bounds == ("k000", "k399")
    assert bloom.may_contain(pa.array([*texts, *more])).all()
    assert bloom.keys_held == 400


@pytest.mark.parametrize("carried", [True, False])
def test_the_tail_of_the_older_file_stands_before_new_rows(carried):
    keys = FileKeys(SETTINGS, older("a", "b"), knows_bounds=True)
    keys.add(keys_of("x"), carried=carried)
    keys.add_tail(keys_of("b"))
    assert [key for chunk in keys.written for key in chunk.to_pylist()] == ["b", "x"]
