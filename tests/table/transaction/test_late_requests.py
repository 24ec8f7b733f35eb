"""A request that got no answer and lands late: it changes no end that somebody has decided since."""

from contextlib import suppress

import pytest
from engine import Engine, key_set, rows
from faults import FaultyStorage
from instants import requested

from table import CommitConflictError, StorageError, clock, read_table
from table.errors import CommitOutcomeUnknownError
from table.storage.local import LocalStorage
from table.timeline.active_timeline import load_timeline
from table.timeline.end_record import find_end

EVERYTHING = key_set(rows(range(60)))


class Late:
    """The first request of a kind gets no answer, and is applied only after so many later calls.

    To be used as the fuse of `FaultyStorage`. Requests of that kind that follow at once are lost, up to `lost`.
    """

    blown = False

    def __init__(self, is_meant, after, lost):
        self._is_meant, self._after, self._lost = is_meant, after, lost
        self._held = None
        self._count = 0

    def pass_through(self, name, effect):
        if self._count is not None and self._held is not None:
            self._count += 1
            if self._count >= self._after:
                self.land()
        if self._lost and self._is_meant(name):
            self._lost -= 1
            self._held = self._held or effect
            raise StorageError("the connection timed out")
        return effect()

    def land(self):
        """The request arrives."""
        if self._held is not None and self._count is not None:
            self._count = None
            self._held()


def write_again(engine, batch_id, table):
    """A batch that meets a late request is refused, and may be run again."""
    try:
        return engine.write(batch_id, table)
    except CommitConflictError:
        return engine.write(batch_id, table)


@pytest.mark.parametrize(
    ("part", "in_ends", "lost"),
    [(".commit", True, 5), (".commit", False, 5), (".commit.requested", False, 1), (".inflight", False, 1)],
    ids=["end record", "commit", "request", "inflight"],
)
def test_a_request_whose_answer_was_lost_and_that_lands_late_changes_no_end(tmp_path, monkeypatch, part, in_ends, lost):
    monkeypatch.setattr(clock, "sleep_s", lambda _seconds: None)

    def is_meant(name):
        return name.startswith("create_exclusive ") and name.endswith(part) and ("/ends/" in name) is in_ends

    outcomes = set()
    for after in [*range(1, 60, 7), 10_000]:
        path = str(tmp_path / str(after))
        Engine(path).write(0, rows(range(30)))
        late = Late(is_meant, after, lost)
        first, second = (Engine(FaultyStorage(LocalStorage(path), late)) for _ in range(2))
        with suppress(CommitOutcomeUnknownError, StorageError):  # it may land while its sender still asks
            first.write(1, rows(range(30, 60)))
        torn = load_timeline(LocalStorage(path)).pending
        outcomes.add(write_again(second, 1, rows(range(30, 60))).skipped)
        late.land()
        assert key_set(read_table(path)) == EVERYTHING, after
        write_again(second, 2, rows([60]))
        assert key_set(read_table(path)) == key_set(rows(range(61))), after
        timeline = load_timeline(LocalStorage(path))
        assert timeline.pending == ()
        for instant in torn:
            end = find_end(LocalStorage(path), instant.time, instant.action)
            assert end.is_commit == (instant.time in timeline.committed_times), after
            assert timeline.contains(requested(instant.time)) == end.is_commit
    if in_ends:
        assert outcomes == {True, False}  # it landed before the next process decided, and afterwards
