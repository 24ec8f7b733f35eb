"""Names, states and order of instants, in both layouts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

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

TIMES = st.integers(20000101000000000, 20991231235959999).map(str)
PENDING = st.sampled_from([State.REQUESTED, State.INFLIGHT])
TWO_TIMES = CompletionTimeNames()
# in layout 1 a pending clustering is a replace commit
OF_LAYOUT_1 = st.sampled_from([action for action in Action if action is not Action.CLUSTERING])


@given(TIMES, OF_LAYOUT_1, PENDING)
def test_a_pending_instant_of_layout_1_has_the_name_that_is_parsed(time, action, state):
    instant = Instant(time, action, state)
    assert REQUEST_TIME_NAMES.parse(instant.file_name) == instant
    assert instant.path == f".hoodie/{instant.file_name}"


@given(TIMES, st.sampled_from(Action), PENDING)
def test_a_pending_instant_of_layout_2_has_the_name_that_is_parsed(time, action, state):
    instant = Instant(time, action, state, names=TWO_TIMES)
    assert TWO_TIMES.parse(instant.file_name) == instant
    assert instant.path == f".hoodie/timeline/{instant.file_name}"


@given(TIMES, TIMES, st.sampled_from(Action))
def test_a_completed_instant_of_layout_2_has_both_times_in_its_name(time, completed_at, action):
    instant = Instant(time, action, State.INFLIGHT, names=TWO_TIMES).to(State.COMPLETED, completed_at)
    found = TWO_TIMES.parse(instant.file_name)
    assert (found, found.completion_time) == (instant, completed_at)
    assert found.action is COMPLETED_AS.get(action, action)


@pytest.mark.parametrize(
    ("instant", "name"),
    [
        (Instant("20260101000000000", Action.COMMIT, State.REQUESTED), "20260101000000000.commit.requested"),
        (Instant("20260101000000000", Action.COMMIT, State.INFLIGHT), "20260101000000000.inflight"),
        (Instant("20260101000000000", Action.DELTA_COMMIT, State.INFLIGHT), "20260101000000000.deltacommit.inflight"),
        (Instant("20260101000000000", Action.COMPACTION, State.COMPLETED), "20260101000000000.commit"),
        (Instant("20260101000000000", Action.LOG_COMPACTION, State.COMPLETED), "20260101000000000.deltacommit"),
        (Instant("20260101000000000", Action.SAVEPOINT, State.COMPLETED), "20260101000000000.savepoint"),
    ],
)
def test_names_of_layout_1_are_hudis(instant, name):
    assert instant.file_name == name


OTHERS = """
hoodie.properties 2026.commit 20260101000000000.commit.done 20260101000000000.unknown
20260101000000000 .20260101000000000.commit 20260101000000000.commit.requested.crc
"""


@pytest.mark.parametrize("name", ["", *OTHERS.split()])
def test_other_names_are_none_in_both_layouts(name):
    assert REQUEST_TIME_NAMES.parse(name) is None
    assert TWO_TIMES.parse(name) is None


def test_a_completion_time_belongs_to_completed_files_of_layout_2_alone():
    assert REQUEST_TIME_NAMES.parse("20260101000000000_20260101000000001.commit") is None
    assert TWO_TIMES.parse("20260101000000000_20260101000000001.commit.requested") is None
    assert TWO_TIMES.parse("20260101000000000_20260101000000001.inflight") is None


def test_a_completed_file_that_was_moved_from_layout_1_has_no_completion_time():
    assert TWO_TIMES.parse("20260101000000000.commit").completion_time is None


@pytest.mark.parametrize("before", [None, *State])
@pytest.mark.parametrize("after", [None, *State])
def test_only_some_transitions_are_allowed(before, after):
    if (before, after) in ALLOWED_TRANSITIONS:
        check_transition(before, after)
    else:
        with pytest.raises(BrokenInvariantError, match=f"from {before} to {after}"):
            check_transition(before, after)


def test_a_completed_instant_never_goes_back_to_pending():
    done = Instant("20260101000000000", Action.COMMIT, State.COMPLETED)
    for state in (State.REQUESTED, State.INFLIGHT):
        with pytest.raises(BrokenInvariantError):
            done.to(state)


def test_another_state_has_no_completion_time():
    done = Instant("20260101000000000", Action.COMMIT, State.COMPLETED, "20260101000000001", names=TWO_TIMES)
    assert done.at(State.REQUESTED).file_name == "20260101000000000.commit.requested"
    assert done.at(State.REQUESTED).completion_time is None


@given(TIMES, TIMES)
def test_just_after_lies_between_a_time_and_every_later_one(time, other):
    assert time < just_after(time)
    assert (other > time) == (other > just_after(time))
