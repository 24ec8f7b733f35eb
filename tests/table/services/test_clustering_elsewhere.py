"""A clustering that another engine planned, and batches beside it: they leave its file groups alone."""

from types import SimpleNamespace

import pytest
from clustered_rows import BY_HAND, a_batch, plan_elsewhere
from faults import PowerCut, dying_process
from snapshots import assert_clean

from hudistream import HudiTable
from streaming import ArrowSink
from streaming.batch import commit_batch
from table import ActionPendingError, CommitConflictError, CorruptFileError, WriteConflictError, read_table
from table.hudi_table import HudiTable as Bare
from table.options.clustering_settings import ClusteringSettings, Layout
from table.options.groups import CompactionSettings
from table.options.write_options import WriteOptions
from table.services.clustering import execution
from table.services.clustering.command import cluster, execute_planned
from table.services.clustering.execution import carry_out_planned
from table.services.compaction.compaction import request_compaction
from table.services.rollback.undo_commit import roll_back
from table.snapshot import Snapshot
from table.timeline.instant import Action
from table.transaction import commit
from table.transaction.heartbeat import WriterIdentity, delete_heartbeat
from table.view.file_system_view import list_file_groups

TYPES = ["COPY_ON_WRITE", "MERGE_ON_READ"]
VERSIONS = ["6", "8", "9"]
EACH_TYPE, EACH_VERSION = pytest.mark.parametrize("table_type", TYPES), pytest.mark.parametrize("version", VERSIONS)
SHARED = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.datasource.write.streaming.checkpoint.identifier": "ours",
}
EACH_MODE = pytest.mark.parametrize("mode", [{}, SHARED], ids=["alone", "shared"])


def write(path, numbers, ts, operation="upsert", deleted=(), **options):
    given = {**BY_HAND, "hoodie.parquet.small.file.limit": "104857600", **options}
    with ArrowSink(path, given, key="id", partition_by="p", order_by="ts", operation=operation) as sink:
        sink.write(a_batch(numbers or [1], ts, deleted=set(deleted)).slice(0, len(numbers)), ts)


def a_table(path, table_type, version):
    form = {"hoodie.datasource.write.table.type": table_type, "hoodie.write.table.version": version}
    for ts in range(3):
        write(path, range(ts * 40, ts * 40 + 80), ts, **form)
    return form


def execute(path):
    return execute_planned(Bare.open(path), WriteOptions().file_settings)


def execute_elsewhere(path):
    """Carries it out as another engine does, which knows no lease."""
    lease = SimpleNamespace(owner="other", is_shared=False, check=lambda: None, confirm=lambda: None,
                            beat_for=lambda *_: None)  # fmt: skip
    who, settings = WriterIdentity("other", None, "other"), WriteOptions()
    snapshot = Snapshot.load(Bare.open(path))
    assert carry_out_planned(snapshot, Layout.LINEAR, settings.file_settings, lease, who, settings.heartbeat)


def latest(path):
    """key -> ts of its row; a key that is there twice is a failure."""
    found = read_table(path, columns=["id", "ts"]).to_pylist()
    assert len({row["id"] for row in found}) == len(found), "a key is there twice"
    return {row["id"]: row["ts"] for row in found}


def files_in(path, partition):
    snapshot = Snapshot.load(Bare.open(path))
    return {
        group.file_id: {file.name for one in group.slices for file in (one.base_file, *one.log_files) if file}
        for group in list_file_groups(snapshot.listing, partition, snapshot.slicing)
    }


def in_partition(partition):
    """Numbers of rows of a partition path, in order."""
    every = a_batch(range(400), 0).select(["id", "p"]).to_pylist()
    return [number for number, row in enumerate(every) if row["p"] == partition]


@EACH_MODE
@EACH_TYPE
@EACH_VERSION
def test_batches_go_on_beside_it(tmp_path, table_type, version, mode):
    path = str(tmp_path / "t")
    a_table(path, table_type, version)
    planned = plan_elsewhere(path, "p0")
    before, held = latest(path), files_in(path, "p0")
    new = list(range(300, 340))
    write(path, new, 7, "insert", **mode)  # of both partition paths: small files are there to be filled
    write(path, in_partition("p1")[:30], 8, **mode)  # known and new keys of the other path
    fresh = [number for number in in_partition("p0") if number >= 360][:5]
    write(path, fresh, 9, **mode)  # new keys of the path
    now = files_in(path, "p0")
    assert {file_id: now[file_id] for file_id in held} == held
    assert set(now) > set(held)
    ids = a_batch(range(400), 0).column("id").to_pylist()
    expected = before | dict.fromkeys((ids[number] for number in new), 7)
    expected |= dict.fromkeys((ids[number] for number in in_partition("p1")[:30]), 8)
    expected |= dict.fromkeys((ids[number] for number in fresh), 9)
    assert latest(path) == expected
    assert [one.instant_time for one in execute(path)] == [planned.time]
    assert latest(path) == expected
    write(path, in_partition("p0")[:10], 10, **mode)
    assert latest(path) == expected | dict.fromkeys((ids[number] for number in in_partition("p0")[:10]), 10)
    assert HudiTable.open(path).check().is_sound
    assert_clean(path)


@EACH_MODE
@EACH_TYPE
@EACH_VERSION
@pytest.mark.parametrize("deleted", [False, True], ids=["changed", "deleted"])
def test_a_change_of_its_rows_is_refused_before_anything_is_visible(tmp_path, table_type, version, mode, deleted):
    path = str(tmp_path / "t")
    a_table(path, table_type, version)
    planned = plan_elsewhere(path, "p0")
    before, held = latest(path), in_partition("p0")[:3]
    with pytest.raises(WriteConflictError, match=rf"pending clustering {planned.time} replaces.*cluster --execute"):
        write(path, [*held, *in_partition("p1")[:3]], 7, deleted=held if deleted else (), **mode,
              **{"hoodie.write.num.retries.on.conflict.failures": "1"} if mode else {})  # fmt: skip
    assert latest(path) == before
    execute(path)
    write(path, held, 7, deleted=held if deleted else ())
    ids = [a_batch([number], 0).column("id")[0].as_py() for number in held]
    if deleted:
        assert not latest(path).keys() & set(ids)
    else:
        assert latest(path) == before | dict.fromkeys(ids, 7)
    assert HudiTable.open(path).check().is_sound


@EACH_TYPE
@EACH_VERSION
@pytest.mark.parametrize("operation", ["insert_overwrite", "delete_partition"])
def test_its_partition_path_is_not_replaced(tmp_path, table_type, version, operation):
    path = str(tmp_path / "t")
    a_table(path, table_type, version)
    plan_elsewhere(path, "p0")
    before = latest(path)
    gone = {"hoodie.datasource.write.partitions.to.delete": "p0"} if operation == "delete_partition" else {}
    with pytest.raises(CommitConflictError, match="the pending clustering"):
        write(path, in_partition("p0")[:3] if not gone else [], 7, operation, **gone)
    assert latest(path) == before
    execute(path)
    assert latest(path) == before


@EACH_MODE
@EACH_TYPE
@EACH_VERSION
@pytest.mark.parametrize("ends", ["stays pending", "is carried out", "is removed"])
def test_one_that_is_planned_while_a_batch_runs(tmp_path, monkeypatch, table_type, version, mode, ends):
    """The batch has filled files that the plan names: its rows go into files of their own, or it fails."""
    path = str(tmp_path / "t")
    a_table(path, table_type, version)
    before, planned = latest(path), []
    complete = commit_batch.complete_commit

    def late(*given):
        if not planned:
            planned.append(plan_elsewhere(path, "p0", "p1"))
            if ends == "is carried out":
                execute_elsewhere(path)
            elif ends == "is removed":
                Bare.open(path).storage.delete_metafile(planned[0].path)
        return complete(*given)

    monkeypatch.setattr(commit_batch, "complete_commit", late)
    new = range(300, 330)
    write(path, new, 7, "insert", **mode)
    expected = before | dict.fromkeys(a_batch(new, 7).column("id").to_pylist(), 7)
    assert latest(path) == expected
    if ends == "stays pending":
        execute(path)
        assert latest(path) == expected
    assert HudiTable.open(path).check().is_sound


@EACH_VERSION
def test_no_service_touches_its_file_groups(tmp_path, version):
    path = str(tmp_path / "t")
    a_table(path, "MERGE_ON_READ", version)
    plan_elsewhere(path, "p0")
    with pytest.raises(ActionPendingError, match="no compaction is planned before its end"):
        request_compaction(Bare.open(path), CompactionSettings(delta_commits=1))
    with pytest.raises(ActionPendingError, match="is pending"):
        cluster(Bare.open(path), ClusteringSettings(sort_columns=("x",)))
    held = files_in(path, "p0")
    assert cluster(Bare.open(path), ClusteringSettings(sort_columns=("x",)), shared=True) is not None
    assert files_in(path, "p0") == held


@pytest.fixture
def decided(monkeypatch):
    """Calls what is appended to it once a batch is decided, and before it is visible."""
    acts, decide = [], commit.decide_end

    def late(storage, end):
        found = decide(storage, end)
        while acts:
            acts.pop()()
        return found

    monkeypatch.setattr(commit, "decide_end", late)
    return acts


@EACH_TYPE
@EACH_VERSION
@pytest.mark.parametrize("operation", ["insert", "upsert"])
def test_one_that_is_planned_before_a_decided_batch_is_visible_is_withdrawn_by_the_next(
    tmp_path, decided, table_type, version, operation
):
    path = str(tmp_path / "t")
    a_table(path, table_type, version)
    before, numbers = latest(path), [*range(20), *range(300, 310)] if operation == "upsert" else list(range(300, 330))
    decided.append(lambda: plan_elsewhere(path))
    write(path, numbers, 7, operation)
    expected = before | dict.fromkeys(a_batch(numbers, 7).column("id").to_pylist(), 7)
    assert latest(path) == expected
    write(path, [400], 8)
    assert not Bare.open(path).load_timeline().pending
    assert latest(path) == expected | {a_batch([400], 8).column("id")[0].as_py(): 8}


@EACH_TYPE
@EACH_VERSION
def test_what_is_decided_is_visible_before_a_plan_is_carried_out(tmp_path, decided, table_type, version):
    path = str(tmp_path / "t")
    a_table(path, table_type, version)
    before, numbers = latest(path), list(range(20))

    def die():
        plan_elsewhere(path)
        raise PowerCut

    decided.append(die)
    with dying_process(), pytest.raises(PowerCut):
        write(path, numbers, 7)
    assert execute(path) == []  # the plan lacks the batch, and is withdrawn
    assert latest(path) == before | dict.fromkeys(a_batch(numbers, 7).column("id").to_pylist(), 7)
    assert HudiTable.open(path).check().is_sound


@EACH_TYPE
@EACH_VERSION
@pytest.mark.parametrize("error", [KeyboardInterrupt, CorruptFileError("a damaged file")], ids=["ctrl-c", "error"])
def test_a_clustering_that_is_decided_is_not_undone_by_an_error(tmp_path, decided, table_type, version, error):
    path = str(tmp_path / "t")
    a_table(path, table_type, version)
    before = latest(path)
    plan_elsewhere(path)

    def fail():
        raise error

    decided.append(fail)
    with pytest.raises(BaseException):  # noqa: B017 the one that was raised
        execute(path)
    assert latest(path) == before
    assert execute(path) == []  # what is decided is ended first
    timeline = Bare.open(path).load_timeline()
    assert timeline.completed_of(Action.REPLACE_COMMIT)
    assert not timeline.pending
    assert latest(path) == before
    assert HudiTable.open(path).check().is_sound


@EACH_TYPE
@EACH_VERSION
def test_one_that_was_decided_since_the_look_is_completed_and_not_written_again(
    tmp_path, decided, monkeypatch, table_type, version
):
    path = str(tmp_path / "t")
    a_table(path, table_type, version)
    before = latest(path)
    planned = plan_elsewhere(path)

    def die():
        raise PowerCut

    decided.append(die)
    with dying_process(), pytest.raises(PowerCut):
        execute(path)
    delete_heartbeat(Bare.open(path).storage, planned.time)  # it has expired
    monkeypatch.setattr(execution, "write_groups", lambda *_: pytest.fail("written again"))
    execute_elsewhere(path)
    timeline = Bare.open(path).load_timeline()
    assert timeline.completed_of(Action.REPLACE_COMMIT)
    assert not timeline.pending
    assert latest(path) == before


@EACH_VERSION
def test_a_plan_that_cannot_be_read_is_removed_by_hand(tmp_path, version):
    path = str(tmp_path / "t")
    a_table(path, "COPY_ON_WRITE", version)
    before, planned = latest(path), plan_elsewhere(path, "p0")
    (tmp_path / "t" / planned.path).write_bytes(b"damaged")
    with pytest.raises(CorruptFileError, match="requested"):
        write(path, [300], 7, "insert")
    roll_back(Bare.open(path), planned.time)
    assert latest(path) == before
    write(path, [300], 7, "insert")
    assert len(latest(path)) == len(before) + 1


@pytest.mark.parametrize("version", ["8", "9"])
def test_one_without_a_request_is_named(tmp_path, version):
    path = str(tmp_path / "t")
    a_table(path, "COPY_ON_WRITE", version)
    planned = plan_elsewhere(path, "p0")
    request = tmp_path / "t" / planned.path
    request.rename(request.with_suffix(".inflight"))
    with pytest.raises(ActionPendingError, match=f"hudistream rollback PATH {planned.time}"):
        write(path, [300], 7, "insert")
    roll_back(Bare.open(path), planned.time)
    write(path, [300], 7, "insert")
