import pytest
from hypothesis import given
from hypothesis import strategies as st
from instants import completed, inflight, requested

from table.clock import InstantClock
from table.errors import BrokenInvariantError, CommitOutcomeUnknownError, StorageError
from table.storage.local import LocalStorage
from table.timeline.active_timeline import (
    begin_instant,
    complete_instant,
    load_timeline,
    request_instant,
)
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
from table.timeline.timeline import build_timeline

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


def test_the_highest_state_wins_and_compaction_counts_as_commit():
    t1, t2 = "20260101000000001", "20260101000000002"
    timeline = build_timeline(
        [requested(t2), inflight(t2), completed(t1), requested(t1, Action.COMPACTION), inflight(t1, Action.COMPACTION)]
    )
    assert [i.file_name for i in timeline] == [f"{t1}.commit", f"{t2}.inflight"]
    assert [i.time for i in timeline.pending] == [t2]
    assert timeline.files_of(t2, Action.COMMIT) == (requested(t2), inflight(t2))


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


def test_instants_strictly_increase_even_within_a_millisecond(tmp_path):
    storage = LocalStorage(str(tmp_path))
    times = [request_instant(storage, load_timeline(storage), Action.COMMIT, InstantClock()).time for _ in range(20)]
    assert times == sorted(set(times))


def test_two_writers_that_pick_the_same_time_are_told_apart(tmp_path):
    storage = LocalStorage(str(tmp_path))
    empty = load_timeline(storage)
    times = {request_instant(storage, empty, Action.COMMIT, InstantClock()).time for _ in range(10)}
    assert len(times) == 10


class LostAnswer(LocalStorage):
    """Creates the file, and says that it failed."""

    def create_exclusive(self, path, data, *, durable=False):
        super().create_exclusive(path, data, durable=durable)
        raise StorageError("connection reset")


def test_a_commit_whose_answer_was_lost_is_read_back(tmp_path):
    storage = LocalStorage(str(tmp_path))
    begun = begin_instant(storage, request_instant(storage, load_timeline(storage), Action.COMMIT, InstantClock()))
    assert complete_instant(LostAnswer(str(tmp_path)), begun, b"ours").is_completed


def test_somebody_elses_commit_is_not_taken_for_ours(tmp_path):
    storage = LocalStorage(str(tmp_path))
    begun = begin_instant(storage, request_instant(storage, load_timeline(storage), Action.COMMIT, InstantClock()))
    complete_instant(storage, begun, b"theirs")
    with pytest.raises(StorageError, match="by another process"):
        complete_instant(storage, begun, b"ours")
    assert storage.read(begun.to(State.COMPLETED).path) == b"theirs"


def test_unknown_outcome_is_said_as_such(tmp_path):
    class Down(LostAnswer):
        def read(self, path):
            raise StorageError("down")

    storage = LocalStorage(str(tmp_path))
    begun = begin_instant(storage, request_instant(storage, load_timeline(storage), Action.COMMIT, InstantClock()))
    with pytest.raises(CommitOutcomeUnknownError):
        complete_instant(Down(str(tmp_path)), begun, b"ours")
