"""A compaction that another engine requested, or carries out at the same time, under a lock that both know."""

from contextlib import nullcontext
from dataclasses import replace
from unittest import mock

import pytest
from engine import Engine, rows
from snapshots import contents

from table import clock
from table.errors import CommitConflictError
from table.hudi_table import HudiTable
from table.options.groups import BaseFileSettings, CompactionSettings
from table.services.compaction import execution
from table.services.compaction.compaction import request_compaction
from table.services.compaction.execution import carry_out_compactions, execute_compaction
from table.snapshot import Snapshot
from table.timeline.active_timeline import complete_instant
from table.timeline.instant import Action, State
from table.timeline.metadata.compaction import decode_compaction_plan, encode_compaction_plan

FILES = BaseFileSettings()
HOUR_MS = 3_600_000


class Lock:
    """A lock that another engine knows, too."""

    clock_skew_ms = 0

    def guarded(self, step):
        return nullcontext()


@pytest.fixture(params=["6", "8"])
def lake(request, tmp_path):
    """A table with a requested compaction, and a lock."""
    path = str(tmp_path / "t")
    options = {
        "hoodie.write.table.version": request.param,
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.datasource.compaction.async.enable": "false",
    }
    for number in range(3):
        Engine(path, options).write(number, rows(range(9), ts=number, v=f"v{number}"))
    table = replace(HudiTable.open(path), lock=Lock())
    request_compaction(table, CompactionSettings())
    return table


def of_another_engine(table, pending):
    """Makes the plan one of Hudi's."""
    request = pending.at(State.REQUESTED)
    plan = decode_compaction_plan(table.storage.read(request.path))
    table.storage.delete_metafile(request.path)
    table.storage.put(request.path, encode_compaction_plan(replace(plan, is_ours=False)))


def test_what_another_engine_planned_is_left_to_it_for_an_hour(lake, monkeypatch):
    timeline = lake.load_timeline()
    [pending] = timeline.pending_of(Action.COMPACTION)
    of_another_engine(lake, pending)
    before = contents(lake.storage.base_uri)
    assert carry_out_compactions(Snapshot(lake, timeline), FILES, beside_others=True) == []
    assert lake.load_timeline().pending_of(Action.COMPACTION) == (pending,)
    monkeypatch.setattr(clock, "now_ms", lambda now=clock.now_ms: now() + HOUR_MS)
    [done] = carry_out_compactions(Snapshot(lake, timeline), FILES, beside_others=True)
    assert done.time == pending.time
    assert contents(lake.storage.base_uri) == before


def test_what_hudistream_planned_is_carried_out_beside_others(lake):
    timeline = lake.load_timeline()
    assert len(carry_out_compactions(Snapshot(lake, timeline), FILES, beside_others=True)) == 1


def test_one_that_is_completed_meanwhile_is_taken_as_it_is(lake, monkeypatch):
    """Of a compaction that two engines carried out one completed file is left, and the files that it names."""
    [pending] = lake.load_timeline().pending_of(Action.COMPACTION)
    before, inner, done = contents(lake.storage.base_uri), execution._written, []

    def another_is_faster(*args):
        theirs, ours = inner(*args), inner(*args)
        content = lake.layout.encode_commit(theirs)
        at = lake.layout.choose_completion(lake.load_timeline().last_time, pending.time, clock.now_ms(), "UTC")
        done.append(complete_instant(lake.storage, pending.to(State.INFLIGHT), content, at))
        return ours

    monkeypatch.setattr(execution, "_written", another_is_faster)
    assert execute_compaction(lake, pending, FILES) == done[0]
    completed = [file for file in lake.load_timeline().files if file.time == pending.time and file.is_completed]
    assert completed == done
    named = {stat.path for stat in Snapshot.load(lake).commits.read(done[0]).stats}
    there = {file.path for group in groups_of(lake) for file in group.base_files if file.instant_time == pending.time}
    assert there == named
    assert contents(lake.storage.base_uri) == before


def groups_of(table):
    from table.snapshot import Snapshot

    return [group for _, found in Snapshot.load(table).walk_file_groups() for group in found]


def test_one_whose_files_another_engine_deleted_is_left_to_it(lake, monkeypatch):
    """Hudi rolls back a compaction that is inflight before it carries it out itself."""
    [pending] = lake.load_timeline().pending_of(Action.COMPACTION)
    before, inner = contents(lake.storage.base_uri), execution._written

    def loses_a_file(*args):
        written = inner(*args)
        lake.storage.delete(written.stats[0].path)
        return written

    said = pytest.raises(CommitConflictError, match=r"another engine carries out the same compaction.*Let one")
    with mock.patch.object(execution, "_written", loses_a_file), said:
        execute_compaction(lake, pending, FILES)
    assert not lake.load_timeline().find(pending.time, Action.COMPACTION).is_completed
    assert contents(lake.storage.base_uri) == before
    assert execute_compaction(lake, pending, FILES).is_completed
    assert contents(lake.storage.base_uri) == before
