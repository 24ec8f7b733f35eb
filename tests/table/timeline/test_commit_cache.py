"""Commits are decoded once, by instant; what is not whole is asked for again."""

from time import sleep

import pytest
from faults import FaultyStorage, Fuse
from instants import completed, inflight

from table.errors import CorruptFileError, TimelineMovedError
from table.storage.local import LocalStorage
from table.timeline.commit_cache import CommitCache
from table.timeline.instant import Action
from table.timeline.metadata.commit import CommitMetadata, WriteStat, encode_commit
from table.timeline.metadata.commit_totals import totals_of
from table.timeline.timeline import Timeline

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


def test_commits_that_were_archived_go(store):
    cache = CommitCache(store)
    for time in ("1", "2", "3"):
        cache.keep(completed(time), METADATA)
    whole = cache._bytes
    cache.forget_archived(Timeline([completed("2"), completed("3")]))
    assert [instant.time for instant in cache._kept] == ["2", "3"]
    assert cache._bytes == whole * 2 // 3
    cache.forget_archived(Timeline([inflight("4")]))  # nothing says that any was archived
    assert len(cache._kept) == 2


class AtOnce(FaultyStorage):
    """A store that takes several calls at once, and counts how many are under way."""

    calls_at_once = 4
    under_way = most = 0

    def read(self, path):
        AtOnce.under_way += 1
        AtOnce.most = max(AtOnce.most, AtOnce.under_way)
        sleep(0.01)
        try:
            return super().read(path)
        finally:
            AtOnce.under_way -= 1


@pytest.mark.parametrize("kind", [FaultyStorage, AtOnce])
@pytest.mark.parametrize("most_bytes", [1, 1 << 20])
def test_many_commits_are_found_in_their_order_and_several_at_a_time(tmp_path, kind, most_bytes):
    store = kind(LocalStorage(str(tmp_path)), Fuse())
    instants = [completed(str(number)) for number in range(11)]
    for number, instant in enumerate(instants):
        if number != 5:  # archived since the timeline was listed
            put(store, instant, encode_commit(CommitMetadata(METADATA.stats, str(number), {})))
    cache = CommitCache(store, most_bytes=most_bytes)
    cache.find(instants[3])
    reads(store)
    found = list(cache.find_outlines(instants))
    assert [instant for instant, _ in found] == instants
    assert [None if one is None else one.operation for _, one in found] == [
        None if number == 5 else str(number) for number in range(11)
    ]
    assert len([one for one in reads(store) if "/ends/" not in one]) <= 11
    if kind is AtOnce:
        assert 1 < AtOnce.most <= 4


def test_a_damaged_commit_among_many_is_named(tmp_path):
    store = AtOnce(LocalStorage(str(tmp_path)), Fuse())
    instants = [completed(str(number)) for number in range(6)]
    for instant in instants:
        put(store, instant, b"{" if instant.time == "4" else encode_commit(METADATA))
    with pytest.raises(CorruptFileError, match=r"4\.commit"):
        list(CommitCache(store).find_outlines(instants))


def test_of_a_large_commit_the_outline_alone_is_kept(store):
    many = CommitMetadata(METADATA.stats * 2_000, "UPSERT", {"schema": "s"})
    put(store, completed("1"), encode_commit(many))
    put(store, completed("2"), encode_commit(METADATA))
    cache = CommitCache(store)
    reads(store)
    for _ in range(2):
        outline = cache.read_outline(completed("1"))
        assert (outline.operation, outline.extra) == ("UPSERT", {"schema": "s"})
        assert cache.read_outline(completed("2")).operation == METADATA.operation
    assert reads(store) == ["read .hoodie/1.commit", "read .hoodie/2.commit"]
    assert cache._kept.keys() == {completed("2")}
    assert cache.read(completed("1")) == many
    with pytest.raises(TimelineMovedError, match=r"3\.commit"):
        cache.read_outline(completed("3"))


@pytest.mark.parametrize("ask", ["read", "find", "find_totals"])
def test_a_large_commit_is_read_once_for_its_outline_and_the_whole(store, ask):
    many = [CommitMetadata(METADATA.stats * (2_000 + number), "UPSERT", {"schema": "s"}) for number in range(3)]
    for number, commit in enumerate(many):
        put(store, completed(str(number)), encode_commit(commit))
    cache = CommitCache(store, most_bytes=0, keeps_large=True)
    wanted = [totals_of(one) for one in many] if ask == "find_totals" else many
    list(cache.find_outlines([completed(str(number)) for number in range(3)]))
    reads(store)
    assert getattr(cache, ask)(completed("2")) == wanted[2]
    assert reads(store) == []
    assert cache._large is None, "the bytes go when they were used"
    assert getattr(cache, ask)(completed("1")) == wanted[1]
    assert reads(store) == ["read .hoodie/1.commit"]
