"""What dead writers left is ended: decided commits are carried out, the rest is rolled back, once and by anybody."""

import os
from dataclasses import replace

import pytest
from engine import Engine, form_of, key_set, leave_a_dead_batch, rows

from streaming import ArrowSink
from table import read_table
from table.errors import ActionPendingError, StorageError, TableHeldError
from table.hudi_table import HudiTable
from table.options.groups import HeartbeatSettings
from table.services.rollback import rollback as module
from table.services.rollback.fate import WRITES
from table.services.rollback.rollback import end_pending, list_marks, roll_back_failed_writes
from table.snapshot import Snapshot
from table.timeline.end_record import COMMIT, EndRecord, decide_end, find_end
from table.timeline.instant import Action
from table.transaction.completion import choose_completion
from table.transaction.heartbeat import WriterIdentity, heartbeat_path, write_heartbeat
from table.transaction.liveness import Beside

ME = WriterIdentity("s", "q9", "me")
HEARTBEAT = HeartbeatSettings(60_000)
FORMS = [(version, kind) for version in (6, 8, 9) for kind in ("COPY_ON_WRITE", "MERGE_ON_READ")]


@pytest.fixture(params=FORMS, ids=lambda form: f"{form[0]}-{form[1].lower()}")
def table(request, tmp_path):
    """A table with one commit, and a second write whose process died before anything was decided."""
    path, options = str(tmp_path / "t"), form_of(*request.param)
    engine = Engine(path, options)
    engine.write(0, rows(range(6), v="kept"))
    engine.writer.stop()
    leave_a_dead_batch(Engine(path, options), 1, rows(range(3, 9), ts=1, v="lost"))
    return HudiTable.open(path)


def dead(table):
    """The pending write."""
    (instant,) = table.load_timeline().pending_of(*WRITES)
    return instant


def data_files(table):
    root = table.storage.base_uri
    return {
        os.path.relpath(os.path.join(folder, name), root)
        for folder, _, names in os.walk(root)
        for name in names
        if ".hoodie/" not in f"{folder}/" and not name.startswith(".hoodie")
    }


def assert_only_the_first_commit_is_there(table, before):
    found = read_table(table.storage.base_uri)
    assert key_set(found) == [f"k{n}" for n in range(6)]
    assert set(found.column("v").to_pylist()) == {"kept"}
    assert not table.load_timeline().pending
    assert data_files(table) == before


def named_files(table):
    snapshot = Snapshot.load(table)
    commits = map(snapshot.commits.find, snapshot.timeline.completed_writes)
    return {path for commit in commits for stat in commit.stats for path in stat.named_paths}


def test_an_undecided_write_is_rolled_back_with_all_its_files(table):
    left, wanted = dead(table), named_files(table)
    marks = list_marks(table.storage)
    assert left.time in marks.marked
    after = roll_back_failed_writes(table, ME, HEARTBEAT)
    assert_only_the_first_commit_is_there(table, wanted)
    assert [one.action for one in after.timeline.completed_of(Action.ROLLBACK)] == [Action.ROLLBACK]
    assert not find_end(table.storage, left.time, left.action).is_commit
    assert list_marks(table.storage).marked == ()
    # nothing is left to do
    assert roll_back_failed_writes(table, ME, HEARTBEAT).timeline.files == after.timeline.files


def test_a_write_that_was_decided_is_carried_out_and_not_rolled_back(table):
    left = dead(table)
    snapshot = Snapshot.load(table)
    metadata = snapshot.commits.find(snapshot.timeline.completed_writes[0])
    content = table.layout.encode_commit(replace(metadata, stats=()))
    at = choose_completion(snapshot, left)
    end = EndRecord(left.time, left.action, COMMIT, "dead", content, completion_time=at)
    decide_end(table.storage, end)
    done = end_pending(snapshot, left, ME.owner)
    assert (done.time, done.is_completed) == (left.time, True)
    assert not table.load_timeline().completed_of(Action.ROLLBACK)


def test_a_rollback_whose_process_died_is_finished_from_its_plan(table, monkeypatch):
    wanted = named_files(table)

    def fails(*_args, **_more):
        raise StorageError("the process died")

    with monkeypatch.context() as patch:
        patch.setattr(module, "delete_instant_file", fails)
        with pytest.raises(StorageError):
            roll_back_failed_writes(table, ME, HEARTBEAT)
    (begun,) = table.load_timeline().pending_of(Action.ROLLBACK)
    after = roll_back_failed_writes(table, WriterIdentity("s", "q10", "another"), HEARTBEAT)
    assert [one.time for one in after.timeline.completed_of(Action.ROLLBACK)] == [begun.time]
    assert_only_the_first_commit_is_there(table, wanted)


@pytest.mark.parametrize("beside", [Beside.NO_WRITER, Beside.MEMBERS])
def test_who_shares_the_table_leaves_a_live_writer_alone_and_who_holds_it_alone_does_not(table, beside):
    left, wanted = dead(table), named_files(table)
    write_heartbeat(table.storage, left.time, WriterIdentity("other", "q2", "other"))
    after = roll_back_failed_writes(table, ME, HEARTBEAT, beside=beside)
    if beside is Beside.MEMBERS:
        assert [one.time for one in after.timeline.pending] == [left.time]
    else:  # the writer knows leases, and does not hold it any more: it obeys the end record
        assert_only_the_first_commit_is_there(table, wanted)


def test_a_live_writer_of_another_engine_is_not_rolled_back(table):
    left = dead(table)
    table.storage.put(heartbeat_path(left.time), b"")
    with pytest.raises(TableHeldError, match="that knows no leases"):
        roll_back_failed_writes(table, ME, HEARTBEAT)
    assert dead(table).time == left.time
    os.utime(os.path.join(table.storage.base_uri, heartbeat_path(left.time)), (1, 1))
    assert not roll_back_failed_writes(table, ME, HEARTBEAT).timeline.pending


def test_a_restore_that_was_begun_is_in_the_way(table):
    folder = ".hoodie" if table.config.layout_version == 1 else ".hoodie/timeline"
    table.storage.put(f"{folder}/20990101000000000.restore.requested", b"")
    with pytest.raises(ActionPendingError, match="finish the restore"):
        roll_back_failed_writes(table, ME, HEARTBEAT)
    assert dead(table)


def test_archival_goes_on_in_a_folder_that_was_renamed_after_a_rollback(tmp_path):
    """The record of a rollback names the files that it deleted by their old addresses."""
    few = {
        "hoodie.clean.async": "false",
        "hoodie.archive.async": "false",
        "hoodie.cleaner.commits.retained": "1",
        "hoodie.keep.min.commits": "3",
        "hoodie.keep.max.commits": "4",
    }
    dead = Engine(str(tmp_path / "t"), few)
    dead.write(0, rows(range(3)))
    leave_a_dead_batch(dead, 1, rows(range(3, 6)))
    Engine(str(tmp_path / "t"), few).write(1, rows(range(3, 6)))
    assert HudiTable.open(str(tmp_path / "t")).load_timeline().completed_of(Action.ROLLBACK)
    os.rename(tmp_path / "t", tmp_path / "renamed")
    with ArrowSink(tmp_path / "renamed", few, key="id", partition_by="p", order_by="ts") as sink:
        for number in range(10):
            sink.write(rows([0], ts=number))
    timeline = HudiTable.open(str(tmp_path / "renamed")).load_timeline()
    assert len(timeline.completed_writes) <= 6
