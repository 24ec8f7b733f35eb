"""The lease of one writer: who gets the table, who keeps it, and who loses it."""

import os
import time

import pytest

from table import clock
from table.errors import BrokenInvariantError, InvalidConfigError, StorageError, TableHeldError
from table.options.groups import HeartbeatSettings
from table.storage.interface import join
from table.storage.local import LocalStorage
from table.transaction.heartbeat import WriterIdentity
from table.transaction.lease import COMMANDS, LEASE_FOLDER, Lease, find_holder, hold_table, may_take_over
from table.transaction.lease_record import LeaseRecord
from table.transaction.signs import ALIVE_FOLDER, give_sign

SETTINGS = HeartbeatSettings(60_000)
ME, OTHER = WriterIdentity("s", "q", "me"), WriterIdentity("other", "q2", "elsewhere")


@pytest.fixture
def storage(tmp_path):
    return LocalStorage(str(tmp_path))


def lease_of(storage, sink_id="s", query_id="q"):
    lease = Lease(storage, SETTINGS)
    lease.hold(WriterIdentity(sink_id, query_id, lease.owner))
    return lease


def make_old(storage, owner, seconds):
    """The owner gave its last sign so long ago."""
    path = os.path.join(storage.base_uri, ALIVE_FOLDER, owner)
    os.utime(path, (time.time() - seconds,) * 2)


HELD = LeaseRecord(4, OTHER, "another machine", 1)


@pytest.mark.parametrize(
    ("holder", "ages_ms", "is_free"),
    [
        (None, {}, True),
        (LeaseRecord(3, None), {}, True),
        (LeaseRecord(3, None, is_readable=False), {None: 1000}, False),
        (LeaseRecord(3, None, is_readable=False), {None: 1001}, True),
        (HELD, {"elsewhere": 10}, False),
        (HELD, {"elsewhere": 1000}, False),
        (HELD, {"elsewhere": 1001}, True),
        (HELD, {}, True),  # it never gave a sign
        (LeaseRecord(4, ME, "another machine", 1), {"me": 10}, True),
        (LeaseRecord(4, WriterIdentity("s", "q", "earlier"), "another machine", 1), {"earlier": 10}, True),
        (LeaseRecord(4, WriterIdentity("s", "q9", "earlier"), "another machine", 1), {"earlier": 10}, False),
    ],
)
def test_a_table_is_free_where_nobody_lives_who_holds_it(holder, ages_ms, is_free):
    assert may_take_over(holder, ME, ages_ms.get, 1000, 0) is is_free


def test_the_rounding_of_the_stores_times_is_added_to_a_lease():
    assert not may_take_over(HELD, ME, {"elsewhere": 1900}.get, 1000, 1000)
    assert may_take_over(HELD, ME, {"elsewhere": 2001}.get, 1000, 1000)


def test_a_sink_of_this_process_whose_query_has_ended_gives_the_table_up(storage):
    first, second = lease_of(storage), Lease(storage, SETTINGS)
    with pytest.raises(TableHeldError, match="one writer per table"):
        second.hold(WriterIdentity("b", "q2", second.owner))
    second.is_over = lambda identity: identity.query_id == "q"
    first.is_busy = True
    with pytest.raises(TableHeldError):
        second.hold(WriterIdentity("b", "q2", second.owner))
    first.is_busy = False
    second.hold(WriterIdentity("b", "q2", second.owner))
    with pytest.raises(TableHeldError, match="taken over by"):
        first.confirm()


def test_one_of_two_gets_the_table_and_the_other_one_is_told_by_whom_it_is_held(storage):
    lease_of(storage, "a", "q1")
    with pytest.raises(TableHeldError, match="sink 'a'") as refused:
        lease_of(storage, "b", "q2")
    assert "hoodie.write.concurrency.mode=OPTIMISTIC_CONCURRENCY_CONTROL" in str(refused.value)
    assert len(storage.list_dir(ALIVE_FOLDER)) == 1  # a writer without a lease leaves no sign


def test_a_writer_that_gave_no_sign_for_longer_than_its_lease_loses_the_table(storage):
    first = lease_of(storage, "a", "q1")
    make_old(storage, first.owner, 3600)
    second = lease_of(storage, "b", "q2")
    assert find_holder(storage).identity.owner == second.owner
    assert [entry.name for entry in storage.list_dir(ALIVE_FOLDER)] == [second.owner]
    with pytest.raises(TableHeldError, match="what it was about to do has no effect"):
        first.confirm()
    with pytest.raises(TableHeldError, match="sink 'b'"):
        first.hold(WriterIdentity("a", "q1", first.owner))
    assert not first.is_held


def test_the_next_run_of_a_stream_takes_the_table_at_once(storage):
    first = lease_of(storage)
    second = lease_of(storage)
    assert second.owner != first.owner
    with pytest.raises(TableHeldError):
        first.confirm()
    second.confirm()


def test_a_write_beside_the_stream_does_not_take_the_lease_from_it(storage):
    lease = lease_of(storage)
    held = find_holder(storage)
    lease.hold(WriterIdentity("s", None, lease.owner))
    assert find_holder(storage) == held


def test_a_held_lease_is_looked_at_and_not_taken_again(storage):
    lease = lease_of(storage)
    identity, seen = WriterIdentity("s", "q", lease.owner), lease.look()
    lease.hold(identity, seen)
    assert find_holder(storage).number == seen
    with pytest.raises(TableHeldError):
        lease.hold(identity, seen + 1)
    assert Lease(storage, SETTINGS).look() is None


def test_a_released_table_is_free(storage):
    first = lease_of(storage, "a", "q1")
    first.release()
    first.release()
    assert (first.is_held, find_holder(storage).is_released) == (False, True)
    assert storage.list_dir(ALIVE_FOLDER) == []
    assert lease_of(storage, "b", "q2").is_held


def test_releasing_a_lease_that_was_lost_leaves_the_table_to_its_holder(storage):
    first = lease_of(storage, "a", "q1")
    make_old(storage, first.owner, 3600)
    second = lease_of(storage, "b", "q2")
    first.release()
    second.confirm()


def test_a_release_that_fails_is_left_to_time(storage, monkeypatch):
    lease = lease_of(storage)

    def fails(*_args, **_more):
        raise StorageError("no")

    monkeypatch.setattr(LocalStorage, "create_exclusive", fails)
    lease.release()
    assert not lease.is_held
    assert find_holder(storage).identity is not None


def test_a_lease_that_cannot_be_renewed_in_time_stops_its_writer(storage, monkeypatch):
    lease = lease_of(storage)
    lease.check()
    now = clock.monotonic_s()
    monkeypatch.setattr(clock, "monotonic_s", lambda: now + 0.8 * SETTINGS.expiry_ms / 1000)
    lease.check()  # it is renewed
    monkeypatch.setattr(clock, "monotonic_s", lambda: now + 1.7 * SETTINGS.expiry_ms / 1000)

    def fails(*_args, **_more):
        raise StorageError("no")

    monkeypatch.setattr(LocalStorage, "put", fails)
    with pytest.raises(TableHeldError, match="could not be renewed"):
        lease.check()


def test_a_forked_child_holds_nothing(storage, monkeypatch):
    lease = lease_of(storage)
    monkeypatch.setattr(os, "getpid", lambda: -7)
    assert not lease.is_held
    with pytest.raises(InvalidConfigError, match="make a sink in the child"):
        lease.hold(WriterIdentity("s", "q", lease.owner))
    lease.release()
    assert find_holder(storage).identity.owner == lease.owner


def test_signs_of_long_ago_are_swept_when_the_table_is_taken(storage):
    for owner, age_s in (("old", 40 * SETTINGS.expiry_ms / 1000), ("young", 1)):
        give_sign(storage, owner)
        make_old(storage, owner, age_s)
    lease = lease_of(storage)
    assert {entry.name for entry in storage.list_dir(ALIVE_FOLDER)} == {"young", lease.owner}


def test_a_record_that_cannot_be_read_counts_as_long_as_somebody_lives(storage):
    storage.create_exclusive(join(LEASE_FOLDER, "1"), b"of a later version")
    give_sign(storage, "somebody")
    with pytest.raises(TableHeldError):
        lease_of(storage)
    make_old(storage, "somebody", 3600)
    assert lease_of(storage).is_held


def test_a_command_holds_the_table_while_it_runs(storage):
    with hold_table(storage, COMMANDS + "clean") as lease:
        lease.confirm()
        with pytest.raises(TableHeldError, match="hudistream clean"):
            lease_of(storage)
    assert lease_of(storage).is_held


def test_a_lease_for_one_writer_is_not_shared(storage):
    lease = lease_of(storage)
    assert (lease.is_shared, lease.find_share()) == (False, (0, 1))
    with pytest.raises(BrokenInvariantError):
        lease.share()


@pytest.mark.parametrize(("ahead_s", "is_told"), [(30, False), (3600, True)])
def test_a_clock_that_is_ahead_of_the_stores_is_told_when_the_table_is_taken(
    storage, monkeypatch, logs, ahead_s, is_told
):
    now_ms = clock.now_ms
    monkeypatch.setattr(clock, "now_ms", lambda: now_ms() + ahead_s * 1000)
    lease = lease_of(storage)
    told = [entry for entry in logs if entry["event"] == "clock_ahead_of_store"]
    assert (lease.ahead_ms > clock.MAX_CLOCK_SKEW_MS, bool(told)) == (is_told, is_told)
    assert abs(lease.ahead_ms - ahead_s * 1000) < 5000
    lease.release()
