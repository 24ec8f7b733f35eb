"""Archival, savepoints, restores and rollbacks of merge-on-read tables."""

import os
from dataclasses import replace

import pytest
from engine import Engine, rows
from instants import completed
from snapshots import assert_clean

from table import read_table
from table.config.table_config import TableConfig
from table.errors import CommitConflictError, InvalidConfigError, UnsupportedTableError
from table.files.names import parse_base_file, parse_log_file
from table.hudi_table import HudiTable
from table.options.choices import CompactionTrigger
from table.options.groups import ArchiveSettings, BaseFileSettings, CleanSettings, CompactionSettings
from table.options.write_options import parse_options
from table.services.after_commit import services_of
from table.services.archival.archival import archive
from table.services.archival.plan import plan_archival
from table.services.clean.clean import clean
from table.services.compaction.compaction import compact, request_compaction
from table.services.compaction.due import first_that_counts
from table.services.compaction.execution import execute_compaction
from table.services.compaction.service import CompactionService
from table.services.rollback.undo_commit import roll_back
from table.services.savepoint.restore import restore_to_savepoint
from table.services.savepoint.savepoint import create_savepoint
from table.services.service import Trigger
from table.storage.local import LocalStorage
from table.timeline.active_timeline import begin_instant
from table.timeline.archived_timeline import read_archived_commits
from table.timeline.instant import Action, Instant, State
from table.timeline.metadata.commit import decode_commit
from table.timeline.metadata.savepoint import decode_savepoint
from table.timeline.timeline import build_timeline

OPTIONS = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.datasource.compaction.async.enable": "false",
}
NARROW = ArchiveSettings(min_commits=3, max_commits=4, batch=4)
CLEAN = CleanSettings(commits_retained=1, grace_ms=0)
SOON = CompactionSettings(delta_commits=1, tasks=1)
FILES = BaseFileSettings()


def write(path, first, last, keys=range(6)):
    """Batches that change the same keys again and again."""
    engine = Engine(str(path), OPTIONS)
    for number in range(first, last):
        engine.write(number, rows(keys, ts=number, v=f"v{number}"))
    return HudiTable.open(str(path))


def values(path):
    found = read_table(str(path)).to_pylist()
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"]: row["v"] for row in found}


def all_at(number, keys=range(6)):
    return {f"k{key}": f"v{number}" for key in keys}


def data_files(path):
    names = (os.path.join(os.path.relpath(f, path), n) for f, _, ns in os.walk(path) for n in ns)
    return sorted(n for n in names if parse_base_file(os.path.basename(n)) or parse_log_file(os.path.basename(n)))


def write_times(table):
    return [instant.time for instant in table.load_timeline().completed_writes]


def delta(number):
    return Instant(f"2026010100000{number:04d}", Action.DELTA_COMMIT, State.COMPLETED)


def requested_compaction(number):
    return Instant(f"2026010100000{number:04d}", Action.COMPACTION, State.REQUESTED)


@pytest.mark.pure
@pytest.mark.parametrize(
    ("instants", "compaction", "retired"),
    [
        ([delta(n) for n in range(9)], SOON, [0, 1, 2, 3, 4, 5]),
        # those stay that make the next compaction due
        ([delta(n) for n in range(9)], CompactionSettings(delta_commits=5), [0, 1, 2, 3]),
        ([delta(n) for n in range(9)], CompactionSettings(delta_commits=50), []),
        ([*(delta(n) for n in range(9)), completed("20260101000000050")], CompactionSettings(delta_commits=50),
         [0, 1, 2, 3, 4, 5, 6]),
        # by time: 9 commits within 8 ms
        ([delta(n) for n in range(9)], CompactionSettings(trigger=CompactionTrigger.TIME_ELAPSED), []),
        # a pending compaction, and the commit before it
        ([*(delta(n) for n in range(9) if n != 4), requested_compaction(4)], SOON, [0, 1, 2]),
        ([*(delta(n) for n in range(1, 9)), requested_compaction(0)], SOON, []),
    ],
)  # fmt: skip
def test_what_a_merge_on_read_table_retires(instants, compaction, retired):
    timeline = build_timeline(instants)
    counted = first_that_counts(timeline, compaction)
    plan = plan_archival(timeline, NARROW, [counted] if counted else [])
    assert [int(instant.time[-4:]) for instant in plan.instants] == retired


def test_delta_commits_and_compactions_are_archived_and_their_blocks_still_count(tmp_path):
    path = tmp_path / "t"
    table = write(path, 0, 3)
    compact(table, SOON, FILES)
    write(path, 3, 8)
    before = write_times(table)
    outcome = archive(table, NARROW, CLEAN, SOON)
    assert [i.time for i in outcome.instants] == before[:-3]
    assert {i.action for i in outcome.instants} == {Action.DELTA_COMMIT, Action.COMMIT}
    assert not table.load_timeline().pending  # nothing of the compaction is left: it would be carried out again
    assert values(path) == all_at(7)
    known = {commit.time: commit for commit in read_archived_commits(table.archived_timeline)}
    assert sorted(known) == before[:-3]
    assert known[before[3]].metadata.operation == "COMPACT"
    write(path, 8, 10)
    compact(table, SOON, FILES)
    clean(table, CLEAN)
    assert values(path) == all_at(9)
    assert archive(table, NARROW, CLEAN, SOON).instants
    assert values(path) == all_at(9)
    assert_clean(str(path))


def savepoint_files(table, time):
    data = table.storage.read(f".hoodie/{time}.savepoint")
    return sorted(f"{path}/{name}" for path, names in decode_savepoint(data).files.items() for name in names)


def test_a_savepoint_holds_the_slices_of_its_commit_and_the_table_goes_back_to_it(tmp_path):
    path = tmp_path / "t"
    table = write(path, 0, 3)
    time = create_savepoint(table)
    there = data_files(path)
    assert savepoint_files(table, time) == there
    assert any(".log." in name for name in there)
    write(path, 3, 5)
    compact(table, SOON, FILES)  # behind the savepoint
    write(path, 5, 8)
    clean(table, CLEAN)
    archive(table, NARROW, CLEAN, SOON)
    assert set(there) <= set(data_files(path))
    assert time in write_times(table)
    with pytest.raises(InvalidConfigError, match="is batch 3 of the stream"):
        restore_to_savepoint(table, time)
    plan = restore_to_savepoint(table, time, force=True)
    assert [action for _, action in plan.instants].count("commit") == 1
    assert data_files(path) == there
    assert values(path) == all_at(2)
    assert write_times(table)[-1] == time
    assert not [i for i in table.load_timeline().pending if i.action is not Action.SAVEPOINT]
    write(path, 3, 5)
    compact(table, SOON, FILES)
    assert values(path) == all_at(4)


def test_a_savepoint_of_an_older_commit_leaves_out_what_came_later(tmp_path):
    path = tmp_path / "t"
    table = write(path, 0, 2)
    there, time = data_files(path), write_times(table)[-1]
    write(path, 2, 4)
    create_savepoint(table, time)
    assert savepoint_files(table, time) == there
    for _ in range(2):
        restore_to_savepoint(table, time, force=True)
        assert data_files(path) == there
        assert values(path) == all_at(1)
        write(path, 2, 3)


def test_a_savepoint_behind_a_pending_compaction_holds_both_slices(tmp_path):
    path = tmp_path / "t"
    table = write(path, 0, 2)
    [pending] = request_compaction(table, SOON)
    write(path, 2, 4)
    time = create_savepoint(table)
    there = data_files(path)
    assert savepoint_files(table, time) == there
    write(path, 4, 6)
    restore_to_savepoint(table, time, force=True)
    assert data_files(path) == there
    assert values(path) == all_at(3)
    assert table.load_timeline().pending_of(Action.COMPACTION) == (pending,)
    write(path, 4, 5)
    compact(table, SOON, FILES, schedules=False)
    clean(table, CLEAN)
    assert set(there) <= set(data_files(path))
    assert values(path) == all_at(4)
    restore_to_savepoint(table, time, force=True)
    assert values(path) == all_at(3)
    assert pending.time in write_times(table)


@pytest.mark.parametrize("state", ["requested", "inflight", "completed"])
def test_a_restore_goes_back_behind_a_compaction_in_any_state(tmp_path, state):
    path = tmp_path / "t"
    table = write(path, 0, 2)
    time = create_savepoint(table)
    there = data_files(path)
    write(path, 2, 3)
    [pending] = request_compaction(table, SOON)
    write(path, 3, 4)
    if state == "inflight":
        begin_instant(table.storage, pending)
    if state == "completed":
        compact(table, SOON, FILES, schedules=False)
    plan = restore_to_savepoint(table, time, force=True)
    assert pending.time in [undone for undone, _ in plan.instants]
    assert data_files(path) == there
    assert values(path) == all_at(1)
    assert not os.listdir(tmp_path / "t" / ".hoodie" / ".temp")
    assert not [name for name in os.listdir(tmp_path / "t" / ".hoodie") if name.startswith(f"{pending.time}.")]
    write(path, 2, 4)
    compact(table, SOON, FILES)
    assert values(path) == all_at(3)


def test_a_compaction_that_was_undone_while_it_ran_is_not_committed(tmp_path):
    path = tmp_path / "t"
    table = write(path, 0, 2)
    time = create_savepoint(table)
    write(path, 2, 3)
    [pending] = request_compaction(table, SOON)

    class Beside(LocalStorage):
        """Somebody restores the table when the compaction has written its first file."""

        done = False

        def publish(self, name, stage, output):
            super().publish(name, stage, output)
            if not Beside.done:
                Beside.done = True
                restore_to_savepoint(table, time, force=True)

    with pytest.raises(Exception, match="flush|ended|undone|withdrawn"):
        execute_compaction(HudiTable(Beside(str(path)), table.config), pending, FILES)
    assert values(path) == all_at(1)
    write(path, 2, 4)
    assert not table.load_timeline().pending
    assert values(path) == all_at(3)
    assert_clean(str(path))


def test_the_newest_delta_commit_is_rolled_back(tmp_path):
    path = tmp_path / "t"
    table = write(path, 0, 3)
    before = data_files(path)
    write(path, 3, 4)
    time = write_times(table)[-1]
    with pytest.raises(InvalidConfigError, match="is batch 3 of the stream"):
        roll_back(table, time)
    roll_back(table, time, force=True)
    assert data_files(path) == before
    assert values(path) == all_at(2)
    with pytest.raises(CommitConflictError, match="comes after batch 3, which was undone by hand"):
        write(path, 4, 5)
    write(path, 3, 5)
    assert values(path) == all_at(4)


def test_what_a_compaction_reads_or_made_is_not_rolled_back(tmp_path):
    path = tmp_path / "t"
    table = write(path, 0, 3)
    time = write_times(table)[-1]
    [pending] = request_compaction(table, SOON)
    there = data_files(path)
    with pytest.raises(CommitConflictError, match=f"compaction {pending.time} is to read .*`hudistream rollback` the"):
        roll_back(table, time, force=True)
    write(path, 3, 4)
    with pytest.raises(InvalidConfigError, match="1 commits came after"):
        roll_back(table, pending.time)
    roll_back(table, write_times(table)[-1], force=True)
    assert data_files(path) == there
    roll_back(table, pending.time)
    assert not table.load_timeline().pending
    assert data_files(path) == there
    roll_back(table, time, force=True)
    assert values(path) == all_at(1)
    write(path, 2, 3)
    compact(table, SOON, FILES)
    with pytest.raises(InvalidConfigError, match="is a compaction, which changed no row.*restore a savepoint"):
        roll_back(table, write_times(table)[-1], force=True)
    assert values(path) == all_at(2)


def test_a_commit_that_appended_to_the_log_files_of_others_is_not_undone(tmp_path):
    path = tmp_path / "t"
    table = write(path, 0, 2)
    create_savepoint(table)
    write(path, 2, 3)
    [*_, first, second] = sorted(data_files(path), key=lambda name: os.path.getmtime(path / name))
    assert ".log." in first
    assert ".log." in second
    older = [name for name in data_files(path) if ".log.1_" in name and name.split("/")[0] == second.split("/")[0]][0]
    (path / second).write_bytes((path / older).read_bytes() + (path / second).read_bytes())
    before = values(path)
    for undo in (
        lambda: roll_back(table, write_times(table)[-1], force=True),
        lambda: restore_to_savepoint(table, write_times(table)[-2], force=True),
    ):
        with pytest.raises(UnsupportedTableError, match="holds blocks of .* and of others: let Hudi undo it"):
            undo()
        assert values(path) == before


def test_a_name_that_came_again_is_not_taken_for_that_of_an_undone_file(tmp_path):
    path = tmp_path / "t"
    table = write(path, 0, 3)
    undone = write_times(table)[-1]
    gone = [stat.path for stat in decode_commit(table.storage.read(f".hoodie/{undone}.deltacommit")).stats]
    roll_back(table, undone, force=True)
    write(path, 2, 8)
    # the same version and write token again, as a restarted cluster gives them
    there = [name for name in data_files(path) if name.split(".log.")[0] == gone[0].split(".log.")[0]]
    again = max(there, key=lambda name: os.path.getmtime(path / name))
    if again != gone[0]:
        os.rename(path / again, path / gone[0])
    wanted = values(path)
    archive(table, NARROW, CLEAN, SOON)
    assert (path / gone[0]).exists()
    assert values(path) == wanted


@pytest.mark.parametrize(("inline", "trigger"), [("true", Trigger.INLINE), ("false", Trigger.BACKGROUND)])
def test_an_inline_compaction_is_done_before_the_next_batch(inline, trigger):
    options = parse_options({"hoodie.compact.inline": inline, "hoodie.datasource.compaction.async.enable": "true"})
    [service] = [one for one in services_of(options.options) if isinstance(one, CompactionService)]
    table = TableConfig("t", ("id",), table_type="MERGE_ON_READ")
    assert service.trigger(table) is trigger
    assert service.trigger(replace(table, table_type="COPY_ON_WRITE")) is Trigger.NOT_NOW
