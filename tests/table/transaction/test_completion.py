"""When an instant of timeline layout 2 is completed is decided once, for all processes that complete it."""

from unittest import mock

import pytest
from by_hand import at
from engine import Engine, rows

from table import clock, read_table
from table.errors import BrokenInvariantError, CommitOutcomeUnknownError, StorageError
from table.hudi_table import HudiTable
from table.options.groups import BaseFileSettings, CompactionSettings
from table.services.compaction.compaction import compact
from table.services.compaction.plan import plan_compaction
from table.snapshot import Snapshot
from table.timeline.active_timeline import begin_instant, complete_instant, request_instant
from table.timeline.end_record import COMMIT, EndRecord, decide_end, decode_end, find_end
from table.timeline.instant import Action, State
from table.timeline.layout import CompletionTimeLayout, name_instant
from table.timeline.metadata.commit import CommitMetadata, WriteStat
from table.timeline.metadata.compaction import CompactionOperation, CompactionPlan, encode_compaction_plan
from table.transaction import commit
from table.transaction.completion import choose_completion, complete_service, completed_past, completion_now

LAYOUT_2 = CompletionTimeLayout()
ON_LOGS = {
    "hoodie.write.table.version": "8",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.compaction.async.enable": "false",
}


def table_of(tmp_path, version):
    path = str(tmp_path / "t")
    Engine(path, {"hoodie.write.table.version": version}).write(0, rows(range(3)))
    return HudiTable.open(path)


def begun_clean(table):
    request = request_instant(table.storage, table.load_timeline(), Action.CLEAN, table.instant_clock, b"plan")
    return begin_instant(table.storage, request)


@pytest.mark.parametrize("version", ["8", "9"])
def test_two_processes_complete_one_instant_in_one_file(tmp_path, version, monkeypatch):
    table = table_of(tmp_path, version)
    begun = begun_clean(table)
    first = complete_service(table, begun, b"what it did", "one process")
    monkeypatch.setattr(clock, "now_ms", lambda now=clock.now_ms: now() + 5_000)
    assert complete_service(table, begun, b"what it did", "another process").path == first.path
    with pytest.raises(StorageError, match="completed by another process with other content"):
        complete_service(table, begun, b"something else", "a third one")
    assert [i.completion_time for i in table.load_timeline().completed_of(Action.CLEAN)] == [first.completion_time]


def test_one_that_stops_after_the_decision_is_completed_at_the_decided_time(tmp_path, monkeypatch):
    table = table_of(tmp_path, "8")
    begun = begun_clean(table)
    decided = completion_now(table, begun)
    decide_end(table.storage, EndRecord(begun.time, Action.CLEAN, COMMIT, "it died", completion_time=decided))
    monkeypatch.setattr(clock, "now_ms", lambda now=clock.now_ms: now() + 60_000)
    assert complete_service(table, begun, b"what it did", "the next one").completion_time == decided


def test_what_hudi_completed_keeps_its_time(tmp_path):
    """Hudi knows no end records: it chooses the time under its lock."""
    table = table_of(tmp_path, "8")
    begun = begun_clean(table)
    theirs = choose_completion(Snapshot.load(table), begun)
    complete_instant(table.storage, begun, b"their words", theirs)
    with pytest.raises(StorageError, match="completed by another process with other content"):
        complete_service(table, begun, b"our words", "we")
    assert [i.completion_time for i in table.load_timeline().completed_of(Action.CLEAN)] == [theirs]
    assert find_end(table.storage, begun.time, Action.CLEAN) is None


def test_a_time_is_greater_than_all_that_the_timeline_shows(tmp_path, monkeypatch):
    table = table_of(tmp_path, "8")
    timeline = table.load_timeline()
    [commit] = timeline.completed_writes
    assert commit.completion_time > commit.time
    monkeypatch.setattr(clock, "now_ms", lambda: clock.parse_instant_time(commit.time) - 30_000)  # a clock behind
    later = begun_clean(table)
    assert later.time > commit.completion_time
    assert completion_now(table, later) > later.time


def test_in_layout_1_nothing_is_decided(tmp_path):
    table = table_of(tmp_path, "6")
    begun = begun_clean(table)
    assert completion_now(table, begun) is None
    assert complete_service(table, begun, b"what it did", "a process").completion_time is None
    assert find_end(table.storage, begun.time, Action.CLEAN) is None


def test_a_file_of_layout_2_is_never_completed_without_a_time(tmp_path):
    table = table_of(tmp_path, "8")
    with pytest.raises(BrokenInvariantError, match="nothing has decided at which time"):
        complete_instant(table.storage, begun_clean(table), b"")


@pytest.mark.parametrize("content", [b"", b"{}", bytes(range(256)), "text ü".encode()])
@pytest.mark.parametrize("completion_time", [None, "20260101000000000"])
def test_an_end_record_comes_back_as_it_was(content, completion_time):
    end = EndRecord("1", Action.COMMIT, COMMIT, "me", content, completion_time=completion_time)
    assert decode_end("1", Action.COMMIT, end.encode()) == end


def test_a_commit_that_is_carried_out_late_lies_above_the_compaction_that_left_it_out(tmp_path, monkeypatch):
    """Hudi plans a compaction beside a write whose end is decided, and whose writer died before it was completed."""
    path = str(tmp_path / "t")
    for number in range(2):
        Engine(path, ON_LOGS).write(number, rows(range(3), ts=number, v=f"v{number}"))
    with monkeypatch.context() as dies:
        dies.setattr(commit, "carry_out_commit", mock.Mock(side_effect=StorageError("the process died")))
        with pytest.raises(CommitOutcomeUnknownError):
            Engine(path, ON_LOGS).write(2, rows(range(2), ts=2, v="late"))
    table = HudiTable.open(path)
    timeline = table.load_timeline()
    [left] = timeline.pending
    decided = find_end(table.storage, left.time, left.action).completion_time
    groups = [group for _, found in Snapshot.load(table).walk_file_groups() for group in found]
    plan = encode_compaction_plan(plan_compaction(groups, CompactionSettings()))
    compaction = request_instant(table.storage, timeline, Action.COMPACTION, table.instant_clock, plan)
    assert compaction.time > decided
    Engine(path, ON_LOGS).write(3, rows([7], ts=3, v="next"))
    done = table.load_timeline().find(left.time, left.action)
    assert done.is_completed
    assert done.completion_time > compaction.time
    wanted = sorted(read_table(path, ["id", "v"]).to_pylist(), key=lambda row: row["id"])
    assert [row["v"] for row in wanted] == ["late", "late", "v1", "next"]
    assert compact(table, CompactionSettings(), BaseFileSettings(), schedules=False)
    assert sorted(read_table(path, ["id", "v"]).to_pylist(), key=lambda row: row["id"]) == wanted
    assert compact(table, CompactionSettings(), BaseFileSettings())
    assert sorted(read_table(path, ["id", "v"]).to_pylist(), key=lambda row: row["id"]) == wanted


WRITE, COMPACTION = Action.DELTA_COMMIT, Action.COMPACTION
MADE = CommitMetadata((WriteStat("a", "p/.a_20.log.1_0-0-1", "p"),))


def planned(*log_files):
    operation = CompactionOperation("p", "a", at(10), None, log_files)
    return encode_compaction_plan(CompactionPlan((operation,)))


@pytest.mark.parametrize(
    ("decided", "instants", "expected"),
    [
        (None, [("30", COMPACTION, b"")], None),
        (at(45), [], at(45)),
        (at(45), [(at(30), COMPACTION, b"")], at(45)),
        (at(45), [(at(50), WRITE, b"")], at(45)),
        (at(45), [(at(50), COMPACTION, b""), (at(59_999), COMPACTION, b"")], "20260101000100000"),
        (at(45), [(at(50), COMPACTION, planned(".a_10.log.1_0-0-1"))], at(51)),
        # it was completed once: somebody deleted its completed file since
        (at(45), [(at(50), COMPACTION, planned(".a_20.log.1_0-0-1"))], at(45)),
        (at(45), [(at(50), COMPACTION, planned(".a_20.log.1_0-0-1")), (at(52), COMPACTION, planned())], at(53)),
    ],
)
def test_the_time_follows_the_newest_request_of_a_compaction_that_does_not_know_the_write(
    tmp_path, decided, instants, expected
):
    table = table_of(tmp_path, "8")
    for time, action, content in instants:
        table.storage.put(name_instant(table.layout, time, action, State.REQUESTED).path, content)
    end = EndRecord(at(20), WRITE, COMMIT, "him", table.layout.encode_commit(MADE), completion_time=decided)
    assert completed_past(table, end).completion_time == expected


def test_a_write_that_is_completed_keeps_its_time(tmp_path):
    table = table_of(tmp_path, "8")
    done = name_instant(LAYOUT_2, at(20), WRITE, State.INFLIGHT).to(State.COMPLETED, at(33))
    for file in (done, name_instant(LAYOUT_2, at(50), COMPACTION, State.REQUESTED)):
        table.storage.put(file.path, b"")
    end = EndRecord(at(20), WRITE, COMMIT, "the writer that died", completion_time=at(22))
    assert completed_past(table, end).completion_time == at(33)


def test_a_commit_that_lost_its_completed_file_stays_below_the_compaction_that_folded_it(tmp_path):
    path = str(tmp_path / "t")
    options = {**ON_LOGS, "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}
    for number in range(3):
        Engine(path, options).write(number, rows(range(3), ts=number, v=f"v{number}"))
    table = HudiTable.open(path)
    compact(table, CompactionSettings(delta_commits=1), BaseFileSettings())
    lost = table.load_timeline().completed_writes[1]
    assert lost.action is WRITE
    (tmp_path / "t" / lost.path).unlink()
    Engine(path, options).write(3, rows([7], ts=3, v="next"))
    assert table.load_timeline().find(lost.time, WRITE) == lost
    assert sorted(read_table(path, ["v"]).column("v").to_pylist()) == ["next", "v2", "v2", "v2"]
