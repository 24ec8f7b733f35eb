"""Undoing by hand beside others: a process that was paused, or died, tears nothing and blocks nobody."""

import os
import shutil
from glob import glob
from unittest import mock

import pytest
from engine import Engine, key_set, rows
from faults import FaultyStorage, Fuse, PowerCut, dying_process
from tiers import one_in, quick

from table import CommitConflictError, InvalidConfigError, read_table
from table.hudi_table import HudiTable
from table.options.groups import ArchiveSettings, CleanSettings, HeartbeatSettings
from table.services.archival.archival import archive
from table.services.rollback import rollback as undoing
from table.services.rollback import undo_checks, undo_commit
from table.services.rollback.rollback import roll_back_failed_writes
from table.services.rollback.undo_commit import roll_back
from table.services.savepoint import restore
from table.services.savepoint.restore import restore_to_savepoint
from table.services.savepoint.savepoint import create_savepoint, delete_savepoint
from table.storage.local import LocalStorage
from table.timeline.active_timeline import load_timeline
from table.timeline.end_record import ENDS_FOLDER
from table.timeline.instant import Action
from table.transaction import lease
from table.transaction.heartbeat import WriterIdentity


def fill(path, first, last):
    engine = Engine(path)
    for number in range(first, last):
        engine.write(number, batch(number))
    engine.writer.stop()
    return HudiTable.open(path)


def batch(number):
    return rows(range(10 * number, 10 * number + 10))


def numbers(count):
    return sorted(f"k{number}" for number in range(count))


def newest(table):
    return load_timeline(table.storage).completed_writes[-1].time


def pause(monkeypatch, where, name, act):
    """Once, before a function is called: its process counts as dead, and something happens meanwhile."""
    inner, left = getattr(where, name), [act]

    def paused(*args, **kwargs):
        if left:
            with mock.patch.object(lease, "this_process", os.getpid):
                left.pop()()
        return inner(*args, **kwargs)

    monkeypatch.setattr(where, name, paused)


MOMENTS = {
    "before its request": (None, "request_instant"),
    "after its request": (undo_checks, "find_end"),
    "after its look at the lease": (undo_checks, "decide_end"),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_rollback_by_hand_that_lost_the_table_undoes_nothing(tmp_path, monkeypatch, moment):
    path = str(tmp_path / "t")
    table = fill(path, 0, 3)
    where, name = MOMENTS[moment]
    pause(monkeypatch, where or undo_commit, name, lambda: fill(path, 3, 5))
    with dying_process(), pytest.raises(CommitConflictError, match="gave no sign|ended by another writer"):
        roll_back(table, newest(table), force=True)
    assert key_set(read_table(path)) == numbers(50)
    fill(path, 5, 6)
    assert key_set(read_table(path)) == numbers(60)
    assert load_timeline(table.storage).pending == ()


def test_a_rollback_that_lost_the_table_when_it_was_decided_is_carried_out_by_who_took_it(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    table = fill(path, 0, 3)

    def go_on():
        with pytest.raises(CommitConflictError, match="comes after batch 2, which was undone by hand"):
            fill(path, 3, 4)
        fill(path, 2, 5)

    pause(monkeypatch, undo_commit, "undo_decided", go_on)
    with dying_process():
        roll_back(table, newest(table), force=True)
    assert key_set(read_table(path)) == numbers(50)
    fill(path, 5, 6)
    assert key_set(read_table(path)) == numbers(60)
    assert load_timeline(table.storage).pending == ()


def test_a_withdrawn_rollback_stays_withdrawn_when_its_end_was_archived(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    table = fill(path, 0, 3)

    def go_on_and_archive():
        fill(path, 3, 12)
        assert archive(table, ArchiveSettings(min_commits=2, max_commits=3), CleanSettings(grace_ms=0)).instants
        assert not glob(f"{path}/{ENDS_FOLDER}/*.rollback")

    pause(monkeypatch, *MOMENTS["after its look at the lease"], go_on_and_archive)
    with dying_process(), pytest.raises(CommitConflictError, match="ended by another writer"):
        roll_back(table, newest(table), force=True)
    assert key_set(read_table(path)) == numbers(120)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_restore_that_lost_the_table_leaves_no_commit_between_others_undone(tmp_path, monkeypatch, moment):
    path = str(tmp_path / "t")
    table = fill(path, 0, 2)
    time = create_savepoint(table)
    fill(path, 2, 4)

    def take_over():
        if moment == "before its request":
            fill(path, 4, 6)
            return
        with pytest.raises(CommitConflictError, match=r"restore\.requested is pending"):
            fill(path, 4, 6)

    where, name = MOMENTS[moment]
    pause(monkeypatch, where or restore, name, take_over)
    with dying_process(), pytest.raises(CommitConflictError, match="gave no sign"):
        restore_to_savepoint(table, time, force=True)
    if moment != "after its look at the lease":  # from then on it is under way, and nobody writes
        count = 6 if moment == "before its request" else 4
        assert key_set(read_table(path)) == numbers(10 * count)
        assert load_timeline(table.storage).pending == ()
    restore_to_savepoint(table, time, force=True)
    assert key_set(read_table(path)) == numbers(20)
    fill(path, 2, 3)


def test_a_restore_that_died_after_it_lost_the_table_is_planned_anew(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    table = fill(path, 0, 2)
    time = create_savepoint(table)
    fill(path, 2, 4)
    pause(monkeypatch, restore, "request_instant", lambda: fill(path, 4, 6))
    monkeypatch.setattr(undo_checks, "find_end", mock.Mock(side_effect=PowerCut))
    with dying_process(), pytest.raises(PowerCut):
        restore_to_savepoint(table, time, force=True)
    monkeypatch.undo()
    (pending,) = load_timeline(table.storage).pending
    assert pending.action is Action.RESTORE
    plan = restore_to_savepoint(table, time, force=True)
    assert len(plan.instants) == 4
    assert key_set(read_table(path)) == numbers(20)
    assert load_timeline(table.storage).pending == ()


def told_of_a_gap(path):
    """Whether the stream's next batch is refused because of the undone one."""
    try:
        fill(path, 3, 4)
    except CommitConflictError as error:
        return "comes after batch 2, which was undone by hand" in str(error)
    return False


@pytest.mark.parametrize("after", quick(1, [False, True]))
def test_a_stream_is_told_of_its_undone_batch_wherever_the_rollback_died(tmp_path, after):
    base = str(tmp_path / "base")
    last = newest(fill(base, 0, 3))
    number, fuse = 0, Fuse()
    shutil.copytree(base, tmp_path / "count")
    counted = HudiTable.open(str(tmp_path / "count"))
    roll_back(HudiTable(FaultyStorage(counted.storage, fuse), counted.config), last, force=True)
    for number in range(1, len(fuse.calls) + 1, one_in(5)):
        path = str(tmp_path / "t")
        shutil.copytree(base, path)
        cut = HudiTable.open(path)
        with pytest.raises(PowerCut), dying_process():
            roll_back(HudiTable(FaultyStorage(cut.storage, Fuse(number, after)), cut.config), last, force=True)
        if told_of_a_gap(path):
            fill(path, 2, 4)
        assert key_set(read_table(path)) == numbers(40), fuse.calls[number - 1]
        shutil.rmtree(path)


def test_a_stream_is_told_of_its_undone_batch_after_a_restore_that_was_finished_by_another(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    time = create_savepoint(fill(path, 0, 2))
    table = fill(path, 2, 3)
    with monkeypatch.context() as patched:
        patched.setattr(undoing, "execute_rollback", mock.Mock(side_effect=PowerCut))  # its batch is shown no more
        with dying_process(), pytest.raises(PowerCut):
            restore_to_savepoint(table, time, force=True)
    restore_to_savepoint(table, time, force=True)
    assert told_of_a_gap(path)
    fill(path, 2, 4)
    assert key_set(read_table(path)) == numbers(40)


def test_a_rollback_that_died_unchecked_is_checked_by_who_finishes_it(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    engine = Engine(path, {"hoodie.datasource.write.operation": "upsert"})
    for number in range(2):
        engine.write(number, rows(range(30), ts=number))
    engine.writer.stop()
    table = HudiTable.open(path)
    for file in glob(f"{path}/*/*_{load_timeline(table.storage).completed_writes[0].time}.parquet"):
        os.unlink(file)  # as a clean does that keeps the last version alone
    with monkeypatch.context() as patched:
        patched.setattr(undo_checks, "find_end", mock.Mock(side_effect=PowerCut))
        with dying_process(), pytest.raises(PowerCut):
            roll_back(table, newest(table), force=True)
    with pytest.raises(InvalidConfigError, match="was cleaned, and its rows would be lost.*nothing was undone"):
        roll_back(table, newest(table), force=True)
    assert key_set(read_table(path)) == numbers(30)
    assert load_timeline(table.storage).pending == ()


def test_a_stream_that_is_refused_because_of_a_restore_lets_it_be_finished(tmp_path):
    path = str(tmp_path / "t")
    table = fill(path, 0, 2)
    time = create_savepoint(table)
    fill(path, 2, 4)
    with pytest.raises(PowerCut), dying_process():
        restore_to_savepoint(HudiTable(FaultyStorage(table.storage, Fuse(30)), table.config), time, force=True)
    stream = Engine(path)
    with pytest.raises(CommitConflictError, match="finish the restore"):
        stream.write(4, batch(4))
    restore_to_savepoint(table, time, force=True)  # the stream's process is there, and its sink
    stream.write(2, batch(2))
    assert key_set(read_table(path)) == numbers(30)


@pytest.mark.parametrize("how", ["roll back", "restore"])
def test_a_savepoint_made_while_its_commit_is_about_to_be_undone_holds_or_is_refused(tmp_path, monkeypatch, how):
    path = str(tmp_path / "t")
    table = fill(path, 0, 2)
    first = create_savepoint(table)
    fill(path, 2, 3)
    last = newest(table)

    def undo():
        if how == "restore":
            restore_to_savepoint(table, first, force=True)
        else:
            roll_back(table, last, force=True)

    # it is made before the request: the request is withdrawn
    where = restore if how == "restore" else undo_commit
    pause(monkeypatch, where, "request_instant", lambda: create_savepoint(table, last))
    with pytest.raises(InvalidConfigError, match="a savepoint holds"):
        undo()
    monkeypatch.undo()
    assert load_timeline(table.storage).pending == ()
    assert key_set(read_table(path)) == numbers(30)
    delete_savepoint(table, last)

    def make_one():
        with pytest.raises(CommitConflictError, match="about to be undone.*it was withdrawn"):
            create_savepoint(table, last)

    # it is made after the look at savepoints: it is withdrawn
    pause(monkeypatch, undo_checks, "decide_end", make_one)
    undo()
    assert key_set(read_table(path)) == numbers(20)
    assert load_timeline(table.storage).pending == ()


def test_a_rollback_that_died_undecided_is_dropped_once_and_for_all(tmp_path):
    path = str(tmp_path / "t")
    table = fill(path, 0, 2)
    with pytest.raises(PowerCut), dying_process(), mock.patch.object(undo_checks, "find_end", side_effect=PowerCut):
        roll_back(table, newest(table), force=True)
    who = WriterIdentity("a", "a", "me")
    roll_back_failed_writes(table, who, HeartbeatSettings())
    roll_back_failed_writes(table, who, HeartbeatSettings())
    assert load_timeline(LocalStorage(path)).pending == ()
    assert key_set(read_table(path)) == numbers(20)
