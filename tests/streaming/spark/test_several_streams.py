"""Two streams, a backfill and a deletion at the same time, on a real Spark."""

import pytest
from stream import OPTIONS, expected, frame, keys, write_batches

from hudistream import HudiTable
from streaming import HudiSink

pytestmark = pytest.mark.spark

SHARED = {**OPTIONS, "hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
BATCHES, ROWS = 6, 50


def named(name, **options):
    return {**SHARED, "hoodie.datasource.write.streaming.checkpoint.identifier": name, **options}


def start(spark, folder, path, name, checkpoint, prefix):
    """A stream whose keys begin with a prefix of its own."""
    rows = spark.readStream.schema("id string, p string, ts bigint").option("maxFilesPerTrigger", 1).parquet(folder)
    sink = HudiSink(path, named(name))
    return (
        rows.selectExpr(f"concat('{prefix}', id) id", "p", "ts").writeStream.foreachBatch(sink)
        .option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    )  # fmt: skip


@pytest.mark.slow
def test_streams_a_backfill_and_a_deletion_write_one_table_at_once(spark, tmp_path):
    folder, path = str(tmp_path / "in"), str(tmp_path / "t")
    write_batches(folder, BATCHES, ROWS)
    HudiSink(path, named("before")).write(frame(spark, 0, 100).selectExpr("concat('old-', id) id", "p", "ts"))
    streams = [start(spark, folder, path, name, str(tmp_path / name), f"{name}-") for name in ("left", "right")]
    backfill = HudiSink(path, named("backfill"))
    privacy = HudiSink(path, named("privacy"))
    for part in range(3):
        made = frame(spark, part * 40, part * 40 + 40).selectExpr("concat('filled-', id) id", "p", "ts")
        backfill.write(made)
        gone = frame(spark, part * 10, part * 10 + 10).selectExpr("concat('old-', id) id", "p", "ts")
        privacy.write(gone, "delete")
    for query in streams:
        query.awaitTermination()
    wanted = [f"{name}-{key}" for name in ("left", "right") for key in expected(0, BATCHES * ROWS)]
    wanted += [f"filled-{key}" for key in expected(0, 120)] + [f"old-{key}" for key in expected(30, 100)]
    assert keys(path) == sorted(wanted)
    assert not HudiTable.open(path).load_timeline().pending
    # each is exactly once: a restart from its checkpoint writes nothing
    before = len(HudiTable.open(path).load_timeline().completed_writes)
    for name in ("left", "right"):
        start(spark, folder, path, name, str(tmp_path / name), f"{name}-").awaitTermination()
    assert len(HudiTable.open(path).load_timeline().completed_writes) == before
    assert keys(path) == sorted(wanted)
