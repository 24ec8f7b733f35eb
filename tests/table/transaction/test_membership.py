"""A lease that several hold: joining, leaving, and whoever wants the table alone."""

import os

import pytest

from table import clock
from table.errors import CommitConflictError
from table.options.groups import HeartbeatSettings
from table.storage.interface import join
from table.storage.local import LocalStorage
from table.transaction.heartbeat import WriterIdentity
from table.transaction.lease import Lease, find_holder, hold_table
from table.transaction.membership import TURNS_FOLDER, Membership, first_of_all, is_open
from table.transaction.signs import ALIVE_FOLDER

SETTINGS = HeartbeatSettings(60_000)


@pytest.fixture
def storage(tmp_path):
    return LocalStorage(str(tmp_path))


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(clock, "sleep_s", lambda _seconds: None)


def member(storage, name):
    lease = Membership(storage, SETTINGS)
    lease.hold(WriterIdentity(name, f"query-{name}", lease.owner))
    if not lease.is_shared:
        lease.share()
    return lease


def test_the_first_writer_has_the_table_alone_until_it_opens_it(storage):
    first = Membership(storage, SETTINGS)
    first.hold(WriterIdentity("a", "q", first.owner))
    assert first.is_held
    assert not first.is_shared
    with pytest.raises(CommitConflictError, match="sink 'a'"):
        member(storage, "b")
    first.share()
    assert member(storage, "b").is_shared
    assert is_open(find_holder(storage))


def test_each_member_knows_its_share(storage):
    members = [member(storage, name) for name in "abc"]
    assert sorted(lease.find_share() for lease in members) == [(0, 3), (1, 3), (2, 3)]
    members[0].release()
    assert sorted(lease.find_share() for lease in members[1:]) == [(0, 2), (1, 2)]


def test_nobody_has_the_table_alone_beside_members(storage):
    members = [member(storage, name) for name in "ab"]
    alone = Lease(storage, SETTINGS)
    for lease in members:
        with pytest.raises(CommitConflictError, match="several writers"):
            alone.hold(WriterIdentity("c", "q", alone.owner))
        lease.release()
    alone.hold(WriterIdentity("c", "q", alone.owner))
    assert alone.is_held
    alone.release()


def test_the_last_member_releases_the_table(storage):
    first, second = member(storage, "a"), member(storage, "b")
    first.release()
    assert is_open(find_holder(storage))
    second.release()
    assert find_holder(storage).identity is None
    with hold_table(storage, "an operator's command"):
        pass


def test_the_last_member_releases_the_table_although_another_one_died_long_ago(storage, tmp_path):
    dead, last = member(storage, "a"), member(storage, "b")
    dead._keeper.stop()
    sign = tmp_path / join(ALIVE_FOLDER, dead.owner)
    os.utime(sign, (sign.stat().st_mtime - 600,) * 2)
    last.release()
    assert find_holder(storage).identity is None


def test_members_that_died_are_waited_for_until_their_lease_expires(storage, tmp_path):
    dead = member(storage, "a")
    dead._keeper.stop()
    alone = Lease(storage, SETTINGS)
    with pytest.raises(CommitConflictError):
        alone.hold(WriterIdentity("c", "q", alone.owner))
    for entry in storage.list_dir(ALIVE_FOLDER):
        path = tmp_path / join(ALIVE_FOLDER, entry.name)
        os.utime(path, (path.stat().st_mtime - 600,) * 2)
    alone.hold(WriterIdentity("c", "q", alone.owner))
    with pytest.raises(CommitConflictError, match="was taken over"):
        dead.confirm()
    alone.release()


def test_whoever_was_taken_for_dead_is_told_and_joins_again(storage):
    first = member(storage, "a")
    holder = find_holder(storage)
    taken = Lease(storage, SETTINGS)
    taken._begin_to_keep(holder)  # as after an expiry
    taken.release()
    with pytest.raises(CommitConflictError, match="was taken over"):
        first.hold(WriterIdentity("a", "query-a", first.owner))
    assert not first.is_shared
    first.hold(WriterIdentity("a", "query-a", first.owner))
    first.share()
    assert first.find_share() == (0, 1)


def test_who_joins_while_the_last_member_leaves_looks_again(storage):
    last, slow, looked = member(storage, "a"), Membership(storage, SETTINGS), []
    renew = slow._keeper.renew

    def renew_slowly():
        renew()
        looked.append(find_holder(storage))
        last.release()  # between the look and the sign

    slow._keeper.renew = renew_slowly
    slow.hold(WriterIdentity("b", "q", slow.owner))
    assert is_open(looked[0])
    assert slow.is_held
    slow.confirm()


@pytest.mark.parametrize(
    ("asked", "first"),
    [
        ({}, None),
        ({"me": 5}, None),
        ({"other": 5}, "other"),
        ({"me": 5, "other": 6}, None),
        ({"me": 6, "other": 5}, "other"),
        ({"me": 5, "another": 5}, "another"),
        ({"me": 6, "dead": 5}, None),
        ({"dead": 5}, None),
        ({"dead": 5, "other": 500}, "other"),
    ],
)
def test_whose_turn_it_is(asked, first):
    assert first_of_all(asked, {"me", "other", "another"}, "me") == first


def test_the_request_of_a_dead_writer_is_passed_over(storage, tmp_path, monkeypatch):
    dead, living = member(storage, "a"), member(storage, "b")
    dead.ask_for_turn()
    dead._keeper.stop()
    sign = tmp_path / join(ALIVE_FOLDER, dead.owner)
    os.utime(sign, (sign.stat().st_mtime - 600,) * 2)
    slept = []
    monkeypatch.setattr(clock, "sleep_s", slept.append)
    living.wait_for_turn()
    assert slept == []
    assert storage.list_dir(TURNS_FOLDER) == []


def test_who_met_a_conflict_is_waited_for_but_not_for_ever(storage, monkeypatch):
    first, second = member(storage, "a"), member(storage, "b")
    slept = []
    monkeypatch.setattr(clock, "sleep_s", slept.append)
    second.wait_for_turn()
    first.ask_for_turn()
    first.wait_for_turn()
    assert slept == []
    second.wait_for_turn()
    assert 20 < sum(slept) < 60
    monkeypatch.setattr(clock, "sleep_s", lambda _: first.end_turn())
    second.wait_for_turn()
    assert storage.list_dir(TURNS_FOLDER) == []
