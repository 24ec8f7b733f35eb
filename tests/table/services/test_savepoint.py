"""Savepoints, restores and rollbacks of completed commits, stopped anywhere and read by Hudi."""

import os
import shutil

import pytest
from engine import Engine, key_set, rows
from faults import FaultyStorage, Fuse, PowerCut, dying_process
from snapshots import base_files
from tiers import one_in

from table import read_table
from table.errors import CommitConflictError, InvalidConfigError
from table.hudi_table import HudiTable
from table.options.groups import ArchiveSettings, CleanSettings
from table.services.archival.archival import archive
from table.services.clean.clean import clean
from table.services.rollback.undo_commit import roll_back
from table.services.savepoint.restore import restore_to_savepoint
from table.services.savepoint.savepoint import create_savepoint, delete_savepoint
from table.timeline.active_timeline import load_timeline
from table.timeline.instant import Action

CLEAN = CleanSettings(commits_retained=1, grace_ms=0)


def fill(path, first, last):
    engine = Engine(path)
    for number in range(first, last):
        engine.write(number, rows(range(10 * number, 10 * number + 10)))
    return HudiTable.open(path)


def numbers(count):
    return sorted(f"k{n}" for n in range(count))


def test_a_savepoint_outlives_cleaning_and_archival_and_the_table_goes_back_to_it(tmp_path):
    path = str(tmp_path / "t")
    table = fill(path, 0, 3)
    held = base_files(path)
    time = create_savepoint(table, comment="before the change")
    assert create_savepoint(table, time) == time
    fill(path, 3, 9)
    clean(table, CLEAN)
    archive(table, ArchiveSettings(min_commits=2, max_commits=3), CLEAN)
    kept = {f for f in held if f.split("_")[-1].startswith(time)}
    assert kept <= set(base_files(path))
    assert time in {i.time for i in load_timeline(table.storage).completed_writes}
    with pytest.raises(InvalidConfigError, match="is batch 3 of the stream.*--force.*commits/3, offsets/4 "):
        restore_to_savepoint(table, time)
    plan = restore_to_savepoint(table, time, force=True)
    assert len(plan.instants) == 6
    assert key_set(read_table(path)) == numbers(30)
    line = load_timeline(table.storage)
    assert line.completed_writes[-1].time == time
    assert len(line.completed_of(Action.RESTORE)) == 1
    # a stream that goes on without the batches that were undone is refused; replayed from its checkpoint, it goes on
    with pytest.raises(CommitConflictError, match="comes after batch [3-8], which was undone by hand"):
        Engine(path).write(9, rows(range(1000, 1010)))
    Engine(path).write(3, rows(range(1000, 1010)))
    assert len(key_set(read_table(path))) == 40
    delete_savepoint(table, time)
    for number in (4, 5):
        Engine(path).write(number, rows(range(1000, 1010)))
    clean(table, CLEAN)
    assert key_set(read_table(path)) == sorted(
        [*numbers(30), *(f"k{n}" for n in range(1000, 1010))] + [f"k{n}" for n in range(1000, 1010) for _ in range(2)]
    )
    assert not kept & set(base_files(path))


def test_batches_of_two_streams_come_again_each_by_its_own_steps(tmp_path):
    path = str(tmp_path / "t")
    table = fill(path, 0, 1)
    time = create_savepoint(table)
    sink_id = "hoodie.datasource.write.streaming.checkpoint.identifier"
    other = Engine(path, {sink_id: "other"}, query_id="other-query")
    for number in (4, 5):
        other.write(number, rows(range(100, 110)))
    other.writer.stop()
    fill(path, 1, 3)
    with pytest.raises(InvalidConfigError) as refused:
        restore_to_savepoint(table, time)
    told = str(refused.value)
    assert "batch 4 of the stream with sink id 'other' (query other-query)" in told
    assert "commits/4, offsets/5 " in told.split("for sink id 'other', ")[1].split("; for sink id ", maxsplit=1)[0]
    assert "commits/1, offsets/2 " in told
    assert told.count("commits/") == 2


def test_what_cannot_be_done_says_why(tmp_path):
    path = str(tmp_path / "t")
    table = fill(path, 0, 4)
    line = load_timeline(table.storage)
    times = [i.time for i in line.completed_writes]
    with pytest.raises(InvalidConfigError, match="no completed commit 2020.* the newest: "):
        create_savepoint(table, "20200101000000000")
    with pytest.raises(InvalidConfigError, match="no savepoint 123; there are: none"):
        delete_savepoint(table, "123")
    with pytest.raises(InvalidConfigError, match="no savepoint 123"):
        restore_to_savepoint(table, "123")
    with pytest.raises(InvalidConfigError, match=f"3 commits came after {times[0]}: roll back the newest"):
        roll_back(table, times[0])
    with pytest.raises(InvalidConfigError, match="no commit 123"):
        roll_back(table, "123")
    create_savepoint(table)
    with pytest.raises(InvalidConfigError, match="a savepoint holds"):
        roll_back(table, times[-1])
    clean(table, CLEAN)
    with pytest.raises(InvalidConfigError, match="may have been cleaned"):
        create_savepoint(table, times[0])


def test_the_newest_commit_is_rolled_back(tmp_path):
    path = str(tmp_path / "t")
    table = fill(path, 0, 3)
    before = base_files(path)
    fill(path, 3, 4)
    roll_back(table, load_timeline(table.storage).completed_writes[-1].time, force=True)
    assert base_files(path) == before
    assert key_set(read_table(path)) == numbers(30)
    assert len(load_timeline(table.storage).completed_of(Action.ROLLBACK)) == 1


def test_a_sink_waits_for_a_restore_that_was_begun(tmp_path):
    path = str(tmp_path / "t")
    table = fill(path, 0, 2)
    time = create_savepoint(table)
    fill(path, 2, 4)
    with pytest.raises(PowerCut), dying_process():
        restore_to_savepoint(HudiTable(FaultyStorage(table.storage, Fuse(24)), table.config), time, force=True)
    with pytest.raises(CommitConflictError, match="restore"):
        Engine(path).write(4, rows([1]))
    restore_to_savepoint(table, time, force=True)
    assert key_set(read_table(path)) == numbers(20)
    Engine(path).write(2, rows([999]))


@pytest.mark.parametrize("after", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize("what", ["restore", "roll_back", "create"])
def test_stopped_at_any_call_it_is_finished_the_next_time(tmp_path, what, after):
    base = str(tmp_path / "base")
    table = fill(base, 0, 2)
    time = create_savepoint(table) if what == "restore" else ""
    fill(base, 2, 4)
    last = load_timeline(table.storage).completed_writes[-1].time

    def act(table):
        if what == "restore":
            restore_to_savepoint(table, time, force=True)
        elif what == "roll_back":
            roll_back(table, last, force=True)
        else:
            create_savepoint(table)

    fuse = Fuse()
    shutil.copytree(base, tmp_path / "count")
    counted = HudiTable.open(str(tmp_path / "count"))
    act(HudiTable(FaultyStorage(counted.storage, fuse), counted.config))
    wanted, files = key_set(read_table(str(tmp_path / "count"))), base_files(str(tmp_path / "count"))
    before = key_set(read_table(base))
    for number in range(1, len(fuse.calls) + 1, one_in(3)):
        target = str(tmp_path / f"{number}-{after}")
        shutil.copytree(base, target)
        cut = HudiTable.open(target)
        with pytest.raises(PowerCut), dying_process():
            act(HudiTable(FaultyStorage(cut.storage, Fuse(number, after)), cut.config))
        seen = key_set(read_table(target))
        assert set(wanted) <= set(seen) <= set(before)
        try:
            act(cut)
        except InvalidConfigError:
            assert what == "roll_back"  # it was done, or the sink below finishes it
        Engine(target).write(None, rows([777]))
        assert key_set(read_table(target)) == sorted([*wanted, "k777"])
        assert set(files) <= set(base_files(target))
        assert not load_timeline(cut.storage).pending
        shutil.rmtree(target)


@pytest.mark.slow
@pytest.mark.hudi
@pytest.mark.usefixtures("utc")
def test_hudi_and_we_honour_each_others_savepoints_and_restores(hudi, tmp_path):
    from oracles.hudi import JVM

    path = str(tmp_path / "t")
    table = fill(path, 0, 3)
    time = create_savepoint(table, user="us", comment="ours")
    fill(path, 3, 6)
    # Hudi's cleaner leaves what our savepoint holds, and Hudi restores it
    hudi.client(path, "clean", options={"hoodie.clean.commits.retained": "1"})
    hudi.client(path, "restoreToSavepoint", time)
    assert sorted(row["id"] for row in hudi.read(path)) == numbers(30)
    assert key_set(read_table(path)) == numbers(30)
    Engine(path).write(6, rows(range(30, 40)))
    # now one of its own, which we restore; it reads the result and goes on
    hudi.client(path, "deleteSavepoint", time)
    theirs = load_timeline(table.storage).completed_writes[-1].time
    hudi.client(path, "savepoint", theirs, "them", "theirs")
    fill(path, 7, 9)
    clean(table, CLEAN)
    restore_to_savepoint(table, theirs, force=True)
    assert sorted(row["id"] for row in hudi.read(path)) == numbers(40)
    hudi.write(path, rows([1, 5000], ts=9), JVM)
    assert sorted(row["id"] for row in hudi.read(path)) == sorted([*numbers(40), "k5000"])
    assert key_set(read_table(path)) == sorted([*numbers(40), "k5000"])


def test_a_table_goes_back_although_versions_between_the_savepoint_and_now_were_cleaned(tmp_path):
    path = str(tmp_path / "t")
    engine = Engine(path, {"hoodie.datasource.write.operation": "upsert"})
    for number in range(2):
        engine.write(number, rows(range(30), ts=number, v=str(number)))
    table = HudiTable.open(path)
    time = create_savepoint(table)
    for number in range(2, 9):
        engine.write(number, rows(range(30), ts=number, v=str(number)))
    engine.writer.stop()
    assert clean(table, CLEAN)
    restore_to_savepoint(table, time, force=True)
    found = read_table(path)
    assert key_set(found) == key_set(rows(range(30)))
    assert set(found.column("v").to_pylist()) == {"1"}
    engine.write(2, rows(range(30), ts=2, v="2"))
    assert set(read_table(path).column("v").to_pylist()) == {"2"}


def test_a_savepoint_that_lost_a_file_is_not_gone_back_to(tmp_path):
    path = str(tmp_path / "t")
    table = fill(path, 0, 2)
    time = create_savepoint(table)
    held = [name for name in base_files(path) if time in name]
    fill(path, 2, 3)
    os.unlink(os.path.join(path, held[0]))
    before = load_timeline(table.storage)
    with pytest.raises(InvalidConfigError, match=f"{held[0]} does not exist; nothing was undone"):
        restore_to_savepoint(table, time, force=True)
    assert load_timeline(table.storage) == before


def test_a_restore_takes_nothing_from_a_later_savepoint(tmp_path):
    path = str(tmp_path / "t")
    table = fill(path, 0, 2)
    first = create_savepoint(table)
    fill(path, 2, 3)
    second = create_savepoint(table)
    fill(path, 3, 4)
    files = base_files(path)
    with pytest.raises(InvalidConfigError, match=f"a savepoint holds {second}.*delete it first"):
        restore_to_savepoint(table, first, force=True)
    assert base_files(path) == files
    delete_savepoint(table, second)
    restore_to_savepoint(table, first, force=True)
    assert key_set(read_table(path)) == numbers(20)
