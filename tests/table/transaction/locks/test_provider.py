"""The interface of locks: what a state says that a protocol does not tell, and that every lock offers all of it."""

import inspect
from dataclasses import FrozenInstanceError, fields, replace

import pytest

from table.options.lock_settings import LockProvider
from table.transaction.locks.dynamodb_lock import DynamodbGrip, DynamodbLock
from table.transaction.locks.filesystem_lock import FilesystemGrip, FilesystemLock
from table.transaction.locks.in_process import InProcessLock
from table.transaction.locks.provider import CLOCK_DRIFT_MS, HeldLock, LockState, SharedLock
from table.transaction.locks.storage_lock import StorageGrip, StorageLock
from table.transaction.locks.zookeeper_lock import ZookeeperGrip, ZookeeperLock

LOCKS = [InProcessLock, FilesystemLock, StorageLock, ZookeeperLock, DynamodbLock]
GRIPS = [FilesystemGrip, StorageGrip, ZookeeperGrip, DynamodbGrip]
PLACE = (LockProvider.STORAGE, "s3://b/t")


def interface_of(protocol):
    return {name: member for name, member in vars(protocol).items() if not name.startswith("_")}


def test_what_the_protocol_of_a_lock_does_not_say_is_empty_or_not_known():
    state = LockState(*PLACE, is_held=True)
    assert (state.holder, state.since_ms, state.until_ms, state.note) == ("", None, None, "")


@pytest.mark.parametrize(
    "change",
    [{"provider": LockProvider.DYNAMODB}, {"place": "p"}, {"is_held": False}, {"holder": "v"}, {"since_ms": 3},
     {"until_ms": None}, {"note": ""}],
    ids=str,
)  # fmt: skip
def test_two_looks_at_one_lock_are_equal_unless_something_changed(change):
    told = {"provider": PLACE[0], "place": PLACE[1], "is_held": True, "holder": "w", "since_ms": 1, "until_ms": 2}
    assert LockState(**told, note="n") == LockState(**told, note="n")
    assert replace(LockState(**told, note="n"), **change) != LockState(**told, note="n")


@pytest.mark.parametrize("name", [field.name for field in fields(LockState)])
def test_a_state_that_was_told_cannot_be_changed(name):
    state = LockState(*PLACE, is_held=True)
    with pytest.raises(FrozenInstanceError):
        setattr(state, name, None)


def test_clocks_may_differ_by_hudis_half_second():
    assert CLOCK_DRIFT_MS == 500


@pytest.mark.parametrize(
    ("made", "protocol"), [*((lock, SharedLock) for lock in LOCKS), *((grip, HeldLock) for grip in GRIPS)]
)
def test_a_lock_has_all_methods_of_the_interface_with_the_same_parameters(made, protocol):
    for name, member in interface_of(protocol).items():
        offered = getattr(made, name)
        assert isinstance(offered, property) == isinstance(member, property)
        if not isinstance(member, property):
            assert list(inspect.signature(offered).parameters) == list(inspect.signature(member).parameters)
