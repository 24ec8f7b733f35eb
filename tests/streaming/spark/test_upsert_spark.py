"""Upserts on a real local Spark: the exchanges, order of arrival, every type on its way through two of them."""

import pytest
from every_spark_type import DDL, contents, record
from oracles import hudi_rs
from stream import OPTIONS, run
from tiers import slow

from streaming import HudiSink
from table import InvalidConfigError, read_table
from table.options.choices import IndexType

pytestmark = pytest.mark.spark

UPSERT = {**OPTIONS, "hoodie.datasource.write.operation": "upsert", "hoodie.bucket.index.num.buckets": "3"}
INDEXED = {"hoodie.metadata.enable": "true", "hoodie.metadata.record.index.enable": "true"}


MORE_INDEXES = [
    slow((index, shared))
    for index, shared in [("GLOBAL_BLOOM", False), *((index, True) for index in IndexType)]
    if index not in ("GLOBAL_BLOOM", "BUCKET") or not shared
]


def by_key(records):
    return sorted({row["id"]: row for row in records}.values(), key=lambda row: row["id"])


@pytest.mark.parametrize(
    ("index", "shared"),
    [slow(("BLOOM", False)), ("GLOBAL_BLOOM", True), slow(("BUCKET", True)), *MORE_INDEXES],
)
def test_batches_of_every_type_are_upserted(spark, tmp_path, monkeypatch, index, shared):
    if shared:
        monkeypatch.setattr("streaming.plan.routes.SMALL_BATCH_BYTES", 0)
        monkeypatch.setattr("streaming.plan.routes.HOT_SHARE", 0.1)
    path = str(tmp_path / "t")
    sink = HudiSink(path, {**UPSERT, "hoodie.index.type": index, **(INDEXED if index == "RECORD_INDEX" else {})})
    first = [record(key, f"p{key % 2}", 1) for key in range(60)]
    second = [record(key, f"p{key % 2}", 2) for key in range(30, 90)]
    late = [record(key, f"p{key % 2}", 0) for key in range(10)]
    sink.write(spark.createDataFrame(first, DDL))
    summary = sink.write(spark.createDataFrame([*second, *late], DDL))
    assert contents(path) == by_key([*first, *second])
    assert (summary.rows, summary.rows_updated) == (30, 30)
    assert summary.lookup.keys == 70
    assert summary.lookup.indexed == (70 if index == "RECORD_INDEX" else 0)
    if index.startswith("GLOBAL"):
        third = [record(key, f"p{(key + 1) % 2}", 3) for key in range(20)]
        assert sink.write(spark.createDataFrame(third, DDL)).rows_deleted == 20
        assert contents(path) == by_key([*first, *second, *third])
    # a delete needs nothing but its key, whatever else it brings
    deleted = sink.write(spark.createDataFrame(second, DDL).selectExpr("id", "p", "'no number' ts"), "delete")
    assert deleted.rows_deleted == 60
    assert {row["id"] for row in contents(path)} == {f"k{key}" for key in range(30)}
    assert len(hudi_rs.read(path)) == 30


def test_of_equal_records_the_last_to_arrive_stays(spark, tmp_path):
    path = str(tmp_path / "t")
    sink = HudiSink(path, UPSERT)
    frame = spark.range(0, 3000, 1, 1).selectExpr("concat('k', id % 100) id", "concat('p', id % 2) p", "7L ts", "id n")
    sink.write(frame)
    assert sorted(read_table(path, ["n"]).column("n").to_pylist()) == list(range(2900, 3000))


def test_a_stream_of_changes_keeps_one_row_a_key(spark, tmp_path):
    folder, path = str(tmp_path / "in"), str(tmp_path / "t")
    changes = spark.range(0, 4000).selectExpr(
        "concat('k', id % 700) id", "concat('p', id % 7) p", "id ts", "id % 13 = 0 _hoodie_is_deleted"
    )
    for number in range(4):
        changes.where(f"ts div 1000 = {number}").coalesce(1).write.mode("append").parquet(folder)
    stream = spark.readStream.schema(changes.schema).option("maxFilesPerTrigger", 1).parquet(folder)
    query = run(stream, HudiSink(path, UPSERT), str(tmp_path / "c"))
    assert query.exception() is None
    newest = {n % 700: n for n in range(4000)}
    assert sorted(read_table(path, ["ts"]).column("ts").to_pylist()) == sorted(n for n in newest.values() if n % 13)


def test_an_overwrite_in_a_stream_has_to_be_allowed_by_name(spark, tmp_path):
    options = {**OPTIONS, "hoodie.datasource.write.operation": "insert_overwrite"}
    frame = spark.range(10).selectExpr("concat('k', id) id", "'p' p", "id ts")
    with pytest.raises(InvalidConfigError, match=r"hudistream\.overwrite\.in\.stream=true"):
        HudiSink(str(tmp_path / "t"), options)(frame, 0)
    HudiSink(str(tmp_path / "t"), {**options, "hudistream.overwrite.in.stream": "true"})(frame, 0)
    assert len(read_table(tmp_path / "t")) == 10


def test_rows_of_a_backfill_replace_partitions(spark, tmp_path):
    path = str(tmp_path / "t")
    sink = HudiSink(path, OPTIONS)
    frame = spark.range(30).selectExpr("concat('k', id) id", "concat('p', id % 3) p", "id ts")
    sink.write(frame)
    sink.write(frame.where("p = 'p1' and ts < 10"), "insert_overwrite")
    assert len(read_table(path)) == 23
    sink.write(frame.where("p = 'p2'"), "delete_partition")
    assert set(read_table(path, ["p"]).column("p").to_pylist()) == {"p0", "p1"}
    sink.write(frame.limit(5), "insert_overwrite_table")
    assert len(read_table(path)) == 5
