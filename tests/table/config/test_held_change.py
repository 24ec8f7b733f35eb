"""Changes of properties that count only while their process holds the table."""

import pytest
from engine import Engine, rows

from table.config.held_change import MARK, change_held, mark_change, withdraw_change
from table.config.table_config import load_properties, update_properties
from table.errors import CommitConflictError, TableHeldError
from table.storage.local import LocalStorage
from table.transaction.lease import hold_table

CHANGE = {"hoodie.table.version": "8", "hoodie.timeline.layout.version": "2"}


class Holding:
    def __init__(self, owner, *, is_lost=False):
        self.owner, self.is_lost = owner, is_lost

    def confirm(self):
        if self.is_lost:
            raise TableHeldError("another one has it")


@pytest.fixture
def storage(tmp_path):
    engine = Engine(str(tmp_path / "t"))
    engine.write(0, rows([1]))
    engine.writer.stop()
    return LocalStorage(str(tmp_path / "t"))


def test_a_change_that_was_announced_is_made_and_its_mark_goes(storage):
    mine = Holding("mine")
    assert mark_change(storage, mine).extra[MARK] == "mine"
    changed = change_held(storage, mine, CHANGE, ["hoodie.archivelog.folder"])
    assert (changed.version, changed.layout_version) == (8, 2)
    assert {MARK, "hoodie.archivelog.folder"}.isdisjoint(load_properties(storage))


@pytest.mark.parametrize("by", ["withdrawn", "announced by another one", "never announced"])
def test_a_change_is_refused_once_its_mark_is_gone(storage, by):
    mine = Holding("mine")
    if by != "never announced":
        mark_change(storage, mine)
    if by == "withdrawn":
        withdraw_change(storage)
    elif by == "announced by another one":
        mark_change(storage, Holding("theirs"))
    before = load_properties(storage)
    with pytest.raises(TableHeldError, match="run it again"):
        change_held(storage, mine, CHANGE)
    assert load_properties(storage) == before


def test_a_holder_that_lost_the_table_announces_nothing_that_lasts(storage):
    with pytest.raises(CommitConflictError):
        mark_change(storage, Holding("mine", is_lost=True))
    with hold_table(storage, "hudistream test"):
        assert MARK not in load_properties(storage)


def test_who_takes_the_table_withdraws_the_change_of_its_holder(storage):
    mine = Holding("mine")
    mark_change(storage, mine)
    with hold_table(storage, "hudistream test"):
        pass
    with pytest.raises(TableHeldError):
        change_held(storage, mine, CHANGE)


def test_what_others_change_while_the_change_is_written_stays(storage, monkeypatch):
    """The properties are read back: a property that another process has changed by then is no failure."""
    mine, replace = Holding("mine"), LocalStorage.replace_if
    mark_change(storage, mine)

    def replace_and_change(self, path, data, version, timeout_s=60.0):
        done = replace(self, path, data, version, timeout_s)
        monkeypatch.setattr(LocalStorage, "replace_if", replace)
        update_properties(storage, {"hoodie.table.metadata.partitions": "files"})
        return done

    monkeypatch.setattr(LocalStorage, "replace_if", replace_and_change)
    change_held(storage, mine, CHANGE)
    properties = load_properties(storage)
    assert properties["hoodie.table.metadata.partitions"] == "files"
    assert CHANGE.items() <= properties.items()
