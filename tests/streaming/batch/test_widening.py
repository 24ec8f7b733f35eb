"""A batch that widens the ordering column of a merge-on-read table: late records stay late."""

import pyarrow as pa
import pytest
from engine import Engine
from tiers import quick

from hudistream import ArrowSink, HudiTable
from table import CommitConflictError
from table.errors import ActionPendingError
from table.options.groups import CompactionSettings
from table.scan.log_deletes import find_logged, find_ordered_deletes
from table.services.compaction.compaction import compact, request_compaction
from table.snapshot import Snapshot
from table.timeline.instant import Action

MERGE_ON_READ = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.bucket.index.num.buckets": "1",
    "hoodie.clean.automatic": "false",
    "hudistream.schema.integers.to.floats": "true",
}
BUCKETS = {"hoodie.index.type": "BUCKET"}
SCHEDULES_ONLY = {"hoodie.datasource.compaction.async.enable": "false", "compaction.schedule.enabled": "true"}
SHARED = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
I32, I64, F32, F64 = pa.int32(), pa.int64(), pa.float32(), pa.float64()
# the type before and after, a value, an earlier one, and one of the wider type
WIDENINGS = [(I32, I64, 10, 5, 20), (I32, F64, 10, 5, 20.5), (F32, F64, 1.5, 0.5, 2.5), (I64, F64, 10, 5, 20.5)]
TIE = (I64, F64, 2**53 + 1, 2**53, 2.0**60)  # as floats the two are equal


def sink(path, **options):
    return ArrowSink(str(path), {**MERGE_ON_READ, **options}, key="id", order_by="ts", operation="upsert")


def batch(keys, ts, kind, *, deleted=False, v="new"):
    count = len(keys)
    return pa.table(
        {
            "id": list(keys),
            "ts": pa.array([ts] * count, kind),
            "v": [v] * count,
            "_hoodie_is_deleted": [deleted] * count,
        }
    )


def rows_of(path):
    return {row["id"]: row["v"] for row in HudiTable.open(str(path)).scan().to_arrow().to_pylist()}


def with_late_delete(path, kind, high, low, **options):
    """A row, and a delete in the log that came too late for it."""
    with sink(path, **options) as writer:
        writer.write(batch("ab", high, kind, v="old"))
        writer.write(batch("a", low, kind, deleted=True))


def logged(path):
    return find_logged(Snapshot.load(HudiTable.open(str(path))))


def compactions(path):
    return HudiTable.open(str(path)).load_timeline().completed_of(Action.COMMIT)


@pytest.mark.parametrize("version", quick(1, [9, 6, 8]))
@pytest.mark.parametrize("index", quick(1, ["BUCKET", "BLOOM"]))
@pytest.mark.parametrize("widening", WIDENINGS, ids=str)
def test_logs_with_ordered_deletes_are_compacted_before_the_batch(tmp_path, version, index, widening):
    old, new, high, low, later = widening
    options = {"hoodie.write.table.version": str(version), "hoodie.index.type": index}
    with_late_delete(tmp_path, old, high, low, **options)
    with sink(tmp_path, **options) as writer:
        writer.write(batch("c", later, new))
    assert rows_of(tmp_path) == {"a": "old", "b": "old", "c": "new"}
    assert HudiTable.open(str(tmp_path)).scan().to_arrow().schema.field("ts").type == new
    [done], [delta, *_] = compactions(tmp_path), HudiTable.open(str(tmp_path)).load_timeline().completed_writes[::-1]
    assert done.time < delta.time
    snapshot = Snapshot.load(HudiTable.open(str(tmp_path)))
    assert not find_ordered_deletes(snapshot, pa.schema([("ts", new)]))


@pytest.mark.parametrize("widening", WIDENINGS, ids=str)
def test_deletes_from_before_a_widening_are_read_by_the_type_they_were_written_with(tmp_path, widening, monkeypatch):
    """Tables that an older hudistream, or Hudi, has widened: their logs were not compacted."""
    old, new, high, low, later = widening
    with_late_delete(tmp_path, old, high, low, **BUCKETS)
    monkeypatch.setattr("streaming.batch.widening._find_unsettled", lambda *_: [])
    with sink(tmp_path, **BUCKETS, **SCHEDULES_ONLY) as writer:
        writer.write(batch("c", later, new))
    assert not compactions(tmp_path)
    assert rows_of(tmp_path) == {"a": "old", "b": "old", "c": "new"}
    compact(HudiTable.open(str(tmp_path)))
    assert rows_of(tmp_path) == {"a": "old", "b": "old", "c": "new"}


def test_a_late_record_stays_late_where_floats_make_it_equal(tmp_path):
    """No delete is in the log, but a record that is older by one."""
    old, new, high, low, later = TIE
    with sink(tmp_path, **BUCKETS) as writer:
        writer.write(batch("ab", high, old, v="old"))
        writer.write(batch("a", low, old, v="late"))
        writer.write(batch("c", later, new))
    assert rows_of(tmp_path) == {"a": "old", "b": "old", "c": "new"}


def test_logs_without_ordered_deletes_stay(tmp_path):
    with sink(tmp_path, **BUCKETS) as writer:
        writer.write(batch("abc", 10, I32))
        writer.write(batch("a", 20, I32))
        writer.delete(batch("b", 0, I32))  # by its key alone: no ordering value
        writer.write(batch("d", 30, I64))
    assert not compactions(tmp_path)
    assert sorted(rows_of(tmp_path)) == ["a", "c", "d"]


def test_only_the_slices_in_question_are_compacted(tmp_path):
    options = {**BUCKETS, "hoodie.bucket.index.num.buckets": "8"}
    with sink(tmp_path, **options) as writer:
        writer.write(batch([f"k{n}" for n in range(40)], 10, I32))
        writer.write(batch([f"k{n}" for n in range(40)], 11, I32))
        writer.write(batch(["k0"], 5, I32, deleted=True))
        assert len(logged(tmp_path)) == 8
        writer.write(batch(["x"], 30, I64))
    [done] = compactions(tmp_path)
    assert len(Snapshot.load(HudiTable.open(str(tmp_path))).commits.read(done).stats) == 1
    assert len(rows_of(tmp_path)) == 41


def test_a_sink_that_only_plans_compactions_refuses_the_batch_and_names_the_command(tmp_path):
    with_late_delete(tmp_path, I32, 10, 5, **BUCKETS, **SCHEDULES_ONLY)
    with sink(tmp_path, **BUCKETS, **SCHEDULES_ONLY) as writer:
        with pytest.raises(ActionPendingError, match=r"ts from int32 to int64.*hudistream compact .*cast ts to int32"):
            writer.write(batch("c", 20, I64))
        assert rows_of(tmp_path) == {"a": "old", "b": "old"}
        assert not HudiTable.open(str(tmp_path)).load_timeline().pending
    compact(HudiTable.open(str(tmp_path)))  # what the message says
    with sink(tmp_path, **BUCKETS, **SCHEDULES_ONLY) as writer:
        writer.write(batch("c", 20, I64))
    assert rows_of(tmp_path) == {"a": "old", "b": "old", "c": "new"}


def test_a_compaction_that_is_pending_is_carried_out_and_what_came_behind_it_compacted(tmp_path):
    with_late_delete(tmp_path, I32, 10, 5, **BUCKETS, **SCHEDULES_ONLY)
    request_compaction(HudiTable.open(str(tmp_path)), CompactionSettings())
    with sink(tmp_path, **BUCKETS, **SCHEDULES_ONLY) as writer:
        writer.write(batch("b", 4, I32, deleted=True))
    with sink(tmp_path, **BUCKETS) as writer:
        writer.write(batch("c", 20, I64))
    assert len(compactions(tmp_path)) == 2
    assert rows_of(tmp_path) == {"a": "old", "b": "old", "c": "new"}


def test_the_write_of_another_writer_that_is_pending_is_in_the_way(tmp_path):
    """It may hold deletes that no look at the table shows."""
    options = {**BUCKETS, **SHARED, "hoodie.write.num.retries.on.conflict.failures": "0"}
    with_late_delete(tmp_path, I32, 10, 5, **options)
    with sink(tmp_path, **options) as one, sink(tmp_path, **options) as other:
        engine_like = other._writer
        begun = []

        def stops(*given):
            begun.append(HudiTable.open(str(tmp_path)).load_timeline().pending)
            with pytest.raises(ActionPendingError, match=r"is pending.*hudistream compact"):
                one.write(batch("c", 20, I64))
            return inner(*given)

        inner = engine_like._write_and_commit
        engine_like._write_and_commit = stops
        other.write(batch("b", 4, I32, deleted=True))
    assert begun[0]
    assert rows_of(tmp_path) == {"a": "old", "b": "old"}


def engine(path, name, **options):
    named = {
        "hoodie.datasource.write.streaming.checkpoint.identifier": name,
        "hoodie.datasource.write.operation": "upsert",
    }
    fixed = {
        **MERGE_ON_READ,
        **BUCKETS,
        **SHARED,
        "hoodie.datasource.write.partitionpath.field": "",
        **named,
        **options,
    }
    return Engine(str(path), fixed, query_id=f"query-{name}")


@pytest.mark.parametrize("version", quick(1, [9, 6]))
def test_deletes_that_another_writer_adds_meanwhile_are_a_conflict(tmp_path, version):
    """It is written again, behind a second compaction."""
    form = {"hoodie.write.table.version": str(version)}
    one, other = engine(tmp_path, "one", **form), engine(tmp_path, "other", **form)
    one.write(0, batch("ab", 10, I32, v="old"))
    inner, left = one.distribute, [1]

    def distribute(plan, rows):
        results = inner(plan, rows)
        if left[0]:
            left[0] -= 1
            other.write(0, batch("a", 5, I32, deleted=True))
        return results

    one.distribute = distribute
    one.write(1, batch("c", 20, I64))
    one.writer.stop()
    other.writer.stop()
    assert rows_of(tmp_path) == {"a": "old", "b": "old", "c": "new"}
    assert len(compactions(tmp_path)) == 1


def test_deletes_that_come_between_the_look_and_the_request_are_a_conflict(tmp_path, monkeypatch):
    once = {"hoodie.write.num.retries.on.conflict.failures": "0"}
    one, other = engine(tmp_path, "one", **once), engine(tmp_path, "other")
    one.write(0, batch("ab", 10, I32, v="old"))
    from streaming.batch import begin_batch

    inner = begin_batch.begin_commit

    def begin(*given):
        monkeypatch.setattr(begin_batch, "begin_commit", inner)
        other.write(0, batch("a", 5, I32, deleted=True))
        return inner(*given)

    monkeypatch.setattr(begin_batch, "begin_commit", begin)
    with pytest.raises(CommitConflictError, match="another writer wrote them since the batch began"):
        one.write(1, batch("c", 20, I64))
    assert rows_of(tmp_path) == {"a": "old", "b": "old"}
    one.write(1, batch("c", 20, I64))
    one.writer.stop()
    other.writer.stop()
    assert rows_of(tmp_path) == {"a": "old", "b": "old", "c": "new"}


def test_a_batch_that_widens_nothing_looks_at_no_log(tmp_path, monkeypatch):
    with_late_delete(tmp_path, I64, 10, 5, **BUCKETS)
    monkeypatch.setattr("streaming.batch.widening.find_ordered_deletes", None)
    monkeypatch.setattr("streaming.batch.widening.find_logged", None)
    with sink(tmp_path, **BUCKETS) as writer:
        writer.write(batch("c", 20, I32))  # narrower than the table: it is widened as it is written
    assert rows_of(tmp_path) == {"a": "old", "b": "old", "c": "new"}


def test_the_compaction_of_another_engine_is_left_to_it(tmp_path, monkeypatch):
    with_late_delete(tmp_path, I32, 10, 5, **BUCKETS, **SCHEDULES_ONLY)
    [pending] = request_compaction(HudiTable.open(str(tmp_path)), CompactionSettings())
    monkeypatch.setattr("streaming.batch.widening.NO_LOCK", object())  # a lock is there: other engines may write
    monkeypatch.setattr("table.services.compaction.execution._is_left_to_others", lambda *_: True)
    with sink(tmp_path, **BUCKETS) as writer:
        with pytest.raises(ActionPendingError, match=rf"{pending.time}.compaction.* is in the way.*hudistream compact"):
            writer.write(batch("c", 20, I64))
        assert rows_of(tmp_path) == {"a": "old", "b": "old"}
        monkeypatch.undo()
        writer.write(batch("c", 20, I64))
    assert rows_of(tmp_path) == {"a": "old", "b": "old", "c": "new"}
