"""A compaction that was planned beside other writers: whose word counts, and what becomes of one without a word."""

import pytest
from engine import Engine, rows

from hudistream import HudiTable
from table import clock, read_table
from table.errors import CommitConflictError
from table.options.groups import BaseFileSettings, CompactionSettings
from table.services.compaction import compaction
from table.services.compaction.compaction import schedule_compaction
from table.services.compaction.execution import carry_out_compactions
from table.snapshot import Snapshot
from table.timeline.instant import Action
from table.transaction.provisional import KEPT, PLANS_FOLDER, WITHDRAWN, decide_plan, is_kept

SHARED = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.compaction.async.enable": "false",
}


@pytest.fixture
def table(tmp_path):
    engine = Engine(str(tmp_path), SHARED)
    for ts in range(3):
        engine.write(ts, rows(range(6), ts=ts, v=str(ts)))
    return engine, HudiTable.open(tmp_path)


def pending(table):
    return table.load_timeline().pending_of(Action.COMPACTION)


def test_one_that_is_kept_counts(table):
    engine, table = table
    planned = schedule_compaction(table, CompactionSettings(), shared=True)
    (one,) = planned.timeline.pending_of(Action.COMPACTION)
    assert is_kept(table.storage, one)
    assert decide_plan(table.storage, one.time, WITHDRAWN) == KEPT
    engine.write(3, rows(range(6), ts=3, v="3"))  # above the compaction
    assert len(carry_out_compactions(planned, BaseFileSettings())) == 1
    assert set(read_table(table.storage.base_uri).column("v").to_pylist()) == {"3"}


def test_a_batch_withdraws_one_whose_planner_gives_no_word(table, monkeypatch):
    engine, table = table

    class Died(BaseException):
        pass

    def dies(*_):
        raise Died

    monkeypatch.setattr(compaction, "_check_nothing_written", dies)
    with pytest.raises(Died):
        schedule_compaction(table, CompactionSettings(), shared=True)
    (one,) = pending(table)
    assert not is_kept(table.storage, one)
    assert carry_out_compactions(Snapshot.load(table), BaseFileSettings()) == []
    slept = []
    monkeypatch.setattr(clock, "sleep_s", slept.append)
    engine.write(3, rows(range(6), ts=3, v="3"))
    assert sum(slept) > 3
    assert pending(table) == ()
    assert decide_plan(table.storage, one.time, KEPT) == WITHDRAWN
    assert set(read_table(table.storage.base_uri).column("v").to_pylist()) == {"3"}


def test_a_planner_that_comes_second_withdraws_its_compaction(table, monkeypatch):
    _, table = table

    def somebody_waits(_planned_from, _now, compaction):
        decide_plan(table.storage, compaction.time, WITHDRAWN)

    monkeypatch.setattr(compaction, "_check_nothing_written", somebody_waits)
    with pytest.raises(CommitConflictError, match="withdrawn by a writer that waited for it"):
        schedule_compaction(table, CompactionSettings(), shared=True)
    assert pending(table) == ()


def test_a_writer_alone_plans_without_a_word(table):
    engine, table = table
    engine.writer.stop()
    (one,) = schedule_compaction(table, CompactionSettings()).timeline.pending_of(Action.COMPACTION)
    assert is_kept(table.storage, one)
    assert table.storage.list_dir(PLANS_FOLDER) == []


def test_two_that_are_planned_at_the_same_time_do_not_both_stay(table, monkeypatch):
    _, table = table
    planned = compaction.plan_compaction

    def meanwhile(groups, settings):
        found = planned(list(groups), settings)
        monkeypatch.setattr(compaction, "plan_compaction", planned)
        schedule_compaction(table, CompactionSettings(), shared=True)
        return found

    monkeypatch.setattr(compaction, "plan_compaction", meanwhile)
    with pytest.raises(CommitConflictError, match="was planned at the same time"):
        schedule_compaction(table, CompactionSettings(), shared=True)
    assert len(pending(table)) == 1
