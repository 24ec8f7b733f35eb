"""Names, states and order of instants, in both layouts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from instants import completed, inflight, requested

from table.errors import BrokenInvariantError
from table.timeline.instant import (
    ALLOWED_TRANSITIONS,
    COMPLETED_AS,
    REQUEST_TIME_NAMES,
    Action,
    CompletionTimeNames,
    Instant,
    State,
    check_transition,
    just_after,
)

TWO_TIMES = CompletionTimeNames()

NAMES = [
    (requested("20261121162941248"), "20261121162941248.commit.requested"),
    (inflight("20261121162941248"), "20261121162941248.inflight"),
    (completed("20261121162941248"), "20261121162941248.commit"),
    (inflight("20261121162941248", Action.DELTA_COMMIT), "20261121162941248.deltacommit.inflight"),
    (completed("20261121162941248", Action.COMPACTION), "20261121162941248.commit"),
    (requested("20261121162941248", Action.COMPACTION), "20261121162941248.compaction.requested"),
    (completed("20261121162941248", Action.LOG_COMPACTION), "20261121162941248.deltacommit"),
    (inflight("20261121162941248", Action.REPLACE_COMMIT), "20261121162941248.replacecommit.inflight"),
    (requested("20261121162941248", Action.CLEAN), "20261121162941248.clean.requested"),
    (completed("20261121162941248", Action.ROLLBACK), "20261121162941248.rollback"),
    (inflight("20261121162941248", Action.SAVEPOINT), "20261121162941248.savepoint.inflight"),
    (completed("20261121162941248", Action.RESTORE), "20261121162941248.restore"),
    (requested("20261121162941248", Action.INDEXING), "20261121162941248.indexing.requested"),
]


@pytest.mark.parametrize(("instant", "name"), NAMES)
def test_file_names(instant, name):
    assert instant.file_name == name
    parsed = REQUEST_TIME_NAMES.parse(name)
    action = COMPLETED_AS.get(instant.action, instant.action) if instant.is_completed else instant.action
    assert parsed == Instant(instant.time, action, instant.state)


@given(
    st.datetimes().map(lambda moment: moment.strftime("%Y%m%d%H%M%S").zfill(14) + "123"),
    st.sampled_from(list(Action)),
    st.sampled_from(list(State)),
)
def test_file_names_round_trip(time, action, state):
    if state is State.COMPLETED and action in COMPLETED_AS:
        return
    if action is not Action.CLUSTERING:  # there is none in layout 1
        instant = Instant(time, action, state)
        assert REQUEST_TIME_NAMES.parse(instant.file_name) == instant
    completed_at = time[::-1] if state is State.COMPLETED else None
    instant = Instant(time, action, state, completed_at, names=CompletionTimeNames())
    found = CompletionTimeNames().parse(instant.file_name)
    assert (found, found.completion_time) == (instant, completed_at)


@pytest.mark.parametrize(
    "name", ["hoodie.properties", ".temp", "2026.commit", "20261121162941248", "20261121162941248.unknown",
             "20261121162941248.commit.done", ".20261121162941248.commit.crc", "x20261121162941248.commit"],
)  # fmt: skip
def test_other_files_are_no_instants(name):
    assert REQUEST_TIME_NAMES.parse(name) is None


@pytest.mark.parametrize("before", [None, *State])
@pytest.mark.parametrize("after", [None, *State])
def test_transitions_are_those_of_the_table(before, after):
    if (before, after) in ALLOWED_TRANSITIONS:
        check_transition(before, after)
    else:
        with pytest.raises(BrokenInvariantError):
            check_transition(before, after)


@pytest.mark.parametrize(
    ("time", "later"),
    [
        ("20260101000000000", "20260101000000001"),
        ("20261231235959999", "20270101000000000"),
        ("20260329015959999", "20260329020000000"),  # where clocks change
        ("20260101000000", "20260101000000001"),
    ],
)
def test_the_bound_behind_a_time_sorts_before_every_later_one(time, later):
    assert time < just_after(time) <= later


@pytest.mark.parametrize("action", Action)
def test_a_completed_instant_has_the_action_that_it_ends_as(action):
    done = Instant("20260101000000000", action, State.INFLIGHT, names=TWO_TIMES).to(
        State.COMPLETED, "20260101000000001"
    )
    assert done.action is COMPLETED_AS.get(action, action)
    assert TWO_TIMES.parse(done.file_name) == done
    assert done.path == f".hoodie/timeline/{done.file_name}"


def test_a_completion_time_belongs_to_completed_files_of_layout_2_alone():
    assert REQUEST_TIME_NAMES.parse("20260101000000000_20260101000000001.commit") is None
    assert TWO_TIMES.parse("20260101000000000_20260101000000001.commit.requested") is None
    assert TWO_TIMES.parse("20260101000000000_20260101000000001.inflight") is None


def test_a_completed_file_that_was_moved_from_layout_1_has_no_completion_time():
    assert TWO_TIMES.parse("20260101000000000.commit").completion_time is None


def test_a_completed_instant_never_goes_back_to_pending():
    done = Instant("20260101000000000", Action.COMMIT, State.COMPLETED)
    for state in (State.REQUESTED, State.INFLIGHT):
        with pytest.raises(BrokenInvariantError):
            done.to(state)


def test_another_state_has_no_completion_time():
    done = Instant("20260101000000000", Action.COMMIT, State.COMPLETED, "20260101000000001", names=TWO_TIMES)
    assert done.at(State.REQUESTED).file_name == "20260101000000000.commit.requested"
    assert done.at(State.REQUESTED).completion_time is None
