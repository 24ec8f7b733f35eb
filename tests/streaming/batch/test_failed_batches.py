"""Batches that failed are told to hooks, events say which batch they belong to, cleans are measured."""

import os
import pickle
import time

import pyarrow as pa
import pytest
from doing import Doing
from engine import Engine, rows
from pyspark.sql import functions as F

from streaming import ArrowSink, FailedBatch, HudiSink, RowCount
from streaming.batch.failed_batch import BatchProgress, is_interruption
from table import (
    BatchOrderError,
    BatchRefusedError,
    CommitOutcomeUnknownError,
    HudiError,
    InvalidConfigError,
    StorageError,
    TableHeldError,
    read_table,
)
from table.storage.local import LocalStorage

CLEANED = {
    "hoodie.clean.automatic": "true",
    "hoodie.archive.automatic": "true",
    "hoodie.clean.async": "false",
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}


@pytest.mark.parametrize(
    ("batch_id", "progress", "error", "told"),
    [
        (3, BatchProgress(), StorageError("x"), (None, True)),  # whether it is a replay was not known yet
        (3, BatchProgress(None, is_new=True), StorageError("x"), (None, False)),
        (3, BatchProgress("t1", is_new=True), StorageError("x"), ("t1", False)),
        (3, BatchProgress("t1", is_new=True), CommitOutcomeUnknownError("x"), ("t1", True)),
        (3, BatchProgress("t1", is_new=True, is_visible=True), OSError("x"), None),
        (None, BatchProgress(), StorageError("x"), (None, False)),
        (None, BatchProgress("t1"), CommitOutcomeUnknownError("x"), ("t1", True)),
    ],
)
def test_what_is_told_of_a_batch_that_failed(batch_id, progress, error, told):
    failed = progress.failed("t", batch_id, error)
    assert failed == (told and FailedBatch("t", batch_id, told[0], error, told[1]))
    if failed is not None:
        again = pickle.loads(pickle.dumps(failed))
        assert (again.instant_time, repr(again.error)) == (failed.instant_time, repr(error))
        with pytest.raises(AttributeError):
            failed.table = "other"


def refused(path, rows, batch_id, storage=None, **given):
    """What a hook is told of a batch that fails."""
    seen = []
    sink = ArrowSink(path, on_failure=[seen.append], **{"key": "id", **given})
    with pytest.raises(HudiError):
        sink.write(rows, batch_id)
    sink.stop()
    return seen[0]


ROW = pa.table({"id": ["a"], "v": [1]})


def test_a_batch_that_was_refused_before_the_commits_were_read_is_looked_for_in_the_table(tmp_path):
    path = str(tmp_path / "t")
    misspelled = pa.table({"idd": ["a"]})
    assert not refused(path, misspelled, 5).outcome_unknown  # there is no table
    (tmp_path / "u").mkdir()
    (tmp_path / "u" / "file").write_text("1")
    assert not refused(str(tmp_path / "u"), ROW, 5).outcome_unknown  # there is none in a folder of other files
    with ArrowSink(path, key="id") as sink:
        sink.write(ROW, 5)
    assert refused(path, ROW, 5, key="v").outcome_unknown  # the options contradict the table, which has the batch
    assert not refused(path, ROW, 6, key="v").outcome_unknown  # and does not have this one
    assert not refused(path, ROW, 4).outcome_unknown  # BatchOrderError: the records refuse the number


def test_a_batch_that_another_writer_keeps_out_is_not_of_unknown_outcome(tmp_path):
    path = str(tmp_path / "t")
    with ArrowSink(path, key="id") as other:
        other.write(ROW, 9)
        assert not refused(path, ROW, 5).outcome_unknown


def test_a_store_that_refuses_a_folder_says_that_nothing_was_written(tmp_path):
    (tmp_path / "file").write_text("1")
    assert not refused(str(tmp_path / "file" / "t"), ROW, 5).outcome_unknown


@pytest.mark.parametrize(("batch_id", "unknown"), [(5, True), (6, False)])
def test_a_batch_that_spark_has_not_opened_is_looked_for_too(tmp_path, batch_id, unknown):
    path, seen = str(tmp_path / "t"), []
    with ArrowSink(path, key="id") as sink:
        sink.write(ROW, 5)
    replacing = HudiSink(path, key="id", operation="insert_overwrite", on_failure=[seen.append])
    with pytest.raises(InvalidConfigError, match="in a stream"):
        replacing(None, batch_id)
    assert seen[0].outcome_unknown is unknown


def test_where_the_store_fails_the_outcome_is_unknown(tmp_path, monkeypatch):
    path = str(tmp_path / "t")

    def fails(self, path):
        raise StorageError("no answer")

    monkeypatch.setattr(LocalStorage, "read", fails)
    assert refused(path, ROW, 5).outcome_unknown


@pytest.mark.parametrize(("batch_id", "unknown"), [(1, True), (2, False)])
def test_an_end_that_was_decided_and_not_carried_out_may_become_visible(tmp_path, batch_id, unknown):
    path = str(tmp_path / "t")
    with ArrowSink(path, key="id") as sink:
        sink.write(ROW, 0)
        done = sink.write(ROW, 1)
    os.unlink(f"{path}/.hoodie/{done.instant_time}.commit")
    assert refused(path, ROW, batch_id, key="v").outcome_unknown is unknown


@pytest.mark.parametrize(
    ("text", "interrupted"),
    [
        ("[SPARK_JOB_CANCELLED] Job 5 cancelled part of cancelled job group 1f SQLSTATE: XXKDA", True),
        ("An error occurred while calling o62.collect: org.apache.spark.SparkException: Job 7 cancelled ", True),
        ("java.lang.InterruptedException\n\tat java.base/java.util.concurrent", True),
        ("Job aborted due to stage failure: Task 3 in stage 1.0 failed 4 times", False),
        ("the table is being written by a live writer", False),
    ],
)
def test_what_counts_as_an_interruption(text, interrupted):
    assert is_interruption(RuntimeError(text)) is interrupted


@pytest.mark.spark
def test_a_query_that_is_stopped_in_the_middle_of_a_batch_did_not_fail(spark, tmp_path, logs):
    """Nothing of the batch is visible, no hook is called, and the batch comes again."""
    Collects.seen = []
    path, source = str(tmp_path / "t"), str(tmp_path / "in")
    spark.range(20).selectExpr("concat('k', id) id", "'p' p", "id ts").coalesce(1).write.parquet(source)
    slow = F.udf(lambda text: (time.sleep(1), text)[1], "string")

    def start(column):
        stream = spark.readStream.schema("id string, p string, ts long").parquet(source)
        sink = HudiSink(path, key="id", partition_by="p", order_by="ts", on_failure=[Collects()])
        writer = stream.withColumn("v", column).writeStream.foreachBatch(sink)
        return writer.option("checkpointLocation", str(tmp_path / "c")).start()

    query = start(slow("id"))
    deadline = time.monotonic() + 30
    while not list((tmp_path / "t" / ".hoodie").glob("*.inflight")) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    query.stop()
    assert Collects.seen == []
    told = [entry["event"] for entry in logs]
    assert "batch_interrupted" in told
    assert "batch_failed" not in told
    again = start(F.lit("quick"))
    again.processAllAvailable()
    again.stop()
    assert read_table(path).num_rows == 20
    assert Collects.seen == []


class Collects:
    """A picklable hook."""

    seen: list = []

    def __call__(self, told):
        Collects.seen.append(told)


class HearsUpkeep:
    """A picklable callback that asks for what services did, and cannot stand it."""

    def __call__(self, summary):
        pass

    def after_upkeep(self, summary):
        Collects.seen.append(summary)
        raise RuntimeError("no room left")


def fails(_failed):
    raise RuntimeError("the queue is down")


@pytest.fixture
def seen():
    Collects.seen.clear()
    return Collects.seen


def value(name, **labels):
    import prometheus_client

    return prometheus_client.REGISTRY.get_sample_value(name, labels)


@pytest.mark.spark
def test_hooks_get_the_batches_that_failed_and_those_alone(spark, tmp_path, monkeypatch, seen, logs):
    from stream import OPTIONS, frame, keys

    from streaming.batch import commit_batch
    from streaming.metrics import PrometheusMetrics

    path = str(tmp_path / "t")
    hooks = [fails, Collects(), PrometheusMetrics()]
    sink = HudiSink(path, {**OPTIONS, **CLEANED}, validators=[RowCount(1, 20)], on_failure=hooks)
    sink = pickle.loads(pickle.dumps(sink))
    sink(frame(spark, 0, 10, 1), 0)
    assert seen == []

    with pytest.raises(BatchRefusedError, match="30 rows"):
        sink(frame(spark, 10, 40, 1), 1)
    (failed,) = seen
    assert (failed.table, failed.batch_id, failed.outcome_unknown) == (path, 1, False)
    assert isinstance(failed.error, BatchRefusedError)
    assert len(failed.instant_time) == 17
    assert sink.callback_failures == 1
    (event,) = [e for e in logs if e["event"] == "batch_failed"]
    assert (event["table"], event["batch_id"], event["instant_time"]) == (path, 1, failed.instant_time)
    assert "30 rows" in event["error"]
    assert value("hudistream_batches_total", table=path, outcome="failed") == 1

    # a batch that is visible is none that failed, whatever comes after its commit
    sink.services.services = (Doing(lambda _table: 1 / 0),)
    sink(frame(spark, 10, 20, 1), 1)
    assert sink.services.failures == 1
    with monkeypatch.context() as patched:
        patched.setattr(sink._writer._committer, "clean_up", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            sink(frame(spark, 20, 30, 1), 2)
    assert [e["batch_id"] for e in logs if e["event"] == "failed_after_commit"] == [2]
    assert len(seen) == 1
    assert len(keys(path)) == 30

    def lost(*_args, **_kwargs):
        raise CommitOutcomeUnknownError("the answer was lost")

    with monkeypatch.context() as patched:
        patched.setattr(commit_batch, "complete_commit", lost)
        with pytest.raises(CommitOutcomeUnknownError):
            sink(frame(spark, 30, 40, 1), 3)
        with pytest.raises(CommitOutcomeUnknownError):
            sink.write(frame(spark, 30, 40, 1))
    assert [(told.batch_id, told.outcome_unknown) for told in seen[1:]] == [(3, True), (None, True)]
    assert value("hudistream_batches_total", table=path, outcome="unknown") == 2

    def nobody_knows():
        raise StorageError("no route to host")

    with monkeypatch.context() as patched:
        patched.setattr(sink.services, "check", nobody_knows)
        with pytest.raises(StorageError):
            sink(frame(spark, 20, 30, 1), 2)
    # it failed before anybody asked whether batch 2 is there: it is
    assert (seen[-1].batch_id, seen[-1].instant_time, seen[-1].outcome_unknown) == (2, None, True)


@pytest.mark.spark
def test_events_say_which_batch_of_which_table_they_belong_to(spark, tmp_path, logs, seen):
    from stream import OPTIONS, frame

    from streaming import UpkeepSummary

    path = str(tmp_path / "t")
    background = {key: value for key, value in CLEANED.items() if key != "hoodie.clean.async"}
    sink = HudiSink(path, {**OPTIONS, **background}, callbacks=[HearsUpkeep()])
    for batch_id in range(5):
        logs.clear()
        sink(frame(spark, 0, 10, 1), batch_id)
        written = {e["event"]: e for e in logs}
        assert ("table_created" in written) is (batch_id == 0)
        for event in ("commit_begun", "commit_completed", "batch_committed"):
            assert (written[event]["table"], written[event]["batch_id"]) == (path, batch_id)
        sink.services.wait()
        assert {e.get("table") for e in logs} == {path}
        of_services = [e for e in logs if e["event"] in ("clean_requested", "file_cleaned", "instants_archived")]
        assert all("batch_id" not in e for e in of_services)
    assert of_services
    # outside a batch nothing is bound
    from structlog.contextvars import get_contextvars

    assert get_contextvars() == {}
    assert len(seen) == 5 == sink.callback_failures
    assert all(isinstance(told, UpkeepSummary) and told.table == path for told in seen)
    assert sum(told.files_deleted for told in seen) > 0


def test_cleans_are_measured(tmp_path, monkeypatch):
    from dataclasses import replace

    from streaming.metrics import PrometheusMetrics
    from table.services.archival.service import ArchivalService
    from table.services.clean import service as cleaning

    path = str(tmp_path / "t")
    engine, told = Engine(path, CLEANED), []
    engine.writer.services.listeners += [told.append, PrometheusMetrics().after_upkeep]
    for number in range(6):
        engine.write(number, rows([number], lambda _: "p"))
    deleted = sum(summary.files_deleted for summary in told)
    assert deleted >= 3
    assert sum(summary.cleans for summary in told) >= 3
    assert sum(summary.instants_archived for summary in told) >= 2
    assert value("hudistream_cleans_total", table=path) == sum(summary.cleans for summary in told)
    assert value("hudistream_clean_files_deleted_total", table=path) == deleted
    assert value("hudistream_clean_files_failed_total", table=path) == 0
    assert value("hudistream_instants_archived_total", table=path) == sum(one.instants_archived for one in told)
    assert value("hudistream_service_failures_total", table=path) == 0
    assert value("hudistream_clean_seconds_count", table=path) == 6
    assert value("hudistream_clean_seconds_sum", table=path) == pytest.approx(sum(one.clean_seconds for one in told))

    inner = cleaning.carry_out_cleans

    def misses(*args):
        return [replace(done, failed=done.deleted, deleted={}) for done in inner(*args)]

    def no_archive(*_args):
        raise HudiError("no archive")

    monkeypatch.setattr(cleaning, "carry_out_cleans", misses)
    monkeypatch.setattr(ArchivalService, "plan", no_archive)
    engine.write(6, rows([6], lambda _: "p"))
    # what was cleaned before archival failed counts
    assert (told[-1].files_deleted, told[-1].files_failed) == (0, 1)
    assert "no archive" in told[-1].error
    assert value("hudistream_clean_files_failed_total", table=path) == 1
    assert value("hudistream_service_failures_total", table=path) == 1
    assert len(read_table(path)) == 7


def test_a_sink_sweeps_what_a_killed_process_left_half_written(tmp_path):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(3)))
    for name, age_s in (("old", 3600), ("young", 0)):
        half = tmp_path / "t" / ".hoodie" / f".hudistream-{name}"
        half.write_bytes(b"x")
        os.utime(half, (half.stat().st_mtime - age_s,) * 2)
    Engine(path).write(1, rows(range(3, 5)))
    left = [name for name in os.listdir(f"{path}/.hoodie") if name.startswith(".hudistream-")]
    assert left == [".hudistream-young"]


def test_a_numbered_batch_that_the_table_has_is_skipped_beside_a_live_writer(tmp_path):
    path = str(tmp_path / "t")
    one, two = ArrowSink(path, key="id"), ArrowSink(path, key="id")
    one.write(pa.table({"id": ["a"]}), batch_id=1)
    assert two.write(pa.table({"id": ["a"]}), batch_id=1).skipped
    with pytest.raises(TableHeldError):
        two.write(pa.table({"id": ["b"]}), batch_id=2)
    one.stop()
    two.stop()


def test_a_sink_whose_first_batch_is_refused_leaves_the_table_to_its_retry(tmp_path):
    path = str(tmp_path / "t")
    first = Engine(path, query_id="lost checkpoint")
    first.write(5, rows(range(3)))
    first.writer.stop()
    refused_one = Engine(path, query_id="new checkpoint")
    with pytest.raises(BatchOrderError):
        refused_one.write(0, rows(range(3)))
    named = {"hoodie.datasource.write.streaming.checkpoint.identifier": "second"}
    assert Engine(path, named, query_id="new checkpoint").write(0, rows(range(3, 6))).instant_time
