"""Clustering of a table: the rows stay, their places change, and nothing is lost whatever happens meanwhile."""

import os
import shutil
from dataclasses import replace
from unittest import mock

import pyarrow as pa
import pytest
from clustered_rows import BY_HAND, a_batch, plan_elsewhere
from command_line import said
from engine import Engine, rows
from faults import FaultyStorage, Fuse, PowerCut, dying_process
from snapshots import assert_clean

from hudistream import HudiTable
from streaming import ArrowSink
from streaming.batch import begin_batch, commit_batch
from table import CommitConflictError, InvalidConfigError, StorageError, UnsupportedTableError, read_table
from table.config.table_config import update_properties
from table.hudi_table import HudiTable as Bare
from table.options.clustering_settings import ClusteringSettings
from table.options.groups import CompactionSettings
from table.options.lock_settings import LockSettings
from table.options.write_options import WriteOptions
from table.services.clustering import clustering
from table.services.clustering.command import cluster, execute_planned
from table.services.compaction.compaction import compact, request_compaction
from table.services.rollback import rollback
from table.services.rollback.undo_commit import roll_back
from table.snapshot import Snapshot
from table.storage.local import LocalStorage
from table.timeline.instant import Action
from table.transaction import commit, commit_facts
from table.transaction.lock import Step, StepLock
from table.view.file_system_view import walk_file_groups

TYPES = ["COPY_ON_WRITE", "MERGE_ON_READ"]
VERSIONS = ["6", "8", "9"]
META = ["_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path"]


def a_table(path, table_type="COPY_ON_WRITE", version="6", batches=4, **options):
    given = {**BY_HAND, "hoodie.datasource.write.table.type": table_type, "hoodie.write.table.version": version}
    with ArrowSink(path, {**given, **options}, key="id", partition_by="p", order_by="ts") as sink:
        for number in range(batches):
            sink.write(a_batch(range(number * 40, number * 40 + 80), number, deleted={number * 40 + 5}), number)
    return HudiTable.open(path)


def contents(path, columns=(*META, "id", "ts", "x", "y")):
    found = read_table(path, meta_columns=True).select(list(columns)).to_pylist()
    assert len({row["id"] for row in found}) == len(found), "a key is there twice"
    return sorted(found, key=lambda row: row["id"])


def groups_with(path, *, logs):
    snapshot = Snapshot.load(Bare.open(path))
    walked = walk_file_groups(snapshot.listing, snapshot.slicing)
    return {
        (name, group.file_id) for name, groups in walked for group in groups if group.slices[0].log_files or not logs
    }


def clusterings_of(path):
    snapshot = Snapshot.load(Bare.open(path))
    replaced = snapshot.timeline.completed_of(Action.REPLACE_COMMIT)
    return [instant for instant in replaced if snapshot.commits.read(instant).operation == "CLUSTER"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("table_type", TYPES)
def test_rows_stay_and_files_become_few(tmp_path, table_type, version):
    path = str(tmp_path / "t")
    table = a_table(path, table_type, version)
    before = contents(path)
    done = table.cluster("x")
    assert done.files_before > done.files_after == 2
    assert contents(path) == before
    for name in ("p0", "p1"):
        stored = table.scan(["x"], where=[("p", "=", name)]).to_arrow().column("x").to_pylist()
        assert stored == sorted(stored)
    table = HudiTable.open(path)
    assert table.check().is_sound
    assert table.cluster("x") is None  # in order already
    first = min(row["_hoodie_commit_time"] for row in before)
    assert table.scan(["id"], as_of=first).to_arrow().num_rows < len(before)  # the past can still be read
    commit = table.load_timeline().completed_writes[-1]
    assert commit.file_name.endswith(".replacecommit")
    assert not list(table.changes(since=done.instant_time).to_arrow().to_pylist())  # nothing changed for who follows


@pytest.mark.parametrize("version", ["6", "9", pytest.param("8", marks=pytest.mark.slow)])
@pytest.mark.parametrize("table_type", TYPES)
def test_batches_go_on_in_clustered_files(tmp_path, table_type, version):
    path = str(tmp_path / "t")
    a_table(path, table_type, version).cluster(["x", "y"], "z-order")
    expected = {row["id"]: row["ts"] for row in contents(path)}
    options = {**BY_HAND, "hoodie.parquet.small.file.limit": str(100 << 20), "hoodie.clean.automatic": "true",
               "hoodie.clean.commits.retained": "1", "hudistream.clean.grace.ms": "0"}  # fmt: skip
    with ArrowSink(path, options, key="id", partition_by="p", order_by="ts") as sink:
        for number in range(4, 8):
            gone = {number * 20 + 1}
            sink.write(a_batch(range(number * 20, number * 20 + 30), number, gone), number)
            expected.update({f"k{n}": number for n in range(number * 20, number * 20 + 30)})
            expected.pop(f"k{number * 20 + 1}")
            assert {row["id"]: row["ts"] for row in contents(path)} == expected
    assert HudiTable.open(path).check().is_sound
    assert_clean(path)


@pytest.mark.parametrize("table_type", TYPES)
def test_a_sorted_table_is_read_in_part(tmp_path, table_type):
    path = str(tmp_path / "t")
    table = a_table(path, table_type)
    settings = ClusteringSettings(target_bytes=2_000)

    def files_read():
        told = HudiTable.open(path).scan(["x"], where=[("x", "<", 30), ("p", "=", "p0")]).explain()
        return told.files_read - told.files_pruned_by_statistics

    def found():
        return HudiTable.open(path).scan(["x"], where=[("x", "<", 30)]).to_arrow().num_rows

    unsorted, expected = files_read(), found()
    done = table.cluster("x", settings=settings)
    assert done.files_after > 4
    assert 1 == files_read() < unsorted
    assert found() == expected


def test_a_stream_clusters_between_its_batches(tmp_path):
    path = str(tmp_path / "t")
    options = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "3",
               "hoodie.clustering.plan.strategy.sort.columns": "x"}  # fmt: skip
    table = a_table(path, batches=9, **options)
    found = clusterings_of(path)
    assert len(found) == 3
    assert len(contents(path)) == 9 * 40 + 40 - 9
    assert table.check().is_sound


@pytest.mark.parametrize(("first", "then"), [((), ("x",)), (("y",), ("x",)), (("x", "y"), ("y", "x"))])
def test_another_order_is_another_clustering(tmp_path, first, then):
    path = str(tmp_path / "t")
    table = a_table(path)
    before = contents(path)
    assert table.cluster(first) is not None
    assert table.cluster(first) is None
    assert table.cluster() is None  # put together already
    assert table.cluster(then) is not None
    assert table.cluster(then) is None
    stored = table.scan(list(then), where=[("p", "=", "p0")]).to_arrow().to_pylist()
    order = [tuple((row[name] is not None, row[name]) for name in then) for row in stored]
    assert order == sorted(order)
    assert contents(path) == before


def test_files_are_in_order_although_the_timeline_has_forgotten_who_put_them(tmp_path):
    path = str(tmp_path / "t")
    a_table(path).cluster("x")
    keeps = {**BY_HAND, "hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1",
             "hoodie.archive.automatic": "true", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3",
             "hudistream.clean.grace.ms": "0", "hoodie.clean.async.enabled": "false"}  # fmt: skip
    with ArrowSink(path, keeps, key="id", partition_by="p", order_by="ts") as sink:
        for number in range(4, 12):
            sink.write(a_batch(range(number * 100 + 1, number * 100 + 20, 2), number), number)  # all of p1
    table = HudiTable.open(path)
    assert not clusterings_of(path)
    assert table.cluster("x", partitions=["p0"]) is None
    assert table.cluster("x", partitions=["p1"]) is not None


def test_a_clustering_that_fails_fails_no_batch(tmp_path, monkeypatch):
    path = str(tmp_path / "t")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("table.services.clustering.cluster_group.SortedRows", full)
    options = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1",
               "hoodie.clustering.plan.strategy.sort.columns": "x"}  # fmt: skip
    table = a_table(path, **options)
    assert len(contents(path)) == 200 - 4
    assert table.check().is_sound
    assert not clusterings_of(path)
    with pytest.raises(StorageError, match="No space left"):
        table.cluster("x")


def test_a_table_that_a_stream_holds_is_left_to_it(tmp_path):
    path = str(tmp_path / "t")
    a_table(path)
    with ArrowSink(path, BY_HAND, key="id", partition_by="p", order_by="ts") as sink:
        sink.write(a_batch(range(10), 9), 9)
        sink._writer.lease.is_busy = True
        with pytest.raises(CommitConflictError):
            HudiTable.open(path).cluster("x")


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        ({"sort": "nowhere"}, InvalidConfigError, "no column 'nowhere'; it has"),
        ({"sort": ["x", "y"], "layout": "spiral"}, InvalidConfigError, "spiral"),
        ({"sort": "x", "layout": "hilbert"}, InvalidConfigError, "two or more columns"),
        ({"sort": ["x", "x"]}, InvalidConfigError, "names x twice"),
        ({"sort": [f"c{n}" for n in range(9)], "layout": "z-order"}, InvalidConfigError, "at most 8 columns"),
        ({"sort": "tags"}, InvalidConfigError, "column 'tags' of type list"),
        ({"sort": "x", "partitions": ["p7"]}, InvalidConfigError, "no partition path 'p7'"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_requested(tmp_path, given, kind, said):
    path = str(tmp_path / "t")
    a_table(path)
    with ArrowSink(path, BY_HAND, key="id", partition_by="p", order_by="ts") as sink:
        sink.write(a_batch(range(3), 9).append_column("tags", pa.array([["a"]] * 3)), 9)
    table = HudiTable.open(path)
    with pytest.raises(kind, match=said):
        table.cluster(**given)
    assert not table.load_timeline().completed_of(Action.REPLACE_COMMIT)
    assert not table.load_timeline().pending


def test_buckets_cannot_be_moved(tmp_path):
    table = a_table(str(tmp_path / "t"), **{"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"})
    with pytest.raises(UnsupportedTableError, match="bucket index"):
        table.cluster("x")


def run_stopped(path, fuse):
    storage = FaultyStorage(LocalStorage(path), fuse)
    bare = replace(Bare.open(path), storage=storage)
    return cluster(bare, ClusteringSettings(sort_columns=("x",)), WriteOptions().file_settings)


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("version", ["6", "8"])
@pytest.mark.parametrize("step", [23, pytest.param(1, marks=pytest.mark.slow)], ids=["some calls", "every call"])
def test_stopped_at_a_storage_call_it_is_whole_or_absent(tmp_path, table_type, version, step):
    first = str(tmp_path / "first")
    a_table(first, table_type, version, batches=2)
    before = contents(first)
    counted = Fuse()
    run_stopped(shutil.copytree(first, str(tmp_path / "count")), counted)
    assert len(counted.calls) > 30
    for number in range(1, len(counted.calls) + 1, step):
        for after in (False, True):
            path = shutil.copytree(first, str(tmp_path / f"{number}-{after}"))
            with dying_process(), pytest.raises(PowerCut):
                run_stopped(path, Fuse(number, after))
            assert contents(path) == before, f"call {number}: {counted.calls[number - 1]}"
            with ArrowSink(path, BY_HAND, key="id", partition_by="p", order_by="ts") as sink:
                sink.write(a_batch([1000], 9), 9)
            assert [row for row in contents(path) if row["id"] != "k1000"] == before
            assert HudiTable.open(path).check().is_sound
            HudiTable.open(path).cluster("x")
            assert [row for row in contents(path) if row["id"] != "k1000"] == before
            assert_clean(path)


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("version", ["6", "8"])
@pytest.mark.parametrize("step", [29, pytest.param(1, marks=pytest.mark.slow)], ids=["some calls", "every call"])
def test_a_plan_of_another_engine_stopped_at_a_storage_call_is_carried_out_by_the_next(
    tmp_path, table_type, version, step
):
    first = str(tmp_path / "first")
    a_table(first, table_type, version, batches=2)
    before = contents(first)
    planned = plan_elsewhere(first)

    def execute(path, fuse=None):
        storage = LocalStorage(path) if fuse is None else FaultyStorage(LocalStorage(path), fuse)
        return execute_planned(replace(Bare.open(path), storage=storage), WriteOptions().file_settings)

    counted = Fuse()
    assert len(execute(shutil.copytree(first, str(tmp_path / "count")), counted)) == 1
    for number in range(1, len(counted.calls) + 1, step):
        for after in (False, True):
            path = shutil.copytree(first, str(tmp_path / f"{number}-{after}"))
            with dying_process(), pytest.raises(PowerCut):
                execute(path, Fuse(number, after))
            assert contents(path) == before, f"call {number}: {counted.calls[number - 1]}"
            execute(path)
            assert contents(path) == before
            timeline = Bare.open(path).load_timeline()
            assert timeline.find(planned.time, Action.REPLACE_COMMIT).is_completed
            with ArrowSink(path, BY_HAND, key="id", partition_by="p", order_by="ts") as sink:
                sink.write(a_batch([1000], 9), 9)
            assert [row for row in contents(path) if row["id"] != "k1000"] == before
            assert HudiTable.open(path).check().is_sound
            assert_clean(path)


def write_blindly(path, planned, batch):
    """A batch of an engine that lets updates through while a clustering is pending (SparkAllowUpdateStrategy)."""
    with (
        mock.patch.object(rollback, "_find_alive", return_value=frozenset({planned.time})),
        mock.patch.object(rollback, "_end_pending_writes", side_effect=lambda snapshot, *_, **__: snapshot),
        mock.patch.object(commit, "_check_alone"),
        mock.patch.object(begin_batch, "load_clustered", return_value={}),
        mock.patch.object(commit_facts, "load_clustered", return_value={}),
        ArrowSink(path, BY_HAND, key="id", partition_by="p", order_by="ts") as sink,
    ):
        sink.write(batch, 7)


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("version", ["6", "8"])
def test_a_plan_that_does_not_name_all_its_groups_hold_now_is_refused(tmp_path, table_type, version):
    path = str(tmp_path / "t")
    a_table(path, table_type, version, batches=2)
    planned = plan_elsewhere(path)
    write_blindly(path, planned, a_batch(range(10, 20), 7))
    expected = contents(path)
    assert sum(row["ts"] == 7 for row in expected) == 10
    with pytest.raises(CommitConflictError, match=f"hudistream rollback PATH {planned.time}"):
        execute_planned(Bare.open(path), WriteOptions().file_settings)
    assert contents(path) == expected
    roll_back(Bare.open(path), planned.time)
    assert contents(path) == expected
    assert HudiTable.open(path).cluster("x") is not None
    assert contents(path) == expected
    assert HudiTable.open(path).check().is_sound


def test_a_plan_that_another_engine_carries_out_now_is_left_to_it(tmp_path):
    path = str(tmp_path / "t")
    a_table(path, batches=2)
    planned = plan_elsewhere(path)
    heartbeat = tmp_path / "t" / ".hoodie" / ".heartbeat" / planned.time
    heartbeat.parent.mkdir(exist_ok=True)
    heartbeat.touch()  # Hudi's is empty
    with pytest.raises(CommitConflictError, match="another process carries it out"):
        execute_planned(Bare.open(path), WriteOptions().file_settings)
    os.utime(heartbeat, (1e9, 1e9))
    assert len(execute_planned(Bare.open(path), WriteOptions().file_settings)) == 1


@pytest.mark.parametrize(("columns", "layout"), [("x,y", "hilbert"), ("x", "hilbert"), ("x,y", None)])
def test_the_command_carries_out_a_plan_in_the_layout_that_it_is_given(tmp_path, capsys, columns, layout):
    path = str(tmp_path / "t")
    a_table(path, batches=2)
    before = contents(path)
    plan_elsewhere(path, columns=columns)
    given = [] if layout is None else ["--layout", layout]
    assert "4 file groups became 2" in said(capsys, "cluster", path, "--execute", *given)
    assert contents(path) == before
    assert "nothing to cluster" in said(capsys, "cluster", path, "--execute")


def test_a_table_that_a_sink_would_harm_is_not_clustered_either(tmp_path):
    path, key = str(tmp_path / "t"), "hoodie.table.metadata.partitions"
    a_table(path, batches=2)
    update_properties(LocalStorage(path), {key: "bloom_filters,files"})
    with pytest.raises(UnsupportedTableError, match=key):
        HudiTable.open(path).cluster("x")
    assert not clusterings_of(path)


def test_a_batch_that_was_written_before_a_clustering_is_not_written_again(tmp_path):
    path = str(tmp_path / "t")
    options = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1",
               "hoodie.clustering.plan.strategy.sort.columns": "x"}  # fmt: skip
    a_table(path, **options)
    expected = contents(path)
    assert len(clusterings_of(path)) == 4
    with ArrowSink(path, BY_HAND, key="id", partition_by="p", order_by="ts", operation="upsert") as sink:
        assert sink.write(a_batch(range(120, 200), 3), 3).skipped
    assert contents(path) == expected


def test_no_folder_is_listed_twice_and_none_that_was_not_chosen(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    a_table(path)
    listed, inner = [], LocalStorage.list_dir
    monkeypatch.setattr(LocalStorage, "list_dir", lambda self, folder: listed.append(folder) or inner(self, folder))
    snapshot = Snapshot.load(Bare.open(path))
    listed.clear()
    clustering.plan_now(snapshot, ClusteringSettings(sort_columns=("x",), partitions=("p0",)))
    assert [folder for folder in listed if not folder.startswith(".hoodie")] == ["p0"]
    listed.clear()
    clustering.plan_now(snapshot, ClusteringSettings(sort_columns=("x",)))
    assert sorted(folder for folder in listed if not folder.startswith(".hoodie")) == ["", "p0", "p1"]


def test_whether_one_is_due_is_told_by_the_newest_commits_alone(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    a_table(path, batches=4)
    settings = ClusteringSettings(max_commits=3)
    assert clustering.is_due(Snapshot.load(Bare.open(path)), settings)
    HudiTable.open(path).cluster("x")
    for number in range(4, 7):
        snapshot = Snapshot.load(Bare.open(path))
        assert not clustering.is_due(snapshot, settings)
        with ArrowSink(path, BY_HAND, key="id", partition_by="p", order_by="ts") as sink:
            sink.write(a_batch(range(3), number), number)
    snapshot, read = Snapshot.load(Bare.open(path)), []
    monkeypatch.setattr(snapshot.commits, "read", read.append)
    assert clustering.is_due(snapshot, settings)
    assert not read


def test_the_lock_of_the_other_writers_is_taken(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    a_table(path, **SHARED)
    lock, steps, inner = LockSettings(provider="filesystem"), [], StepLock.guarded
    monkeypatch.setattr(StepLock, "guarded", lambda self, step: steps.append(step) or inner(self, step))
    assert HudiTable.open(path).cluster("x", shared=True, lock=lock) is not None
    assert {Step.BEGIN, Step.COMPLETE} <= set(steps)


SHARED = {
    **BY_HAND,
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.datasource.write.streaming.checkpoint.identifier": "stream",
}


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("version", ["6", pytest.param("8", marks=pytest.mark.slow)])
@pytest.mark.parametrize("change", ["upsert", "delete", "insert"])
def test_beside_a_writer_that_is_faster_it_gives_way(tmp_path, monkeypatch, table_type, version, change):
    """The other writer's batch is committed while the clustering writes its files."""
    path = str(tmp_path / "t")
    a_table(path, table_type, version, batches=2, **SHARED)
    inner, beside = clustering.cluster_group, []

    def slowly(*given):
        if not beside:
            beside.append(True)
            keys = range(500, 520) if change == "insert" else range(10, 20)
            deleted = set(keys) if change == "delete" else ()
            with ArrowSink(path, SHARED, key="id", partition_by="p", order_by="ts") as sink:
                sink.write(a_batch(keys, 7, deleted), 7)
        return inner(*given)

    monkeypatch.setattr(clustering, "cluster_group", slowly)
    before = {row["id"]: row["ts"] for row in contents(path)}
    expected = dict(before)
    for n in range(500, 520) if change == "insert" else range(10, 20):
        expected.pop(f"k{n}", None) if change == "delete" else expected.update({f"k{n}": 7})
    if change == "insert":  # into file groups of its own
        assert HudiTable.open(path).cluster("x", shared=True) is not None
    else:
        with pytest.raises(CommitConflictError, match="while the batch ran"):
            HudiTable.open(path).cluster("x", shared=True)
    assert {row["id"]: row["ts"] for row in contents(path)} == expected
    assert HudiTable.open(path).check().is_sound
    monkeypatch.undo()
    assert HudiTable.open(path).cluster("x", shared=True) is not None
    assert {row["id"]: row["ts"] for row in contents(path)} == expected


@pytest.mark.parametrize("table_type", TYPES)
def test_a_batch_whose_file_groups_were_clustered_meanwhile_is_written_anew(tmp_path, monkeypatch, table_type):
    path = str(tmp_path / "t")
    a_table(path, table_type, batches=2, **SHARED)
    inner, done = commit_batch.complete_commit, []

    def late(*given):
        if not done:
            done.append(HudiTable.open(path).cluster("x", shared=True))
        return inner(*given)

    monkeypatch.setattr(commit_batch, "complete_commit", late)
    before = {row["id"]: row["ts"] for row in contents(path)}
    with ArrowSink(path, SHARED, key="id", partition_by="p", order_by="ts") as sink:
        sink.write(a_batch(range(10, 20), 7), 7)
    assert done[0] is not None
    assert {row["id"]: row["ts"] for row in contents(path)} == {**before, **{f"k{n}": 7 for n in range(10, 20)}}
    assert HudiTable.open(path).check().is_sound


def test_slices_under_a_pending_compaction_are_left_alone(tmp_path):
    path = str(tmp_path / "t")
    table = a_table(path, "MERGE_ON_READ")
    before = contents(path)
    assert request_compaction(Bare.open(path), CompactionSettings())
    planned = groups_with(path, logs=True)
    table.cluster("x")
    assert planned
    assert planned <= groups_with(path, logs=False)
    compact(Bare.open(path), CompactionSettings(), WriteOptions().file_settings)
    assert contents(path) == before
    assert table.check().is_sound
    table.cluster("x")
    assert contents(path) == before


def test_engine_batches_in_one_partition_stay_small(tmp_path):
    """Many tiny files of plain inserts become one."""
    path = str(tmp_path / "t")
    engine = Engine(path, {"hoodie.parquet.small.file.limit": "0"})
    for number in range(12):
        engine.write(number, rows(range(number * 3, number * 3 + 3), lambda _: "p"))
    engine.writer.stop()
    done = HudiTable.open(path).cluster()
    assert (done.files_before, done.files_after, done.rows) == (12, 1, 36)
    assert sorted(read_table(path, meta_columns=True).column("id").to_pylist()) == sorted(f"k{n}" for n in range(36))
