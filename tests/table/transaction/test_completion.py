"""When an instant of timeline layout 2 is completed is decided once, for all processes that complete it."""

import pytest
from engine import Engine, rows

from table import clock
from table.errors import BrokenInvariantError, StorageError
from table.hudi_table import HudiTable
from table.timeline.active_timeline import begin_instant, complete_instant, request_instant
from table.timeline.end_record import COMMIT, EndRecord, decide_end, decode_end, find_end
from table.timeline.instant import Action
from table.transaction.completion import choose_completion, complete_service, completion_now


def table_of(tmp_path, version):
    path = str(tmp_path / "t")
    Engine(path, {"hoodie.write.table.version": version}).write(0, rows(range(3)))
    return HudiTable.open(path)


def begun_clean(table):
    request = request_instant(table.storage, table.load_timeline(), Action.CLEAN, table.config.timezone, b"plan")
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
    theirs = choose_completion(table, table.load_timeline(), begun)
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
