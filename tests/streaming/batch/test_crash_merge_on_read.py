"""A delta commit stopped at every storage call, and what late or failed tasks leave: no row of it is seen."""

import os
import shutil
from contextlib import suppress
from dataclasses import replace

import pytest
from engine import Engine, rows
from faults import FaultyStorage, Fuse, PowerCut
from snapshots import assert_clean, contents
from tiers import quick

from streaming.task.upsert import write_changes
from table import InvalidConfigError, StorageError, UnsupportedTableError
from table.clock import InstantClock, parse_instant_time
from table.files.log.framing import BlockType, Header, LogBlock, encode_block
from table.files.log.instants import find_writers
from table.files.markers import APPEND, create_marker
from table.files.names import MarkerName, parse_log_file
from table.files.publication import delete_announced
from table.hudi_table import HudiTable
from table.scan.plan import plan_scan
from table.scan.read_slice import read_slice
from table.services.rollback.plan import plan_rollback
from table.storage.local import LocalStorage
from table.timeline.active_timeline import begin_instant, request_instant
from table.timeline.commit_cache import CommitCache
from table.timeline.instant import Action, Instant, State

OPTIONS = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.parquet.max.file.size": "4000",
}
FIRST = rows(range(12))
SECOND = rows([*range(3, 9), *range(12, 15)], ts=1, v="second")

# an answer that is lost after the call; the other kinds of tables have it among the quick tests
LATE = [pytest.param(False, id="before the call"), pytest.param(True, id="after the call", marks=pytest.mark.slow)]


def build(storage, **options):
    return Engine(storage, {**OPTIONS, **options})


def after(*batches):
    found = {}
    for batch in batches:
        found.update({row["id"]: tuple(row.values()) for row in batch.to_pylist()})
    return sorted(found.values())


def log_files(path):
    return sorted(
        os.path.join(os.path.relpath(folder, path), name)
        for folder, _, names in os.walk(path)
        for name in names
        if parse_log_file(name) is not None
    )


def committed_logs(path):
    commits = CommitCache(LocalStorage(path))
    stats = [commits.read(instant).stats for instant in HudiTable.open(path).load_timeline().completed_writes]
    return sorted(stat.path for of_commit in stats for stat in of_commit if ".log." in stat.path)


@pytest.fixture(scope="module", params=["6", pytest.param("8", marks=pytest.mark.slow)])
def first(request, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("crash") / "first")
    engine = build(path, **{"hoodie.write.table.version": request.param})
    engine.write(0, FIRST)
    engine.write(1, rows(range(3), ts=1))  # so that the slices have log files
    return path


WITH_LOGS = after(FIRST, rows(range(3), ts=1))
BOTH = after(FIRST, rows(range(3), ts=1), SECOND)


def calls_of(first, path):
    shutil.copytree(first, path)
    fuse = Fuse()
    build(FaultyStorage(LocalStorage(path), fuse)).write(2, SECOND)
    return list(fuse.calls)


@pytest.mark.parametrize(
    ("step", "late"),
    [
        pytest.param(11, False, id="some calls"),
        pytest.param(1, False, id="before the call", marks=pytest.mark.slow),
        pytest.param(1, True, id="after the call", marks=pytest.mark.slow),
    ],
)
def test_a_delta_commit_stopped_at_a_call_is_whole_or_absent(first, tmp_path, step, late):
    calls = calls_of(first, str(tmp_path / "count"))
    assert any(call.startswith("publish") and ".log." in call for call in calls)
    assert any(call.endswith(".deltacommit") for call in calls)
    for number in range(1, len(calls) + 1, step):
        path = shutil.copytree(first, str(tmp_path / str(number)))
        # how often the store's clock is asked differs, so the last places are not always there
        with suppress(PowerCut) if number > len(calls) - 5 else pytest.raises(PowerCut):
            build(FaultyStorage(LocalStorage(path), Fuse(number, late))).write(2, SECOND)
        assert contents(path) in (WITH_LOGS, BOTH), f"{calls[number - 1]}: a reader sees part of the batch"
        build(path).write(2, SECOND)
        assert contents(path) == BOTH, f"{calls[number - 1]}: the replay does not give exactly the rows"
        build(path).write(3, rows(range(2), ts=5))
        assert_clean(path)
        assert log_files(path) == committed_logs(path)


@pytest.mark.parametrize("step", [13, pytest.param(1, marks=pytest.mark.slow)], ids=["some calls", "every call"])
def test_a_rollback_stopped_at_a_call_is_finished_by_the_next_batch(first, tmp_path, step):
    calls = calls_of(first, str(tmp_path / "count"))
    dies_at = next(i for i, call in enumerate(calls, 1) if call.startswith("create") and "/ends/" in call)
    dead = shutil.copytree(first, str(tmp_path / "dead"))
    with pytest.raises(PowerCut):
        build(FaultyStorage(LocalStorage(dead), Fuse(dies_at))).write(2, SECOND)
    assert len(log_files(dead)) > len(committed_logs(dead))
    assert contents(dead) == WITH_LOGS
    fuse = Fuse()
    counted = shutil.copytree(dead, str(tmp_path / "counted"))
    build(FaultyStorage(LocalStorage(counted), fuse)).write(2, SECOND)
    ends = max(i for i, call in enumerate(fuse.calls, 1) if ".rollback" in call) + 3
    for number in range(1, ends + 1, step):
        for late in (False, True):
            path = shutil.copytree(dead, str(tmp_path / f"{number}-{late}"))
            with pytest.raises(PowerCut):
                build(FaultyStorage(LocalStorage(path), Fuse(number, late))).write(2, SECOND)
            assert contents(path) == WITH_LOGS
            build(path).write(2, SECOND)
            assert contents(path) == BOTH
            build(path).write(3, rows(range(2), ts=5))
            assert_clean(path)
            assert log_files(path) == committed_logs(path)


def test_a_reader_outlives_the_rollback_of_a_batch_that_it_does_not_show(first, tmp_path):
    calls = calls_of(first, str(tmp_path / "count"))
    dies_at = next(i for i, call in enumerate(calls, 1) if call.startswith("create") and "/ends/" in call)
    path = shutil.copytree(first, str(tmp_path / "t"))
    with pytest.raises(PowerCut):
        build(FaultyStorage(LocalStorage(path), Fuse(dies_at))).write(2, SECOND)
    dead = set(log_files(path)) - set(committed_logs(path))
    plan = plan_scan(HudiTable.open(path))
    shown = {file.path for found in plan.slices for file in found.files}
    # in layout 2 the name of a log file says whose it is, so that a plan leaves them out
    assert dead & shown == (dead if HudiTable.open(path).config.version == 6 else set())
    build(path).write(2, rows([99], lambda _: "elsewhere"))  # a change here might have the name of a dead file again
    assert not dead & set(log_files(path))

    def read():
        pieces = [piece for found in plan.slices for piece in read_slice(plan.context, found, plan.needed)]
        return sorted((row["id"], row["p"], row["ts"], row["v"]) for piece in pieces for row in piece.to_pylist())

    assert read() == WITH_LOGS
    shown = {file.path for found in plan.slices for file in found.files}
    os.unlink(os.path.join(path, min(shown & set(committed_logs(path)))))
    with pytest.raises(StorageError, match="a file of the snapshot was deleted"):
        read()


def test_a_late_task_publishes_no_log_file(first, tmp_path):
    path = shutil.copytree(first, str(tmp_path / "t"))
    engine = build(path)
    engine.write(2, SECOND)
    plan = engine.plans[-1]
    late = [batches for batches in engine.route(plan, SECOND) if batches][0]
    with pytest.raises(StorageError, match="was ended"):
        write_changes(plan, "0-0-99", late)
    assert log_files(path) == committed_logs(path)
    build(path).write(3, rows(range(2), ts=5))
    assert_clean(path)


def test_a_task_that_is_paused_before_it_publishes_finds_the_fence(first, tmp_path):
    path = shutil.copytree(first, str(tmp_path / "t"))

    class Paused(LocalStorage):
        def publish(self, path, stage, output):
            if ".log." in path:
                self.fence(stage.instant_time)  # whoever ended the instant meanwhile
            super().publish(path, stage, output)

    engine = Engine(path, OPTIONS, worker_storage=Paused(path))
    with pytest.raises(Exception, match="was not published"):
        engine.write(2, SECOND)
    assert contents(path) == WITH_LOGS
    assert log_files(path) == committed_logs(path)


def test_a_failed_attempt_leaves_no_log_file_beside_a_commit(first, tmp_path):
    path = shutil.copytree(first, str(tmp_path / "t"))

    class Flaky(LocalStorage):
        failures = 1

        def sync(self, path):
            if ".log." in path and Flaky.failures:
                Flaky.failures -= 1
                raise OSError("disk hiccup")
            super().sync(path)

    Engine(LocalStorage(path), OPTIONS, worker_storage=Flaky(path), retry=1).write(2, SECOND)
    assert Flaky.failures == 0
    assert contents(path) == BOTH
    assert log_files(path) == committed_logs(path)


def block(time):
    return encode_block(LogBlock(BlockType.DELETE, {Header.INSTANT_TIME: time}, b""))


LOG = "p0/.f-0_1.log.1_0-0-0"


def test_a_log_file_that_others_wrote_into_is_not_deleted(tmp_path):
    storage = LocalStorage(str(tmp_path))
    (tmp_path / "p0").mkdir()
    marker = MarkerName(LOG, APPEND)
    assert find_writers(storage, LOG) == frozenset()
    for content, writers, goes in (
        (block("7"), {"7"}, True),
        (block("7")[:-3], set(), True),
        (block("5") + block("7"), {"5", "7"}, False),
        (block("5") + block("7")[:-3], {"5"}, False),
    ):
        (tmp_path / LOG).write_bytes(content)
        assert find_writers(storage, LOG) == writers
        create_marker(storage, "7", marker)
        assert delete_announced(storage, "7", marker) is goes
        assert (tmp_path / LOG).exists() is not goes


def test_a_rollback_names_log_files_of_the_instant_alone():
    instant, markers = Instant("7", Action.DELTA_COMMIT, State.INFLIGHT), [MarkerName(LOG, APPEND)]
    plan = plan_rollback(instant, markers, lambda path: f"/t/{path}", {LOG: frozenset({"7"})})
    [request] = plan.requests
    assert (request.partition_path, request.file_id, request.latest_base_instant) == ("p0", "f-0", "1")
    assert request.files == (f"/t/{LOG}",)
    with pytest.raises(UnsupportedTableError, match="holds rows of 5, too"):
        plan_rollback(instant, markers, str, {LOG: frozenset({"5", "7"})})


class WholeSeconds(LocalStorage):
    """A store that counts whole seconds, as object stores do, and whose clock may be off."""

    behind_ms = 0

    def list_dir(self, path):
        return [replace(entry, modified_ms=self.shown(entry.modified_ms)) for entry in super().list_dir(path)]

    def shown(self, modified_ms):
        return (modified_ms - self.behind_ms) // 1000 * 1000

    @property
    def time_granularity_ms(self):
        return 1000


class Behind(WholeSeconds):
    behind_ms = 1500


class Ahead(LocalStorage):
    def list_dir(self, path):
        return [replace(entry, modified_ms=entry.modified_ms + 300) for entry in super().list_dir(path)]


@pytest.mark.parametrize("store", quick(2, [WholeSeconds, Behind, LocalStorage, Ahead]))
def test_a_completed_file_is_neither_older_than_its_instant_nor_younger_than_the_next(tmp_path, store):
    storage = store(str(tmp_path / "t"))
    engine = build(storage)
    for number in range(3):
        engine.write(number, rows(range(4), ts=number))
    done = {e.name: e.modified_ms for e in storage.list_dir(".hoodie") if e.name.endswith(".deltacommit")}
    assert len(done) == 3
    times = sorted(name.partition(".")[0] for name in done)
    for time, following in zip(times, [*times[1:], None], strict=True):
        modified_ms = done[f"{time}.deltacommit"]
        assert parse_instant_time(time) <= modified_ms
        assert following is None or modified_ms < parse_instant_time(following)


def test_a_store_far_ahead_is_refused(tmp_path):
    class FarAhead(LocalStorage):
        def list_dir(self, path):
            return [replace(entry, modified_ms=entry.modified_ms + 100_000) for entry in super().list_dir(path)]

    build(str(tmp_path / "t")).write(0, FIRST)
    with pytest.raises(InvalidConfigError, match="s ahead of this machine's"):
        build(FarAhead(str(tmp_path / "t"))).write(1, SECOND)


def test_a_dead_delta_commit_of_another_writer_is_undone(first, tmp_path):
    path = shutil.copytree(first, str(tmp_path / "t"))
    storage, table = LocalStorage(path), HudiTable.open(path)
    dead = begin_instant(storage, request_instant(storage, table.load_timeline(), Action.DELTA_COMMIT, InstantClock()))
    [old, *_] = [name for name in committed_logs(path) if name.startswith("p0")]
    name = parse_log_file(os.path.basename(old))
    new = f"p0/{replace(name, version=name.version + 1, write_token='7-7-7')}"
    create_marker(storage, dead.time, MarkerName(new, APPEND))
    with open(os.path.join(path, new), "wb") as file:
        file.write(block(dead.time))
    build(path).write(2, SECOND)
    assert contents(path) == BOTH
    assert not os.path.exists(os.path.join(path, new))
    assert_clean(path)
