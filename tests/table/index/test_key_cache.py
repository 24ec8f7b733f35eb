"""What a worker process remembers of keys: as much as fits, and of as many files as it can."""

import pyarrow as pa
import pytest

from table.index import key_cache
from table.index.key_cache import KeyCache, KnownFile, ProcessCaches, cache_of_table

pytestmark = pytest.mark.pure

BARE = KnownFile(("a", "b"), None, has_filter=False).size_bytes


class Filter:
    """Stands for a bloom filter."""

    def __init__(self, size):
        self.size_bytes = size


def known(size, keys=None):
    return KnownFile(("a", "b"), Filter(size), None if keys is None else pa.chunked_array([["k" * keys]]))


def walk(cache, names, instant_time, size=10_000):
    """A batch that looks into each of these files. Returns those whose filters it had to read."""
    cache.begin(instant_time)
    missed = []
    for name in names:
        found = cache.get(name)
        if found is None or not found.has_filter:
            missed.append(name)
            cache.put(name, known(size))
    return missed


def test_of_files_that_every_batch_walks_through_as_many_stay_as_fit():
    """The oldest entry is not dropped for a new one: it would go just before its next use."""
    cache, names = KeyCache(100_000), [f"f{number}" for number in range(20)]
    assert walk(cache, names, "1") == names
    for number in range(2, 6):
        assert len(walk(cache, names, str(number))) <= 13
        assert cache.held_bytes <= 100_000
    # the bounds of all files are known, and their filters are not needed where no key lies within
    assert all(cache.get(name) is not None for name in names)


def test_files_that_are_no_longer_looked_into_make_room():
    cache = KeyCache(50_000)
    walk(cache, [f"old{number}" for number in range(4)], "1")
    news = [f"new{number}" for number in range(4)]
    for number in range(2, 5):
        missed = walk(cache, news, str(number))
    assert missed == []
    assert cache.get("old0") is None


def test_keys_that_do_not_fit_leave_the_filter_where_it_is():
    cache = KeyCache(20_000)
    cache.put("f", known(1_000))
    cache.put("f", known(1_000, keys=50_000))
    found = cache.get("f")
    assert (found.bloom.size_bytes, found.keys) == (1_000, None)
    cache.put("f", known(1_000, keys=5_000))
    assert cache.get("f").keys is not None
    cache.put("huge", known(50_000))
    assert cache.get("huge") == KnownFile(("a", "b"), None, has_filter=False)
    assert cache.held_bytes <= 20_000


def test_a_file_that_was_rewritten_takes_the_place_of_its_older_version():
    cache = KeyCache(20_000)
    cache.put("old", known(5_000))
    contents = key_cache.FileContents(("a", "c"), Filter(6_000), (), (pa.array(["a", "c"]),))
    cache.replace("old", "new", contents)
    assert cache.get("old") is None
    assert cache.get("new").keys.to_pylist() == ["a", "c"]
    assert cache.held_bytes == cache.get("new").size_bytes


def test_a_cache_without_room_holds_nothing():
    cache = KeyCache(0)
    cache.put("f", known(10))
    assert (cache.get("f"), cache.held_bytes) == (None, 0)


def test_two_tables_of_one_process_share_its_memory_and_do_not_empty_each_other():
    caches, names = ProcessCaches(), [f"f{number}" for number in range(30)]
    first, second = (lambda time, uri=uri: caches.of_table(uri, 100_000, time) for uri in ("s3://a", "s3://b"))
    for number in range(1, 6):
        missed = [walk(cache(f"{number}"), names, f"{number}") for cache in (first, second)]
    held = [cache("5").held_bytes for cache in (first, second)]
    assert sum(held) <= 100_000
    assert min(held) > 30_000
    assert all(len(one) < len(names) for one in missed)  # each finds some of its own


def test_a_sink_with_a_small_limit_holds_no_more_than_that():
    caches, names = ProcessCaches(), [f"f{number}" for number in range(30)]
    for number in range(1, 4):
        walk(caches.of_table("large", 100_000, str(number)), names, str(number))
        walk(caches.of_table("small", 20_000, str(number)), names, str(number))
    assert caches.of_table("small", 20_000, "3").held_bytes <= 20_000
    assert caches.of_table("large", 100_000, "3").held_bytes > 70_000


def test_a_table_that_is_no_longer_written_is_forgotten(monkeypatch):
    caches = ProcessCaches()
    walk(caches.of_table("idle", 100_000, "1"), ["f"], "1")
    for number in range(150):
        caches.of_table("busy", 100_000, str(number))
    assert caches.of_table("idle", 100_000, "1").get("f") is None


def test_a_sink_that_caches_nothing_takes_nothing_from_others(monkeypatch):
    monkeypatch.setattr(key_cache, "_of_process", ProcessCaches())
    assert cache_of_table("t", 1_000, "1") is cache_of_table("t", 1_000, "2")
    assert cache_of_table("t", 0, "2") is not cache_of_table("t", 1_000, "2")
    assert cache_of_table("t", 0, "2").limit_bytes == 0
