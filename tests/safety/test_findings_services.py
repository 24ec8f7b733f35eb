"""Nothing lost, doubled, or deleted outside: savepoints, rollbacks by hand, quarantine, plans, the ledger, time."""

import json
import os
from glob import glob

import pyarrow as pa
import pytest
from engine import Engine, key_set, rows
from upkeep import LAST_VERSION, NARROW, OPERATION, UPSERT, data_files, request_clean

from streaming.batch import marker_cleanup
from table import CommitConflictError, InvalidConfigError, StorageError, clock, read_table
from table.clock import InstantClock
from table.hudi_table import HudiTable
from table.options.groups import CleanSettings
from table.services.archival.archival import archive
from table.services.clean import clean as cleaning
from table.services.clean.clean import clean
from table.services.rollback.undo_commit import roll_back
from table.services.savepoint.restore import restore_to_savepoint
from table.services.savepoint.savepoint import create_savepoint
from table.storage.local import LocalStorage
from table.timeline.active_timeline import load_timeline, request_instant
from table.timeline.instant import Action
from table.timeline.metadata.clean import CleanPlan, encode_clean_plan
from table.timeline.metadata.rollback import RollbackPlan, RollbackRequest, encode_rollback_plan


def test_a_savepoint_of_what_a_pending_clean_deletes_is_withdrawn(tmp_path):
    path = str(tmp_path / "t")
    engine = Engine(path, UPSERT)
    for number in range(5):
        engine.write(number, rows(range(30), ts=number))
    table, settings = HudiTable.open(path), CleanSettings(commits_retained=1, grace_ms=0)
    third = load_timeline(table.storage).completed_writes[2].time
    request_clean(table, settings)
    with pytest.raises(CommitConflictError, match="deletes p.*it was withdrawn; finish the clean"):
        create_savepoint(table, third)
    assert load_timeline(table.storage).completed_of(Action.SAVEPOINT) == ()
    clean(table, settings)
    with pytest.raises(InvalidConfigError, match="may have been cleaned"):
        create_savepoint(table, third)


def test_a_savepoint_made_while_a_clean_runs_is_withdrawn(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    engine = Engine(path, UPSERT)
    for number in range(5):
        engine.write(number, rows(range(30), ts=number))
    table, begin = HudiTable.open(path), cleaning.begin_instant
    third = load_timeline(table.storage).completed_writes[2].time

    def make_one(*given):
        with pytest.raises(CommitConflictError, match="it was withdrawn"):
            create_savepoint(table, third)
        return begin(*given)

    monkeypatch.setattr(cleaning, "begin_instant", make_one)
    assert len(clean(table, CleanSettings(commits_retained=1, grace_ms=0))) == 1
    assert load_timeline(table.storage).completed_of(Action.SAVEPOINT) == ()


def test_a_savepoint_made_while_a_clean_is_being_planned_holds(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    engine = Engine(path, UPSERT)
    for number in range(5):
        engine.write(number, rows(range(30), ts=number, v=str(number)))
    engine.writer.stop()
    table, plan = HudiTable.open(path), cleaning.plan_clean
    third = load_timeline(table.storage).completed_writes[2].time

    def plan_and_make_one(*given):
        planned = plan(*given)
        create_savepoint(table, third)
        return planned

    monkeypatch.setattr(cleaning, "plan_clean", plan_and_make_one)
    (outcome,) = clean(table, CleanSettings(commits_retained=1, grace_ms=0))
    assert sum(map(len, outcome.deleted.values())) == 6  # two versions of three files; the third is held
    restore_to_savepoint(table, third, force=True)
    assert read_table(path).column("v").to_pylist() == ["2"] * 30


@pytest.mark.parametrize("how", ["updated", "replaced", "replaced, and a file could not be deleted"])
def test_a_commit_whose_previous_versions_were_cleaned_is_not_rolled_back(tmp_path, monkeypatch, how):
    """A file that a clean could not delete holds rows of an older version: seed 20139 found them again."""
    path = str(tmp_path / "t")
    engine = Engine(path, UPSERT)
    engine.write(0, rows(range(30)))
    stubborn = [os.path.relpath(file, path) for file in glob(f"{path}/p0/*.parquet")]
    if how != "replaced":
        engine.write(1, rows(range(30), ts=1))
    engine.writer.stop()
    if how.startswith("replaced"):
        Engine(path, {OPERATION: "insert_overwrite"}).write(None, rows(range(90, 93), lambda _: "p0"))
    assert stubborn
    if "could not" in how:
        real = LocalStorage.delete

        def refuse(self, file):
            if file in stubborn:
                raise StorageError("the store refuses")
            return real(self, file)

        monkeypatch.setattr(LocalStorage, "delete", refuse)
    table = HudiTable.open(path)
    clean(table, LAST_VERSION)
    before, files = load_timeline(table.storage), data_files(path)
    with pytest.raises(InvalidConfigError, match="cannot be rolled back: .* was cleaned.*nothing was undone"):
        roll_back(table, before.completed_writes[-1].time, force=True)
    assert (load_timeline(table.storage), data_files(path)) == (before, files)


def test_a_commit_is_not_rolled_back_while_a_clean_is_under_way(tmp_path):
    path = str(tmp_path / "t")
    engine = Engine(path, UPSERT)
    for number in range(3):
        engine.write(number, rows(range(30), ts=number))
    engine.writer.stop()
    table = HudiTable.open(path)
    request_clean(table, CleanSettings(commits_retained=1, grace_ms=0))
    newest = load_timeline(table.storage).completed_writes[-1].time
    with pytest.raises(CommitConflictError, match="is under way: finish it .*nothing was undone"):
        roll_back(table, newest, force=True)
    clean(table, CleanSettings(commits_retained=1, grace_ms=0))
    roll_back(table, newest, force=True)
    assert key_set(read_table(path)) == key_set(rows(range(30)))


BAD = pa.concat_tables([rows(range(30)), rows([99]).set_column(0, "id", pa.array([None], pa.string()))])
QUARANTINE = {"hudistream.bad.rows": "quarantine"}


def files_below(folder):
    return [name for _, _, names in os.walk(folder) for name in names]


def test_bad_rows_whose_commit_was_archived_before_they_were_published_are_published(tmp_path, monkeypatch):
    path, aside = str(tmp_path / "t"), str(tmp_path / "bad")

    class PowerCut(BaseException):
        pass

    def cut(*_args):
        raise PowerCut

    with monkeypatch.context() as patched:
        patched.setattr(marker_cleanup, "clean_up_commit", cut)
        with pytest.raises(PowerCut):
            Engine(path, QUARANTINE, aside=LocalStorage(aside)).write(0, BAD)
    (staged,) = files_below(aside)
    other = Engine(path, UPSERT, query_id=None)
    for number in range(5):
        other.write(None, rows(range(30), ts=number))
    table = HudiTable.open(path)
    clean(table, CleanSettings(commits_retained=1, grace_ms=0))
    assert archive(table, NARROW, CleanSettings(grace_ms=0)).instants
    assert Engine(path, QUARANTINE, aside=LocalStorage(aside)).write(0, BAD).skipped
    assert files_below(aside) == [staged]


def test_two_tables_that_share_a_folder_for_bad_rows_leave_each_others_alone(tmp_path):
    aside = LocalStorage(str(tmp_path / "bad"))
    first, second = (Engine(str(tmp_path / name), QUARANTINE, aside=aside) for name in "ab")
    inner = first.distribute

    def distribute(plan, table):
        results = inner(plan, table)
        second.write(0, rows(range(5)))  # the other stream's batch, while these rows wait for their commit
        return results

    first.distribute = distribute
    summary = first.write(0, BAD)
    assert (summary.bad_rows, summary.upkeep_errors) == (1, ())
    assert len(files_below(aside.base_uri)) == 1


def test_versions_that_a_grace_period_held_go_when_it_is_over(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    engine = Engine(path, UPSERT)
    settings = CleanSettings(commits_retained=2, grace_ms=600_000, readers_share=100)
    assert settings.incremental
    now_ms, minutes = clock.now_ms, 0
    monkeypatch.setattr(clock, "now_ms", lambda: now_ms() + 60_000 * minutes)
    for number in range(24):  # one batch a minute; the second day is another partition
        day = "day1" if number < 8 else "day2"
        engine.write(number, rows(range(5), ts=number, partition=lambda _, day=day: day))
        minutes += 1
        clean(HudiTable.open(path), settings)
    assert len(data_files(path, "day1")) == 1
    assert 3 <= len(data_files(path, "day2")) <= 11


def test_plans_that_lead_out_of_the_table_delete_nothing_there(tmp_path):
    path, victim, neighbour = str(tmp_path / "t"), tmp_path / "victim.parquet", str(tmp_path / "neighbour")
    victim.write_text("x")
    Engine(neighbour).write(0, rows(range(3)))
    Engine(path).write(0, rows(range(30)))
    table = HudiTable.open(path)
    outside = (f"{path}/../victim.parquet", f"{path}/p0/../../victim.parquet", str(victim))
    plan = CleanPlan("KEEP_LATEST_COMMITS", None, "", {"p0": outside}, ("../neighbour", ".hoodie", ""))
    request_instant(table.storage, load_timeline(table.storage), Action.CLEAN, InstantClock(), encode_clean_plan(plan))
    (outcome,) = clean(table, CleanSettings(grace_ms=0))
    assert (len(outcome.failed["p0"]), outcome.deleted) == (3, {})
    for file in outside:
        request = RollbackRequest("p0", "f-0", "20200101000000000", (file,))
        request_instant(
            table.storage, load_timeline(table.storage), Action.ROLLBACK, InstantClock(),
            encode_rollback_plan(RollbackPlan("20200101000000000", "commit", (request,))),
        )  # fmt: skip
        with pytest.raises(InvalidConfigError, match="does not lie in the table"):
            Engine(path).write(1, rows(range(30, 60)))
        os.unlink(max(glob(f"{path}/.hoodie/*.rollback.requested")))
    assert victim.exists()
    assert len(read_table(neighbour)) == 3
    assert len(read_table(path)) == 30


def test_a_batch_that_others_pushed_into_the_archive_is_still_known_to_the_process_that_wrote_it(tmp_path):
    path = str(tmp_path / "t")
    engine = Engine(path)
    engine.write(0, rows(range(30)))  # the archive was looked at, and was empty
    engine.write(1, rows(range(30, 60)))
    engine.writer.stop()
    for number in range(5):  # another engine's commits carry no entry of ours
        Engine(path, UPSERT, query_id=None).write(None, rows(range(60), ts=number))
        newest = max(glob(f"{path}/.hoodie/*.commit"))
        with open(newest) as file:
            commit = json.load(file)
        commit["extraMetadata"] = {"schema": commit["extraMetadata"]["schema"]}
        with open(newest, "w") as file:
            json.dump(commit, file)
    table = HudiTable.open(path)
    clean(table, CleanSettings(commits_retained=1, grace_ms=0))
    assert len(archive(table, NARROW, CleanSettings(grace_ms=0)).instants) >= 2
    assert engine.write(1, rows(range(30, 60))).skipped
    with pytest.raises(CommitConflictError, match="not above batch 1"):
        engine.write(0, rows(range(30)))
    assert key_set(read_table(path)) == key_set(rows(range(60)))


@pytest.mark.parametrize("actions", [(Action.COMMIT, Action.CLEAN), (Action.ROLLBACK, Action.COMMIT)])
def test_two_actions_of_the_same_millisecond_get_two_times(tmp_path, monkeypatch, actions):
    storage = LocalStorage(str(tmp_path))
    now_ms = clock.now_ms()
    monkeypatch.setattr(clock, "now_ms", lambda: now_ms)
    both_listed = load_timeline(storage)
    times = [request_instant(storage, both_listed, action, InstantClock()).time for action in actions]
    assert len(set(times)) == 2
    assert len(load_timeline(storage).pending) == 2
