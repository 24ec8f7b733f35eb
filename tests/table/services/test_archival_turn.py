"""One archival at a time: who has the turn, who takes it over, and who stops."""

import json

import pytest

from table import clock
from table.errors import CommitConflictError
from table.services.archival import turn as module
from table.services.archival.turn import EXPIRY_MS, TURN_FOLDER, Turn, TurnRecord, decode_turn, hold_turn
from table.storage.local import LocalStorage
from table.transaction.register import Register
from table.version import VERSION


@pytest.fixture
def storage(tmp_path):
    return LocalStorage(str(tmp_path))


def held_by(storage, record, sign=True):
    Register(storage, TURN_FOLDER).append(0, record)
    if sign:
        storage.put(f"{TURN_FOLDER}/sign-other", b"")


OTHER = TurnRecord("other", "another machine", 5).encode()


def test_the_turn_comes_back_when_the_block_ends(storage):
    for _ in range(3):
        with hold_turn(storage):
            pass
    assert [entry.name for entry in storage.list_dir(TURN_FOLDER)] == ["6"]


def test_a_second_archival_is_refused_in_one_process_too(storage):
    with (
        hold_turn(storage),
        pytest.raises(CommitConflictError, match="is being archived by process"),
        hold_turn(storage),
    ):
        pass
    with hold_turn(storage):
        pass


def test_a_living_archival_elsewhere_is_left_alone(storage):
    held_by(storage, OTHER)
    with pytest.raises(CommitConflictError, match="is being archived by process 5"), hold_turn(storage):
        pass
    assert not [entry.name for entry in storage.list_dir(TURN_FOLDER) if entry.name not in ("1", "sign-other")]


@pytest.mark.parametrize("record", [OTHER, b'{"who": "in another form"}'])
def test_an_archival_without_a_sign_of_life_is_over(storage, record):
    held_by(storage, record, sign=False)
    with hold_turn(storage):
        pass


def test_a_record_of_a_later_version_is_not_nobody(storage):
    held_by(storage, b'{"who": "in another form"}')
    with pytest.raises(CommitConflictError, match="a writer of another version"), hold_turn(storage):
        pass
    later = json.dumps({**json.loads(OTHER), "more": 1}).encode()
    assert decode_turn(later) == TurnRecord("other", "another machine", 5)
    assert json.loads(OTHER)["version"] == VERSION


def test_an_archival_that_was_paused_until_another_took_over_stops(storage, monkeypatch):
    now_s = [0.0]
    monkeypatch.setattr(module.clock, "monotonic_s", lambda: now_s[0])
    paused = Turn(storage, clock.fresh_uuid())
    paused.take()
    now_s[0] += EXPIRY_MS / 1000
    paused.check()  # still its own
    module._OF_THIS_PROCESS.clear()  # as another process sees it: dead
    other = Turn(storage, clock.fresh_uuid())
    other.take()
    paused.check()  # it was seen alive a moment ago
    now_s[0] += EXPIRY_MS / 1000
    with pytest.raises(CommitConflictError, match="took over"):
        paused.check()
    other.check()
    paused.release()
    other.check()
    with pytest.raises(CommitConflictError), hold_turn(storage):
        pass
    other.release()
