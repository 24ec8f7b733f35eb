"""A stream onto a merge-on-read table on a real local Spark: upserts and deletes, every type, read by Hudi, too."""

import decimal
import os

import pytest
from every_spark_type import DDL_WITH_DELETIONS, contents, record
from stream import OPTIONS, run, source

from hudistream import HudiTable
from streaming import HudiSink
from table import read_table
from table.files.names import parse_log_file
from table.snapshot import Snapshot
from table.timeline.instant import Action

pytestmark = [pytest.mark.spark, pytest.mark.hudi]

MERGE_ON_READ = {
    **OPTIONS,
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.bucket.index.num.buckets": "2",
}


def changed(key, ts, *, deleted=False):
    return {**record(key, f"p{key % 2}", ts), "_hoodie_is_deleted": deleted}


def log_files(path):
    return [name for _, _, names in os.walk(path) for name in names if parse_log_file(name) is not None]


@pytest.mark.slow  # what is quick: log blocks of every type in tests/table, and an exchange of compactions with Hudi
@pytest.mark.parametrize(
    ("index", "form", "shared"),
    [
        ("BUCKET", "avro", True),
        ("BLOOM", "avro", False),
        ("SIMPLE", "parquet", True),
    ],
)
def test_batches_of_every_type_go_to_log_files(spark, hudi, tmp_path, monkeypatch, index, form, shared):
    if shared:  # keys are looked for by other tasks than those that write
        monkeypatch.setattr("streaming.plan.routes.SMALL_BATCH_BYTES", 0)
        monkeypatch.setattr("streaming.plan.routes.HOT_SHARE", 0.1)
    path = str(tmp_path / "t")
    sink = HudiSink(path, {**MERGE_ON_READ, "hoodie.index.type": index, "hoodie.logfile.data.block.format": form})
    wanted = {}
    for number, keys in enumerate((range(60), range(20, 40), range(10, 30), range(50, 70))):
        records = [changed(key, number + 1, deleted=number == 2 and key < 15) for key in keys]
        sink(spark.createDataFrame(records, DDL_WITH_DELETIONS), number)
        wanted |= {row["id"]: row for row in records}
    wanted = sorted((row for row in wanted.values() if not row["_hoodie_is_deleted"]), key=lambda row: row["id"])
    assert contents(path, DDL_WITH_DELETIONS) == wanted
    assert log_files(path)
    rows = hudi.read(path, columns=["id", "ts", "price", "texts"])
    shown = sorted((row["id"], row["ts"], decimal.Decimal(row["price"]), row["texts"]) for row in rows)
    assert shown == sorted((row["id"], row["ts"], row["price"], row["texts"]) for row in wanted)
    sink.stop()


def test_a_stream_goes_on_where_it_stopped(spark, tmp_path):
    path, folder, checkpoint = (str(tmp_path / name) for name in ("t", "in", "checkpoint"))
    for batches in (2, 4):
        events = source(spark, folder, batches).selectExpr(
            "concat('k', ts % 70) id", "concat('p', ts % 70 % 3) p", "ts"
        )
        sink = HudiSink(path, MERGE_ON_READ)
        run(events, sink, checkpoint)
        sink.stop()
    newest = {f"k{number % 70}": number for number in range(200)}
    assert {row["id"]: row["ts"] for row in read_table(path, ["id", "ts"]).to_pylist()} == newest
    assert log_files(path)


def test_large_compactions_run_on_the_executors(spark, tmp_path, monkeypatch):
    def refuse(*_):
        raise AssertionError("a slice was compacted in the driver")

    monkeypatch.setattr("table.services.compaction.execution.compact_slice", refuse)
    path = str(tmp_path / "t")
    options = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"}
    sink = HudiSink(path, {**MERGE_ON_READ, **options, "hudistream.compaction.executors.from.mb": "0"})
    wanted = {}
    for number, keys in enumerate((range(40), range(20, 60), range(10, 30))):
        records = [changed(key, number + 1) for key in keys]
        sink(spark.createDataFrame(records, DDL_WITH_DELETIONS), number)
        wanted |= {row["id"]: row for row in records}
    sink.stop()
    assert sink.services.failures == 0, sink.services.last_error
    [compaction] = HudiTable.open(path).load_timeline().completed_of(Action.COMMIT)
    assert len(Snapshot.load(HudiTable.open(path)).commits.read(compaction).stats) == 2
    assert contents(path, DDL_WITH_DELETIONS) == sorted(wanted.values(), key=lambda row: row["id"])
