"""One writer means one: two streams, two backfills, operators, other engines, renewals that fail, the lease."""

import os
import shutil
import threading
from glob import glob
from types import SimpleNamespace

import pytest
from engine import Engine, key_set, rows
from faults import dying_process
from needs import require

from streaming.batch import marker_cleanup
from table import CommitConflictError, clock, read_table
from table.clock import InstantClock
from table.hudi_table import HudiTable
from table.options.groups import HeartbeatSettings
from table.services.rollback import rollback
from table.services.rollback.undo_commit import roll_back
from table.snapshot import Snapshot
from table.storage.local import LocalStorage
from table.timeline.active_timeline import (
    begin_instant,
    complete_instant,
    delete_instant_file,
    load_timeline,
    request_instant,
)
from table.timeline.instant import Action, Instant, State
from table.timeline.metadata.rollback import (
    RollbackMetadata,
    RollbackPlan,
    encode_rollback_metadata,
    encode_rollback_plan,
)
from table.transaction.commit import begin_commit
from table.transaction.heartbeat import WriterIdentity, decode_identity
from table.transaction.lease import Lease, find_holder
from table.transaction.lease_record import LeaseRecord, is_dead_here, this_machine
from table.transaction.signs import ALIVE_FOLDER

SINK = "hoodie.datasource.write.streaming.checkpoint.identifier"
EVERYTHING = key_set(rows(range(60)))


def stream(storage, name, **options):
    return Engine(storage, {SINK: name, "hoodie.parquet.small.file.limit": "0", **options}, query_id=name)


def during(engine, act):
    """Has something happen when the tasks of a batch are done and the batch is not complete."""
    inner = engine.distribute

    def distribute(plan, table):
        results = inner(plan, table)
        engine.distribute = inner
        act()
        return results

    engine.distribute = distribute


def refused(engine, batch_id):
    with pytest.raises(CommitConflictError, match="live writer"):
        engine.write(batch_id, rows(range(30, 60)))


def expire(path):
    """Nobody has given a sign of life for an hour."""
    folder = os.path.join(path, ALIVE_FOLDER)
    for name in os.listdir(folder):
        past_s = os.stat(os.path.join(folder, name)).st_mtime - 3600
        os.utime(os.path.join(folder, name), (past_s, past_s))


def test_a_second_stream_is_refused_before_it_writes_anything_until_the_first_lets_go(tmp_path):
    path = str(tmp_path / "t")
    first, second = stream(path, "a"), stream(path, "b")
    first.write(0, rows(range(30)))
    before = load_timeline(LocalStorage(path))
    with pytest.raises(CommitConflictError, match=r"live writer, sink 'a', query 'a'.*this is sink 'b'"):
        second.write(0, rows(range(30, 60)))
    assert load_timeline(LocalStorage(path)) == before
    during(first, lambda: refused(second, 0))
    first.write(1, rows([60]))
    first.writer.stop()
    second.write(0, rows(range(30, 60)))
    with pytest.raises(CommitConflictError, match="live writer, sink 'b'"):
        stream(path, "a").write(2, rows([61]))
    assert key_set(read_table(path)) == key_set(rows(range(61)))


def test_of_two_backfills_the_second_is_refused_while_the_first_runs_and_not_afterwards(tmp_path):
    path = str(tmp_path / "t")
    first, second = Engine(path, query_id=None), Engine(path, query_id=None)
    during(first, lambda: refused(second, None))
    first.write(None, rows(range(30)))
    assert find_holder(LocalStorage(path)).identity is None  # a backfill lets go when it is done
    second.write(None, rows(range(30, 60)))
    assert key_set(read_table(path)) == EVERYTHING


def test_of_two_writers_that_both_listed_before_either_requested_one_withdraws_without_a_trace(tmp_path):
    path = str(tmp_path / "t")
    stream(path, "a").write(0, rows(range(3)))
    table = HudiTable.open(path)
    timeline = load_timeline(table.storage)
    held = SimpleNamespace(confirm=lambda: None, is_shared=False, ahead_ms=0)
    begun = begin_commit(Snapshot(table, timeline), "INSERT", WriterIdentity("x", "x", "1"), held)
    with pytest.raises(CommitConflictError, match="was requested while this batch began"):
        begin_commit(Snapshot(table, timeline), "INSERT", WriterIdentity("y", "y", "2"), held)
    assert [instant.time for instant in load_timeline(table.storage).pending] == [begun.time]
    assert os.listdir(f"{path}/.hoodie/.heartbeat") == [begun.time]


def test_a_writer_that_picks_the_time_of_another_one_leaves_its_request_alone(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    stream(path, "a").write(0, rows(range(3)))
    table = HudiTable.open(path)
    timeline, held = load_timeline(table.storage), SimpleNamespace(confirm=lambda: None, is_shared=False, ahead_ms=0)
    now_ms = clock.now_ms() + 1000
    monkeypatch.setattr(clock, "now_ms", lambda: now_ms)  # both look at their clocks in the same millisecond
    begun = begin_commit(Snapshot(table, timeline), "INSERT", WriterIdentity("x", "x", "1"), held)
    with pytest.raises(CommitConflictError, match="was requested while this batch began"):
        begin_commit(Snapshot(table, timeline), "INSERT", WriterIdentity("y", "y", "2"), held)
    assert load_timeline(table.storage).pending == (begun.instant,)
    assert os.listdir(f"{path}/.hoodie/.heartbeat") == [begun.time]
    assert decode_identity(table.storage.read(f".hoodie/.heartbeat/{begun.time}")).sink_id == "x"


def test_nobody_sees_the_request_of_a_write_before_its_heartbeat(tmp_path):
    path, seen = str(tmp_path / "t"), []

    class Looking(LocalStorage):
        def create_exclusive(self, name, data, *, durable=False):
            if name.endswith(".commit.requested"):
                time = name.rsplit("/", 1)[-1].split(".")[0]
                seen.append(self.exists(f".hoodie/.heartbeat/{time}"))
            return super().create_exclusive(name, data, durable=durable)

    Engine(Looking(path)).write(0, rows(range(3)))
    assert seen == [True]


@pytest.mark.parametrize("listing", [1, 2])
def test_a_sweep_keeps_the_files_of_a_batch_that_was_committed_while_it_looked(tmp_path, monkeypatch, listing):
    path = str(tmp_path / "t")
    stream(path, "a").writer.stop()
    first, second = stream(path, "a"), stream(path, "b")
    first.write(0, rows(range(10)))
    calls, looks = [], {name: getattr(LocalStorage, name) for name in ("list_dir", "list_names")}

    def look(name, storage, folder):
        """A process that is taken for dead is stopped between its looks; another one commits meanwhile."""
        found = looks[name](storage, folder)
        if folder in (".hoodie/.temp", ".hoodie"):
            calls.append(folder)
            if len(calls) == listing:
                for each, inner in looks.items():
                    monkeypatch.setattr(LocalStorage, each, inner)
                with monkeypatch.context() as now:
                    now.setattr(marker_cleanup, "clean_up_commit", lambda *_args: None)  # its markers stay
                    second.write(0, rows(range(30, 60)))
        return found

    with dying_process():
        first.writer.stop()
        first.writer.lease.hold(WriterIdentity("a", "a", first.writer.lease.owner))
    for name in looks:
        monkeypatch.setattr(LocalStorage, name, lambda storage, folder, name=name: look(name, storage, folder))
    rollback.roll_back_failed_writes(
        HudiTable(LocalStorage(path), HudiTable.open(path).config),
        WriterIdentity("a", "a", first.writer.lease.owner),
        HeartbeatSettings(),
    )
    assert calls[:2] == [".hoodie/.temp", ".hoodie"][:listing]
    second.write(1, rows(range(10, 30)))
    assert key_set(read_table(path)) == EVERYTHING


def test_a_rollback_by_hand_under_a_live_batch_is_refused(tmp_path):
    path = str(tmp_path / "t")
    engine = Engine(path)
    engine.write(0, rows(range(30)))
    newest = load_timeline(LocalStorage(path)).completed_writes[-1].time

    def undo():
        with pytest.raises(CommitConflictError, match=r"being written by a live writer.*sink 'hudistream rollback'"):
            roll_back(HudiTable.open(path), newest, force=True)

    during(engine, undo)
    engine.write(1, rows(range(30, 60)))
    assert key_set(read_table(path)) == EVERYTHING


def roll_back_as_another_engine(path, time, *, only_request=False):
    """Hudi's steps: it knows neither leases nor end records."""
    storage = LocalStorage(path)
    plan = encode_rollback_plan(RollbackPlan(time, "commit", ()))
    rollback = request_instant(storage, load_timeline(storage), Action.ROLLBACK, InstantClock(), plan)
    if only_request:
        return
    begun = begin_instant(storage, rollback)
    files = glob(f"{path}/p*/*_{time}.parquet")
    for file in files:
        os.unlink(file)
    for state in (State.COMPLETED, State.INFLIGHT, State.REQUESTED):
        delete_instant_file(storage, Instant(time, Action.COMMIT, state))
    done = {"": tuple(files)}
    complete_instant(storage, begun, encode_rollback_metadata(RollbackMetadata(rollback.time, 1, time, "commit", done)))


@pytest.mark.parametrize("whose", ["the newest commit", "a commit, requested only", "the batch itself"])
def test_a_rollback_of_another_engine_under_a_batch_is_noticed_by_it(tmp_path, whose):
    path = str(tmp_path / "t")
    engine = Engine(path)
    engine.write(0, rows(range(30)))
    engine.write(1, rows(range(30, 60)))

    def undo():
        line = load_timeline(LocalStorage(path))
        target = line.pending[-1] if whose == "the batch itself" else line.completed_writes[-1]
        roll_back_as_another_engine(path, target.time, only_request=whose.endswith("only"))

    during(engine, undo)
    with pytest.raises(CommitConflictError, match="was undone while|was rolled back by another writer"):
        engine.write(2, rows(range(60, 70)))
    left = range(30) if whose == "the newest commit" else range(60)
    assert key_set(read_table(path)) == key_set(rows(left))
    engine.writer.stop()
    batch = 1 if whose == "the newest commit" else 2
    Engine(path).write(batch, rows(range(100, 110)))
    assert key_set(read_table(path)) == sorted(key_set(rows(left)) + key_set(rows(range(100, 110))))
    assert load_timeline(LocalStorage(path)).pending == ()


def test_the_renewal_of_a_lease_goes_on_after_any_exception_and_lists_nothing(tmp_path):
    error = require("botocore.exceptions").EndpointConnectionError(endpoint_url="https://s3")
    failures = [error, OSError("io"), RuntimeError("loop closed"), MemoryError()]
    renewed, listed = threading.Event(), []

    class Flaky(LocalStorage):
        def put(self, path, data):
            if threading.current_thread().name == "hudistream-lease":
                if failures:
                    raise failures.pop()
                renewed.set()
            super().put(path, data)

        def list_dir(self, path):
            listed.append(threading.current_thread().name)
            return super().list_dir(path)

        def list_names(self, path):
            listed.append(threading.current_thread().name)
            return super().list_names(path)

    lease = Lease(Flaky(str(tmp_path)), HeartbeatSettings(interval_ms=5))
    identity = WriterIdentity("a", "a", lease.owner)
    lease.hold(identity)
    lease.beat_for("20260101000000000", identity)
    assert renewed.wait(20)
    assert lease.missed == 4
    lease.release()
    assert "hudistream-lease" not in listed


def test_a_lease_that_has_run_out_is_taken_over_and_its_owner_is_refused(tmp_path):
    path = str(tmp_path / "t")
    first, second = stream(path, "a"), stream(path, "b")
    first.write(0, rows(range(30)))
    with pytest.raises(CommitConflictError, match="live writer"):
        second.write(0, rows(range(30, 60)))
    expire(path)
    second.write(0, rows(range(30, 60)))
    with pytest.raises(CommitConflictError, match=r"was taken over by sink 'b'.* while this writer gave no sign"):
        first.write(1, rows([60]))
    with pytest.raises(CommitConflictError, match="live writer, sink 'b'"):
        first.write(1, rows([60]))
    first.writer.stop()  # does not take the table from the second one
    assert find_holder(LocalStorage(path)).identity.sink_id == "b"
    assert key_set(read_table(path)) == EVERYTHING


def test_a_stream_that_is_started_again_takes_over_from_itself_at_once(tmp_path):
    path = str(tmp_path / "t")
    before, after = stream(path, "a"), stream(path, "a")
    before.write(0, rows(range(30)))
    during(before, lambda: after.write(1, rows(range(30, 60))))
    with pytest.raises(CommitConflictError, match="rolled back by another writer"):
        before.write(1, rows(range(30, 60)))
    assert after.write(1, rows(range(30, 60))).skipped
    with pytest.raises(CommitConflictError, match="taken over"):
        before.write(2, rows([60]))
    assert key_set(read_table(path)) == EVERYTHING


@pytest.mark.parametrize("how_far", ["has the table", "has written"])
def test_an_owner_that_was_paused_past_its_lease_cannot_commit(tmp_path, monkeypatch, how_far):
    path = str(tmp_path / "t")
    first, second = stream(path, "a"), stream(path, "b")
    first.write(0, rows(range(30)))
    real = clock.monotonic_s

    def sleep_long():
        expire(path)
        monkeypatch.setattr(clock, "monotonic_s", lambda: real() + 3600)
        if how_far == "has written":
            second.write(0, rows(range(30, 60)))
        else:
            second.writer.lease.hold(WriterIdentity("b", "b", second.writer.lease.owner))

    during(first, sleep_long)
    with pytest.raises(CommitConflictError, match="was taken over by|rolled back by another writer"):
        first.write(1, rows(range(60, 90)))
    second.write(1, rows([90]))
    wanted = [*range(30), 90] if how_far == "has the table" else [*range(60), 90]
    assert key_set(read_table(path)) == key_set(rows(wanted))
    assert load_timeline(LocalStorage(path)).pending == ()


def test_an_owner_that_was_paused_and_whose_table_nobody_took_goes_on(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    engine = stream(path, "a")
    engine.write(0, rows(range(30)))
    real = clock.monotonic_s
    during(engine, lambda: monkeypatch.setattr(clock, "monotonic_s", lambda: real() + 3600))
    engine.write(1, rows(range(30, 60)))
    assert key_set(read_table(path)) == EVERYTHING


def test_a_process_that_died_on_this_machine_is_noticed_at_once(tmp_path):
    path = str(tmp_path / "t")
    with dying_process():
        stream(path, "a").write(0, rows(range(30)))
    stream(path, "b").write(0, rows(range(30, 60)))
    assert key_set(read_table(path)) == EVERYTHING
    # what runs, or ran, elsewhere cannot be told: a number says nothing there
    gone = LeaseRecord(1, WriterIdentity("a", "a", "o"), this_machine(), 2**30)
    assert is_dead_here(gone)
    assert not is_dead_here(LeaseRecord(1, gone.identity, "another boot/pid:[1]", 2**30))
    assert not is_dead_here(LeaseRecord(1, gone.identity, "", 2**30))
    assert not is_dead_here(LeaseRecord(1, gone.identity, this_machine(), os.getppid()))


def test_a_writer_of_a_table_that_was_deleted_does_not_let_go_of_the_one_made_anew(tmp_path):
    path = str(tmp_path / "t")
    old = stream(path, "a")
    old.write(0, rows(range(30)))
    shutil.rmtree(path)
    new = stream(path, "b")
    new.write(0, rows(range(60)))
    old.writer.stop()
    assert find_holder(LocalStorage(path)).identity.sink_id == "b"
    new.write(1, rows([60]))
    assert key_set(read_table(path)) == key_set(rows(range(61)))
