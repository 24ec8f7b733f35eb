"""Batches whose rows come to the driver, because the executors cannot reach the table's store."""

import json
import random

import pyarrow.parquet as pq
import pytest
from every_type import random_batch
from stream import OPTIONS, expected, frame, keys, run, source
from tiers import quick

from hudistream import HudiTable
from streaming import HudiRouter, HudiSink
from streaming.spark.driver_workers import collect_rows
from table import InvalidConfigError, read_table

pytestmark = pytest.mark.spark
ON_DRIVER = {"hudistream.write.location": "driver"}
UPSERT = {**OPTIONS, "hoodie.datasource.write.operation": "upsert"}


def rows_of(path):
    return sorted(map(repr, read_table(path).to_pylist()))


@pytest.mark.parametrize("index", quick(1, ["GLOBAL_BLOOM", "BLOOM", "BUCKET"]))
def test_the_rows_are_those_that_executors_write(spark, tmp_path, index):
    told = []
    for name, more in {"executors": {}, "driver": ON_DRIVER}.items():
        options = {**UPSERT, **more, "hoodie.index.type": index, "hoodie.bucket.index.num.buckets": "2"}
        sink = HudiSink(str(tmp_path / name), options, callbacks=[told.append] if more else ())
        sink.write(frame(spark, 0, 60))
        sink.write(frame(spark, 30, 90).selectExpr("id", "p", "ts + 1 ts"))
        sink.write(frame(spark, 0, 10), "delete")
        if index != "BUCKET":
            sink.write(frame(spark, 0, 4, partitions=1), "insert_overwrite")
        sink.stop()
    assert rows_of(str(tmp_path / "driver")) == rows_of(str(tmp_path / "executors"))
    assert [(summary.rows, summary.rows_updated, summary.rows_deleted) for summary in told][:3] == [
        (60, 0, 0), (30, 30, 0), (0, 0, 10),
    ]  # fmt: skip
    assert all(summary.driver_bytes > 0 for summary in told)
    assert told[0].short["driver_bytes"] == told[0].driver_bytes


def test_every_type_comes_as_it_is(spark, tmp_path):
    batch = random_batch(random.Random(5), 0, 50)
    file = str(tmp_path / "in.parquet")
    pq.write_table(batch, file)
    options = {**OPTIONS, "hoodie.datasource.write.operation": "insert"}
    for name, more in {"executors": {}, "driver": ON_DRIVER}.items():
        HudiSink(str(tmp_path / name), {**options, **more}).write(spark.read.parquet(file))
    found, wanted = (read_table(str(tmp_path / name)).sort_by("id") for name in ("driver", "executors"))
    assert found.schema == wanted.schema
    assert found.to_pylist() == wanted.to_pylist()


def test_a_stream_goes_on_from_its_checkpoint_and_another_query_is_refused(spark, tmp_path, logs):
    path, folder, checkpoint = (str(tmp_path / name) for name in ("t", "in", "c"))
    query = run(source(spark, folder, 2), HudiSink(path, {**OPTIONS, **ON_DRIVER}), checkpoint)
    newest = HudiTable.open(path).load_timeline().completed_writes[-1]
    with open(f"{path}/.hoodie/{newest.file_name}") as file:
        recorded = json.loads(json.load(file)["extraMetadata"]["hudistream.checkpoint"])
    assert recorded["default_single_writer"] == {"batch_id": 1, "query_id": query.id, "operation": "INSERT"}
    run(source(spark, folder, 3), HudiSink(path, {**OPTIONS, **ON_DRIVER}), checkpoint)
    assert keys(path) == expected(0, 150)
    with pytest.raises(Exception, match="came from another query"):
        run(source(spark, folder, 3), HudiSink(path, {**OPTIONS, **ON_DRIVER}), str(tmp_path / "other"))
    # one that executors wrote is continued by the driver, and the other way round
    run(source(spark, folder, 4), HudiSink(path, OPTIONS), checkpoint)
    run(source(spark, folder, 5), HudiSink(path, {**OPTIONS, **ON_DRIVER}), checkpoint)
    assert keys(path) == expected(0, 250)
    assert not [entry for entry in logs if entry["event"] == "checkpoint_is_temporary"]


def test_a_write_within_a_stream_belongs_to_no_query(spark, tmp_path):
    """The tasks that send its rows run for a query, whose batch it is not."""
    path, told = str(tmp_path / "t"), []
    sink = HudiSink(path, {**OPTIONS, **ON_DRIVER})

    def write(batch, _):
        told.append((sink._open_engine().open_write(batch).query_id, collect_rows(batch, 10**6).query_id))
        sink.write(batch)

    query = run(source(spark, str(tmp_path / "in"), 2), write, str(tmp_path / "c"))
    assert told == [(None, query.id)] * 2
    assert keys(path) == expected(0, 100)


def test_a_batch_without_rows_leaves_nothing(spark, tmp_path):
    path = str(tmp_path / "t")
    sink = HudiSink(path, {**OPTIONS, **ON_DRIVER})
    sink.write(frame(spark, 0, 5))
    assert sink.write(frame(spark, 0, 0)).instant_time is None
    assert len(HudiTable.open(path).load_timeline()) == 1


def test_rows_beyond_the_limit_are_refused_before_anything_is_requested(spark, tmp_path):
    path, failed = str(tmp_path / "t"), []
    limit = {"hudistream.write.driver.max.bytes": "20KB"}
    sink = HudiSink(path, {**OPTIONS, **ON_DRIVER, **limit}, on_failure=[failed.append])
    sink.write(frame(spark, 0, 50))
    with pytest.raises(InvalidConfigError, match=r"takes at most hudistream.write.driver.max.bytes=20480 .*nothing"):
        sink.write(frame(spark, 0, 5_000))
    assert failed[0].instant_time is None
    assert len(HudiTable.open(path).load_timeline()) == 1
    assert keys(path) == expected(0, 50)


def test_an_error_of_the_rows_is_told_as_sparks(spark, tmp_path):
    bad = spark.range(3).selectExpr("CAST(raise_error('boom') AS STRING) id", "'p' p", "id ts")
    with pytest.raises(Exception, match="boom"):
        HudiSink(str(tmp_path / "t"), {**OPTIONS, **ON_DRIVER}).write(bad)
    assert not (tmp_path / "t").exists()


def test_a_router_writes_with_executors(spark, tmp_path):
    with pytest.raises(InvalidConfigError, match=r"hudistream.write.location=driver"):
        HudiRouter(str(tmp_path), "p", {**OPTIONS, **ON_DRIVER})
