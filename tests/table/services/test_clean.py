"""Cleaning: policies by table, plans against real Hudi's, execution, crashes, readers."""

import os
from dataclasses import replace

import pytest
from engine import Engine, key_set, rows
from faults import FaultyStorage, Fuse, PowerCut
from instants import completed, inflight
from snapshots import base_files, snapshot_files
from tiers import one_in

from table import read_table
from table.clock import InstantClock
from table.errors import StorageError
from table.hudi_table import HudiTable
from table.options.groups import KEEP_LATEST_BY_HOURS, KEEP_LATEST_COMMITS, KEEP_LATEST_FILE_VERSIONS, CleanSettings
from table.services.clean.clean import clean, schedule_clean
from table.services.clean.judgement import judge_files, plan_clean
from table.services.clean.memory import CleanerMemory
from table.services.clean.plan import (
    Protection,
    choose_incremental_paths,
    earliest_in_use,
    earliest_to_retain,
    find_arrivals,
    is_emptied,
    judge_file_group,
    judge_replaced_group,
    needs_cleaning,
)
from table.snapshot import Snapshot
from table.storage.local import LocalStorage
from table.timeline.active_timeline import begin_instant, load_timeline, request_instant
from table.timeline.instant import Action, State
from table.timeline.metadata.clean import CleanPlan, decode_clean_plan, encode_clean_plan
from table.timeline.timeline import build_timeline
from table.view.file_group import BaseFile, CommittedInstants, group_files

COMMITS = CleanSettings(policy=KEEP_LATEST_COMMITS, commits_retained=2, grace_ms=0)
VERSIONS = CleanSettings(policy=KEEP_LATEST_FILE_VERSIONS, versions_retained=2, grace_ms=0)
HOURS = CleanSettings(policy=KEEP_LATEST_BY_HOURS, grace_ms=0)


def times(*numbers):
    return [f"2026010100000{number:04d}" for number in numbers]


def timeline(*numbers, pending=()):
    return build_timeline([completed(t) for t in times(*numbers)] + [inflight(t) for t in times(*pending)])


def group(*numbers):
    files = [BaseFile("p", f"f-0_0-0-0_{t}.parquet", "f-0", t, 10) for t in times(*numbers)]
    [found] = group_files("p", files, [], CommittedInstants(frozenset(times(*numbers)), None, {}))
    return found


def deleted(fates):
    return sorted(int(fate.file.instant_time[-4:]) for fate in fates if fate.deleted)


@pytest.mark.parametrize(
    ("settings", "line", "earliest"),
    [
        (COMMITS, timeline(1, 2), None),
        (COMMITS, timeline(1, 2, 3), 2),
        (COMMITS, timeline(1, 2, 3, 4, 5), 4),
        (COMMITS, timeline(1, 2, 3, 4, 6, pending=(5,)), 4),
        (COMMITS, timeline(1, 3, 4, 6, pending=(2,)), 1),
        (COMMITS, timeline(3, 4, 6, pending=(2,)), None),
        (HOURS, timeline(1, 2, 3), 2),
        (HOURS, timeline(1, 4, 5, pending=(3,)), 1),
        (VERSIONS, timeline(1, 2, 3), None),
    ],
)
def test_earliest_commit_to_retain(settings, line, earliest):
    found = earliest_to_retain(line, settings, times(2)[0])
    assert (found.time if found else None) == (times(earliest)[0] if earliest else None)


@pytest.mark.parametrize(
    ("settings", "versions", "gone"),
    [
        (COMMITS, (1, 2, 3, 4), [1, 2]),
        (COMMITS, (1, 3, 5), [1]),
        (COMMITS, (1,), []),
        (COMMITS, (1, 2), [1]),
        (COMMITS, (4, 5, 6), []),
        (HOURS, (1, 2, 3, 4), [1, 2]),
        (HOURS, (1, 2, 5), [1]),
        (VERSIONS, (1, 2, 3, 4), [1, 2]),
        (VERSIONS, (1, 2), []),
    ],
)
def test_versions_that_go(settings, versions, gone):
    earliest = completed(times(4)[0])
    fates = judge_file_group(group(*versions), settings, earliest, Protection())
    assert deleted(fates) == gone
    assert not fates[0].deleted
    assert all(fate.rule for fate in fates)


def test_savepoints_and_compactions_are_above_every_policy():
    earliest = completed(times(5)[0])
    versions = group(1, 2, 3, 4, 5)
    names = {number: f"f-0_0-0-0_{times(number)[0]}.parquet" for number in range(1, 6)}
    for settings in (COMMITS, VERSIONS):
        held = Protection({"p": frozenset({names[1]})})
        assert 1 not in deleted(judge_file_group(versions, settings, earliest, held))
        compacting = Protection(compacting={("p", "f-0"): times(2)[0]})
        assert deleted(judge_file_group(versions, settings, earliest, compacting)) in ([1], [])
    rules = {fate.rule for fate in judge_file_group(versions, COMMITS, earliest, Protection({"p": {names[1]}}))}
    assert "a savepoint holds it" in rules


def test_counted_versions_stay_while_a_batch_may_read_them():
    assert earliest_in_use(timeline(1, 2)) is None
    assert earliest_in_use(timeline(2, pending=(1,))) is None
    used = earliest_in_use(timeline(1, 3, 5, 6, pending=(4, 7)))
    assert used is not None
    assert used.time == times(3)[0]
    once = CleanSettings(policy=KEEP_LATEST_FILE_VERSIONS, versions_retained=1)
    # of 2, a batch that began when 3 was about to be completed still reads
    assert deleted(judge_file_group(group(1, 2, 3, 5, 6), once, None, Protection(in_use=used))) == [1]
    assert deleted(judge_replaced_group(group(1, 2), times(5)[0], once, None, Protection(in_use=used))) == []
    assert deleted(judge_replaced_group(group(1, 2), times(3)[0], once, None, Protection(in_use=used))) == [1, 2]


@pytest.mark.parametrize(
    ("completed_at", "arrivals"),
    [
        ({1: 10, 2: 20, 3: 30}, {}),
        ({1: 10, 2: 35, 3: 30}, {2: 3}),
        ({1: 90, 2: 20, 3: 30, 4: 95}, {1: 3}),
        ({1: 10, 2: 10, 3: 10}, {}),  # a store of whole seconds does not say which came first
        ({}, {}),
    ],
)
def test_writes_that_became_visible_behind_later_ones(completed_at, arrivals):
    found = find_arrivals({times(number)[0]: at for number, at in completed_at.items()})
    assert found == {times(late)[0]: times(behind)[0] for late, behind in arrivals.items()}


def test_what_a_late_write_superseded_stays_as_many_commits_as_if_it_came_now():
    earliest = completed(times(5)[0])
    late = Protection(arrivals={times(3)[0]: times(6)[0]})
    assert deleted(judge_file_group(group(1, 2, 3), COMMITS, earliest, Protection())) == [1, 2]
    fates = judge_file_group(group(1, 2, 3), COMMITS, earliest, late)
    assert deleted(fates) == [1]
    assert [fate.is_held for fate in fates] == [False, True, False]  # so the next clean looks again
    assert deleted(judge_file_group(group(1, 2, 3), COMMITS, completed(times(7)[0]), late)) == [1, 2]
    assert deleted(judge_file_group(group(1, 2, 3), VERSIONS, None, late)) == [1]
    assert deleted(judge_replaced_group(group(1, 2), times(3)[0], COMMITS, earliest, late)) == []
    assert deleted(judge_replaced_group(group(1, 2), times(3)[0], COMMITS, completed(times(7)[0]), late)) == [1, 2]


def test_replaced_groups_go_with_the_commit_that_replaced_them():
    earliest = completed(times(4)[0])
    assert deleted(judge_replaced_group(group(1, 2), times(3)[0], COMMITS, earliest, Protection())) == [1, 2]
    assert deleted(judge_replaced_group(group(1, 2), times(4)[0], COMMITS, earliest, Protection())) == []
    assert deleted(judge_replaced_group(group(1, 2), times(9)[0], VERSIONS, None, Protection())) == [1, 2]


def test_when_a_folder_goes():
    earliest = completed(times(4)[0])
    gone = judge_replaced_group(group(1, 2), times(3)[0], COMMITS, earliest, Protection())
    assert is_emptied(0, 0, times(3), gone, earliest)
    assert not is_emptied(1, 0, times(3), gone, earliest)
    assert not is_emptied(0, 1, times(3), gone, earliest)
    assert not is_emptied(0, 0, times(3, 5), gone, earliest)


def test_when_a_clean_is_due():
    line = timeline(1, 2, 3)
    assert needs_cleaning(line, None, CleanSettings(trigger_commits=3))
    assert not needs_cleaning(line, None, CleanSettings(trigger_commits=4))
    assert needs_cleaning(line, times(2)[0], CleanSettings(trigger_commits=1))
    assert not needs_cleaning(line, times(3)[0], CleanSettings(trigger_commits=1))


def test_incremental_paths_are_those_of_commits_that_left_the_retention():
    touched = dict(zip(times(1, 2, 3, 4), (["a"], ["b"], ["c"], ["d"]), strict=True))
    assert choose_incremental_paths(times(2)[0], times(4)[0], touched) == {"b", "c"}


def fill(path, batches, storage=None, options=None):
    engine = Engine(storage or path, options)
    for number in range(batches):
        engine.write(number, rows(range(10 * number, 10 * number + 10)))
    return engine


def test_old_versions_go_and_every_deletion_is_told(tmp_path, logs):
    path = str(tmp_path / "t")
    fill(path, 6)
    before, wanted = base_files(path), key_set(read_table(path))
    table = HudiTable.open(path)
    plan = plan_clean(Snapshot.load(table), COMMITS)
    (outcome,) = clean(table, COMMITS)
    gone = set(before) - set(base_files(path))
    assert len(gone) == plan.file_count == 9  # of 6 versions of 3 groups stay 2 and the one before
    assert {e["path"] for e in logs if e["event"] == "file_cleaned"} == gone
    assert all(e["why"] for e in logs if e["event"] == "file_cleaned")
    assert outcome.plan.last_commit == table.load_timeline().completed_writes[-1].time
    assert key_set(read_table(path)) == wanted
    assert clean(table, COMMITS) == []
    states = [i.state for i in table.load_timeline().files if i.action is Action.CLEAN]
    assert sorted(states) == sorted([State.REQUESTED, State.INFLIGHT, State.COMPLETED])
    # the next one looks only where something changed, and finds the same as a look everywhere
    fill_more = Engine(path)
    fill_more.write(6, rows([600, 603, 606]))
    full = plan_clean(Snapshot.load(table), CleanSettings(commits_retained=2, incremental=False, grace_ms=0))
    assert plan_clean(Snapshot.load(table), COMMITS).files == full.files
    assert list(full.files)


def test_a_grace_period_keeps_what_was_superseded_lately_and_a_brake_refuses_large_plans(tmp_path):
    path = str(tmp_path / "t")
    fill(path, 6)
    table = HudiTable.open(path)
    lately = CleanSettings(commits_retained=2, grace_ms=3_600_000, readers_share=100)
    assert plan_clean(Snapshot.load(table), lately) is None
    with pytest.raises(StorageError, match=r"would delete 4\d% .*max\.share=0\.2"):
        clean(table, CleanSettings(commits_retained=2, most_share=0.2, grace_ms=0))
    assert not table.load_timeline().pending_of(Action.CLEAN)
    assert clean(table, CleanSettings(commits_retained=2, most_share=0.9, grace_ms=0))


def test_a_plan_that_names_a_live_file_is_refused_whoever_made_it(tmp_path):
    path = str(tmp_path / "t")
    fill(path, 2)
    table = HudiTable.open(path)
    storage, line = table.storage, table.load_timeline()
    live = snapshot_files(path)[0]
    plan = CleanPlan(KEEP_LATEST_COMMITS, None, "", {"p0": (storage.absolute(live),)})
    request_instant(storage, line, Action.CLEAN, InstantClock(), encode_clean_plan(plan))
    assert clean(table, COMMITS) == []
    assert live in base_files(path)
    assert not table.load_timeline().pending_of(Action.CLEAN)  # it was withdrawn
    # one that somebody has begun to carry out is carried out, but for that file
    request_instant(storage, line, Action.CLEAN, InstantClock(), encode_clean_plan(plan))
    begin_instant(storage, table.load_timeline().pending_of(Action.CLEAN)[0], encode_clean_plan(plan))
    (outcome,) = clean(table, COMMITS)
    assert outcome.failed == {"p0": (live.rsplit("/", 1)[-1],)}
    assert live in base_files(path)


def test_what_was_begun_is_finished_from_its_plan_before_anything_is_planned(tmp_path):
    path = str(tmp_path / "t")
    engine = fill(path, 6)
    table = HudiTable.open(path)
    snapshot = Snapshot.load(table)
    plan = plan_clean(snapshot, COMMITS)
    instant = request_instant(table.storage, snapshot.timeline, Action.CLEAN, InstantClock(), encode_clean_plan(plan))
    begin_instant(table.storage, instant, encode_clean_plan(plan))
    first = next(iter(plan.files.values()))[0]
    os.unlink(first)  # it had begun
    for number in range(6, 9):
        engine.write(number, rows(range(10 * number, 10 * number + 10)))
    (outcome,) = clean(table, COMMITS)
    assert outcome.start_time == instant.time
    assert sum(map(len, outcome.deleted.values())) == plan.file_count
    assert not any(map(os.path.exists, (file for files in plan.files.values() for file in files)))


def test_a_clean_without_a_plan_is_dropped_and_an_empty_outcome_is_redone(tmp_path):
    path = str(tmp_path / "t")
    fill(path, 6)
    table = HudiTable.open(path)
    request_instant(table.storage, table.load_timeline(), Action.CLEAN, InstantClock())
    assert clean(table, COMMITS) == []
    assert not table.load_timeline().pending_of(Action.CLEAN)
    (outcome,) = clean(table, COMMITS)
    with open(os.path.join(path, ".hoodie", f"{outcome.start_time}.clean"), "wb"):
        pass
    (again,) = clean(table, COMMITS)
    assert again.start_time == outcome.start_time


@pytest.mark.parametrize("after", [False, True])
def test_stopped_at_any_call_the_next_clean_finishes_and_no_reader_notices(tmp_path, after):
    path = str(tmp_path / "base")
    fill(path, 5)
    fuse = Fuse()
    import shutil

    shutil.copytree(path, tmp_path / "count")
    clean(HudiTable.open(str(tmp_path / "count")), COMMITS)
    whole = base_files(str(tmp_path / "count"))
    shutil.copytree(path, tmp_path / "calls")
    counted = HudiTable.open(str(tmp_path / "calls"))
    clean(HudiTable(FaultyStorage(counted.storage, fuse), counted.config), COMMITS)
    wanted = key_set(read_table(path))
    assert len(fuse.calls) > 15
    for number in range(1, len(fuse.calls) + 1, one_in(3)):
        target = str(tmp_path / f"{number}-{after}")
        shutil.copytree(path, target)
        table = HudiTable.open(target)
        with pytest.raises(PowerCut):
            clean(HudiTable(FaultyStorage(table.storage, Fuse(number, after)), table.config), COMMITS)
        assert key_set(read_table(target)) == wanted
        clean(table, COMMITS)
        assert base_files(target) == whole
        assert key_set(read_table(target)) == wanted
        assert not load_timeline(table.storage).pending_of(Action.CLEAN)
        shutil.rmtree(target)


def test_a_clean_that_is_not_due_reads_the_last_clean_once_and_nothing_else(tmp_path):
    path = str(tmp_path / "t")
    fill(path, 4)
    clean(HudiTable.open(path), COMMITS)
    fuse, known, rarely = Fuse(), CleanerMemory(), replace(COMMITS, trigger_commits=20)
    table = HudiTable.open(path)
    table = HudiTable(FaultyStorage(table.storage, fuse), table.config)
    reads = []
    for _ in range(3):
        fuse.calls.clear()
        assert not schedule_clean(table, rarely, known=known).timeline.pending_of(Action.CLEAN)
        reads.append([call for call in fuse.calls if call.split(" ")[1] != ".hoodie"])
    assert [len(of_look) for of_look in reads] == [2, 0, 0]


def test_dry_run_names_a_rule_for_every_file(tmp_path):
    path = str(tmp_path / "t")
    fill(path, 4)
    fates = [fate for partition in judge_files(HudiTable.open(path), COMMITS) for fate in partition.fates]
    assert sorted(fate.file.path for fate in fates) == base_files(path)
    plan = plan_clean(Snapshot.load(HudiTable.open(path)), COMMITS)
    named = sorted(file for files in plan.files.values() for file in files)
    assert named == sorted(os.path.join(path, fate.file.path) for fate in fates if fate.deleted)
    assert len({fate.rule for fate in fates}) >= 3


def test_golden_plans_of_hudi_are_read(golden):
    path, _ = golden("cow_cleaned")
    storage = LocalStorage(path)
    line = load_timeline(storage)
    cleans = line.completed_of(Action.CLEAN)
    assert cleans
    for instant in cleans:
        name = f"{instant.time}.clean.requested"
        plan = decode_clean_plan(storage.read(os.path.join(".hoodie", name)))
        assert plan.policy == KEEP_LATEST_COMMITS
        assert plan.file_count
        assert decode_clean_plan(encode_clean_plan(plan)) == plan
