"""The sink on a real local Spark."""

import os
import pickle
import re
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from oracles import hudi_rs
from pyspark.errors import StreamingQueryException
from stream import OPTIONS, expected, frame, keys, run, source, write_batches
from tiers import quick

from streaming import HudiSink
from streaming.spark import query_watch
from streaming.spark.checkpoint import QueryCheckpoint
from streaming.spark.environment import (
    Environment,
    check_session,
    choose_parallelism,
    clocks_off,
    find_unfit,
    load_environment,
)
from table import (
    CommitConflictError,
    InvalidConfigError,
    InvalidRecordError,
    SchemaMismatchError,
    TableExistsError,
    UnsupportedTableError,
    WriteOptions,
    read_table,
)
from table.clock import InstantClock
from table.hudi_table import HudiTable
from table.services.savepoint.restore import restore_to_savepoint
from table.services.savepoint.savepoint import create_savepoint
from table.storage.local import LocalStorage
from table.storage.opening import open_storage
from table.timeline.instant import Action
from table.transaction.lease import find_holder

pytestmark = pytest.mark.spark

STRICT = {"hudistream.schema.mode": "strict"}


def test_a_stream_becomes_a_table_with_few_files(spark, tmp_path):
    path, checkpoint = str(tmp_path / "t"), str(tmp_path / "c")
    run(source(spark, str(tmp_path / "in"), 6), HudiSink(path, OPTIONS), checkpoint)
    assert keys(path) == expected(0, 300)
    assert sorted(hudi_rs.read(path).column("id").to_pylist()) == expected(0, 300)
    timeline = HudiTable.open(path).load_timeline()
    assert len(timeline.completed_of(Action.COMMIT)) == 6
    table = read_table(path, meta_columns=True)
    assert len(set(table.column("_hoodie_file_name").to_pylist())) == 3
    seqnos = table.column("_hoodie_commit_seqno").to_pylist()
    assert len(seqnos) == 300
    # carried over rows keep the commit that wrote them
    assert len(set(table.column("_hoodie_commit_time").to_pylist())) == 6


def test_a_stream_goes_on_from_its_checkpoint_and_a_new_one_is_refused(spark, tmp_path, logs):
    path, checkpoint, folder = str(tmp_path / "t"), str(tmp_path / "c"), str(tmp_path / "in")
    run(source(spark, folder, 3), HudiSink(path, OPTIONS), checkpoint)
    # the last batch committed, but Spark did not hear of it: it is replayed
    os.remove(os.path.join(checkpoint, "commits", "2"))
    crc = os.path.join(checkpoint, "commits", ".2.crc")
    if os.path.exists(crc):
        os.remove(crc)
    run(source(spark, folder, 5), HudiSink(path, OPTIONS), checkpoint)
    assert [entry["batch_id"] for entry in logs if entry["event"] == "batch_skipped"] == [2]
    assert keys(path) == expected(0, 250)
    query_id = QueryCheckpoint(checkpoint, {}).read_query_id()
    with pytest.raises(Exception, match="is not above batch 4") as error:
        run(source(spark, folder, 5), HudiSink(path, OPTIONS), str(tmp_path / "other"))
    assert query_id in str(error.value)
    assert keys(path) == expected(0, 250)
    named = {**OPTIONS, "hoodie.datasource.write.streaming.checkpoint.identifier": "second"}
    run(source(spark, str(tmp_path / "in2"), 1), HudiSink(path, named), str(tmp_path / "third"))
    assert len(keys(path)) == 300


def test_batches_that_were_undone_by_hand_come_again_by_the_steps_of_the_error(spark, tmp_path):
    path, checkpoint, folder = str(tmp_path / "t"), str(tmp_path / "c"), str(tmp_path / "in")
    sink = HudiSink(path, OPTIONS)
    run(source(spark, folder, 5), sink, checkpoint)
    sink.stop()
    table = HudiTable.open(path)
    second = table.load_timeline().completed_writes[1].time
    create_savepoint(table, second)
    with pytest.raises(InvalidConfigError, match="is batch 2 of the stream"):
        restore_to_savepoint(table, second)
    restore_to_savepoint(table, second, force=True)
    assert keys(path) == expected(0, 100)
    with pytest.raises(Exception, match="undone by hand") as refused:
        run(source(spark, folder, 6), HudiSink(path, OPTIONS), checkpoint)
    for name, first in re.findall(r"(commits|offsets)/(\d+)", str(refused.value))[:2]:
        for file in Path(checkpoint, name).iterdir():
            if int(re.search(r"\d+", file.name)[0]) >= int(first):
                file.unlink()
    run(source(spark, folder, 6), HudiSink(path, OPTIONS), checkpoint)
    assert keys(path) == expected(0, 300)


def test_one_action_one_job_one_exchange(spark, tmp_path):
    sink = HudiSink(str(tmp_path / "t"), {**OPTIONS, "hoodie.insert.shuffle.parallelism": "2"})
    tracker = spark.sparkContext.statusTracker()
    seen = []
    for batch_id in range(4):
        group = f"batch-{tmp_path.name}-{batch_id}"
        spark.sparkContext.setJobGroup(group, "one batch")
        sink(frame(spark, batch_id * 100, batch_id * 100 + 100), batch_id)
        jobs = tracker.getJobIdsForGroup(group)
        stages = [len(tracker.getJobInfo(job).stageIds) for job in jobs]
        seen.append((len(jobs), max(stages)))
    # the first one asks once for the query's id, and knows no partition path, hence its exchange;
    # the others are small and need none
    assert seen == [(2, 2), (1, 1), (1, 1), (1, 1)]
    assert keys(str(tmp_path / "t")) == expected(0, 400)


@pytest.mark.parametrize(("index", "stages"), [("BLOOM", 2), ("GLOBAL_BLOOM", 3)])
def test_upserts_are_one_action_and_two_exchanges_at_most(spark, tmp_path, index, stages):
    options = {**OPTIONS, "hoodie.datasource.write.operation": "upsert", "hoodie.index.type": index}
    sink = HudiSink(str(tmp_path / "t"), {**options, "hoodie.insert.shuffle.parallelism": "2"})
    tracker = spark.sparkContext.statusTracker()
    seen = []
    for batch_id in range(3):
        group = f"upsert-{index}-{batch_id}"  # older versions of pytest give a folder's name again
        spark.sparkContext.setJobGroup(group, "one batch")
        sink(frame(spark, batch_id * 50, batch_id * 50 + 100), batch_id)
        jobs = tracker.getJobIdsForGroup(group)
        seen.append((len(jobs), max(len(tracker.getJobInfo(job).stageIds) for job in jobs)))
    assert seen == [(2, stages), (1, 1), (1, 1)]
    assert keys(str(tmp_path / "t")) == expected(0, 200)


def test_a_large_batch_is_exchanged_once_by_the_drivers_map(spark, tmp_path):
    path = str(tmp_path / "t")
    sink = HudiSink(path, {**OPTIONS, "hoodie.copyonwrite.record.size.estimate": "1000"})
    group = f"large-{tmp_path.name}"
    sink(frame(spark, 0, 60_000, 4), 0)
    profiles = sink._writer._profiles.of(sink._writer._options)
    profiles._profile = pretend_large(profiles._profile)
    spark.sparkContext.setJobGroup(group, "one batch")
    sink(frame(spark, 60_000, 120_000, 4), 1)
    tracker = spark.sparkContext.statusTracker()
    [job] = tracker.getJobIdsForGroup(group)
    assert len(tracker.getJobInfo(job).stageIds) == 2
    assert keys(path) == expected(0, 120_000)
    # four paths, packed onto two tasks: one file each
    assert sink.last_batch.files_topped_up == 4
    assert sink.last_batch.files_created == 0


def pretend_large(profile):
    from dataclasses import replace

    from streaming.plan.write_profile import CommitSize

    return replace(profile, sizes=(CommitSize(1000 * 60_000, 60_000),))


def test_a_hot_path_spreads_over_tasks(spark, tmp_path):
    path = str(tmp_path / "t")
    sink = HudiSink(path, {**OPTIONS, "hoodie.insert.shuffle.parallelism": "3", "hoodie.parquet.small.file.limit": "0"})
    sink(frame(spark, 0, 40_000, 1), 0)
    assert sink.last_batch.files_created == 1
    profiles = sink._writer._profiles.of(sink._writer._options)
    profiles._profile = pretend_large(profiles._profile)
    sink(frame(spark, 40_000, 80_000, 1), 1)
    assert sink.last_batch.files_created == 3
    assert keys(path) == expected(0, 80_000)


def test_an_empty_batch_leaves_no_instant(spark, tmp_path):
    path = str(tmp_path / "t")
    sink = HudiSink(path, OPTIONS)
    sink(frame(spark, 0, 0), 0)
    assert HudiTable.open(path).load_timeline().instants == ()
    assert os.listdir(f"{path}/.hoodie/.heartbeat") == []
    sink(frame(spark, 0, 10), 1)
    sink(frame(spark, 0, 0), 2)
    assert len(HudiTable.open(path).load_timeline()) == 1
    assert keys(path) == expected(0, 10)


def test_the_sink_is_picklable_and_goes_on_elsewhere(spark, tmp_path):
    path = str(tmp_path / "t")
    sink = HudiSink(path, OPTIONS)
    sink(frame(spark, 0, 10), 0)
    again = pickle.loads(pickle.dumps(sink))
    again(frame(spark, 0, 10), 0)
    assert again.last_batch.skipped
    again(frame(spark, 10, 20), 1)
    assert keys(path) == expected(0, 20)


def test_typed_options_and_a_file_uri(spark, tmp_path):
    options = WriteOptions(operation="insert", keys={"record_key_fields": "id", "keygen_type": "non_partition"})
    HudiSink(f"file://{tmp_path}/t", options)(frame(spark, 0, 10), 0)
    assert keys(tmp_path / "t") == expected(0, 10)
    assert HudiTable.open(tmp_path / "t").config.name == "t"
    assert set(read_table(tmp_path / "t", meta_columns=True).column("_hoodie_partition_path").to_pylist()) == {""}


def test_null_and_empty_partition_values_go_where_hudi_puts_them(spark, tmp_path):
    path = str(tmp_path / "t")
    rows = spark.createDataFrame([("a", None, 1), ("b", "", 1), ("c", "eu", 1)], "id string, p string, ts bigint")
    HudiSink(path, {**OPTIONS, "hoodie.datasource.write.hive_style_partitioning": "true"})(rows, 0)
    table = read_table(path, meta_columns=True).to_pylist()
    assert {row["id"]: (row["_hoodie_partition_path"], row["p"]) for row in table} == {
        "a": ("p=__HIVE_DEFAULT_PARTITION__", None),
        "b": ("p=__HIVE_DEFAULT_PARTITION__", None),  # the file holds the empty text
        "c": ("p=eu", "eu"),
    }


BAD = [
    ("SELECT CAST(NULL AS STRING) id, 'p' p, 1L ts", OPTIONS, InvalidRecordError, "1 rows cannot be stored"),
    ("SELECT '' id, 'p' p, 1L ts", OPTIONS, InvalidRecordError, "the record key is null or empty"),
    (
        "SELECT 'a' other, 'p' p, 1L ts",
        {**OPTIONS, **STRICT},
        SchemaMismatchError,
        "of the record key: select it; column 'other' is new: leave it out",
    ),
    ("SELECT 'a' id, 'p' p", OPTIONS, SchemaMismatchError, "'ts' is missing"),
    (
        "SELECT 'a' id, 'p' p, 1 ts",
        {**OPTIONS, **STRICT},
        SchemaMismatchError,
        "'ts' is int32, the table has int64",
    ),
    ("SELECT 'a' id, 'p' p, 1L ts, 1 n", {**OPTIONS, **STRICT}, SchemaMismatchError, "'n' is new"),
    ("SELECT 'a' id, 'p' p, 1L ts, 1 ts", OPTIONS, SchemaMismatchError, "'ts' twice"),
    ("SELECT 'a' id, 'p' p, 1L ts, map(1, 2) n", OPTIONS, SchemaMismatchError, "'n' has the Spark type map"),
    ("SELECT 'a' id, 'p' p, 1L ts, interval 1 day n", OPTIONS, SchemaMismatchError, "'n' has the Spark type interval"),
    ("SELECT 'a' id, 'p' p, 1L ts, 'x' _hoodie_file_name", OPTIONS, SchemaMismatchError, "_hoodie_file_name"),
    (
        "SELECT 'a' id, 'p' p, 1L ts",
        {**OPTIONS, "hoodie.datasource.write.recordkey.field": "ts"},
        InvalidConfigError,
        "recordkey.field=ts) contradicts the table",
    ),
]


@pytest.mark.parametrize(("query", "options", "error", "message"), quick(4, BAD), ids=[case[3] for case in BAD])
def test_bad_input_is_named_leaves_nothing_and_the_next_batch_is_fine(spark, tmp_path, query, options, error, message):
    path = str(tmp_path / "t")
    HudiSink(path, OPTIONS)(frame(spark, 0, 10), 0)
    before = HudiTable.open(path).load_timeline().completed_of(Action.COMMIT)
    with pytest.raises(error) as raised:
        HudiSink(path, options)(spark.sql(query), 1)
    assert message in str(raised.value)
    timeline = HudiTable.open(path).load_timeline()
    assert timeline.completed_of(Action.COMMIT) == before
    assert timeline.pending == ()
    assert keys(path) == expected(0, 10)
    HudiSink(path, OPTIONS)(frame(spark, 10, 20), 1)
    assert keys(path) == expected(0, 20)


def test_the_same_bad_input_creates_no_table(spark, tmp_path):
    for number, (query, message) in enumerate(
        [
            ("SELECT 'a' other, 'p' p, 1L ts", "recordkey.field=id"),
            ("SELECT 'a' id, 'p' p, 1L ts, map(1, 2) n", "map"),
            ("SELECT struct(1 a) id, 'p' p, 1L ts", "'id' of type struct"),
        ]
    ):
        path = tmp_path / str(number)
        with pytest.raises(Exception, match=message):
            HudiSink(path, OPTIONS)(spark.sql(query), 0)
        assert not path.exists()


def test_a_path_that_is_no_place_for_a_table(spark, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(TableExistsError, match="is a file"):
        HudiSink(tmp_path / "file", OPTIONS)(frame(spark, 0, 1), 0)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "data.csv").write_text("x")
    with pytest.raises(TableExistsError, match=r"data\.csv"):
        HudiSink(tmp_path / "full", OPTIONS)(frame(spark, 0, 1), 0)
    assert os.listdir(tmp_path / "full") == ["data.csv"]


def test_a_table_that_would_be_harmed_is_refused_by_its_property(spark, golden):
    path, _ = golden("v9_cow_indexes")
    batch = spark.sql("SELECT 'a' id, 'n' name, 1L qty, 1D price, 'eu' region, 1L ts")
    with pytest.raises(UnsupportedTableError, match=r"hoodie\.table\.metadata\.partitions"):
        HudiSink(path, {"hoodie.datasource.write.partitionpath.field": "region"})(batch, 0)


def test_a_second_live_writer_is_noticed_and_a_dead_one_rolled_back(spark, tmp_path):
    from table.timeline.active_timeline import begin_instant, request_instant
    from table.transaction.heartbeat import WriterIdentity, heartbeat_path, write_heartbeat

    path = str(tmp_path / "t")
    sink = HudiSink(path, OPTIONS)
    sink(frame(spark, 0, 10), 0)
    storage = LocalStorage(path)
    theirs = request_instant(storage, HudiTable.open(path).load_timeline(), Action.COMMIT, InstantClock())
    begin_instant(storage, theirs)
    write_heartbeat(storage, theirs.time, WriterIdentity("other", "their-query"))
    with pytest.raises(CommitConflictError, match="'other', query 'their-query'"):
        sink(frame(spark, 10, 20), 1)
    assert keys(path) == expected(0, 10)
    os.utime(os.path.join(path, heartbeat_path(theirs.time)), (1, 1))
    sink(frame(spark, 10, 20), 1)
    assert keys(path) == expected(0, 20)
    assert len(HudiTable.open(path).load_timeline().completed_of(Action.ROLLBACK)) == 1


def test_speculation_is_refused():
    class Session:
        class conf:
            @staticmethod
            def get(_name, _default=None):
                return "true"

    with pytest.raises(InvalidConfigError, match=r"spark\.speculation=true"):
        check_session(Session)


@pytest.mark.parametrize(
    ("conf", "configured", "slots", "expected_tasks"),
    [
        ({"spark.sql.shuffle.partitions": "200"}, None, 2, 2),
        ({}, None, 8, 8),
        ({"spark.sql.shuffle.partitions": "4"}, None, 8, 4),
        ({"spark.executor.instances": "5", "spark.executor.cores": "4"}, None, 2, 20),
        ({"spark.executor.instances": "1", "spark.executor.cores": "1"}, None, 6, 6),
        ({"spark.dynamicAllocation.enabled": "true"}, None, 2, 200),
        ({"spark.dynamicAllocation.enabled": "true", "spark.sql.shuffle.partitions": "50"}, None, 2, 50),
        ({"spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.maxExecutors": "3"}, None, 2, 3),
        ({"spark.dynamicAllocation.enabled": "false", "spark.dynamicAllocation.maxExecutors": "9"}, None, 2, 2),
        ({}, 9, 2, 9),
        ({}, None, 1, 1),
    ],
)
def test_parallelism_is_what_the_application_has(conf, configured, slots, expected_tasks):
    assert choose_parallelism(conf, configured, slots) == expected_tasks


def test_the_application_is_asked_for_its_slots_without_settings(spark):
    environment = load_environment(spark, WriteOptions(), open_storage(f"memory://{uuid.uuid4()}/t"))
    assert environment == Environment(None, spark.sparkContext.defaultParallelism)


FIT = {"host": "a", "python": "3.11.7", "hudistream": "1", "query_id": None}


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ([FIT, FIT], None),
        ([FIT, {**FIT, "host": "b", "hudistream": "0.9"}], "worker on b has hudistream 0.9, and the driver has 1"),
        (
            [FIT, {"host": "c", "python": "3.9.1", "missing": "streaming"}],
            "the Python 3.9.1 of Spark's worker on c does not have the module 'streaming': install",
        ),
        (
            [FIT, {**FIT, "host": "d", "store": "no answer"}],
            "worker on d cannot reach the table's store",
        ),
        ([{**FIT, "sees": True}, {**FIT, "host": "e", "sees": False}], "worker on e does not see the table '/t'"),
    ],
)
def test_one_worker_that_is_unfit_is_named_by_its_host(answers, said):
    found = find_unfit(answers, "1", "/t")
    assert found is None if said is None else said in found


def test_a_table_that_is_not_there_yet_is_seen_by_nobody():
    assert find_unfit([{**FIT, "sees": False}], "1", None) is None


def test_clocks_are_off_beyond_what_asking_took():
    answers = [
        {"host": "a", "now": 1000.0}, {"host": "b", "now": 1095.0}, {"host": "c", "now": 4630.0},
        {"host": "d", "now": -2600.0}, {"host": "e"},
    ]  # fmt: skip
    assert clocks_off(answers, 1000.0, 1030.0) == {"b": 65.0, "c": 3600.0, "d": -3600.0}


@pytest.mark.slow
def test_workers_without_pyarrow_are_diagnosed_before_anything_is_requested(tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    script = tmp_path / "run.py"
    script.write_text(
        "from pyspark.sql import SparkSession\n"
        "from streaming import HudiSink\n"
        "spark = SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false').getOrCreate()\n"
        f"sink = HudiSink({str(tmp_path / 't')!r}, {OPTIONS!r})\n"
        "try:\n"
        "    sink(spark.sql(\"SELECT 'a' id, 'p' p, 1L ts\"), 0)\n"
        "except Exception as error:\n"
        "    print('SAID', type(error).__name__, error)\n"
    )
    env = {**os.environ, "PYSPARK_PYTHON": str(tmp_path / "bare" / "bin" / "python")}
    done = subprocess.run(
        [sys.executable, str(script)], env=env, capture_output=True, text=True, check=False, timeout=120
    )
    said = done.stdout
    assert re.search(r"Spark's worker on \S+ does not have the module '(pyarrow|streaming)'", said), done.stderr[-2000:]
    assert not (tmp_path / "t").exists()


def test_a_sink_whose_query_is_over_holds_no_table_against_others_of_its_process(spark, tmp_path):
    path = str(tmp_path / "t")
    over = HudiSink(path, OPTIONS)
    run(source(spark, str(tmp_path / "in"), 1), over, str(tmp_path / "c"))
    assert over._writer.lease.is_held  # kept by Spark, and by us
    HudiSink(path, OPTIONS).write(frame(spark, 5000, 5010))
    assert keys(path) == sorted([*expected(0, 50), *expected(5000, 5010)])


def test_a_second_query_of_the_process_is_refused_until_the_first_is_over(spark, tmp_path):
    """Spark clones the session for each query, and a clone does not know the other query."""
    path, other = str(tmp_path / "t"), {**OPTIONS, "hoodie.datasource.write.streaming.checkpoint.identifier": "b"}

    def start(options, name):
        rows = source(spark, str(tmp_path / f"in-{name}"), 0)
        writer = rows.writeStream.foreachBatch(HudiSink(path, options))
        return writer.option("checkpointLocation", str(tmp_path / f"c-{name}")).start()

    write_batches(str(tmp_path / "in-a"), 1)
    write_batches(str(tmp_path / "in-b"), 1, first=100)
    first = start(OPTIONS, "a")
    try:
        first.processAllAvailable()
        with pytest.raises(StreamingQueryException, match="being written by a live writer"):
            start(other, "b").processAllAvailable()
        write_batches(str(tmp_path / "in-a"), 1, first=1)
        first.processAllAvailable()
    finally:
        first.stop()
    second = start(other, "b")
    try:
        second.processAllAvailable()
    finally:
        second.stop()
    assert keys(path) == sorted([*expected(0, 100), *expected(5000, 5050)])


def test_a_sink_leaves_its_table_when_its_query_has_ended(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(query_watch, "_EVERY_S", 0.05)
    path, folder, sink = str(tmp_path / "t"), str(tmp_path / "in"), HudiSink(str(tmp_path / "t"), OPTIONS)

    def wait_until_left():
        until = time.monotonic() + 60
        while find_holder(LocalStorage(path)).identity is not None:
            assert time.monotonic() < until
            time.sleep(0.05)

    for batches in (1, 2):  # the same sink goes on with the query that is started again
        writer = source(spark, folder, batches).writeStream.foreachBatch(sink)
        query = writer.option("checkpointLocation", str(tmp_path / "c")).start()
        try:
            query.processAllAvailable()
            time.sleep(0.5)
            assert find_holder(LocalStorage(path)).identity.query_id == query.id
        finally:
            query.stop()
        wait_until_left()
    assert keys(path) == expected(0, 100)
    rows = source(spark, folder, 3).selectExpr("p", "ts")
    with pytest.raises(StreamingQueryException):  # one that fails leaves it, too
        run(rows, sink, str(tmp_path / "c"))
    wait_until_left()


def test_a_sink_that_serves_another_query_holds_the_table_for_that_one(spark, tmp_path, monkeypatch):
    """The first one failed in its first batch, as in a notebook: the second one's table is not left, and not taken."""
    monkeypatch.setattr(query_watch, "_EVERY_S", 0.05)
    path, folder, sink = str(tmp_path / "t"), str(tmp_path / "in"), HudiSink(str(tmp_path / "t"), OPTIONS)
    with pytest.raises(StreamingQueryException):
        run(source(spark, folder, 1).selectExpr("p", "ts"), sink, str(tmp_path / "c1"))
    query = (
        source(spark, folder, 1)
        .writeStream.foreachBatch(sink)
        .option("checkpointLocation", str(tmp_path / "c2"))
        .start()
    )
    try:
        query.processAllAvailable()
        time.sleep(1)
        assert find_holder(LocalStorage(path)).identity.query_id == query.id
        with pytest.raises(CommitConflictError, match="being written by a live writer"):
            HudiSink(path, OPTIONS).write(frame(spark, 5000, 5010))
    finally:
        query.stop()


def test_a_sink_whose_query_is_active_does(spark, tmp_path):
    path = str(tmp_path / "t")
    sink = HudiSink(path, OPTIONS)
    query = (
        source(spark, str(tmp_path / "in"), 1)
        .writeStream.foreachBatch(sink)
        .option("checkpointLocation", str(tmp_path / "c"))
        .start()
    )
    try:
        query.processAllAvailable()
        with pytest.raises(CommitConflictError, match="being written by a live writer"):
            HudiSink(path, OPTIONS).write(frame(spark, 5000, 5010))
        sink.write(frame(spark, 5000, 5010))  # its own sink may, between two batches
    finally:
        query.stop()
    assert keys(path) == sorted([*expected(0, 50), *expected(5000, 5010)])
