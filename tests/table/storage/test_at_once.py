"""Calls that need no order among them: made at the same time on a store far away, one after another on a disk."""

import contextvars
import threading
from functools import partial

import pytest

from table import StorageError
from table.storage.at_once import together


class Near:
    calls_at_once = 1


class Far:
    calls_at_once = 16


def fail(error):
    raise error


@pytest.mark.parametrize("store", [Near(), Far()])
def test_answers_come_in_the_order_of_the_calls(store):
    assert together(store, lambda: 1, lambda: "two", lambda: None, lambda: 4.0) == (1, "two", None, 4.0)


def test_calls_of_a_store_far_away_are_made_at_the_same_time():
    meet = threading.Barrier(3, timeout=10)
    assert sorted(together(Far(), meet.wait, meet.wait, meet.wait)) == [0, 1, 2]


def test_calls_on_a_disk_are_made_in_the_calling_thread():
    assert together(Near(), threading.get_ident, threading.get_ident) == (threading.get_ident(),) * 2


@pytest.mark.parametrize("slow_first", [False, True])
def test_the_error_of_the_first_call_that_failed_is_raised_when_all_have_ended(slow_first):
    ended, go = [], threading.Event()

    def late(error):
        assert go.wait(10)
        ended.append(1)
        raise error

    def soon(error):
        go.set()
        raise error

    calls = [partial(late if slow_first else soon, StorageError("first"))]
    calls.append(partial(soon if slow_first else late, StorageError("second")))
    with pytest.raises(StorageError, match="first"):
        together(Far(), *calls)
    assert ended == [1]


def test_on_a_disk_no_call_is_made_after_one_that_fails():
    with pytest.raises(StorageError):
        together(Near(), partial(fail, StorageError("no")), partial(fail, AssertionError("was called")))


def test_what_stops_the_process_waits_for_the_calls_that_run():
    ended = []
    with pytest.raises(KeyboardInterrupt):
        together(Far(), lambda: ended.append(1), partial(fail, KeyboardInterrupt()))
    assert ended == [1]


def test_a_call_sees_the_variables_of_its_caller():
    """So log events of each call name the table and the batch."""
    variable = contextvars.ContextVar("variable")
    variable.set("batch 3")
    assert together(Far(), variable.get, variable.get) == ("batch 3", "batch 3")
