"""Stopped at every storage call of a batch and of a rollback in turn: all of it or none, and nothing left behind."""

import os
import re
import shutil

import pytest
from engine import Engine, key_set, rows
from faults import FaultyStorage, Fuse, PowerCut
from snapshots import assert_clean, list_snapshot_files
from tiers import quick

from streaming.batch.marker_cleanup import MarkerCleanup
from streaming.task import side_by_side
from table import StorageError, read_table, threads
from table.hudi_table import HudiTable
from table.snapshot import Snapshot
from table.storage.local import LocalStorage
from table.transaction.commit import clean_up_commit

FIRST = rows(range(12))
SECOND = rows(range(12, 30), v="second")


class AtOnce(FaultyStorage):
    """A store that takes several calls at once, so that a task writes several files at the same time."""

    calls_at_once = 16


def build(path, fuse=None, store=FaultyStorage, **options):
    storage = LocalStorage(path)
    if fuse is not None:
        storage = store(storage, fuse)
    return Engine(storage, {"hoodie.parquet.max.file.size": "4000", **options})


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A table of the first batch, which is copied for each place to stop at."""
    path = str(tmp_path_factory.mktemp("crash") / "first")
    build(path).write(0, FIRST)
    assert key_set(read_table(path)) == key_set(FIRST)
    return path


def calls_of(first, folder, **options):
    """How many storage calls the second batch makes."""
    path = shutil.copytree(first, str(folder / "count"))
    fuse = Fuse()
    engine = build(path, fuse, **options)
    engine.write(1, SECOND)
    return list(fuse.calls)  # without those of its end


def check_one(first, tmp_path, number, after, recovery_fuse=None, **options):
    path = shutil.copytree(first, str(tmp_path / f"{number}-{after}"))
    before = key_set(FIRST)
    both = sorted(before + key_set(SECOND))
    with pytest.raises(PowerCut):
        build(path, Fuse(number, after), **options).write(1, SECOND)
    seen = key_set(read_table(path))
    assert seen in (before, both), f"call {number}: a reader sees part of the batch"
    if recovery_fuse is not None:
        try:
            build(path, recovery_fuse, **options).write(1, SECOND)
        except PowerCut:
            assert key_set(read_table(path)) in (before, both)
    build(path, **options).write(1, SECOND)
    assert key_set(read_table(path)) == both, f"call {number}: the replay does not give exactly the rows"
    for name in os.listdir(f"{path}/.hoodie/.heartbeat") if options else ():
        os.utime(f"{path}/.hoodie/.heartbeat/{name}", (1e9, 1e9))  # beside others, a heartbeat has to expire first
    # what was committed at the last moment is tidied by the next batch
    build(path, **options).write(2, rows(range(100, 103)))
    assert key_set(read_table(path)) == sorted([*both, "k100", "k101", "k102"])
    assert_clean(path)


@pytest.fixture
def in_batch(monkeypatch):
    """Markers are deleted before the batch returns, so that the number of its calls is known."""

    def run(self, instant_time, stats):
        clean_up_commit(self._storage, instant_time, stats)

    monkeypatch.setattr(MarkerCleanup, "run", run)


@pytest.mark.usefixtures("in_batch")
@pytest.mark.parametrize("operation", quick(1, ["upsert", "insert"]))
@pytest.mark.parametrize("step", [23, pytest.param(1, marks=pytest.mark.slow)], ids=["some calls", "every call"])
def test_files_that_are_written_at_the_same_time_are_whole_or_absent(first, tmp_path, operation, step):
    options = {"hoodie.datasource.write.operation": operation, "store": AtOnce}
    calls = calls_of(first, tmp_path, **options)
    placed = [number for number, call in enumerate(calls) if call.startswith("publish")]
    assert len(placed) > 2
    for number in range(1, len(calls) + 1, step):
        for after in (False, True):
            check_one(first, tmp_path, number, after, **options)


@pytest.fixture(params=[False, True], ids=["in their order", "in reverse"])
def ordered(request, monkeypatch, in_batch):
    """Calls that are made together come one after another, and so do files."""

    def run(calls):
        places = range(len(calls))
        done = {place: calls[place]() for place in (reversed(places) if request.param else places)}
        return [done[place] for place in places]

    monkeypatch.setattr(threads, "run_together", run)
    monkeypatch.setattr(side_by_side, "MOST_FILES", 1)


@pytest.mark.parametrize("operation", quick(1, ["upsert", "insert"]))
@pytest.mark.parametrize(
    ("step", "after"), [(13, True), *(pytest.param(1, after, marks=pytest.mark.slow) for after in (False, True))]
)
def test_calls_that_are_made_together_need_no_order(first, tmp_path, ordered, operation, step, after):
    options = {"hoodie.datasource.write.operation": operation, "store": AtOnce}
    calls = calls_of(first, tmp_path, **options)
    for number in range(1, len(calls) + 1, step):
        check_one(first, tmp_path, number, after, **options)


@pytest.fixture(scope="module")
def later(tmp_path_factory):
    """The same, of version 8, whose completed files name the time of completion."""
    path = str(tmp_path_factory.mktemp("crash") / "later")
    build(path, **{"hoodie.write.table.version": "8"}).write(0, FIRST)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before the call", "after the call"])
def test_batch_of_a_later_version_stopped_at_every_call_is_whole_or_absent(later, tmp_path, after):
    calls = calls_of(later, tmp_path)
    assert any(".hoodie/timeline/" in call and ".commit" in call for call in calls)
    for number in range(1, len(calls) + 1):
        check_one(later, tmp_path, number, after)


CHANGE_FILES = {"hoodie.table.cdc.enabled": "true", "hoodie.datasource.write.operation": "upsert"}


@pytest.fixture(scope="module", params=quick(1, ["8", "6"]))
def told(request, tmp_path_factory):
    """Tables with change files. A second batch with keys of the first one writes them."""
    path, version = str(tmp_path_factory.mktemp("crash") / "told"), request.param
    build(path, **CHANGE_FILES, **{"hoodie.write.table.version": version}).write(0, FIRST)
    return path


@pytest.mark.parametrize(
    ("after", "step"), [(True, 19), *(pytest.param(after, 1, marks=pytest.mark.slow) for after in (True, False))]
)
def test_change_files_of_a_batch_that_died_are_gone(told, tmp_path, after, step):
    options = {"hoodie.datasource.write.operation": "upsert", "hoodie.parquet.small.file.limit": "104857600"}
    calls = calls_of(told, tmp_path, **options)
    assert sum(call.startswith("publish") and ".cdc" in call for call in calls) >= 3
    for number in range(1, len(calls) + 1, step):
        check_one(told, tmp_path, number, after, **options)
        path = tmp_path / f"{number}-{after}"
        named = {name for commit in commits_of(path) for name in commit.named_paths}
        assert {str(file.relative_to(path)) for file in path.rglob("*.cdc")} <= named


def commits_of(path):
    snapshot = Snapshot.load(HudiTable.open(path))
    return [snapshot.commits.find(one) for one in snapshot.timeline.completed_writes]


SHARED = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before the call", "after the call"])
def test_batch_of_a_writer_that_shares_the_table_is_whole_or_absent(first, tmp_path, after):
    calls = calls_of(first, tmp_path, **SHARED)
    assert any("order/" in call for call in calls)
    for number in range(1, len(calls) + 1):
        check_one(first, tmp_path, number, after, **SHARED)


@pytest.mark.parametrize(
    ("after", "step"),
    [(True, 11), *(pytest.param(after, 1, marks=pytest.mark.slow) for after in (True, False))],
    ids=["some calls", "after the call", "before the call"],
)
def test_batch_stopped_at_a_call_is_whole_or_absent(first, tmp_path, after, step):
    calls = calls_of(first, tmp_path)
    assert any(call.startswith("write ") for call in calls)
    assert any(".commit" in call for call in calls)
    for number in range(1, len(calls) + 1, step):
        check_one(first, tmp_path, number, after)


@pytest.mark.parametrize(
    ("version", "after", "step"),
    [
        (6, True, 11),
        *(pytest.param(*case, 1, marks=pytest.mark.slow) for case in ((6, True), (6, False), (8, True), (8, False))),
    ],
)
def test_rollback_stopped_at_a_call_is_finished_by_the_next_batch(first, later, tmp_path, version, after, step):
    first = first if version == 6 else later
    calls = calls_of(first, tmp_path)
    # the batch dies just before its commit file: everything is there for the rollback to undo
    dies_at = next(
        i for i, call in enumerate(calls, 1) if call.startswith("create") and re.search(r"\d\.commit$", call)
    )
    path = shutil.copytree(first, str(tmp_path / "count-recovery"))
    with pytest.raises(PowerCut):
        build(path, Fuse(dies_at)).write(1, SECOND)
    fuse = Fuse()
    engine = build(path, fuse)
    engine.write(1, SECOND)
    rollback_ends = max(i for i, call in enumerate(fuse.calls, 1) if ".rollback" in call) + 3
    assert rollback_ends > 10
    for number in range(1, rollback_ends + 1, step):
        check_one(first, tmp_path / f"recovery-{number}", dies_at, after=after, recovery_fuse=Fuse(number, after))


@pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.slow)])
def test_first_batch_stopped_at_a_call_creates_the_table_once(tmp_path, step):
    path = str(tmp_path / "count")
    fuse = Fuse()
    engine = build(path, fuse)
    engine.write(0, FIRST)
    for number in range(1, len(fuse.calls) + 1, step):
        path = str(tmp_path / str(number))
        with pytest.raises(PowerCut):
            build(path, Fuse(number)).write(0, FIRST)
        build(path).write(0, FIRST)
        assert key_set(read_table(path)) == key_set(FIRST)
        build(path).write(1, SECOND)
        assert_clean(path)


def test_task_that_failed_and_was_tried_again_leaves_no_file_of_the_first_attempt(tmp_path):
    path = str(tmp_path / "t")
    build(path).write(0, FIRST)
    inner = LocalStorage(path)

    class Flaky(LocalStorage):
        failures = 1

        def sync(self, path):
            if Flaky.failures:
                Flaky.failures -= 1
                raise OSError("disk hiccup")
            super().sync(path)

    engine = Engine(inner, {"hoodie.parquet.max.file.size": "4000"}, worker_storage=Flaky(path), retry=1)
    engine.write(1, SECOND)
    assert Flaky.failures == 0
    assert key_set(read_table(path)) == sorted(key_set(FIRST) + key_set(SECOND))
    assert_clean(path)


def test_a_late_task_writes_nothing_and_its_marker_is_swept_at_the_next_batch(tmp_path):
    path = str(tmp_path / "t")
    engine = build(path)
    summary = engine.write(0, FIRST)
    plan = engine.plans[-1]
    late = [batches for batches in engine.route(plan, FIRST) if batches][0]
    from streaming.task.append import write_rows

    with pytest.raises(StorageError, match="was ended"):
        write_rows(plan, "0-0-99", late)  # a task that Spark had given up runs on after the commit
    assert os.listdir(os.path.join(path, ".hoodie", ".temp"))  # it announced itself before it looked
    build(path).write(1, SECOND)
    assert key_set(read_table(path)) == sorted(key_set(FIRST) + key_set(SECOND))
    assert summary.instant_time in {file.instant_time for file in list_snapshot_files(HudiTable.open(path))} | {
        summary.instant_time
    }
    assert_clean(path)
