"""Write tasks, assignment end to end, rollback and conflicts: what the tables of pure rules do not show."""

import os

import pyarrow as pa
import pytest
from engine import Engine, key_set, rows
from hypothesis import given, settings
from hypothesis import strategies as st
from snapshots import list_snapshot_files
from tiers import examples

from streaming.plan.task_result import TaskResult, decode_result, sum_results
from table import CommitConflictError, InvalidRecordError, StorageError, read_table
from table.clock import InstantClock
from table.config.table_config import update_properties
from table.hudi_table import HudiTable
from table.storage.local import LocalStorage
from table.timeline.active_timeline import begin_instant, load_timeline, request_instant
from table.timeline.instant import Action, Instant
from table.timeline.metadata.commit import CommitMetadata, WriteStat
from table.timeline.metadata.rollback import RollbackPlan, encode_rollback_plan
from table.transaction.heartbeat import WriterIdentity, delete_heartbeat, write_heartbeat
from table.view.file_group import base_file_of

FOUR_FILES = {
    "hoodie.copyonwrite.record.size.estimate": "100",
    "hoodie.record.size.estimation.threshold": "1.0",  # nothing counts: the estimate of 100 bytes stays
    "hoodie.parquet.small.file.limit": "100000000",
}


def live(path, partition):
    files = [f for f in list_snapshot_files(HudiTable.open(path)) if f.partition_path == partition]
    counts = {f.file_id: len(read_table_file(path, f.path)) for f in files}
    return {f.file_id: (f.size_bytes, counts[f.file_id]) for f in files}


def read_table_file(path, file):
    import pyarrow.parquet as pq

    return pq.read_table(os.path.join(path, file), columns=["id"])


def one_path(partition):
    return lambda number: partition


def test_small_files_of_a_path_are_filled_smallest_first_as_computed_by_hand(tmp_path):
    path = str(tmp_path / "t")
    # three files of 10, 20 and 30 rows, and one that is full: small-file packing off while they are made
    for batch_id, (start, count) in enumerate([(0, 10), (100, 20), (200, 30), (1000, 400)]):
        Engine(path, {**FOUR_FILES, "hoodie.parquet.small.file.limit": "0"}).write(
            batch_id, rows(range(start, start + count), one_path("hot"))
        )
    before = live(path, "hot")
    ten, twenty, thirty, full = sorted(before, key=lambda file_id: before[file_id][1])
    limit = before[full][0]
    room = {file_id: (limit - before[file_id][0]) // 100 for file_id in before}
    assert room[ten] > room[twenty] > room[thirty] > 0 == room[full]
    total = room[ten] + room[twenty] + 7
    assert room[thirty] > 7
    Engine(path, {**FOUR_FILES, "hoodie.parquet.max.file.size": str(limit)}).write(
        9, rows(range(5000, 5000 + total), one_path("hot")), parallelism=1
    )
    after = live(path, "hot")
    assert {file_id: after[file_id][1] - before[file_id][1] for file_id in before} == {
        ten: room[ten],
        twenty: room[twenty],
        thirty: 7,
        full: 0,
    }
    assert len(after) == 4


def test_four_slots_of_a_hot_path_top_up_files_of_their_own(tmp_path):
    path = str(tmp_path / "t")
    for batch_id in range(4):
        Engine(path, {**FOUR_FILES, "hoodie.parquet.small.file.limit": "0"}).write(
            batch_id, rows(range(batch_id * 100, batch_id * 100 + 10 * (batch_id + 1)), one_path("hot"))
        )
    before = live(path, "hot")
    assert len(before) == 4
    engine = Engine(path, {**FOUR_FILES, "hudistream.slots.per.partition": "4"})
    spread = rows(range(5000, 5400), lambda n: "hot" if n < 5200 else f"quiet{n % 49}")
    summary = engine.write(9, spread, parallelism=4)
    after = live(path, "hot")
    assert after.keys() == before.keys()
    assert all(after[file_id][1] > before[file_id][1] for file_id in before)
    assert sum(count for _, count in after.values()) == 100 + 200
    assert summary.files_topped_up == 4
    # a quiet path is unknown, so its four or five rows may fall to as many slots; from now on it is known
    engine.write(10, rows(range(6000, 6490), lambda n: f"quiet{n % 49}"), parallelism=4)
    quiet = {plan_path for plan_path in engine.plans[-1].small_files if plan_path.startswith("quiet")}
    assert len(quiet) == 49


def test_known_paths_are_not_listed_again(tmp_path):
    path = str(tmp_path / "t")
    listed = []

    class Counting(LocalStorage):
        def list_dir(self, path):
            if not path.startswith(".hoodie"):
                listed.append(path)
            return super().list_dir(path)

    engine = Engine(Counting(path))
    engine.write(0, rows(range(30)))
    engine.write(1, rows(range(30, 60)))
    engine.write(2, rows(range(60, 90)))
    assert [folder for folder in listed if folder] == []  # created by this sink: known from its own commits
    restarted = Engine(Counting(path))
    restarted.write(3, rows(range(90, 120)))
    restarted.write(4, rows(range(120, 150)))
    assert sorted(folder for folder in listed if folder) == ["p0", "p1", "p2"]  # each once, at first touch
    assert key_set(read_table(path)) == key_set(rows(range(150)))


def test_a_stale_cache_is_rebuilt_when_somebody_else_commits(tmp_path):
    path = str(tmp_path / "t")
    ours, theirs = Engine(path), Engine(path, {"hoodie.datasource.write.streaming.checkpoint.identifier": "b"})
    ours.write(0, rows(range(30), one_path("p")))
    ours.writer.stop()
    theirs.write(0, rows(range(30, 60), one_path("p")))
    theirs.writer.stop()
    ours.write(1, rows(range(60, 90), one_path("p")))  # from the file that they wrote, not from our own older one
    ours.writer.stop()
    theirs.write(1, rows(range(90, 120), one_path("p")))
    assert key_set(read_table(path)) == key_set(rows(range(120)))
    assert len(live(path, "p")) == 1


def test_a_full_file_is_left_alone_and_another_opened(tmp_path):
    path = str(tmp_path / "t")
    options = {"hoodie.parquet.max.file.size": "9000", **{k: v for k, v in FOUR_FILES.items() if "size.est" in k}}
    engine = Engine(path, options)
    for batch_id in range(8):
        engine.write(batch_id, rows(range(batch_id * 40, batch_id * 40 + 40), one_path("p")))
    sizes = sorted(size for size, _ in live(path, "p").values())
    assert len(sizes) > 1
    assert sizes[-1] < 2 * 9000
    assert key_set(read_table(path)) == key_set(rows(range(320)))


def test_packing_is_off_at_a_limit_of_zero(tmp_path):
    path = str(tmp_path / "t")
    engine = Engine(path, {"hoodie.parquet.small.file.limit": "0"})
    for batch_id in range(3):
        engine.write(batch_id, rows(range(batch_id * 10, batch_id * 10 + 10), one_path("p")))
    assert len(live(path, "p")) == 3


def test_a_batch_with_keyless_rows_says_how_many_and_shows_some(tmp_path):
    path = str(tmp_path / "t")
    bad = rows(range(10)).set_column(0, "id", pa.array([None, ""] * 4 + ["a", "b"]))
    with pytest.raises(InvalidRecordError, match=r"8 rows cannot be stored.*'p': 'p0'.*null or empty"):
        Engine(path).write(0, bad)
    assert read_table(path).num_rows == 0
    assert load_timeline(LocalStorage(path)).pending == ()


def test_a_failure_in_a_task_is_undone_at_once(tmp_path):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(10)))

    class Full(LocalStorage):
        def sync(self, path):
            raise StorageError(f"could not flush {path!r}: no space left on device")

    with pytest.raises(StorageError, match="no space left"):
        Engine(LocalStorage(path), worker_storage=Full(path)).write(1, rows(range(10, 20)))
    timeline = load_timeline(LocalStorage(path))
    assert timeline.pending == ()
    assert len(timeline.completed_of(Action.ROLLBACK)) == 1
    files = [name for _, _, names in os.walk(path) for name in names if name.endswith(".parquet")]
    assert len(files) == 3


@pytest.mark.parametrize("options", [{}, {"hoodie.combine.before.insert": "true"}], ids=["kept", "combined"])
@given(data=st.data())
@settings(max_examples=examples(25), deadline=None)
def test_any_split_into_batches_gives_the_same_rows(tmp_path_factory, options, data):
    path = str(tmp_path_factory.mktemp("any") / "t")
    engine = Engine(path, {"hoodie.parquet.max.file.size": "6000", **options})
    wanted = []
    for batch_id in range(data.draw(st.integers(1, 4))):
        numbers = data.draw(st.lists(st.integers(0, 60), min_size=1, max_size=40))
        engine.batch_rows = data.draw(st.integers(1, 9))
        engine.write(batch_id, rows(numbers), parallelism=data.draw(st.integers(1, 3)))
        kept = set(numbers) if options else numbers
        wanted += [f"k{number}" for number in kept]
    assert key_set(read_table(path)) == sorted(wanted)


def test_task_results_round_trip_and_combine():
    stat = WriteStat("f-0", "p/f-0_1-2-3_4.parquet", "p", num_writes=3, num_inserts=2, file_size_bytes=9)

    listed = {"p": (base_file_of("p", "a_0-0-0_1.parquet", 7),)}
    result = TaskResult((stat,), 5, 3, {"other schema": 1}, listed, 1, ("x",))
    again = decode_result(result.encode())
    assert again.stats[0].to_json() == stat.to_json()
    assert (again.footer_bytes, again.listed, again.bad_rows, again.examples) == (5, result.listed, 1, ("x",))
    both = sum_results([result, again])
    assert (both.copied_bytes, both.reencoded) == (6, {"other schema": 2})
    assert (len(both.stats), both.footer_bytes, both.bad_rows, both.examples) == (2, 10, 2, ("x", "x"))


def interfere(path, action, options=None):
    """An engine in whose batch something happens between writing and committing."""
    engine = Engine(path, options)
    inner = engine.distribute

    def distribute(plan, table):
        results = inner(plan, table)
        action(plan)
        return results

    engine.distribute = distribute
    return engine


def test_a_commit_of_another_writer_in_between_is_a_conflict(tmp_path):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(30)))

    def theirs(plan):
        # an EAGER Hudi writer would roll our inflight back first; this one only writes
        storage = LocalStorage(path)
        from table.timeline.active_timeline import complete_instant
        from table.timeline.metadata.commit import encode_commit

        instant = request_instant(storage, load_timeline(storage), Action.COMMIT, InstantClock())
        file = next(f for f in list_snapshot_files(HudiTable.open(path)) if f.partition_path == "p0")
        metadata = CommitMetadata((WriteStat(file.file_id, file.path, "p0"),))
        complete_instant(storage, begin_instant(storage, instant), encode_commit(metadata))

    with pytest.raises(CommitConflictError, match="wrote file group"):
        interfere(path, theirs).write(1, rows(range(30, 60)))
    assert load_timeline(LocalStorage(path)).pending == ()
    assert key_set(read_table(path)) == key_set(rows(range(30)))


def test_our_inflight_rolled_back_by_somebody_is_a_conflict(tmp_path):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(30)))

    def theirs(plan):
        for state in (".inflight", ".commit.requested"):
            os.unlink(f"{path}/.hoodie/{plan.context.instant_time}{state}")

    with pytest.raises(CommitConflictError, match="is not there any more"):
        interfere(path, theirs).write(1, rows(range(30, 60)))
    Engine(path).write(1, rows(range(30, 60)))
    assert key_set(read_table(path)) == key_set(rows(range(60)))


def test_properties_that_change_while_a_batch_runs_are_a_conflict(tmp_path):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(30)))
    change = {"hoodie.table.metadata.partitions": "files"}
    engine = interfere(path, lambda plan: update_properties(LocalStorage(path), change))
    with pytest.raises(CommitConflictError, match="metadata_partitions"):
        engine.write(1, rows(range(30, 60)))


def test_a_rollback_that_died_before_it_had_a_plan_is_dropped(tmp_path):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(30)))
    storage = LocalStorage(path)
    dead = begin_instant(storage, request_instant(storage, load_timeline(storage), Action.COMMIT, InstantClock()))
    request_instant(storage, load_timeline(storage), Action.ROLLBACK, InstantClock(), b"")
    Engine(path).write(1, rows(range(30, 60)))
    timeline = load_timeline(storage)
    assert timeline.pending == ()
    assert timeline.find(dead.time, Action.COMMIT) is None
    assert key_set(read_table(path)) == key_set(rows(range(60)))


def test_a_restore_of_somebody_else_is_not_touched(tmp_path):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(30)))
    storage = LocalStorage(path)
    done = load_timeline(storage).completed_writes[0].time
    plan = encode_rollback_plan(RollbackPlan(done, "commit"))
    begin_instant(storage, request_instant(storage, load_timeline(storage), Action.ROLLBACK, InstantClock(), plan))
    with pytest.raises(CommitConflictError, match="undoing a completed commit"):
        Engine(path).write(1, rows(range(30, 60)))
    assert key_set(read_table(path)) == key_set(rows(range(30)))


def test_a_pending_overwrite_of_somebody_else_is_undone_when_it_is_dead(tmp_path):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(30)))
    storage = LocalStorage(path)
    pending = request_instant(storage, load_timeline(storage), Action.REPLACE_COMMIT, InstantClock())
    write_heartbeat(storage, pending.time, WriterIdentity("another", "r"))
    with pytest.raises(CommitConflictError, match="is being written by a live writer"):
        Engine(path).write(1, rows(range(30, 60)))
    delete_heartbeat(storage, pending.time)
    Engine(path).write(1, rows(range(30, 60)))
    assert load_timeline(storage).pending == ()
    assert key_set(read_table(path)) == key_set(rows(range(60)))


def test_the_same_stream_restarted_goes_on_at_once_over_its_own_live_heartbeat(tmp_path):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(30)))
    storage = LocalStorage(path)
    dead = begin_instant(storage, request_instant(storage, load_timeline(storage), Action.COMMIT, InstantClock()))
    write_heartbeat(storage, dead.time, WriterIdentity("default_single_writer", "q"))
    Engine(path).write(1, rows(range(30, 60)))
    assert key_set(read_table(path)) == key_set(rows(range(60)))


def test_heartbeats_beat_while_a_batch_runs(tmp_path):
    import time

    path = str(tmp_path / "t")
    beats = set()

    def watch(plan):
        file = f"{path}/.hoodie/.heartbeat/{plan.context.instant_time}"
        deadline = time.monotonic() + 10
        while len(beats) < 3 and time.monotonic() < deadline:
            beats.add(os.stat(file).st_mtime_ns)

    engine = interfere(path, watch, {"hoodie.client.heartbeat.interval_in_ms": "20"})
    engine.write(0, rows(range(3)))
    assert len(beats) >= 3
    assert os.listdir(f"{path}/.hoodie/.heartbeat") == []


def test_an_instant_from_the_future_is_refused(tmp_path):
    from table import InvalidConfigError

    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(3)))
    open(f"{path}/.hoodie/29990101000000000.clean", "w").close()
    with pytest.raises(InvalidConfigError, match="ahead of this machine's clock"):
        Engine(path).write(1, rows(range(3, 6)))


def test_garbage_in_the_metafolder_is_passed_over(tmp_path):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(3)))
    for name in ("notes.txt", "20260101.commit", "20261121162941248.commit.bak.1", ".20261121162941248.commit.crc"):
        open(f"{path}/.hoodie/{name}", "w").close()
    os.makedirs(f"{path}/.hoodie/20261121162941248.commit.d")
    Engine(path).write(1, rows(range(3, 6)))
    assert key_set(read_table(path)) == key_set(rows(range(6)))


def test_columns_that_the_tables_schema_requires_stay_required(tmp_path):
    import json

    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(3)))
    file = f"{path}/.hoodie/{load_timeline(LocalStorage(path)).completed_writes[0].file_name}"
    with open(file) as handle:
        commit = json.load(handle)
    schema = json.loads(commit["extraMetadata"]["schema"])
    schema["fields"][3] = {"name": "v", "type": "string"}  # as Hudi writes a column that Spark knows to be not null
    commit["extraMetadata"]["schema"] = json.dumps(schema)
    with open(file, "w") as handle:
        json.dump(commit, handle)
    Engine(path).write(1, rows(range(3, 6)))
    with pytest.raises(InvalidRecordError, match="column v is null where the schema allows none"):
        Engine(path).write(2, rows(range(6, 9), v=None))
    assert key_set(read_table(path)) == key_set(rows(range(6)))
    with open(f"{path}/.hoodie/{load_timeline(LocalStorage(path)).completed_writes[1].file_name}") as handle:
        assert json.loads(json.load(handle)["extraMetadata"]["schema"])["fields"][3] == {"name": "v", "type": "string"}


def test_a_batch_does_not_begin_beside_a_later_pending_compaction_and_leaves_nothing(tmp_path):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(3)))
    compaction = f"{path}/.hoodie/20990101000000000.compaction.requested"
    with open(compaction, "wb"):
        pass
    before = sorted(os.listdir(f"{path}/.hoodie"))
    with pytest.raises(CommitConflictError, match="pending compaction 20990101000000000 is not earlier"):
        Engine(path).write(1, rows(range(3, 6)))
    assert sorted(os.listdir(f"{path}/.hoodie")) == before
    os.unlink(compaction)
    Engine(path).write(1, rows(range(3, 6)))
    assert key_set(read_table(path)) == key_set(rows(range(6)))


def test_a_compaction_that_was_scheduled_while_a_batch_began_is_noticed(tmp_path, monkeypatch):
    from table.timeline.instant import State
    from table.timeline.timeline import build_timeline
    from table.transaction.commit import _check_compactions

    pending = [Instant("20260101000000005", Action.COMPACTION, State.REQUESTED)]
    _check_compactions(build_timeline(pending), "20260101000000006")
    with pytest.raises(CommitConflictError, match="20260101000000005 is not earlier than 20260101000000004"):
        _check_compactions(build_timeline(pending), "20260101000000004")


def test_a_begin_that_fails_leaves_nothing_behind(tmp_path):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(3)))

    class NoInflight(LocalStorage):
        def create_exclusive(self, path, data, *, durable=False):
            if path.endswith(".inflight"):
                raise StorageError(f"could not create {path!r}")
            return super().create_exclusive(path, data, durable=durable)

    def instants():
        return sorted(name for name in os.listdir(f"{path}/.hoodie") if name[:2] == "20")

    before = instants()
    with pytest.raises(StorageError, match="inflight"):
        Engine(NoInflight(path)).write(1, rows(range(3, 6)))
    assert instants() == before
    assert os.listdir(f"{path}/.hoodie/.heartbeat") == []
    assert LocalStorage(path).staged_instants() == []
