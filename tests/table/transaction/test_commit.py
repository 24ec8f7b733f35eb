"""One commit from its request to its end, without a batch around it: what lies on the store after each call."""

import os
from dataclasses import replace

import pytest
from engine import Engine, key_set, rows

from table import read_table
from table.errors import (
    ActionPendingError,
    CommitOutcomeUnknownError,
    InstantEndedError,
    StorageError,
    TableHeldError,
    WriteConflictError,
)
from table.files.markers import MarkerName, create_marker, list_markers
from table.hudi_table import HudiTable
from table.options.groups import HeartbeatSettings
from table.snapshot import Snapshot
from table.storage.local import LocalStorage
from table.timeline.end_record import ROLLBACK, EndRecord, decide_end, find_end
from table.timeline.instant import Action
from table.timeline.metadata.commit import CommitMetadata
from table.timeline.metadata.compaction import CompactionPlan, encode_compaction_plan
from table.transaction import commit as module
from table.transaction.commit import begin_commit, carry_out_commit, clean_up_commit, complete_commit, withdraw_commit
from table.transaction.heartbeat import WriterIdentity, heartbeat_path
from table.transaction.lease import Lease
from table.transaction.outcome import CompletedCommit, LostCommit


class Writer:
    """A holder of the table that begins and ends commits by hand."""

    def __init__(self, path, sink_id="s"):
        self.table = HudiTable.open(path)
        self.storage = self.table.storage
        self.lease = Lease(self.storage, HeartbeatSettings(60_000))
        self.identity = WriterIdentity(sink_id, "q", self.lease.owner)
        self.lease.hold(self.identity)

    def begin(self, action=Action.COMMIT):
        return begin_commit(Snapshot.load(self.table), "INSERT", self.identity, self.lease, action)

    def complete(self, pending, stats=(), replaced=None):
        written = CommitMetadata(tuple(stats), "INSERT", {}, replaced or {})
        schema = Snapshot.load(self.table).commits.find(self.first).extra["schema"]
        return complete_commit(pending, written, schema, lambda _: {"told": "by the test"}, self.lease)

    @property
    def first(self):
        return self.table.load_timeline().completed_writes[0]

    def names(self, folder=".hoodie"):
        return {entry.name for entry in self.storage.list_dir(folder) if not entry.is_dir}


@pytest.fixture
def writer(tmp_path):
    path = str(tmp_path / "t")
    engine = Engine(path, {"hoodie.write.table.version": "6"})
    engine.write(0, rows(range(6)))
    engine.writer.stop()
    return Writer(path)


def files_of(writer, pending):
    return sorted(name.partition(".")[2] for name in writer.names() if name.startswith(pending.time))


def test_a_begun_commit_is_on_the_timeline_with_a_heartbeat_and_open_for_its_tasks(writer):
    before = writer.table.load_timeline().completed_writes
    pending = writer.begin()
    assert files_of(writer, pending) == ["commit.requested", "inflight"]
    assert writer.storage.exists(heartbeat_path(pending.time))
    assert pending.time in writer.storage.staged_instants()
    assert pending.time > before[-1].time
    assert pending.seen.timeline.find(pending.time, Action.COMMIT) is not None  # listed after the request
    assert writer.table.load_timeline().completed_writes == before


def test_beside_another_pending_write_nothing_begins_and_nothing_stays(writer):
    first = writer.begin()
    before = writer.names()
    with pytest.raises(WriteConflictError, match="one writer per table"):
        writer.begin()
    assert writer.names() == before
    assert set(writer.storage.staged_instants()) == {first.time}


def test_a_writer_that_lost_the_table_begins_nothing(writer):
    taken = Lease(writer.storage, HeartbeatSettings(60_000))
    before = writer.names()
    taken.hold(WriterIdentity("s", "q", taken.owner))  # the next run of the same stream
    with pytest.raises(TableHeldError):
        writer.begin()
    assert writer.names() == before
    assert list(writer.storage.staged_instants()) == []


def test_an_empty_commit_that_is_withdrawn_leaves_nothing(writer):
    before = writer.names()
    pending = writer.begin()
    withdraw_commit(pending)
    assert writer.names() == before
    assert not writer.storage.exists(heartbeat_path(pending.time))
    assert list(writer.storage.staged_instants()) == []


def test_a_completed_commit_says_what_the_caller_gave_and_its_end_is_recorded(writer):
    pending = writer.begin()
    done = writer.complete(pending)
    assert isinstance(done, CompletedCommit)
    assert files_of(writer, pending) == ["commit", "commit.requested", "inflight"]
    assert find_end(writer.storage, pending.time, Action.COMMIT).is_commit
    extra = Snapshot.load(writer.table).commits.find(done.instant).extra
    assert (extra["told"], "schema" in extra) == ("by the test", True)


def test_files_of_failed_attempts_are_deleted_before_the_commit_is_visible(writer):
    pending = writer.begin()
    stray = f"p0/left-0_0-9-9_{pending.time}.parquet"
    create_marker(writer.storage, pending.time, MarkerName(stray, "CREATE"))
    writer.storage.put(stray, b"rows of a failed attempt")
    writer.complete(pending)
    assert not writer.storage.exists(stray)
    assert key_set(read_table(writer.storage.base_uri)) == [f"k{n}" for n in range(6)]


def test_what_others_rolled_back_is_not_committed(writer):
    pending = writer.begin()
    decide_end(writer.storage, EndRecord(pending.time, Action.COMMIT, ROLLBACK, "another"))
    with pytest.raises(InstantEndedError, match="rolled back by another writer"):
        writer.complete(pending)
    assert files_of(writer, pending) == ["commit.requested", "inflight"]


def test_a_commit_that_is_decided_and_not_completed_is_carried_out_by_anybody(writer, monkeypatch):
    pending = writer.begin()

    def fails(*_args, **_more):
        raise StorageError("the store is gone")

    with monkeypatch.context() as patch:
        patch.setattr(module, "complete_instant", fails)
        with pytest.raises(CommitOutcomeUnknownError, match="is to be committed, and was not yet"):
            writer.complete(pending)
    end = find_end(writer.storage, pending.time, Action.COMMIT)
    assert end.is_commit
    first = carry_out_commit(writer.table, end)
    assert carry_out_commit(writer.table, end) == first
    assert writer.table.load_timeline().completed_writes[-1].time == pending.time


def test_a_commit_that_another_one_has_changed_the_file_group_of_is_lost(writer, tmp_path):
    """The engine is a second writer that knows no lease: it takes the file group while the commit is pending."""
    pending = writer.begin()
    stat = Snapshot.load(writer.table).commits.find(writer.first).stats[0]
    mine = replace(stat, path=stat.path.replace(writer.first.time, pending.time), prev_commit=writer.first.time)
    writer.storage.put(mine.path, writer.storage.read(stat.path))
    others = replace(mine, path=stat.path.replace(writer.first.time, "20990101000000000"))
    writer.storage.put(others.path, writer.storage.read(stat.path))
    content = writer.table.layout.encode_commit(CommitMetadata((others,), "UPSERT"))
    for name in ("commit.requested", "inflight"):
        writer.storage.put(f".hoodie/20990101000000000.{name}", b"")
    writer.storage.put(".hoodie/20990101000000000.commit", content)
    lost = writer.complete(pending, [mine])
    assert isinstance(lost, LostCommit)
    assert files_of(writer, pending) == ["commit.requested", "inflight"]


def test_heartbeat_and_markers_go_when_the_commit_is_visible(writer):
    pending = writer.begin()
    create_marker(writer.storage, pending.time, MarkerName(f"p0/f-0_0-0-1_{pending.time}.parquet", "CREATE"))
    writer.complete(pending)
    clean_up_commit(writer.storage, pending.time, ())
    assert not writer.storage.exists(heartbeat_path(pending.time))
    assert list_markers(writer.storage, pending.time) == []


def test_no_commit_begins_before_a_compaction_that_is_pending(tmp_path):
    path = str(tmp_path / "t")
    engine = Engine(path, {"hoodie.write.table.version": "6", "hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    engine.write(0, rows(range(3)))
    engine.writer.stop()
    LocalStorage(path).put(
        os.path.join(".hoodie", "20990101000000000.compaction.requested"), encode_compaction_plan(CompactionPlan(()))
    )
    writer = Writer(path)
    before = writer.names()
    with pytest.raises(ActionPendingError, match="the pending compaction 20990101000000000"):
        writer.begin(Action.DELTA_COMMIT)
    assert writer.names() == before
