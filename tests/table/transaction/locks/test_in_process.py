"""The lock among threads of one process, and the waiting that all locks have in common."""

import os
import threading
from unittest import mock

import pytest

from table import clock
from table.errors import BrokenInvariantError, CommitConflictError, InvalidConfigError
from table.storage.local import LocalStorage
from table.transaction.locks import LockProvider, LockSettings, make_lock, patience
from table.transaction.locks import in_process as module

AT_ONCE = LockSettings(provider="in_process", wait_ms=1, attempts_more=0)
PATIENT = LockSettings(provider="in_process", wait_ms=20_000, attempts_more=0)


@pytest.fixture(autouse=True)
def _a_process_of_its_own(monkeypatch):
    monkeypatch.setattr(module, "_GATES", {})


def lock_of(path, settings=AT_ONCE):
    return make_lock(LocalStorage(str(path)), settings)


def test_two_locks_of_one_table_exclude_each_other_and_say_who_holds_it():
    ours, theirs = lock_of("/t"), lock_of("/t")
    with ours.hold() as held:
        with pytest.raises(CommitConflictError, match=r"'/t' in this process is held by a thread"):
            in_thread(lambda: theirs.hold().__enter__())
        held.check()
    with theirs.hold():
        pass


def in_thread(does):
    raised = []

    def run():
        try:
            does()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]


def test_tables_do_not_wait_for_each_other():
    with lock_of("/t").hold(), lock_of("/u").hold():
        pass


def test_one_table_has_one_lock_whatever_its_address_is_called():
    assert module.InProcessLock("s3a://b/t", AT_ONCE)._of_table is module.InProcessLock("s3://b/t", AT_ONCE)._of_table


def test_who_waits_goes_on_once_the_lock_is_free():
    lock, order = lock_of("/t", PATIENT), []
    inside = threading.Event()

    def second():
        inside.wait()
        with lock.hold():
            order.append("second")

    thread = threading.Thread(target=second)
    thread.start()
    with lock.hold():
        inside.set()
        thread.join(0.05)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_a_thread_that_takes_it_twice_is_told_instead_of_waiting_for_itself():
    lock = lock_of("/t", PATIENT)
    with lock.hold(), pytest.raises(BrokenInvariantError, match="second time"), lock.hold():
        pass
    with lock.hold(), pytest.raises(BrokenInvariantError, match="second time"), lock_of("/t", PATIENT).hold():
        pass
    with lock.hold():
        pass


def test_a_failure_under_the_lock_releases_it():
    lock = lock_of("/t")
    with pytest.raises(RuntimeError), lock.hold():
        raise RuntimeError
    with lock.hold():
        pass


def test_attempts_and_pauses_are_as_many_as_the_options_say():
    settings = LockSettings(provider="in_process", wait_ms=1, attempts_more=3, pause_ms=70)
    slept = []
    refused = pytest.raises(CommitConflictError, match="num_retries")
    with lock_of("/t").hold(), mock.patch.object(clock, "sleep_s", slept.append), refused:
        in_thread(lambda: lock_of("/t", settings).hold().__enter__())
    assert slept == [0.07] * 3


def test_it_tells_people_what_it_is(tmp_path):
    lock = lock_of(tmp_path)
    assert lock.describe() is None
    assert not lock.is_shared_between_processes
    with lock.hold():
        state = lock.describe()
    assert (state.provider, state.is_held) == (LockProvider.IN_PROCESS, True)
    assert abs(state.since_ms - clock.now_ms()) < 60_000
    with pytest.raises(InvalidConfigError, match="ends with that process"):
        lock.break_lock()


def test_without_a_provider_it_is_a_lock_in_this_process():
    assert isinstance(make_lock(LocalStorage("/t"), LockSettings()), module.InProcessLock)


def test_a_thread_that_waits_long_warns_and_still_gets_the_lock(monkeypatch, logs):
    monkeypatch.setattr(patience, "WARNS_AFTER_S", 0.05)
    monkeypatch.setattr(patience, "_LOOKS_AGAIN_S", 0.01)
    ours, theirs, got = lock_of("/t", PATIENT), lock_of("/t", PATIENT), []

    def wait():
        with theirs.hold():
            got.append(True)

    with ours.hold():
        waiting = threading.Thread(target=wait)
        waiting.start()
        for _ in range(500):
            if any(entry["event"] == "lock_waits_long" for entry in logs):
                break
            clock.sleep_s(0.01)
    waiting.join()
    told = next(entry for entry in logs if entry["event"] == "lock_waits_long")
    assert (told["log_level"], got) == ("warning", [True])
    assert told["created"] is not None


def test_a_child_of_a_fork_does_not_wait_for_threads_that_it_does_not_have():
    with lock_of("/lake/forked").hold():
        child = os.fork()
        if child == 0:
            with lock_of("/lake/forked").hold():
                os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
