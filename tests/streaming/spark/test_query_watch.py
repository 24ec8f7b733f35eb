"""Which queries of this process are over, and what the watch of a sink does then; with stand-ins for Spark."""

import threading
import time
from types import SimpleNamespace

import pytest

from streaming.spark import environment, query_watch
from streaming.spark.query_watch import QueryWatch

QUERY, OTHER = "0f3a7c52-6d0e-4b7e-9c55-0d5a3e1f2b6c", "9a1d2f64-3b1c-4e0d-8f77-5c2e6a4b8d10"


class Session:
    """A session of classic Spark that knows some active queries."""

    def __init__(self, *active):
        self.active = set(active)
        self.streams = SimpleNamespace(get=lambda query_id: query_id if query_id in self.active else None)


@pytest.fixture
def own(monkeypatch):
    """own(session) makes it the application's session."""
    monkeypatch.setattr(environment, "_SEEN_BY", {})

    def use(session):
        builder = SimpleNamespace(getOrCreate=lambda: session)
        monkeypatch.setattr(environment, "SparkSession", SimpleNamespace(builder=builder))
        return session

    return use


def test_a_query_is_over_when_the_session_that_named_it_names_it_no_more(own):
    session = own(Session(QUERY))
    assert not environment.is_query_over(QUERY)  # no session has named it
    environment.note_active(session, QUERY)
    assert environment.is_seen_active(QUERY)
    assert not environment.is_query_over(QUERY)
    session.active.clear()
    assert environment.is_query_over(QUERY)


def test_a_query_that_is_started_again_after_spark_was_is_asked_of_the_new_session(own):
    own(Session(QUERY))
    environment.note_active(own(Session(QUERY)), QUERY)
    stopped = own(Session(QUERY))
    environment.note_active(stopped, QUERY)
    stopped.active.clear()
    environment.note_active(own(Session(QUERY)), QUERY)
    assert not environment.is_query_over(QUERY)


@pytest.mark.parametrize("query_id", [None, OTHER, "not of Spark"])
def test_what_no_session_named_is_never_over(own, query_id):
    environment.note_active(own(Session(QUERY)), query_id)
    assert not environment.is_seen_active(query_id)
    assert not environment.is_query_over(query_id)


class Leaving:
    """A sink that leaves when it is told to, and counts."""

    def __init__(self, *answers):
        self.answers, self.calls, self.was_over = list(answers), 0, []

    def leave(self, is_over):
        self.calls += 1
        self.was_over.append(is_over())
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def over(monkeypatch):
    """The queries that are over; the watch looks at once."""
    found = set()
    monkeypatch.setattr(query_watch, "_EVERY_S", 0.01)
    monkeypatch.setattr(query_watch, "is_query_over", lambda query_id: query_id in found)
    monkeypatch.setattr(query_watch, "is_seen_active", lambda query_id: query_id is not None)
    monkeypatch.setattr(query_watch, "is_connect", lambda _: False)
    return found


def wait_until(holds):
    until = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.005)


def watches():
    return [thread for thread in threading.enumerate() if thread.name == "hudistream-query"]


def test_a_sink_that_is_busy_is_asked_again_until_it_has_left(over):
    before, sink = len(watches()), Leaving(False, False, True)
    watch = QueryWatch(sink.leave)
    for _ in range(3):
        watch.note_batch(None, "a")
    assert len(watches()) == before + 1
    over.add("a")
    wait_until(lambda: sink.calls == 3 and len(watches()) == before)
    assert sink.was_over == [True] * 3


def test_a_query_that_is_started_again_is_watched_again(over):
    before, sink = len(watches()), Leaving(True, True)
    watch = QueryWatch(sink.leave)
    for calls in (1, 2):
        watch.note_batch(None, "a")
        over.add("a")
        wait_until(lambda calls=calls: sink.calls == calls and len(watches()) == before)
        over.clear()


def test_a_failure_of_spark_ends_the_watch_until_the_next_batch(over):
    before, sink = len(watches()), Leaving(RuntimeError("no gateway"), True)
    watch = QueryWatch(sink.leave)
    over.add("a")
    for calls in (1, 2):
        watch.note_batch(None, "a")
        wait_until(lambda calls=calls: sink.calls == calls and len(watches()) == before)


def test_the_query_before_is_not_watched_any_more(over):
    before, sink = len(watches()), Leaving(True)
    watch = QueryWatch(sink.leave)
    watch.note_batch(None, "a")
    watch.note_batch(None, "b")
    over.add("a")
    wait_until(lambda: len(watches()) == before + 1)
    assert sink.calls == 0
    over.add("b")
    wait_until(lambda: sink.calls == 1 and len(watches()) == before)


def test_a_watch_keeps_no_sink_alive(over):
    before = len(watches())
    watch = QueryWatch(Leaving().leave)
    watch.note_batch(None, "a")
    wait_until(lambda: len(watches()) == before)
