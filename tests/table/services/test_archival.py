"""Archival: what is retired, in which order, read back by us and by Hudi; stopped anywhere."""

import os
import shutil

import pytest
from engine import Engine, key_set, rows
from faults import FaultyStorage, Fuse, PowerCut
from instants import completed, inflight
from tiers import one_in

from table import read_table
from table.errors import BatchRefusedError, InvalidConfigError
from table.hudi_table import HudiTable
from table.options.groups import ArchiveSettings, CleanSettings
from table.options.write_options import parse_options
from table.references.undone import find_foreign_rollbacks
from table.services.archival.archival import archive
from table.services.archival.plan import Unseen, plan_archival
from table.services.clean.clean import clean
from table.snapshot import Snapshot
from table.timeline.active_timeline import load_timeline
from table.timeline.archived_timeline import read_archived_commits
from table.timeline.instant import Action
from table.timeline.timeline import build_timeline

SETTINGS = ArchiveSettings(min_commits=3, max_commits=5, batch=4)
CLEAN = CleanSettings(commits_retained=2, grace_ms=0)


def times(numbers):
    return [f"2026010100000{number:04d}" for number in numbers]


def line(commits, pending=(), cleans=(), rollbacks=(), savepoints=(), replaces=()):
    instants = [completed(t) for t in times(commits)] + [inflight(t) for t in times(pending)]
    for action, found in (
        (Action.CLEAN, cleans),
        (Action.ROLLBACK, rollbacks),
        (Action.SAVEPOINT, savepoints),
        (Action.REPLACE_COMMIT, replaces),
    ):
        instants += [completed(t, action) for t in times(found)]
    return build_timeline(instants)


@pytest.mark.parametrize(
    ("timeline", "held", "retired"),
    [
        (line(range(5)), (), []),
        (line(range(6)), (), [0, 1, 2]),
        (line(range(9)), (), [0, 1, 2, 3, 4, 5]),
        (line([0, 1, 2, 3, 5, 6, 7, 8, 9], pending=[4]), (), [0, 1, 2]),
        (line(range(9), savepoints=[2]), (), [0, 1]),
        (line([0, 2, 3, 4, 5, 6, 7], replaces=[1]), [1], [0]),
        (line([0, 2, 3, 4, 5, 6, 7], replaces=[1]), (), [0, 1, 2, 3, 4]),
        (line(range(9)), [4], [0, 1, 2, 3]),
        (line([20], cleans=range(10, 16)), (), [10, 11, 12]),
        (line(range(20, 23), rollbacks=range(16, 22)), (), [16, 17, 18]),
        (line([17, 20], rollbacks=range(16, 22)), (), [16]),
        (line([17, 20], cleans=range(16, 22)), (), [16]),
    ],
)
def test_what_is_retired(timeline, held, retired):
    plan = plan_archival(timeline, SETTINGS, times(held))
    assert [instant.time for instant in plan.instants] == times(retired)


@pytest.mark.parametrize(
    ("timeline", "sights", "retired"),
    [
        # the pending write 8 was requested when 2 was the newest write that it saw: 2 stays, as the last one before
        (line([0, 1, 2, 3, 4, 5, 6, 7], pending=[8]), {8: 2}, [0, 1]),
        (line([0, 1, 2, 3, 4, 5, 6, 7], pending=[8]), {}, [0, 1, 2, 3, 4]),
        # it had seen that 1 was pending, which was completed since
        (line([0, 1, 2, 3, 4, 5, 6, 7], pending=[8]), {8: 1}, [0]),
        (line([1, 2, 3, 4, 5, 6, 7], pending=[8]), {8: 0}, []),
        (line([0, 1, 2, 3, 4, 5, 6, 7], pending=[8, 9]), {8: 3, 9: 2}, [0, 1]),
    ],
)
def test_what_a_pending_write_has_not_seen_stays(timeline, sights, retired):
    unseen = Unseen({f"2026010100000{time:04d}": f"2026010100000{sight:04d}" for time, sight in sights.items()})
    plan = plan_archival(timeline, SETTINGS, (), unseen)
    assert [instant.time for instant in plan.instants] == times(retired)


@pytest.mark.parametrize(
    ("pending", "sights", "late", "retired"),
    [
        ([], {}, [], [10, 11, 12]),
        ([30], {}, [], [10, 11, 12]),  # a write without a heartbeat that tells: by the last write before it
        ([30], {30: 12}, [], [10, 11]),
        ([30], {30: 20}, [10], [11, 12, 13]),  # requested early, and completed after the request of the write
    ],
)
def test_cleans_that_a_pending_write_has_not_seen_stay(pending, sights, late, retired):
    unseen = Unseen({times([t])[0]: times([s])[0] for t, s in sights.items()}, frozenset(times(late)))
    timeline = line([20], pending=pending, cleans=range(10, 16))
    plan = plan_archival(timeline, SETTINGS, (), unseen)
    assert [instant.time for instant in plan.instants] == times(retired)


def fill(path, batches=9, options=None):
    engine = Engine(path, options)
    for number in range(batches):
        engine.write(number, rows(range(10 * number, 10 * number + 10)))
    return engine


def test_commits_leave_the_timeline_and_are_read_back(tmp_path):
    path = str(tmp_path / "t")
    engine = fill(path)
    table = HudiTable.open(path)
    before = load_timeline(table.storage).completed_writes
    wanted = key_set(read_table(path))
    outcome = archive(table, SETTINGS, CLEAN)
    assert [instant.time for instant in outcome.instants] == [instant.time for instant in before[:6]]
    assert load_timeline(table.storage).completed_writes == before[6:]
    assert not load_timeline(table.storage).pending
    archived = list(read_archived_commits(table.archived_timeline))
    assert sorted(commit.time for commit in archived) == [instant.time for instant in before[:6]]
    assert key_set(read_table(path)) == wanted
    # the sink goes on, with its memory and without it
    engine.write(9, rows([90]))
    again = Engine(path)
    assert again.write(9, rows([90])).skipped
    again.write(10, rows([100]))
    assert len(key_set(read_table(path))) == len(wanted) + 2
    assert archive(table, SETTINGS, CLEAN).instants == ()
    assert len(table.archived_timeline.list_files()) == 1


def test_a_sink_that_was_quiet_for_long_finds_its_last_batch_in_the_archive(tmp_path):
    path = str(tmp_path / "t")
    quiet = {"hoodie.datasource.write.streaming.checkpoint.identifier": "quiet"}
    Engine(path, quiet).write(7, rows([1]))
    fill(path)
    archive(HudiTable.open(path), SETTINGS, CLEAN)
    assert Engine(path, quiet).write(7, rows([1])).skipped


@pytest.mark.parametrize("after", [pytest.param(False, marks=pytest.mark.slow), True])
def test_stopped_at_any_call_nothing_is_lost_and_nothing_looks_failed(tmp_path, after):
    base = str(tmp_path / "base")
    fill(base, 7)
    clean(HudiTable.open(base), CLEAN)
    wanted = key_set(read_table(base))
    fuse = Fuse()
    shutil.copytree(base, tmp_path / "count")
    counted = HudiTable.open(str(tmp_path / "count"))
    archive(HudiTable(FaultyStorage(counted.storage, fuse), counted.config), SETTINGS, CLEAN)
    left = sorted(i.time for i in load_timeline(counted.storage).completed_writes)
    for number in range(1, len(fuse.calls) + 1, one_in(3)):
        target = str(tmp_path / f"{number}-{after}")
        shutil.copytree(base, target)
        table = HudiTable.open(target)
        with pytest.raises(PowerCut):
            archive(HudiTable(FaultyStorage(table.storage, Fuse(number, after)), table.config), SETTINGS, CLEAN)
        assert key_set(read_table(target)) == wanted
        Engine(target).write(50, rows([777]))  # rolls back what looks failed: nothing may
        assert key_set(read_table(target)) == sorted([*wanted, "k777"])
        archive(table, SETTINGS, CLEAN)
        times_left = [i.time for i in load_timeline(table.storage).completed_writes]
        known = {commit.time for commit in read_archived_commits(table.archived_timeline)}
        assert set(left) <= set(times_left) | known
        assert key_set(read_table(target)) == sorted([*wanted, "k777"])
        shutil.rmtree(target)


def test_orphans_of_rolled_back_writes_go_before_they_would_become_visible(tmp_path):
    path = str(tmp_path / "t")
    engine = fill(path, 2)

    dying = Engine(path, validators=[lambda _: "not this one"])
    with pytest.raises(BatchRefusedError):
        dying.write(2, rows([500, 501, 502]))
    engine = Engine(path)
    table = HudiTable.open(path)
    (rollback,) = load_timeline(table.storage).completed_of(Action.ROLLBACK)
    from table.timeline.active_timeline import read_instant
    from table.timeline.metadata.rollback import decode_rollback_metadata

    files = [f for fs in decode_rollback_metadata(read_instant(table.storage, rollback)).deleted.values() for f in fs]
    assert files
    for number in range(2, 9):
        engine.write(number, rows(range(10 * number, 10 * number + 10)))
    wanted = key_set(read_table(path))
    donor = next(file for file in sorted(os.listdir(os.path.join(path, "p0"))) if file.endswith("parquet"))
    shutil.copy(os.path.join(path, "p0", donor), files[0])  # a late task
    outcome = archive(table, SETTINGS, CLEAN)
    assert outcome.orphans
    assert not os.path.exists(files[0])
    assert key_set(read_table(path)) == wanted


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hoodie.clean.commits.retained": "20", "hoodie.keep.min.commits": "20"}, "retained=20 < .*min.commits=20"),
        ({"hoodie.keep.min.commits": "30", "hoodie.keep.max.commits": "30"}, "min.commits=30 < .*max.commits=30"),
        ({"clean.retain_commits": "40", "archive.min_commits": "35", "archive.max_commits": "50"}, "retained=40"),
    ],
)
def test_retention_numbers_that_do_not_fit_are_refused_with_all_three(options, message):
    with pytest.raises(InvalidConfigError, match=message):
        parse_options(options)


def test_bounds_that_nobody_gave_follow_the_commits_retained():
    options = parse_options({"hoodie.cleaner.commits.retained": "50"}).options
    assert (options.archive.min_commits, options.archive.max_commits) == (60, 70)
    options = parse_options({"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS"}).options
    assert (options.archive.min_commits, options.archive.max_commits) == (20, 30)


@pytest.mark.slow
@pytest.mark.hudi
@pytest.mark.usefixtures("utc")
def test_hudi_reads_our_archive_and_goes_on(hudi, tmp_path):
    from oracles.hudi import JVM

    path = str(tmp_path / "t")
    fill(path)
    table = HudiTable.open(path)
    clean(table, CLEAN)
    outcome = archive(table, SETTINGS, CLEAN)
    assert outcome.instants
    shown = hudi.client(path, "archived_commits")
    for instant in outcome.instants:
        assert any(instant.time in text for text in shown)
    hudi.write(path, rows([1, 2, 500], ts=9), {**JVM, "hoodie.clean.automatic": "false"})
    assert sorted(row["id"] for row in hudi.read(path)) == sorted([*(f"k{n}" for n in range(90)), "k500"])
    options = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.clean.commits.retained": "2"}
    for number in range(3):
        hudi.write(path, rows([600 + number]), {**JVM, "hoodie.clean.automatic": "true", **options})
    known = [commit.time for commit in read_archived_commits(table.archived_timeline)]
    assert len(set(known)) > len({i.time for i in outcome.instants if i.action is Action.COMMIT})


def test_the_end_of_an_undone_instant_is_known_as_long_as_its_rollback(tmp_path):
    """Else the rollback would look like one of another engine after a restart, and every partition would be listed."""
    path = str(tmp_path / "t")
    engine = Engine(path, validators=[lambda batch: "unwanted" if batch.batch_id == 1 else None])
    engine.write(0, rows(range(10)))
    with pytest.raises(BatchRefusedError):
        engine.write(1, rows(range(10)))
    for number in range(2, 11):
        engine.write(number, rows(range(10 * number, 10 * number + 10)))
    table = HudiTable.open(path)
    outcome = archive(table, SETTINGS, CLEAN)
    timeline = table.load_timeline()
    (rollback,) = timeline.completed_of(Action.ROLLBACK)
    assert rollback not in outcome.instants
    assert rollback.time < timeline.first_active_time
    assert find_foreign_rollbacks(Snapshot(table, timeline), frozenset()) == {}
