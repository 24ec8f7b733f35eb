"""Writers that share a table: what conflicts, what is written again, and what is not."""

import os
import random
import uuid

import pyarrow as pa
import pytest
from engine import Engine, key_set, rows, undo_nothing
from snapshots import assert_clean
from tiers import quick

from hudistream import HudiTable
from streaming import ArrowSink
from streaming.batch.workers import Batch
from table import CommitConflictError, InvalidConfigError, clock, read_table
from table.inspect.doctor import examine
from table.metadata_table import keys_meanwhile
from table.options.write_options import parse_options
from table.services.check.check import check
from table.snapshot import Snapshot
from table.storage.local import LocalStorage
from table.timeline.timeline import Timeline
from table.transaction import commit, membership
from table.transaction.conflicts import _place_of
from table.transaction.membership import TURNS_FOLDER

SHARED = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
UPSERT = {**SHARED, "hoodie.datasource.write.operation": "upsert"}
ONCE = {"hoodie.write.num.retries.on.conflict.failures": "0"}


def writer(path, name, options=SHARED):
    """An engine with a sink id of its own."""
    named = {"hoodie.datasource.write.streaming.checkpoint.identifier": name, **options}
    return Engine(str(path), named, query_id=f"query-{name}")


def meanwhile(engine, act, times=1):
    """Something happens once the tasks of a batch have written their files."""
    inner, left = engine.distribute, [times]

    def distribute(plan, table):
        results = inner(plan, table)
        if left[0]:
            left[0] -= 1
            act()
        return results

    engine.distribute = distribute


def in_one(numbers, **values):
    return rows(numbers, partition=lambda _: "p0", **values)


def test_the_first_commit_of_a_shared_table_is_empty(tmp_path):
    writer(tmp_path, "a").write(0, rows(range(3)))
    first, second = HudiTable.open(tmp_path).load_timeline().completed_writes
    cache = Snapshot.load(HudiTable.open(tmp_path)).commits
    assert not cache.read(first).stats
    assert cache.read(second).stats
    assert key_set(read_table(tmp_path, meta_columns=True)) == key_set(rows(range(3)))


def test_writers_of_disjoint_partitions_never_conflict(tmp_path):
    a, b = writer(tmp_path, "a", {**UPSERT, **ONCE}), writer(tmp_path, "b", {**UPSERT, **ONCE})
    a.write(0, rows(range(3), partition=lambda _: "left"))
    for batch in range(1, 4):
        meanwhile(a, lambda n=batch: b.write(n, rows(range(10, 13), partition=lambda _: "right", ts=n, v=str(n))))
        a.write(batch, rows(range(3), partition=lambda _: "left", ts=batch, v=str(batch)))
    found = read_table(tmp_path, meta_columns=True)
    assert key_set(found) == key_set(rows([*range(3), *range(10, 13)]))
    assert set(found.column("v").to_pylist()) == {"3"}


def test_an_upsert_that_meets_another_one_is_written_again(tmp_path):
    a, b = writer(tmp_path, "a", UPSERT), writer(tmp_path, "b", UPSERT)
    a.write(0, in_one(range(8)))
    meanwhile(a, lambda: b.write(0, in_one(range(4), ts=5, v="b")))
    a.write(1, in_one(range(4, 8), ts=5, v="a"))
    values = dict(
        zip(*(read_table(tmp_path, meta_columns=True).column(name).to_pylist() for name in ("id", "v")), strict=True)
    )
    assert values == {f"k{n}": "b" if n < 4 else "a" for n in range(8)}
    assert a.attempts == 3  # the tasks of the second batch ran twice
    a.writer.stop()
    b.writer.stop()
    assert_clean(str(tmp_path))


def test_a_conflict_names_the_other_writer(tmp_path):
    a, b = writer(tmp_path, "a", {**UPSERT, **ONCE}), writer(tmp_path, "b", UPSERT)
    a.write(0, in_one(range(8)))
    others = []
    meanwhile(a, lambda: others.append(b.write(0, in_one(range(4), ts=5, v="b"))))
    with pytest.raises(CommitConflictError, match="of sink 'b' wrote file group .* in 'p0' while the batch ran") as met:
        a.write(1, in_one(range(4, 8), ts=5, v="a"))
    assert others[0].instant_time in str(met.value)
    assert {path for path, _ in met.value.file_groups} == {"p0"}
    assert set(read_table(tmp_path, meta_columns=True).column("v").to_pylist()) == {"b", "v"}
    a.write(1, in_one(range(4, 8), ts=5, v="a"))
    assert sorted(read_table(tmp_path, meta_columns=True).column("v").to_pylist()) == ["a"] * 4 + ["b"] * 4


def test_a_decided_commit_that_lost_its_completed_file_is_not_written_over(tmp_path):
    a, b = writer(tmp_path, "a", {**UPSERT, **ONCE}), writer(tmp_path, "b", UPSERT)
    a.write(0, in_one(range(8)))
    completed = []

    def others():
        """Commits twice; somebody deletes the completed file of the first of the two."""
        done = b.write(0, in_one(range(4), ts=5, v="b"))
        b.write(1, rows(range(20, 22), partition=lambda _: "elsewhere"))
        [found] = [one for one in HudiTable.open(tmp_path).load_timeline() if one.time == done.instant_time]
        completed.append((tmp_path / found.path, (tmp_path / found.path).read_bytes()))
        completed[0][0].unlink()

    meanwhile(a, others)
    with pytest.raises(CommitConflictError, match="is decided, and its completed file is not there"):
        a.write(1, in_one(range(4, 8), ts=5, v="a"))
    a.write(1, in_one(range(4, 8), ts=5, v="a"))
    assert completed[0][0].read_bytes() == completed[0][1]
    found = HudiTable.open(tmp_path).scan(where=pa.compute.field("p") == "p0").to_arrow().to_pylist()
    assert {row["id"]: row["v"] for row in found} == {f"k{n}": "b" if n < 4 else "a" for n in range(8)}


def test_inserts_that_lose_their_small_file_are_written_apart_and_no_task_runs_again(tmp_path):
    a, b = writer(tmp_path, "a", {**SHARED, **ONCE}), writer(tmp_path, "b", {**SHARED, **ONCE})
    a.write(0, in_one(range(10)))
    for engine in (a, b):
        engine.writer.lease.find_share = lambda: (0, 1)  # as before each knew of the other
    before = a.attempts
    meanwhile(a, lambda: b.write(0, in_one(range(20, 25))))
    summary = a.write(1, in_one(range(30, 37)))
    found = read_table(tmp_path, meta_columns=True)
    assert key_set(found) == key_set(rows([*range(10), *range(20, 25), *range(30, 37)]))
    assert a.attempts == before + 1
    mine = found.filter(pa.compute.equal(found.column("_hoodie_commit_time"), summary.instant_time))
    assert key_set(mine) == key_set(rows(range(30, 37)))
    assert len(set(found.column("_hoodie_file_name").to_pylist())) == 2
    assert len(set(found.column("_hoodie_commit_seqno").to_pylist())) == len(found)
    a.write(2, in_one(range(40, 43)))
    assert len(read_table(tmp_path, meta_columns=True)) == 25
    a.writer.stop()
    b.writer.stop()
    assert_clean(str(tmp_path))


def test_writers_that_know_of_each_other_fill_small_files_of_their_own(tmp_path, monkeypatch):
    ids = random.Random(3)  # whose a file is, its id decides
    monkeypatch.setattr(clock, "fresh_uuid", lambda: str(uuid.UUID(int=ids.getrandbits(128))))
    options = {**SHARED, **ONCE, "hoodie.parquet.small.file.limit": "1000000"}
    a, b = writer(tmp_path, "a", options), writer(tmp_path, "b", options)
    a.write(0, in_one(range(5)))
    b.write(0, in_one(range(5, 10)))
    for batch in range(1, 9):
        meanwhile(a, lambda n=batch: b.write(n, in_one(range(100 * n, 100 * n + 5))))
        a.write(batch, in_one(range(100 * batch + 50, 100 * batch + 55)))
    found = read_table(tmp_path, meta_columns=True)
    assert len(found) == 90
    # each makes files until one is its own, by an even chance each time
    assert len(set(found.column("_hoodie_file_name").to_pylist())) <= 9


def test_a_batch_that_another_process_of_the_same_sink_committed_is_not_written_twice(tmp_path):
    a, twin = writer(tmp_path, "a", UPSERT), writer(tmp_path, "a", UPSERT)
    a.write(0, rows(range(3)))
    meanwhile(a, lambda: twin.write(1, rows(range(10, 13))))
    assert a.write(1, rows(range(10, 13))).skipped
    assert key_set(read_table(tmp_path, meta_columns=True)) == key_set(rows([*range(3), *range(10, 13)]))


def test_rows_of_a_reader_are_not_read_twice(tmp_path):
    a, b = writer(tmp_path, "a", UPSERT), writer(tmp_path, "b", UPSERT)
    a.write(0, in_one(range(4)))
    meanwhile(a, lambda: b.write(0, in_one(range(4), ts=1, v="b")))
    workers = a.workers(in_one(range(4), ts=2, v="a"))
    type(workers).can_repeat, before = property(lambda _: False), type(workers).can_repeat
    try:
        with pytest.raises(CommitConflictError):
            a.writer.write(Batch(workers, 1, a.query_id))
    finally:
        type(workers).can_repeat = before


def test_a_write_outside_of_a_stream_is_written_again_too(tmp_path):
    a, b = writer(tmp_path, "a", UPSERT), writer(tmp_path, "b", UPSERT)
    b.write(0, in_one(range(8)))
    meanwhile(a, lambda: b.write(1, in_one(range(4), ts=5, v="b")))
    assert a.writer.write(Batch(a.workers(in_one(range(4, 8), ts=5, v="a")), None, None)).instant_time
    assert not a.writer.lease.is_held
    assert sorted(read_table(tmp_path, meta_columns=True).column("v").to_pylist()) == ["a"] * 4 + ["b"] * 4


def test_a_writer_alone_is_refused_beside_them_and_they_beside_it(tmp_path, monkeypatch):
    shared, alone = writer(tmp_path, "a"), writer(tmp_path, "b", {})
    shared.write(0, rows(range(3)))
    with pytest.raises(CommitConflictError, match="several writers"):
        alone.write(0, rows(range(3, 6)))
    shared.writer.stop()
    alone.write(0, rows(range(3, 6)))
    monkeypatch.setattr("table.clock.sleep_s", lambda _: None)
    with pytest.raises(CommitConflictError, match="sink 'b'"):
        shared.write(1, rows(range(6, 9)))


def test_what_a_dead_writer_left_is_ended_and_what_a_live_one_writes_is_left_alone(tmp_path):
    class Died(BaseException):
        pass

    def dies():
        raise Died

    dead, alive, third = (writer(tmp_path, name) for name in "abc")
    third.write(0, rows(range(3)))
    meanwhile(dead, dies)
    undo_nothing(dead.writer)
    with pytest.raises(Died):
        dead.write(0, rows(range(10, 13)))
    dead.writer.lease.beat_for(None)
    (beat,) = os.listdir(tmp_path / ".hoodie/.heartbeat")
    stat = os.stat(tmp_path / ".hoodie/.heartbeat" / beat)
    pending = lambda: [i.time for i in HudiTable.open(tmp_path).load_timeline().pending]  # noqa: E731
    third.write(1, rows(range(3, 6)))
    assert pending() == [beat]  # its heartbeat is fresh
    os.utime(tmp_path / ".hoodie/.heartbeat" / beat, (stat.st_atime - 600, stat.st_mtime - 600))
    meanwhile(alive, lambda: third.write(2, rows(range(6, 9))))
    alive.write(0, rows(range(20, 23)))
    assert pending() == []
    assert key_set(read_table(tmp_path, meta_columns=True)) == key_set(rows([*range(9), *range(20, 23)]))


def test_a_decided_commit_whose_writer_stopped_is_carried_out_before_the_next_one(tmp_path, monkeypatch):
    a, b = writer(tmp_path, "a", {**UPSERT, **ONCE}), writer(tmp_path, "b", {**UPSERT, **ONCE})
    a.write(0, in_one(range(4)))

    class Paused(BaseException):
        pass

    carry_out = commit.carry_out_commit

    def pauses(*_, **__):
        raise Paused

    monkeypatch.setattr(commit, "carry_out_commit", pauses)
    undo_nothing(a.writer)
    with pytest.raises(Paused):
        a.write(1, in_one(range(2), ts=5, v="a"))
    monkeypatch.setattr(commit, "carry_out_commit", carry_out)
    monkeypatch.setattr("table.clock.sleep_s", lambda _: None)
    assert set(read_table(tmp_path, meta_columns=True).column("v").to_pylist()) == {"v"}
    with pytest.raises(CommitConflictError, match="of sink 'a'"):  # it sees what was decided
        b.write(0, in_one(range(4), ts=4, v="b"))
    b.write(0, in_one(range(4), ts=4, v="b"))
    assert sorted(read_table(tmp_path, meta_columns=True).column("v").to_pylist()) == ["a", "a", "b", "b"]


def test_a_lock_that_was_lost_keeps_a_commit_back(tmp_path):
    a = writer(tmp_path, "a", {**SHARED, **ONCE, "hoodie.write.lock.provider": "in_process"})
    a.write(0, rows(range(3)))

    class Lost:
        def check(self):
            raise CommitConflictError("the lock expired")

    inner = a.writer.lock._lock.hold
    from contextlib import contextmanager

    @contextmanager
    def hold():
        with inner():
            yield Lost()

    a.writer.lock._lock.hold = hold
    with pytest.raises(CommitConflictError, match="the lock expired"):
        a.write(1, rows(range(3, 6)))
    del a.writer.lock._lock.hold
    a.write(1, rows(range(3, 6)))
    assert len(read_table(tmp_path, meta_columns=True)) == 6


@pytest.mark.parametrize(("options", "said"), [
    ({"hoodie.clean.failed.writes.policy": "LAZY"}, "does not go with hoodie.write.concurrency.mode=SINGLE_WRITER"),
    ({**SHARED, "hoodie.cleaner.policy.failed.writes": "EAGER"}, "leave the policy out, or set LAZY"),
    ({"hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL"}, "this concurrency mode is not supported"),
    ({**SHARED, "hoodie.write.num.retries.on.conflict.failures": "-1"}, "-1"),
])  # fmt: skip
def test_options_that_do_not_fit_are_named(tmp_path, options, said):
    with pytest.raises(InvalidConfigError, match=said):
        ArrowSink(tmp_path, {"hoodie.datasource.write.recordkey.field": "id", **options})


def test_hudis_words_are_understood(tmp_path):
    sink = ArrowSink(tmp_path, {"hoodie.cleaner.policy.failed.writes": "LAZY", **SHARED}, key="id", partition_by="p")
    assert sink.write(rows(range(3))).instant_time
    assert isinstance(HudiTable.open(tmp_path).load_timeline(), Timeline)
    assert LocalStorage(str(tmp_path)).list_dir(".hoodie/.hudistream/order")


def test_two_file_groups_of_one_bucket_are_one_place():
    one, two = "00000003-aaaa-4bbb-8ccc-dddddddddddd-0", "00000003-eeee-4bbb-8ccc-dddddddddddd-0"
    assert _place_of(("p", one)) == _place_of(("p", two))
    assert _place_of(("p", one)) != _place_of(("q", two))
    plain = "0a00b003-aaaa-4bbb-8ccc-dddddddddddd-0"
    assert _place_of(("p", plain)) == ("p", plain)


def test_check_and_doctor_know_that_several_writers_are_at_work(tmp_path):
    a, b = writer(tmp_path, "a"), writer(tmp_path, "b")
    a.write(0, rows(range(3)))
    found = []

    def look():
        table = HudiTable.open(tmp_path)
        found.extend(check(table).findings)
        for options in ({}, SHARED):
            said = [one.text for one in examine(tmp_path, parse_options(options).options).findings]
            found.append([text for text in said if "several writers share the table" in text])

    meanwhile(b, look)
    b.write(0, rows(range(3, 6)))
    (refused,), (joins,) = found[-2:]
    assert "set hoodie.write.concurrency.mode=OPTIMISTIC_CONCURRENCY_CONTROL to join them" in refused
    assert "the sink joins them" in joins
    assert found[:-2] == []  # what a live member writes is no damage


@pytest.mark.parametrize("later", [0, 1, 8])
def test_a_batch_that_took_longer_than_an_archival_reaches_back_is_not_written_twice(tmp_path, later):
    """The commits that stayed when it was archived were completed before it, and do not carry it along."""
    options = {
        **SHARED,
        "hoodie.archive.automatic": "true",
        "hoodie.keep.min.commits": "3",
        "hoodie.keep.max.commits": "4",
        "hoodie.clean.commits.retained": "1",
        "hoodie.parquet.small.file.limit": "0",
    }
    stream, slow = writer(tmp_path, "stream", options), writer(tmp_path, "slow", options)
    numbers = iter(range(100))

    def go_on(batches):
        for _ in range(batches):
            number = next(numbers)
            stream.write(number, rows(range(100 * number + 100, 100 * number + 103)))
            stream.writer.services.wait()

    go_on(1)
    meanwhile(slow, lambda: go_on(8))
    slow.write(0, rows(range(10)))
    slow.writer.stop()
    go_on(later)
    again = writer(tmp_path, "slow", options)
    assert again.write(0, rows(range(10))).skipped
    assert len(read_table(tmp_path, meta_columns=True)) == 10 + 3 * (9 + later)
    go_on(6)
    assert len(HudiTable.open(tmp_path).load_timeline().completed_writes) <= 5  # nothing is held for ever


class Paused(LocalStorage):
    """Something happens between the choice of an instant time and its request."""

    act = None

    def create_exclusive(self, path, data, durable=False):
        if self.act is not None and path.endswith(".commit.requested"):
            act, self.act = self.act, None
            act()
        return super().create_exclusive(path, data, durable=durable)


def test_a_reader_that_follows_the_table_misses_no_batch_that_paused_before_its_request(tmp_path):
    storage = Paused(str(tmp_path))
    a, b = (
        Engine(storage, {**SHARED, "hoodie.datasource.write.streaming.checkpoint.identifier": "a"}),
        writer(tmp_path, "b"),
    )
    a.write(0, rows(range(3)))
    b.write(0, rows(range(3, 6)))
    read_up_to = []

    def commit_and_read():
        b.write(1, rows(range(10, 13)))
        read_up_to.append(HudiTable.open(tmp_path).newest_instant)

    storage.act = commit_and_read
    a.write(1, rows(range(20, 23)))
    found = HudiTable.open(tmp_path).changes(since=read_up_to[0]).to_arrow()
    assert key_set(found) == key_set(rows(range(20, 23)))


def test_who_finds_only_live_writers_does_not_ask_for_the_lock_to_end_dead_ones(tmp_path):
    options = {**SHARED, "hoodie.write.lock.provider": "in_process"}
    a, b = writer(tmp_path, "a", options), writer(tmp_path, "b", options)
    a.write(0, rows(range(3)))
    b.write(0, rows(range(3, 6)))
    taken, guarded = [], b.writer.lock.guarded
    b.writer.lock.guarded = lambda step: (taken.append(step.name), guarded(step))[1]
    meanwhile(a, lambda: b.write(1, rows(range(10, 13))))
    a.write(1, rows(range(20, 23)))
    assert taken == ["BEGIN", "COMPLETE"]


def test_numbered_batches_of_a_sink_without_a_name_of_its_own_are_refused(tmp_path):
    """Of two such sinks, the second one's batch 0 was taken for the first one's, and its rows were lost."""
    sinks = [ArrowSink(tmp_path, SHARED, key="id", partition_by="p", order_by="ts") for _ in range(2)]
    for sink in sinks:
        with pytest.raises(InvalidConfigError, match="a name of its own .*checkpoint.identifier"):
            sink.write(rows(range(3)), batch_id=0)
    assert not os.listdir(tmp_path)
    for number, sink in enumerate(sinks):
        assert sink.write(rows([number])).instant_time  # without a number, nothing is skipped


def begins_elsewhere(path, time):
    """A write of another engine that is under way: its heartbeat is empty, and fresh."""
    (path / ".hoodie" / f"{time}.commit.requested").write_bytes(b"")
    (path / ".hoodie" / f"{time}.inflight").write_bytes(b"{}")
    (path / ".hoodie/.heartbeat").mkdir(exist_ok=True)
    (path / ".hoodie/.heartbeat" / time).write_bytes(b"")


def test_the_first_of_several_writers_begins_beside_a_live_writer_of_another_engine(tmp_path):
    a = writer(tmp_path, "a")
    time = a.write(0, rows(range(3))).instant_time
    a.writer.stop()
    theirs = str(int(time) + 1)
    begins_elsewhere(tmp_path, theirs)
    b = writer(tmp_path, "b")
    assert b.write(0, rows(range(3, 6))).instant_time > theirs
    assert [i.time for i in HudiTable.open(tmp_path).load_timeline().pending] == [theirs]
    alone = writer(tmp_path, "c", {})
    b.writer.stop()
    with pytest.raises(CommitConflictError, match="OPTIMISTIC_CONCURRENCY_CONTROL"):
        alone.write(0, rows(range(6, 9)))


def test_a_table_without_a_commit_is_not_opened_beside_a_live_writer_of_another_engine(tmp_path):
    """The first commit deletes what lies around: it might be what the other one is writing."""
    a = writer(tmp_path, "a")
    meanwhile(a, lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        a.write(0, rows(range(3)))
    a.writer.stop()
    for name in os.listdir(tmp_path / ".hoodie"):
        if name[:1] == "2":
            os.remove(tmp_path / ".hoodie" / name)
    theirs = "20250101000000000"
    begins_elsewhere(tmp_path, theirs)
    left = tmp_path / "p0" / f"0a00b003-aaaa-4bbb-8ccc-dddddddddddd-0_0-0-0_{theirs}.parquet"
    left.parent.mkdir(exist_ok=True)
    left.write_bytes(b"theirs")
    with pytest.raises(CommitConflictError, match=theirs):
        writer(tmp_path, "b").write(0, rows(range(3)))
    assert left.exists()


def test_a_write_outside_of_a_stream_stays_a_member_while_it_asks_for_its_turn(tmp_path, monkeypatch):
    a, b = writer(tmp_path, "a", UPSERT), writer(tmp_path, "b", UPSERT)
    b.write(0, in_one(range(8)))
    meanwhile(a, lambda: b.write(1, in_one(range(4), ts=5, v="b")))
    waited = []

    def pause(_):
        monkeypatch.setattr(clock, "sleep_s", lambda _: None)
        b.writer.lease.wait_for_turn()  # as its next batch would
        waited.append(LocalStorage(str(tmp_path)).list_dir(TURNS_FOLDER))

    monkeypatch.setattr(clock, "sleep_s", pause)
    monkeypatch.setattr(membership, "_TURN_TRIES", 1)
    a.writer.write(Batch(a.workers(in_one(range(4, 8), ts=5, v="a")), None, None))
    assert [[entry.name for entry in found] for found in waited] == [[a.writer.lease.owner]]
    assert not a.writer.lease.is_held


@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "upsert"])
def test_cleans_of_a_fast_writer_do_not_stop_a_slow_one(tmp_path, operation):
    cleans = {
        "hoodie.clean.automatic": "true",
        "hoodie.clean.async.enabled": "false",
        "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
        "hoodie.clean.fileversions.retained": "1",
    }
    stream = writer(tmp_path, "stream", {**UPSERT, **cleans})
    backfill = writer(tmp_path, "backfill", {**SHARED, **ONCE, "hoodie.datasource.write.operation": operation})
    for number in range(3):
        stream.write(number, rows(range(4), partition=lambda _: "hot", ts=number))

    def go_on():
        for number in (3, 4, 5):
            stream.write(number, rows(range(4), partition=lambda _: "hot", ts=number))

    meanwhile(backfill, go_on)
    assert backfill.write(0, rows(range(100, 110), partition=lambda _: "cold")).instant_time
    assert LocalStorage(str(tmp_path)).list_dir("hot")
    stream.write(6, rows(range(4), partition=lambda _: "hot", ts=6))
    left = [entry for entry in LocalStorage(str(tmp_path)).list_dir("hot") if entry.name.endswith(".parquet")]
    assert len(left) == 1  # nobody needs the others any more


INDEXED = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.record.index.update.partition.path": "false",
    "hoodie.datasource.write.operation": "upsert",
}


@pytest.mark.parametrize("merged", [False, True], ids=["", "and merged"])
@pytest.mark.parametrize("deletes", [False, True], ids=["added", "added and deleted"])
@pytest.mark.parametrize(
    ("version", "table_type"), quick(1, [("9", "COPY_ON_WRITE"), ("6", "COPY_ON_WRITE"), ("8", "MERGE_ON_READ")])
)
def test_a_new_key_that_another_writer_wrote_meanwhile_is_not_doubled_by_a_record_index(
    tmp_path, version, table_type, deletes, merged, monkeypatch
):
    """The log files of the index are read in the order of their requests, and the slow batch was requested first."""
    path = str(tmp_path / "t")
    form = {"hoodie.write.table.version": version, "hoodie.datasource.write.table.type": table_type}
    options = {**INDEXED, **form}
    alone = Engine(path, options, query_id="alone")
    for number in range(2):
        alone.write(number, rows([90 + number], lambda _: "p9"))
    alone.writer.stop()
    assert "record_index" in HudiTable.open(path).config.metadata_indexes
    slow, fast = writer(path, "slow", {**options, **SHARED}), writer(path, "fast", {**options, **SHARED})
    gone = {"hoodie.datasource.write.operation": "delete"}
    deletes_it = writer(path, "gone", {**options, **SHARED, **gone})

    def others():
        fast.write(0, rows([7], lambda _: "p2", v="fast"))
        if deletes:
            deletes_it.write(0, rows([7], lambda _: "p2", ts=5))
        if merged:  # the slow batch stood still until a compaction had merged it, and archival had followed
            inner, left = keys_meanwhile.read_named, [[]]
            monkeypatch.setattr(keys_meanwhile, "read_named", lambda *of: left.pop() if left else inner(*of))

    meanwhile(slow, others)
    slow.write(0, rows([7], lambda _: "p1", ts=9, v="slow"))
    assert key_set(read_table(path)) == ["k7", "k90", "k91"]
    fast.write(1, rows([7], lambda _: "p3", ts=10, v="later"))
    found = [row for row in read_table(path).to_pylist() if row["id"] == "k7"]
    assert [(row["p"], row["v"]) for row in found] == [("p1" if deletes else "p2", "later")]
    assert check(HudiTable.open(path)).is_sound
    for one in (slow, fast, deletes_it):
        one.writer.stop()
