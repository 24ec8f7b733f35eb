"""Commits are decoded once, by instant; what is not whole is asked for again."""

import pytest
from faults import FaultyStorage, Fuse
from instants import completed, inflight

from table.errors import CorruptFileError, TimelineMovedError
from table.storage.local import LocalStorage
from table.timeline.commit_cache import CommitCache
from table.timeline.instant import Action
from table.timeline.metadata.commit import CommitMetadata, WriteStat, encode_commit

METADATA = CommitMetadata((WriteStat("f", "p/f", "p", num_writes=3),), "INSERT", {"schema": "s"})


@pytest.fixture
def store(tmp_path):
    return FaultyStorage(LocalStorage(str(tmp_path)), Fuse())


def put(store, instant, data):
    store._inner.put(f".hoodie/{instant.file_name}", data)


def reads(store):
    taken = [call for call in store._fuse.calls if call.startswith("read")]
    store._fuse.calls.clear()
    return taken


@pytest.mark.parametrize("ask", ["read", "find"])
def test_a_completed_commit_is_read_once(store, ask):
    cache, instant = CommitCache(store), completed("1")
    put(store, instant, encode_commit(METADATA))
    assert getattr(cache, ask)(instant) == METADATA
    assert reads(store) == ["read .hoodie/1.commit"]
    assert cache.read(instant) is cache.find(instant)
    assert reads(store) == []


def test_time_action_and_state_tell_commits_apart(store):
    cache = CommitCache(store)
    other = CommitMetadata(operation="CLUSTER")
    for instant, metadata in ((completed("1"), METADATA), (completed("1", Action.REPLACE_COMMIT), other)):
        put(store, instant, encode_commit(metadata))
        assert cache.read(instant) == metadata
    put(store, inflight("2"), encode_commit(METADATA))
    cache.read(inflight("2"))
    put(store, inflight("2"), encode_commit(other))
    assert cache.read(inflight("2")) == other  # what is not completed may change


def test_an_empty_file_may_yet_be_filled(store):
    cache, instant = CommitCache(store), completed("1")
    put(store, instant, b"")
    assert cache.read(instant).operation == "UNKNOWN"
    put(store, instant, encode_commit(METADATA))
    assert cache.read(instant) == METADATA


def test_what_is_not_there_is_none_or_an_error_and_is_asked_for_again(store):
    cache, instant = CommitCache(store), completed("1")
    assert cache.find(instant) is None
    with pytest.raises(TimelineMovedError, match=r"1\.commit"):
        cache.read(instant)
    put(store, instant, b"{")
    with pytest.raises(CorruptFileError, match=r"1\.commit"):
        cache.find(instant)
    put(store, instant, encode_commit(METADATA))
    assert cache.find(instant) == METADATA


def test_what_is_kept_is_not_read(store):
    cache = CommitCache(store)
    cache.keep(completed("1"), METADATA)
    assert cache.read(completed("1")) is METADATA
    assert reads(store) == []


def test_the_commits_asked_for_least_recently_go_and_the_last_one_stays(store):
    cache = CommitCache(store, most_bytes=7_000)  # a commit with a file counts for three thousand
    times = ["1", "2", "3"]
    for time in times:
        put(store, completed(time), encode_commit(METADATA))
    for time in ("1", "2", "1", "3"):
        cache.read(completed(time))
    reads(store)
    cache.read(completed("1"))
    cache.read(completed("3"))
    assert reads(store) == []
    cache.read(completed("2"))
    assert reads(store) == ["read .hoodie/2.commit"]
    large = CommitMetadata(METADATA.stats * 100)
    cache.keep(completed("4"), large)
    assert cache.read(completed("4")) is large
    assert len(cache._kept) == 1
