"""The place of the lock: what is done under it, and that a writer's standing has three answers."""

from contextlib import contextmanager

import pytest
from engine import Engine, rows

from table import clock, read_table
from table.errors import BatchRefusedError
from table.hudi_table import HudiTable
from table.lock import NoLock
from table.options.groups import ArchiveSettings, CleanSettings
from table.services.archival.archival import archive
from table.services.clean.clean import clean
from table.services.rollback.undo_commit import roll_back
from table.services.savepoint.restore import restore_to_savepoint
from table.services.savepoint.savepoint import create_savepoint
from table.storage.interface import METAFOLDER
from table.storage.local import LocalStorage
from table.timeline.end_record import ENDS_FOLDER
from table.transaction.heartbeat import WriterIdentity
from table.transaction.liveness import Standing, judge_writer
from table.transaction.lock import Step, StepLock

CLEAN = CleanSettings(commits_retained=1, grace_ms=0)


class Recorder:
    """A lock that is not taken twice, and what was created while it was held."""

    def __init__(self):
        self.held, self.created = None, []

    @contextmanager
    def guarded(self, step):
        assert self.held in (None, Step.RECOVER), f"{step} within {self.held}"
        outer, self.held = self.held, step
        try:
            yield self
        finally:
            self.held = outer

    def check(self):
        assert self.held is not None

    def steps_of(self, end, folder=""):
        return {step for path, step in self.created if path.endswith(end) and path.rpartition("/")[0].endswith(folder)}


@pytest.fixture
def recorder(monkeypatch):
    found = Recorder()
    monkeypatch.setattr(NoLock, "guarded", lambda _, step: found.guarded(step))
    create = LocalStorage.create_exclusive

    def noted(self, path, data, *, durable=False):
        found.created.append((path, found.held))
        return create(self, path, data, durable=durable)

    monkeypatch.setattr(LocalStorage, "create_exclusive", noted)
    return found


def fill(path, batches):
    engine = Engine(path)
    for number in batches:
        engine.write(number, rows(range(10)))
    engine.writer.lease.release()
    return HudiTable.open(path)


def test_an_instant_is_requested_and_completed_under_the_lock_and_nothing_else_of_a_batch(tmp_path, recorder):
    fill(str(tmp_path / "t"), range(2))
    assert recorder.steps_of(".commit.requested") == {Step.BEGIN}
    assert recorder.steps_of(".commit") == {Step.COMPLETE}
    assert recorder.steps_of(".inflight") == {Step.BEGIN}  # created while the timeline is listed
    outside = {path.split("/")[1] for path, step in recorder.created if step is None and path.startswith(".hoodie/")}
    assert not {path for path, step in recorder.created if step is not None and not path.startswith(".hoodie/")}
    assert "hoodie.properties" in outside


def test_services_are_scheduled_under_the_lock_and_carried_out_beside_it(tmp_path, recorder):
    path = str(tmp_path / "t")
    table = fill(path, range(7))
    assert clean(table, CLEAN)
    assert archive(table, ArchiveSettings(min_commits=2, max_commits=3), CLEAN).instants
    with pytest.raises(BatchRefusedError):
        Engine(path, validators=[lambda _: "not this one"]).write(7, rows([1]))
    fill(path, [None])
    roll_back(table, table.load_timeline().completed_writes[-1].time, force=True)
    create_savepoint(table)
    saved = table.load_timeline().completed_writes[-1].time
    fill(path, [None])
    restore_to_savepoint(table, saved, force=True)
    for action in ("clean", "rollback", "restore"):
        assert recorder.steps_of(f".{action}.requested") == {Step.SCHEDULE}
        assert recorder.steps_of(f".{action}", METAFOLDER) == {None}
    for action in ("rollback", "restore"):  # whether they are carried out
        assert recorder.steps_of(f".{action}", ENDS_FOLDER) == {Step.SCHEDULE}
    assert recorder.held is None


ME = WriterIdentity("sink", "query", "owner")


def test_where_the_lease_is_shared_a_fresh_heartbeat_is_a_live_writer():
    other = WriterIdentity("other", "other", "another")
    assert judge_writer(other, ME, shared=True) is Standing.ALIVE
    assert judge_writer(WriterIdentity("sink", "query", "an earlier run"), ME, shared=True) is Standing.MINE
    assert judge_writer(None, ME, shared=True) is Standing.DEAD


@pytest.mark.parametrize(
    ("live", "standing"),
    [
        (None, Standing.DEAD),
        (WriterIdentity("sink", "query", "owner"), Standing.MINE),
        (WriterIdentity("sink", "query", "an earlier run"), Standing.MINE),
        (WriterIdentity("sink", "query", ""), Standing.MINE),
        (WriterIdentity("sink", None, "another"), Standing.DEAD),
        (WriterIdentity("other", "other", "another"), Standing.DEAD),
        (WriterIdentity("other", "other", ""), Standing.ALIVE),
        (WriterIdentity(""), Standing.ALIVE),
    ],
)
def test_a_writer_is_we_ourselves_or_alive_or_dead(live, standing):
    assert judge_writer(live, ME) is standing


SHARED = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.provider": "filesystem",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "2",
    "hoodie.clean.automatic": "true",
    "hoodie.clean.async.enabled": "false",
}


def ages_at_release(path, monkeypatch, version, skew_ms):
    """How old the newest time of the timeline is whenever the lock is free again; in milliseconds."""
    ages = []
    inner = StepLock.guarded

    @contextmanager
    def watched(self, step):
        with inner(self, step) as held:
            yield held
            table = HudiTable.open(path)
            last = table.load_timeline().last_time
            if last is not None and step is not Step.RECOVER:
                ages.append(clock.now_ms() - clock.parse_instant_time(last, table.config.timezone))

    monkeypatch.setattr(StepLock, "guarded", watched)
    options = {
        **SHARED,
        "hoodie.write.table.version": version,
        "hoodie.time.generator.max_expected_clock_skew_ms": str(skew_ms),
    }
    engine = Engine(path, options)
    for number in range(5):
        engine.write(number, rows(range(4), ts=number))
        engine.writer.services.wait()
    assert len(read_table(path)) == 4
    return ages


@pytest.mark.parametrize("skew_ms", [0, 200])
def test_a_writer_whose_clock_is_behind_takes_the_lock_and_chooses_a_greater_time(tmp_path, monkeypatch, skew_ms):
    ages = ages_at_release(str(tmp_path / "t"), monkeypatch, "8", skew_ms)
    assert len(ages) >= 12  # five batches have two steps each, and compactions and cleans more
    assert (min(ages) > 200) == (skew_ms == 200)


def test_in_layout_1_a_writer_does_not_wait(tmp_path, monkeypatch):
    assert min(ages_at_release(str(tmp_path / "t"), monkeypatch, "6", 200)) < 200
