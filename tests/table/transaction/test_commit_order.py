"""Places in the commit order: one writer has each, and nobody takes one that was taken long ago."""

import pytest

from table.errors import CorruptFileError, StorageError
from table.storage.interface import join
from table.storage.local import LocalStorage
from table.timeline.instant import Action, Instant, State
from table.transaction.commit_order import ORDER_FOLDER, Place, decode_place, find_last_place, take_next_place


def commit(time):
    return Instant(time, Action.COMMIT, State.INFLIGHT)


@pytest.fixture
def storage(tmp_path):
    return LocalStorage(str(tmp_path))


def places(storage):
    return sorted(int(entry.name) for entry in storage.list_dir(ORDER_FOLDER))


def test_of_two_writers_that_saw_the_same_place_one_takes_the_next(storage):
    last = find_last_place(storage)
    assert last == Place(0)
    assert take_next_place(storage, last, commit("1"), "ann")
    assert not take_next_place(storage, last, commit("2"), "bob")
    last = find_last_place(storage)
    assert (last.number, last.time, last.action, last.owner) == (1, "1", Action.COMMIT, "ann")
    assert take_next_place(storage, last, commit("2"), "bob")


def test_the_last_place_alone_stays(storage):
    for number in range(5):
        assert take_next_place(storage, find_last_place(storage), commit(str(number)), "ann")
    assert places(storage) == [5]


def test_a_place_that_was_taken_and_deleted_is_not_taken_again(storage):
    outdated = find_last_place(storage)
    for number in range(3):
        take_next_place(storage, find_last_place(storage), commit(str(number)), "ann")
    assert not take_next_place(storage, outdated, commit("9"), "late")
    assert places(storage) == [3]


def test_a_place_counts_although_those_before_it_cannot_be_deleted(storage, monkeypatch):
    take_next_place(storage, find_last_place(storage), commit("1"), "ann")

    def refuse(_storage, path):
        raise StorageError(path)

    monkeypatch.setattr(LocalStorage, "delete_metafile", refuse)
    assert take_next_place(storage, find_last_place(storage), commit("2"), "ann")
    assert find_last_place(storage).time == "2"


@pytest.mark.parametrize("data", [b"", b"{}", b'{"time": "1", "action": "commits", "owner": "x"}'])
def test_bytes_that_are_no_place_are_named(storage, data):
    with pytest.raises(CorruptFileError, match="order/4 is no place"):
        decode_place(4, data)
    storage.put(join(ORDER_FOLDER, "4"), data)
    with pytest.raises(CorruptFileError, match="order/4"):
        find_last_place(storage)


def test_a_place_is_read_as_it_was_written():
    place = Place(7, "20260101000000000", Action.DELTA_COMMIT, "ann")
    assert decode_place(7, place.encode()) == place
