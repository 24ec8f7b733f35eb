"""Real Hudi plans the same cleans, reads our upkeep's instants, and goes on where we stopped, and we where it did."""

import os
import random
import shutil
from dataclasses import replace

import pytest
from engine import Engine, key_set, rows
from oracles.hudi import JVM
from snapshots import base_files
from tiers import quick

from table import read_table
from table.clock import InstantClock
from table.hudi_table import HudiTable
from table.options.groups import KEEP_LATEST_BY_HOURS, KEEP_LATEST_COMMITS, KEEP_LATEST_FILE_VERSIONS, CleanSettings
from table.services.clean.clean import clean
from table.services.clean.judgement import plan_clean
from table.snapshot import Snapshot
from table.timeline.instant import Action

pytestmark = [pytest.mark.hudi, pytest.mark.usefixtures("utc")]

POLICIES = {
    KEEP_LATEST_COMMITS: CleanSettings(policy=KEEP_LATEST_COMMITS, commits_retained=2, grace_ms=0),
    KEEP_LATEST_FILE_VERSIONS: CleanSettings(policy=KEEP_LATEST_FILE_VERSIONS, versions_retained=2, grace_ms=0),
    KEEP_LATEST_BY_HOURS: CleanSettings(policy=KEEP_LATEST_BY_HOURS, hours_retained=2, grace_ms=0),
}


def hudi_options(settings):
    return {
        "hoodie.clean.policy": settings.policy,
        "hoodie.clean.commits.retained": str(settings.commits_retained),
        "hoodie.clean.fileversions.retained": str(settings.versions_retained),
        "hoodie.clean.hours.retained": str(settings.hours_retained),
    }


def random_history(hudi, path, rng, monkeypatch):
    """Inserts, upserts by Hudi, replaced groups, savepoints, failed writes, over several hours."""
    from table import clock

    real_now = clock.now_ms
    hours_ago = 6.0
    keep = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
    for number in range(rng.randint(5, 7)):
        hours_ago = max(0.0, hours_ago - rng.random() * 1.2)
        monkeypatch.setattr(clock, "now_ms", lambda back=hours_ago: real_now() - round(back * 3_600_000))
        numbers = [rng.randint(0, 90) for _ in range(rng.randint(3, 20))]
        Engine(path).write(None, rows(numbers, ts=number))
        if rng.random() < 0.2:
            table = HudiTable.open(path)
            hudi.client(path, "savepoint", table.load_timeline().completed_writes[-1].time, "test", "why not")
    monkeypatch.setattr(clock, "now_ms", real_now)
    for number in range(rng.randint(1, 3)):
        kind = rng.choice(["upsert", "upsert", "insert_overwrite"])
        partition = f"p{rng.randint(0, 2)}"
        changed = rows({rng.randint(0, 90) for _ in range(9)}, lambda _, p=partition: p, ts=100 + number)
        hudi.write(path, changed, {**JVM, **keep, "hoodie.datasource.write.operation": kind})


SEEDS = quick(1, range(20))


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_our_plans_name_exactly_the_files_that_hudi_deletes(hudi, tmp_path, monkeypatch, seed):
    rng = random.Random(seed)
    path = str(tmp_path / "t")
    random_history(hudi, path, rng, monkeypatch)
    wanted = key_set(read_table(path))
    table = HudiTable.open(path)
    planned = 0
    for policy, settings in POLICIES.items():
        copy = str(tmp_path / policy / "t")
        shutil.copytree(path, copy)
        plan = plan_clean(Snapshot.load(table), settings)
        ours = {os.path.relpath(f, path) for files in (plan.files if plan else {}).values() for f in files}
        hudi.client(copy, "clean", options=hudi_options(settings))
        assert set(base_files(path)) - set(base_files(copy)) == ours, policy
        planned += len(ours)
        assert key_set(read_table(copy)) == wanted
        # a second round, which both plan from what the first one recorded
        before = base_files(copy)
        for number in range(2):
            Engine(copy).write(None, rows([rng.randint(0, 90) for _ in range(5)], lambda _: "p1", ts=200 + number))
        both = base_files(copy)
        now = HudiTable.open(copy)
        second = plan_clean(Snapshot.load(now), settings)
        ours = {os.path.relpath(f, copy) for files in (second.files if second else {}).values() for f in files}
        hudi.client(copy, "clean", options=hudi_options(settings))
        assert set(both) - set(base_files(copy)) == ours, policy
        assert before != both
    assert planned


GOLDEN = [
    "cow_upsert_delete",
    "cow_insert_overwrite",
    "cow_cleaned",
    "cow_savepoint",
    "cow_archived",
    "cow_rolled_back",
]


@pytest.mark.parametrize("name", GOLDEN)
def test_plans_on_tables_that_hudi_made(hudi, golden, tmp_path, name):
    path, _ = golden(name)
    table = HudiTable.open(path)
    for policy in (KEEP_LATEST_COMMITS, KEEP_LATEST_FILE_VERSIONS):
        settings = replace(POLICIES[policy], commits_retained=1, versions_retained=1)
        copy = str(tmp_path / policy / os.path.basename(path))
        shutil.copytree(path, copy)
        plan = plan_clean(Snapshot.load(table), settings)
        ours = {os.path.relpath(f, path) for f in base_files_of(plan, table)}
        hudi.client(copy, "clean", options=hudi_options(settings))
        assert {
            os.path.relpath(os.path.join(path, f), path) for f in set(base_files(path)) - set(base_files(copy))
        } == ours


def base_files_of(plan, table):
    files = [file for of_path in (plan.files if plan else {}).values() for file in of_path]
    return [os.path.join(table.storage.base_uri, table.storage.relative(file)) for file in files]


@pytest.mark.slow
def test_hudi_executes_a_clean_that_we_only_requested_and_we_one_of_its(hudi, tmp_path):
    path = str(tmp_path / "t")
    engine = Engine(path)
    for number in range(6):
        engine.write(number, rows(range(10 * number, 10 * number + 10)))
    settings = POLICIES[KEEP_LATEST_COMMITS]
    table = HudiTable.open(path)
    theirs = str(tmp_path / "theirs" / "t")
    shutil.copytree(path, theirs)
    from table.timeline.active_timeline import request_instant
    from table.timeline.metadata.clean import encode_clean_plan

    snapshot = Snapshot.load(table)
    plan = plan_clean(snapshot, settings)
    request_instant(table.storage, snapshot.timeline, Action.CLEAN, InstantClock(), encode_clean_plan(plan))
    hudi.client(path, "clean", options=hudi_options(settings))
    assert not any(os.path.exists(file) for files in plan.files.values() for file in files)
    assert not table.load_timeline().pending_of(Action.CLEAN)
    # and the other way round
    hudi.client(theirs, "schedule_clean", options=hudi_options(settings))
    other = HudiTable.open(theirs)
    assert other.load_timeline().pending_of(Action.CLEAN)
    (outcome,) = clean(other, settings)
    assert sum(map(len, outcome.deleted.values())) == plan.file_count
    # Hudi reads what we recorded, and plans its next clean from it
    for number in range(6, 9):
        hudi.write(
            theirs,
            rows(range(10 * number, 10 * number + 10)),
            {**JVM, "hoodie.clean.automatic": "true", "hoodie.clean.async.enabled": "false", **hudi_options(settings)},
        )
    cleans = other.load_timeline().completed_of(Action.CLEAN)
    assert len(cleans) > 1
    assert key_set(read_table(theirs)) == sorted(f"k{n}" for n in range(90))
    assert sorted(row["id"] for row in hudi.read(theirs)) == sorted(f"k{n}" for n in range(90))
