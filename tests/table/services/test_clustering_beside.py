"""A clustering that a stream plans between two batches, and carries out beside the next ones; or others do."""

import shutil
import threading
import time
from dataclasses import replace

import pyarrow as pa
import pytest
from clustered_rows import BY_HAND, a_batch
from faults import FaultyStorage, Fuse, PowerCut, dying_process
from snapshots import assert_clean

from hudistream import HudiTable
from streaming import ArrowSink
from table import CommitConflictError, InvalidConfigError, StorageError, TableHeldError, WriteConflictError, read_table
from table.cli.main import main
from table.hudi_table import HudiTable as Bare
from table.options.clustering_settings import ClusteringSettings
from table.options.write_options import WriteOptions, parse_options
from table.services.clustering import clustering, execution
from table.services.clustering.command import cluster, execute_planned, schedule
from table.services.clustering.execution import find_planned_elsewhere, find_scheduled
from table.services.rollback import rollback
from table.snapshot import Snapshot
from table.storage.local import LocalStorage
from table.timeline.end_record import ROLLBACK, EndRecord, decide_end
from table.timeline.instant import State
from table.transaction import keeper
from table.transaction.planned_clusterings import load_clustered

TYPES = ["COPY_ON_WRITE", "MERGE_ON_READ"]
EACH_TYPE = pytest.mark.parametrize("table_type", TYPES)
EACH_VERSION = pytest.mark.parametrize("version", ["6", "8", "9"])
BESIDE = {
    **BY_HAND,
    "hoodie.clustering.async.enabled": "true",
    "hoodie.clustering.async.max.commits": "2",
    "hoodie.clustering.plan.strategy.sort.columns": "x",
}
SHARED = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.datasource.write.streaming.checkpoint.identifier": "ours",
}
BY_X = ClusteringSettings(sort_columns=("x",))


def a_sink(path, table_type="COPY_ON_WRITE", version="6", **options):
    given = {
        **BESIDE,
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.write.table.version": version,
        **options,
    }
    return ArrowSink(path, given, key="id", partition_by="p", order_by="ts")


def parsed(options):
    return parse_options(options).options


def latest(path):
    """key -> ts of its row; a key that is there twice is a failure."""
    found = read_table(path, columns=["id", "ts"]).to_pylist()
    assert len({row["id"] for row in found}) == len(found), "a key is there twice"
    return {row["id"]: row["ts"] for row in found}


def rows_of(numbers, ts):
    return {f"k{number}": ts for number in numbers}


def a_table(path, table_type="COPY_ON_WRITE", version="6", **options):
    """Two batches, so that a clustering is due after the second one, if the options ask for it."""
    with a_sink(path, table_type, version, **{"hoodie.clustering.async.enabled": "false", **options}) as sink:
        sink.write(a_batch(range(40), 0), 0)
        sink.write(a_batch(range(40, 80), 1), 1)
    return rows_of(range(40), 0) | rows_of(range(40, 80), 1)


def clusterings(path):
    snapshot = Snapshot.load(Bare.open(path))
    return [one for one in snapshot.timeline.completed_writes if snapshot.commits.read(one).operation == "CLUSTER"]


@pytest.fixture
def held_back(monkeypatch):
    """Lets no clustering write its files before the event is set; `begun` is set where one waits."""
    gate, write = threading.Event(), execution.write_groups
    gate.begun = threading.Event()

    def late(*given):
        gate.begun.set()
        assert gate.wait(60)
        return write(*given)

    monkeypatch.setattr(execution, "write_groups", late)
    yield gate
    gate.set()


@EACH_TYPE
@EACH_VERSION
def test_batches_are_committed_while_it_runs(tmp_path, held_back, table_type, version):
    path = str(tmp_path / "t")
    expected = {}
    with a_sink(path, table_type, version) as sink:
        for ts in range(4):
            numbers = range(ts * 40, ts * 40 + 40)
            sink.write(a_batch(numbers, ts), ts)
            expected |= rows_of(numbers, ts)
            assert latest(path) == expected
        assert held_back.begun.wait(60)
        assert not clusterings(path)
        held_back.set()
    done = clusterings(path)
    assert len(done) == 1  # what came due beside it waits for the commit after it
    assert latest(path) == expected
    assert HudiTable.open(path).check().is_sound
    assert_clean(path)
    with a_sink(path, table_type, version) as sink:
        for ts in range(4, 10):
            sink.write(a_batch(range(ts * 10, ts * 10 + 40), ts), ts)
            expected |= rows_of(range(ts * 10, ts * 10 + 40), ts)
            assert latest(path) == expected
    assert len(clusterings(path)) > 1
    assert latest(path) == expected
    assert HudiTable.open(path).check().is_sound
    assert_clean(path)


@EACH_TYPE
@EACH_VERSION
def test_a_batch_that_changes_its_rows_waits_for_it(tmp_path, held_back, table_type, version):
    path = str(tmp_path / "t")
    with a_sink(path, table_type, version) as sink:
        sink.write(a_batch(range(40), 0), 0)
        sink.write(a_batch(range(40, 80), 1), 1)
        assert held_back.begun.wait(60)
        threading.Timer(0.3, held_back.set).start()
        sink.write(a_batch(range(60), 2, deleted={3}), 2)
        assert len(clusterings(path)) == 1
        expected = rows_of(range(60), 2) | rows_of(range(60, 80), 1)
        del expected["k3"]
        assert latest(path) == expected
    assert latest(path) == expected
    assert HudiTable.open(path).check().is_sound


@EACH_TYPE
def test_a_batch_that_replaces_its_partition_path_waits_for_it(tmp_path, held_back, table_type):
    path = str(tmp_path / "t")
    with a_sink(path, table_type) as sink:
        sink.write(a_batch(range(40), 0), 0)
        sink.write(a_batch(range(40, 80), 1), 1)
        assert held_back.begun.wait(60)
        threading.Timer(0.3, held_back.set).start()
        sink.write(a_batch(range(0, 20, 2), 2), 2, operation="insert_overwrite")
        expected = {
            key: ts for key, ts in (rows_of(range(40), 0) | rows_of(range(40, 80), 1)).items() if int(key[1:]) % 2
        }
        assert latest(path) == expected | rows_of(range(0, 20, 2), 2)
    assert latest(path) == expected | rows_of(range(0, 20, 2), 2)


def leave_a_plan(path, monkeypatch, form, begun):
    """A process plans a clustering, and dies before it carries it out, or while it does."""

    def die(*_):
        raise WriteConflictError("the process is dead")

    with monkeypatch.context() as patched:
        patched.setattr(execution, "write_groups" if begun else "_carry_out", die)
        patched.setattr(execution, "_give_up", lambda *_: None)
        with dying_process(), a_sink(path, *form) as sink:
            sink.write(a_batch(range(100, 110), 2), 2)
    (planned,) = find_planned_elsewhere(Snapshot.load(Bare.open(path)))
    assert planned.state is (State.INFLIGHT if begun else State.REQUESTED)
    return rows_of(range(100, 110), 2)


NEXT = {
    "the same": {},
    "clusters no more": {"hoodie.clustering.async.enabled": "false"},
    "another sink": {"hoodie.datasource.write.streaming.checkpoint.identifier": "another"},
    "one of several": {"hoodie.write.concurrency.mode": "optimistic_concurrency_control",
                       "hoodie.datasource.write.streaming.checkpoint.identifier": "another"},
    "without services": {"hoodie.table.services.enabled": "false"},
}  # fmt: skip


@pytest.mark.parametrize("begun", [False, True], ids=["before", "during"])
@pytest.mark.parametrize("then", NEXT)
@EACH_TYPE
@pytest.mark.parametrize("version", ["6", "8"])
def test_what_a_dead_process_planned_stops_no_batch(tmp_path, monkeypatch, table_type, version, then, begun):
    path = str(tmp_path / "t")
    expected = a_table(path, table_type, version)
    expected |= leave_a_plan(path, monkeypatch, (table_type, version), begun)
    with a_sink(path, table_type, version, **NEXT[then]) as sink:  # its first batch changes rows of the plan
        sink.write(a_batch(range(10), 3), 3)
        expected |= rows_of(range(10), 3)
        assert latest(path) == expected
        sink.services.wait()
        assert bool(clusterings(path)) == (then in ("the same", "another sink", "one of several"))
    assert not find_planned_elsewhere(Snapshot.load(Bare.open(path)))
    assert latest(path) == expected
    assert HudiTable.open(path).check().is_sound
    assert_clean(path)


@EACH_TYPE
def test_a_batch_that_cannot_be_repeated_waits_first(tmp_path, held_back, table_type):
    path = str(tmp_path / "t")

    def a_reader(numbers, ts):
        return a_batch(numbers, ts).to_reader()

    with a_sink(path, table_type) as sink:
        sink.write(a_reader(range(40), 0), 0)
        sink.write(a_reader(range(40, 80), 1), 1)
        assert held_back.begun.wait(60)
        threading.Timer(0.3, held_back.set).start()
        sink.write(a_reader(range(60), 2), 2)
        assert latest(path) == rows_of(range(60), 2) | rows_of(range(60, 80), 1)


def test_a_write_outside_of_a_stream_is_not_over_before_its_clustering(tmp_path):
    path = str(tmp_path / "t")
    sink = a_sink(path)  # no `with`: the table is released after each write
    sink.write(a_batch(range(40), 0))
    sink.write(a_batch(range(40, 80), 1))
    assert len(clusterings(path)) == 1
    assert not sink._writer.lease.is_held
    sink.stop()


def test_a_process_that_is_refused_the_table_leaves_its_plan_alone(tmp_path, held_back):
    path = str(tmp_path / "t")
    with a_sink(path) as sink:
        sink.write(a_batch(range(40), 0), 0)
        sink.write(a_batch(range(40, 80), 1), 1)
        assert held_back.begun.wait(60)
        (planned,) = find_planned_elsewhere(Snapshot.load(Bare.open(path)))
        other = a_sink(path)
        with pytest.raises(TableHeldError):
            other.write(a_batch(range(3), 2))
        assert find_planned_elsewhere(Snapshot.load(Bare.open(path))) == [planned]
        held_back.set()
    assert [one.time for one in clusterings(path)] == [planned.time]


def test_recovery_and_the_services_end_a_clustering_at_once(tmp_path, monkeypatch):
    """The thread has decided to roll back; the next batch finds the decision, and rolls back, too."""
    path = str(tmp_path / "t")
    decided, go_on = threading.Event(), threading.Event()

    def fail(*_):
        raise StorageError("no space left")

    end = execution.end_pending

    def late(snapshot, instant, owner):
        decide_end(snapshot.storage, EndRecord(instant.time, instant.action, ROLLBACK, owner))
        decided.set()
        assert go_on.wait(60)
        return end(snapshot, instant, owner)

    monkeypatch.setattr(execution, "write_groups", fail)
    monkeypatch.setattr(execution, "end_pending", late)
    carry = rollback._carry_out_rollback

    def meet(*given):
        go_on.set()
        time.sleep(0.3)
        return carry(*given)

    with a_sink(path) as sink:
        sink.write(a_batch(range(40), 0), 0)
        sink.write(a_batch(range(40, 80), 1), 1)
        assert decided.wait(60)
        monkeypatch.setattr(rollback, "_carry_out_rollback", meet)
        sink.write(a_batch(range(100, 110), 2), 2)
    assert latest(path) == rows_of(range(40), 0) | rows_of(range(40, 80), 1) | rows_of(range(100, 110), 2)
    assert not Bare.open(path).load_timeline().pending


def test_check_names_the_ways_out(tmp_path):
    path = str(tmp_path / "t")
    a_table(path)
    planned = schedule(Bare.open(path), BY_X)
    (finding,) = [one for one in HudiTable.open(path).check().findings if one.where == planned.time]
    assert "cluster PATH --execute" in finding.advice
    assert f"rollback PATH {planned.time}" in finding.advice


@EACH_TYPE
def test_one_that_fails_is_rolled_back_and_planned_again(tmp_path, monkeypatch, table_type):
    path = str(tmp_path / "t")
    write, failures = execution.write_groups, [OSError("no space left"), OSError("no space left")]

    def fail(*given):
        stats = write(*given)
        if failures:
            raise failures.pop()
        return stats

    monkeypatch.setattr(execution, "write_groups", fail)
    expected = {}
    with a_sink(path, table_type) as sink:
        for ts in range(8):
            sink.write(a_batch(range(ts * 10, ts * 10 + 40), ts), ts)
            sink.services.wait()
            expected |= rows_of(range(ts * 10, ts * 10 + 40), ts)
            assert latest(path) == expected
        assert sink.services.failures == 2
    assert not failures
    assert clusterings(path)
    assert HudiTable.open(path).check().is_sound
    assert_clean(path)


@EACH_TYPE
@EACH_VERSION
def test_it_gives_way_to_a_new_column(tmp_path, held_back, table_type, version):
    path = str(tmp_path / "t")
    with a_sink(path, table_type, version) as sink:
        sink.write(a_batch(range(40), 0), 0)
        sink.write(a_batch(range(40, 80), 1), 1)
        assert held_back.begun.wait(60)
        more = a_batch(range(100, 110), 2)
        sink.write(more.append_column("new", pa.array(range(10))), 2)
        held_back.set()
        sink.services.wait()
        assert not clusterings(path)
        assert not find_planned_elsewhere(Snapshot.load(Bare.open(path)))
    found = read_table(path, columns=["id", "new"]).to_pylist()
    assert {row["id"]: row["new"] for row in found if row["new"] is not None} == {f"k{100 + n}": n for n in range(10)}
    assert len(found) == 90


@EACH_TYPE
@EACH_VERSION
@pytest.mark.parametrize("then", ["rolls it back", "carries it out", "leaves it"])
def test_a_sink_that_lost_the_table_harms_nothing(tmp_path, held_back, monkeypatch, table_type, version, then):
    """It stood still for longer than its lease lasts. Another process took the table over, and maybe ended its plan."""
    path = str(tmp_path / "t")
    short = {"hoodie.client.heartbeat.interval_in_ms": "1000", "hoodie.client.heartbeat.tolerable.misses": "1"}
    monkeypatch.setattr(keeper.Keeper, "_keep", lambda *_: None)
    sink = a_sink(path, table_type, version, **short)
    sink.write(a_batch(range(40), 0), 0)
    sink.write(a_batch(range(40, 80), 1), 1)
    expected = rows_of(range(40), 0) | rows_of(range(40, 80), 1)
    assert held_back.begun.wait(60)
    monkeypatch.setattr("table.transaction.lease.may_take_over", lambda *_: True)
    snapshot = Snapshot.load(Bare.open(path))
    if then == "rolls it back":
        execution._give_up(snapshot, find_planned_elsewhere(snapshot)[0], "other")
    elif then == "carries it out":
        monkeypatch.setattr(execution, "write_groups", clustering.write_groups)
        monkeypatch.setattr(execution, "find_live_writer", lambda *_: None)  # its heartbeat is old, too
        assert execute_planned(Bare.open(path), WriteOptions().file_settings)
    with ArrowSink(path, {**BY_HAND, **short}, key="id", partition_by="p", order_by="ts", operation="insert") as other:
        other.write(a_batch(range(100, 110), 2), 2)
        expected |= rows_of(range(100, 110), 2)
        held_back.set()
        sink.services.wait()
        assert latest(path) == expected
        other.write(a_batch(range(110, 120), 3), 3)
        expected |= rows_of(range(110, 120), 3)
    sink.stop()
    assert latest(path) == expected
    assert len(clusterings(path)) == (then == "carries it out")
    assert HudiTable.open(path).check().is_sound


@EACH_TYPE
@pytest.mark.parametrize("version", ["6", "8"])
@pytest.mark.parametrize("step", [17, pytest.param(1, marks=pytest.mark.slow)], ids=["some calls", "every call"])
def test_a_plan_stopped_at_a_storage_call_stands_or_is_absent(tmp_path, table_type, version, step):
    first = str(tmp_path / "first")
    before = a_table(first, table_type, version)

    def plan(path, fuse):
        return schedule(replace(Bare.open(path), storage=FaultyStorage(LocalStorage(path), fuse)), BY_X)

    counted = Fuse()
    assert plan(shutil.copytree(first, str(tmp_path / "count")), counted) is not None
    for number in range(1, len(counted.calls) + 1, step):
        for after in (False, True):
            path = shutil.copytree(first, str(tmp_path / f"{number}-{after}"))
            with dying_process(), pytest.raises(PowerCut):
                plan(path, Fuse(number, after))
            with a_sink(path, table_type, version, **{"hoodie.clustering.async.enabled": "false"}) as sink:
                sink.write(a_batch(range(100, 110), 5), 5)
            expected = before | rows_of(range(100, 110), 5)
            assert latest(path) == expected, f"call {number}: {counted.calls[number - 1]}"
            execute_planned(Bare.open(path), WriteOptions().file_settings)
            assert latest(path) == expected
            assert not Bare.open(path).load_timeline().pending
            with a_sink(path, table_type, version) as sink:
                sink.write(a_batch(range(10), 6), 6)
            assert latest(path) == expected | rows_of(range(10), 6)
            assert HudiTable.open(path).check().is_sound
            assert_clean(path)


@EACH_TYPE
@EACH_VERSION
def test_beside_other_writers_it_gives_way(tmp_path, monkeypatch, table_type, version):
    path = str(tmp_path / "t")
    expected = a_table(path, table_type, version, **SHARED)
    other = {**BY_HAND, **SHARED, "hoodie.datasource.write.streaming.checkpoint.identifier": "other"}
    write, changes = clustering.write_groups, [range(30, 50)]

    def beside(*given):
        stats = write(*given)
        while changes:
            numbers = changes.pop()
            with ArrowSink(path, other, key="id", partition_by="p", order_by="ts") as sink:
                sink.write(a_batch(numbers, 5), 5)
            expected.update(rows_of(numbers, 5))
        return stats

    monkeypatch.setattr(clustering, "write_groups", beside)
    with a_sink(path, table_type, version, **SHARED) as sink:
        sink.write(a_batch(range(100, 110), 6), 6)
        expected |= rows_of(range(100, 110), 6)
        sink.services.wait()
        assert not changes
        assert not clusterings(path)
        assert latest(path) == expected
        sink.write(a_batch(range(110, 120), 7), 7)
        expected |= rows_of(range(110, 120), 7)
        sink.services.wait()
        assert len(clusterings(path)) == 1
        assert sink.services.failures == 0
    assert latest(path) == expected
    assert HudiTable.open(path).check().is_sound
    assert_clean(path)


@EACH_VERSION
def test_a_stream_plans_and_a_command_carries_out(tmp_path, capsys, version):
    path = str(tmp_path / "t")
    plans = {
        "hoodie.clustering.schedule.inline": "true",
        "hoodie.clustering.plan.strategy.sort.columns": "x,ts",
        "hoodie.layout.optimize.strategy": "hilbert",
    }
    expected = a_table(path, version=version, **plans)
    snapshot = Snapshot.load(Bare.open(path))
    (planned,) = find_planned_elsewhere(snapshot)
    assert not find_scheduled(snapshot, WriteOptions().sink.id)
    assert len(load_clustered(snapshot)) == 4
    seen = []
    write = execution.write_groups
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(execution, "write_groups", lambda *given: (seen.append(given[2]), write(*given))[1])
        assert main(["cluster", path, "--execute"]) == 0
    assert [str(one) for one in seen] == ["HILBERT"]  # as the plan says
    assert f"clustering {planned.time}: 4 file groups became 2" in capsys.readouterr().out
    assert latest(path) == expected


@pytest.mark.parametrize("mode", [{}, SHARED], ids=["alone", "shared"])
@EACH_TYPE
def test_commands_plan_and_carry_out(tmp_path, capsys, table_type, mode):
    path = str(tmp_path / "t")
    expected = a_table(path, table_type, **mode)
    shared = ["--set", "hoodie.write.concurrency.mode=optimistic_concurrency_control"] if mode else []
    assert main(["cluster", path, "--schedule-only", "--sort", "x", *shared]) == 0
    assert "requested clustering" in capsys.readouterr().out
    (planned,) = find_planned_elsewhere(Snapshot.load(Bare.open(path)))
    off = {"hoodie.clustering.async.enabled": "false", **mode}
    with a_sink(path, table_type, **off, **{"hoodie.write.num.retries.on.conflict.failures": "0"}) as sink:
        sink.write(a_batch(range(100, 110), 5), 5)
        with pytest.raises(CommitConflictError, match=f"pending clustering {planned.time}"):
            sink.write(a_batch(range(3), 6), 6)
        if mode:  # beside the stream
            assert main(["cluster", path, "--execute", *shared]) == 0
            sink.write(a_batch(range(3), 6), 6)
            expected |= rows_of(range(3), 6)
        else:
            with pytest.raises(TableHeldError):
                execute_planned(Bare.open(path), WriteOptions().file_settings)
    expected |= rows_of(range(100, 110), 5)
    assert main(["cluster", path, "--execute", *shared]) == 0
    assert len(clusterings(path)) == 1
    assert latest(path) == expected
    assert main(["cluster", path, "--schedule-only", "--partition", "p0", "--sort", "x", *shared]) == 0
    assert main(["cluster", path, "--execute", *shared]) == 0
    assert latest(path) == expected
    assert HudiTable.open(path).check().is_sound


def test_two_commands_do_not_carry_out_one_plan(tmp_path, held_back):
    path = str(tmp_path / "t")
    expected = a_table(path, **SHARED)
    schedule(Bare.open(path), BY_X, shared=True)
    first = threading.Thread(target=lambda: execute_planned(Bare.open(path), WriteOptions().file_settings, shared=True))
    first.start()
    assert held_back.begun.wait(60)
    with pytest.raises(TableHeldError, match="another process carries it out"):
        execute_planned(Bare.open(path), WriteOptions().file_settings, shared=True)
    held_back.set()
    first.join()
    assert len(clusterings(path)) == 1
    assert latest(path) == expected


def test_nothing_is_planned_beside_a_pending_plan(tmp_path):
    path = str(tmp_path / "t")
    a_table(path)
    assert schedule(Bare.open(path), BY_X) is not None
    with pytest.raises(CommitConflictError, match="is pending"):
        schedule(Bare.open(path), BY_X)
    assert cluster(Bare.open(path), BY_X) is None


@pytest.mark.parametrize("other", ["hoodie.clustering.async.enabled", "hoodie.clustering.schedule.inline"])
def test_a_clustering_runs_in_one_way(other):
    with pytest.raises(InvalidConfigError, match=f"hoodie.clustering.inline=true and {other}=true: choose one"):
        parsed({"hoodie.clustering.inline": "true", other: "true"})


@pytest.mark.parametrize("way", ["inline", "async.enabled", "schedule.inline"])
def test_one_that_cannot_be_is_refused(way):
    asked = {f"hoodie.clustering.{way}": "true"}
    with pytest.raises(InvalidConfigError, match=f"hoodie.clustering.{way}=true and hoodie.index.type=BUCKET"):
        parsed({**asked, "hoodie.index.type": "BUCKET"})
    with pytest.raises(InvalidConfigError, match="none would be due"):
        parsed({**asked, "hoodie.clustering.inline.max.commits": "400"})


def test_options_of_flink():
    options = parsed(
        {"clustering.schedule.enabled": "true", "clustering.async.enabled": "true", "clustering.delta_commits": "7"}
    )
    assert (options.clustering.in_background, options.clustering.max_commits) == (True, 7)
