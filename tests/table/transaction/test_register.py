"""The numbered register: of two processes one succeeds, and a late one takes nothing back."""

import pytest

from table.errors import StorageError
from table.storage.local import LocalStorage
from table.transaction.register import Entry, Register


@pytest.fixture
def register(tmp_path):
    return Register(LocalStorage(str(tmp_path)), ".hoodie/.hudistream/things")


def names(register):
    return sorted(entry.name for entry in register.storage.list_dir(register.folder))


def test_the_greatest_number_counts_and_lesser_ones_go(register):
    assert register.find_last() is None
    first = register.append(0, b"a")
    assert first == Entry(1, b"a")
    assert register.append(first.number, b"b") == Entry(2, b"b") == register.find_last()
    assert names(register) == ["2"]


def test_of_two_one_succeeds(register):
    first = register.append(0, b"a")
    assert register.append(first.number, b"b") is not None
    assert register.append(first.number, b"c") is None
    assert register.find_last() == Entry(2, b"b")


def test_a_process_that_wakes_up_late_takes_nothing_back(register):
    first = register.append(0, b"a")
    last = first
    for data in (b"b", b"c", b"d"):
        last = register.append(last.number, data)
    assert register.append(first.number, b"late") is None
    assert register.append(0, b"late") is None
    assert register.find_last() == last == Entry(4, b"d")
    assert names(register) == ["4"]


def test_a_register_that_never_stands_still_is_an_error(register, monkeypatch):
    register.append(0, b"a")
    monkeypatch.setattr(LocalStorage, "read", lambda _, path: (_ for _ in ()).throw(FileNotFoundError(path)))
    with pytest.raises(StorageError, match="changes faster"):
        register.find_last()
