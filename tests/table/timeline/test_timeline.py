import pytest
from instants import completed, inflight, requested

from table.clock import InstantClock
from table.errors import CommitOutcomeUnknownError, StorageError
from table.storage.local import LocalStorage
from table.timeline.active_timeline import (
    begin_instant,
    complete_instant,
    load_timeline,
    request_instant,
)
from table.timeline.instant import Action, State
from table.timeline.timeline import build_timeline


def test_the_highest_state_wins_and_compaction_counts_as_commit():
    t1, t2 = "20260101000000001", "20260101000000002"
    timeline = build_timeline(
        [requested(t2), inflight(t2), completed(t1), requested(t1, Action.COMPACTION), inflight(t1, Action.COMPACTION)]
    )
    assert [i.file_name for i in timeline] == [f"{t1}.commit", f"{t2}.inflight"]
    assert [i.time for i in timeline.pending] == [t2]
    assert timeline.files_of(t2, Action.COMMIT) == (requested(t2), inflight(t2))


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
