"""Decisions and archival: two archivals at once, and batches that archival passes between their look and their end."""

import shutil

import pyarrow as pa
import pytest
from engine import Engine, key_set, rows

from hudistream import ArrowSink
from streaming.batch import begin_batch
from table import BatchRefusedError, CommitConflictError, read_table
from table.errors import CommitOutcomeUnknownError, CorruptFileError, StorageError
from table.hudi_table import HudiTable
from table.options.groups import ArchiveSettings, CleanSettings, CompactionSettings
from table.services.archival import archival
from table.services.archival.archival import archive, carry_out_archival, schedule_archival
from table.services.clean.clean import clean
from table.snapshot import Snapshot
from table.timeline.end_record import end_path
from table.timeline.instant import Action
from table.transaction import commit
from table.transaction.came_back import delete_returned, find_returned

ARCHIVE = ArchiveSettings(min_commits=2, max_commits=3)
CLEAN = CleanSettings(commits_retained=1, grace_ms=0)
EACH = CompactionSettings(delta_commits=1)


def refuse(batch):
    return "this one is unwanted" if batch.batch_id == 1 else None


def table_with_a_rollback(path, table_type):
    """Nine commits of new files, and a completed rollback: archival looks for what undone writes left."""
    options = {"hoodie.parquet.small.file.limit": "0", "hoodie.datasource.write.table.type": table_type}
    engine = Engine(path, options, validators=[refuse])
    engine.write(0, rows(range(6)))
    with pytest.raises(BatchRefusedError):
        engine.write(1, rows(range(6, 12)))
    for number in range(2, 10):
        engine.write(number, rows(range(6 * number, 6 * number + 6)))
    engine.writer.stop()
    return HudiTable.open(path)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_second_archival_from_the_same_look_deletes_no_file_of_a_commit(tmp_path, table_type):
    path = str(tmp_path / "t")
    table = table_with_a_rollback(path, table_type)
    wanted = key_set(read_table(path))
    first, second = schedule_archival(table, ARCHIVE), schedule_archival(table, ARCHIVE)
    assert carry_out_archival(table, first, ARCHIVE, CLEAN).instants
    assert not carry_out_archival(table, second, ARCHIVE, CLEAN).orphans
    assert key_set(read_table(path)) == wanted


def test_an_archival_whose_records_are_gone_plans_anew(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    table = table_with_a_rollback(path, "COPY_ON_WRITE")
    wanted, read = key_set(read_table(path)), archival.read_retired
    plans = []

    def overtaken(snapshot, plan, check):
        plans.append(plan)
        if len(plans) == 1:  # another engine's archival knows of no turn
            monkeypatch.setattr(archival, "hold_turn", lambda _: _nobody_holds())
            archive(table, ARCHIVE, CLEAN)
        return read(snapshot, plan, check)

    monkeypatch.setattr(archival, "read_retired", overtaken)
    assert not archive(table, ARCHIVE, CLEAN).instants
    assert len(plans) == 2
    assert key_set(read_table(path)) == wanted


class _nobody_holds:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def check(self):
        """Nobody takes over."""


def test_a_second_archival_is_refused_while_the_first_one_runs(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    table = table_with_a_rollback(path, "COPY_ON_WRITE")
    inner, refused = archival.read_retired, []

    def meanwhile(*args):
        with pytest.raises(CommitConflictError, match="is being archived by") as found:
            archive(table, ARCHIVE, CLEAN)
        refused.append(found)
        return inner(*args)

    monkeypatch.setattr(archival, "read_retired", meanwhile)
    assert archive(table, ARCHIVE, CLEAN).instants
    assert refused


def test_a_commit_whose_file_is_empty_stops_archival(tmp_path):
    path = str(tmp_path / "t")
    table = table_with_a_rollback(path, "COPY_ON_WRITE")
    first = table.load_timeline().completed_writes[0]
    table.storage.put(first.path, b"")
    shutil.copytree(path, tmp_path / "whole" / "t")
    table.storage.delete_metafile(end_path(first.time, first.action))
    with pytest.raises(CorruptFileError, match=first.file_name):
        archive(table, ARCHIVE, CLEAN)
    assert table.load_timeline().completed_writes[0] == first
    whole = HudiTable.open(str(tmp_path / "whole" / "t"))
    assert first in archive(whole, ARCHIVE, CLEAN).instants, "its end record has the content"
    archived = {change.time: change.metadata for change in whole.archived_timeline.read_changes()}
    assert archived[first.time].stats


def several(path, name, mor, index, **more):
    options = {
        "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
        "hoodie.datasource.write.streaming.checkpoint.identifier": name,
        "hoodie.datasource.write.table.type": "MERGE_ON_READ" if mor else "COPY_ON_WRITE",
        "hoodie.index.type": index,
        "hoodie.bucket.index.num.buckets": "1",
        "hoodie.clean.automatic": "false",
        "hoodie.archive.automatic": "false",
        "hoodie.datasource.compaction.async.enable": "false",
        "hoodie.compact.inline.max.delta.commits": "1",
        "hoodie.parquet.small.file.limit": "0",
        **more,
    }
    return ArrowSink(path, options, key="id", partition_by="p", order_by="ts", operation="upsert")


def changes(keys, value, ts, path="p0", deleted=""):
    count = len(keys)
    return pa.table(
        {
            "id": list(keys),
            "v": [value] * count,
            "ts": pa.array([ts] * count, pa.int64()),
            "p": [path] * count,
            "_hoodie_is_deleted": pa.array([key in deleted for key in keys], pa.bool_()),
        }
    )


class Meanwhile:
    """What a fast writer, a cleaner and an archiver do while a slow writer stands between two of its steps."""

    def __init__(self, path, mor, index):
        self.path, self.mor, self.index, self.number = path, mor, index, 0
        self.expected = {"x": "new", "y": "A0"}
        self.slow = several(path, "slow", mor, index)
        self.slow.write(changes("xyd", "old", 0), 0)
        self.fast = several(path, "fast", mor, index)
        self.fast.write(changes("y", "A0", 1), 0)

    def write_elsewhere(self, count, path="p1"):
        for _ in range(count):
            self.number += 1
            self.fast.write(changes([f"z{self.number}"], "z", 1, path), self.number)

    def replace_the_version(self):
        self.number += 1
        self.expected["y"] = f"A{self.number}"
        if self.mor:  # the compaction after this batch makes the new version
            self.fast.stop()
            self.fast = several(self.path, "fast", True, self.index, **{"hoodie.compact.inline": "true"})
        self.fast.write(changes("y", f"A{self.number}", 1 + self.number), self.number)
        if self.mor:
            self.fast.stop()
            self.fast = several(self.path, "fast", True, self.index)

    def clean(self):
        clean(HudiTable.open(self.path), CLEAN)

    def archive(self):
        archive(HudiTable.open(self.path), ARCHIVE, CLEAN, EACH)

    def rows(self):
        found = read_table(self.path).select(["id", "v"]).to_pylist()
        return sorted((row["id"], row["v"]) for row in found if row["id"][0] != "z")

    def stop(self):
        self.slow.stop()
        self.fast.stop()


def once(monkeypatch, where, name, act):
    """Does something before the next call of a function, and never again."""
    inner = getattr(where, name)

    def call(*args, **named):
        monkeypatch.setattr(where, name, inner)
        act()
        return inner(*args, **named)

    monkeypatch.setattr(where, name, call)


@pytest.mark.parametrize(("mor", "index"), [(False, "BLOOM"), (True, "BLOOM"), (True, "SIMPLE")])
@pytest.mark.parametrize("case", ["before the request", "after the request", "the clean itself"])
def test_a_key_whose_file_was_replaced_cleaned_and_forgotten_is_not_new(tmp_path, monkeypatch, case, mor, index):
    world = Meanwhile(str(tmp_path / "t"), mor, index)

    def before():
        world.replace_the_version()
        if case == "the clean itself":
            world.write_elsewhere(1)
            world.clean()
            return
        world.write_elsewhere(2)
        world.clean()
        world.write_elsewhere(4)
        if case == "before the request":
            world.archive()

    def after():
        if case == "the clean itself":
            for _ in range(5):
                world.write_elsewhere(1, "p2")
                world.clean()
        if case != "before the request":
            world.archive()

    once(monkeypatch, commit, "wait_past_completed", before)
    inner = begin_batch.plan_tasks

    def plan(*args):
        if args[0].sink.id == "slow":
            monkeypatch.setattr(begin_batch, "plan_tasks", inner)
            after()
        return inner(*args)

    monkeypatch.setattr(begin_batch, "plan_tasks", plan)
    world.slow.write(changes("xd", "new", 50, deleted="d"), 1)
    assert world.rows() == sorted(world.expected.items())
    world.stop()


@pytest.mark.parametrize(("mor", "index"), [(False, "BLOOM"), (False, "BUCKET"), (True, "BUCKET"), (True, "BLOOM")])
def test_an_update_that_was_archived_before_the_request_is_not_lost(tmp_path, monkeypatch, mor, index):
    world = Meanwhile(str(tmp_path / "t"), mor, index)

    def before():
        world.replace_the_version()
        world.write_elsewhere(8)
        world.archive()

    once(monkeypatch, commit, "wait_past_completed", before)
    world.slow.write(changes("x", "new", 50), 1)
    assert world.rows() == sorted([*world.expected.items(), ("d", "old")])
    world.stop()


def test_archival_keeps_what_a_pending_batch_has_not_seen(tmp_path):
    """Also a write that was pending at the look, under an earlier time than what was completed by then."""
    world = Meanwhile(str(tmp_path / "t"), False, "BLOOM")
    kept = []
    inner = world.slow._writer._write_and_commit

    def meanwhile(*args):
        seen = HudiTable.open(world.path).load_timeline().completed_writes[-1]
        world.write_elsewhere(6)
        world.archive()
        now = HudiTable.open(world.path).load_timeline()
        kept.append((seen, now))
        return inner(*args)

    world.slow._writer._write_and_commit = meanwhile
    world.slow.write(changes("x", "new", 50), 1)
    (seen, now), *_ = kept
    assert now.completed_writes[0] == seen
    world.archive()
    assert HudiTable.open(world.path).load_timeline().first_active_time > seen.time
    assert not HudiTable.open(world.path).load_timeline().pending_of(Action.COMMIT)
    world.stop()


@pytest.mark.parametrize("mor", [False, True])
@pytest.mark.parametrize("looks", [True, False])
def test_a_completed_file_that_comes_back_after_archival_hides_no_commit(tmp_path, monkeypatch, mor, looks):
    """A writer stands between its look at the inflight file and the completed one; others end, go on and archive.

    `looks`: it looks again after that. If it died instead, the next archival or batch deletes the file.
    """
    world = Meanwhile(str(tmp_path / "t"), mor, "SIMPLE")
    complete, gone = commit.complete_instant, []

    def completed_late(storage, instant, content, completion_time):
        monkeypatch.setattr(commit, "complete_instant", complete)
        world.write_elsewhere(8)
        world.archive()
        gone.append(not storage.exists(instant.path))
        done = complete(storage, instant, content, completion_time)
        if not looks:
            raise StorageError("the process died")
        return done

    monkeypatch.setattr(commit, "complete_instant", completed_late)
    try:
        world.slow.write(changes("x", "new", 5), 1)
    except CommitOutcomeUnknownError:
        assert not looks
    assert gone == [True]
    table = HudiTable.open(world.path)
    if not looks:
        assert find_returned(table.load_timeline())
        if mor:
            world.archive()
        else:
            world.write_elsewhere(1)
    assert not find_returned(table.load_timeline())
    assert world.rows() == sorted({**world.expected, "y": "A0", "d": "old"}.items())
    numbers = sorted(row["id"] for row in read_table(world.path).to_pylist() if row["id"][0] == "z")
    assert numbers == sorted(f"z{number}" for number in range(1, world.number + 1))
    world.archive()
    world.stop()


def test_a_completed_file_without_others_stays_where_no_archive_has_it(tmp_path):
    """Versions of Hudi before 0.6 requested no commits."""
    path = str(tmp_path / "t")
    engine = Engine(path)
    for number in range(3):
        engine.write(number, rows(range(6 * number, 6 * number + 6)))
    engine.writer.stop()
    table = HudiTable.open(path)
    first = table.load_timeline().completed_writes[0]
    for file in table.load_timeline().files_of(first.time, first.action):
        if not file.is_completed:
            table.storage.delete_metafile(file.path)
    assert find_returned(table.load_timeline()) == (first,)
    assert first in delete_returned(Snapshot.load(table)).timeline.completed_writes
