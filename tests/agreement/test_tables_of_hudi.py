"""Every copy-on-write golden table: our sink inserts, Hudi upserts with BLOOM, our sink inserts again."""

import os

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from log_only_bucket import write_table
from needs import require
from oracles import hudi_rs
from tiers import quick
from values import frame_rows, rows_of, shown

from hudistream import ArrowSink
from streaming import HudiSink, read_hudi
from table import UnsupportedTableError, read_table
from table.config.table_config import load_table_config, update_properties
from table.hudi_table import HudiTable
from table.scan.scan import make_scan
from table.schema.avro_schema import META_COLUMNS
from table.storage.local import LocalStorage
from table.timeline.instant import Action

pytestmark = [pytest.mark.hudi, pytest.mark.spark, pytest.mark.usefixtures("utc")]

TABLES = [
    "cow_insert_partitioned", "cow_upsert_delete", "cow_hive_style_partitions", "cow_timestamp_keygen",
    "cow_insert_overwrite", "cow_archived", "cow_with_failed_inflight", "types_all",
]  # fmt: skip
MORE_TABLES = [
    "cow_nonpartitioned", "cow_schema_evolved", "cow_cleaned", "cow_savepoint", "cow_rolled_back",
    "cow_with_failed_inflight_direct", "cow_metadata_table", "streaming_sink", "types_all_3level_lists",
]  # fmt: skip
# Hudi's reader shows what the partition path says: null for '', text for the time a path was made from
PATH_VIEW = {"cow_hive_style_partitions", "cow_timestamp_keygen"}


def new_rows(path, prefix, count=5):
    """Some of the table's rows under new keys."""
    table = read_table(path)
    table = table.select([name for name in table.column_names if name not in META_COLUMNS]).slice(0, count)
    key = load_table_config(LocalStorage(path)).record_key_fields[0]
    index = table.column_names.index(key)
    keys = pc.binary_join_element_wise(prefix, table.column(key).cast(pa.string()), "-")
    return table.set_column(index, key, keys)


def spark_rows(spark, table, tmp_path):
    file = str(tmp_path / f"rows-{os.urandom(4).hex()}.parquet")
    pq.write_table(table, file)
    return spark.read.parquet(file)


def by_spark(spark, path):
    return frame_rows(read_hudi(spark, path))


@pytest.fixture
def utc_session(spark):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", before)


TURNS = quick(1, (*TABLES, *MORE_TABLES))


@pytest.mark.parametrize("name", TURNS)
def test_we_and_hudi_write_in_turns(hudi, utc_session, golden, tmp_path, name):
    spark = utc_session
    path, expected = golden(name)
    config = load_table_config(LocalStorage(path))
    assert shown(by_spark(spark, path)) == shown(expected["rows"])
    before = rows_of(read_table(path))
    first, second = new_rows(path, "new"), new_rows(path, "newer")
    sink = HudiSink(path, {"hoodie.metadata.enable": "false"}, operation="insert")
    sink.write(spark_rows(spark, first, tmp_path))
    assert shown(rows_of(read_table(path))) == shown([*before, *rows_of(first)])
    assert shown(by_spark(spark, path)) == shown(hudi.read(path))

    jvm = {
        "hoodie.table.name": config.name,
        "hoodie.datasource.write.recordkey.field": ",".join(config.record_key_fields),
        "hoodie.datasource.write.partitionpath.field": ",".join(config.partition_fields),
        "hoodie.datasource.write.precombine.field": ",".join(config.ordering_fields),
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.index.type": "BLOOM",
        "hoodie.datasource.write.hive_style_partitioning": str(config.hive_style).lower(),
        "hoodie.datasource.write.partitionpath.urlencode": str(config.url_encode).lower(),
        "hoodie.datasource.write.keygenerator.type": config.keygen_type,
        **{key: value for key, value in config.extra.items() if "keygen.timebased" in key},
    }
    # the same rows again: found by our filters, or they would be there twice
    hudi.write(path, first, jvm)
    after_hudi = rows_of(read_table(path))
    assert shown(after_hudi) == shown([*before, *rows_of(first)])
    sink.write(spark_rows(spark, second, tmp_path))
    everything = [*before, *rows_of(first), *rows_of(second)]
    assert shown(rows_of(read_table(path))) == shown(everything)
    assert shown(by_spark(spark, path)) == shown(hudi.read(path))
    assert len(hudi.read(path)) == len(everything)
    if name not in PATH_VIEW and not name.startswith("types"):
        assert shown(rows_of(hudi_rs.read(path))) == shown(everything)
    now = load_table_config(LocalStorage(path))
    assert now.to_properties() == {**config.to_properties(), **{k: v for k, v in now.extra.items() if "metadata" in k}}
    assert HudiTable.open(path).load_timeline().pending == ()


@pytest.mark.slow
def test_a_metadata_table_is_kept_then_dropped_and_looked_for_again(hudi, utc_session, golden, tmp_path):
    spark = utc_session
    path, _ = golden("cow_metadata_table")
    rows = spark_rows(spark, new_rows(path, "new"), tmp_path)
    known = len(hudi.read(path))
    HudiSink(path, {}, operation="insert").write(rows)
    assert load_table_config(LocalStorage(path)).metadata_partitions == "column_stats,files"
    assert len(hudi.read(path, {"hoodie.metadata.enable": "true"})) == known + 5
    sink = HudiSink(path, {"hoodie.metadata.enable": "false"}, operation="insert")
    sink.write(rows)
    assert not os.path.isdir(f"{path}/.hoodie/metadata")
    assert load_table_config(LocalStorage(path)).metadata_partitions == ""
    config = load_table_config(LocalStorage(path))
    # Hudi's own writers make one by default
    hudi.write(path, new_rows(path, "theirs"), {
        "hoodie.table.name": config.name, "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "region", "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.operation": "upsert", "hoodie.metadata.enable": "true",
    })  # fmt: skip
    assert "files" in load_table_config(LocalStorage(path)).metadata_partitions
    before = len(hudi.read(path))
    sink.write(spark_rows(spark, new_rows(path, "again"), tmp_path))
    assert not os.path.isdir(f"{path}/.hoodie/metadata")
    # with the metadata table read, as is Hudi's default, no row is hidden
    assert len(hudi.read(path, {"hoodie.metadata.enable": "true"})) == before + 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hoodie.table.version": "8"}, "hoodie.table.version=8"),
        ({"hoodie.table.version": "5"}, "hoodie.table.version=5"),
        ({"hoodie.datasource.write.drop.partition.columns": "true"}, "drop.partition.columns=true"),
        (
            {"hoodie.populate.meta.fields": "false", "hoodie.table.type": "MERGE_ON_READ"},
            "populate.meta.fields=false",
        ),
        ({"hoodie.table.cdc.enabled": "true", "hoodie.populate.meta.fields": "false"}, "cdc.enabled=true"),
        ({"hoodie.table.base.file.format": "ORC"}, "base.file.format=ORC"),
        ({"hoodie.table.keygenerator.type": "HOODIE_TABLE_METADATA"}, "keygenerator.type=HOODIE_TABLE_METADATA"),
    ],
)
def test_tables_that_cannot_be_written_are_refused_by_property(spark, golden, tmp_path, change, message):
    path, _ = golden("cow_insert_partitioned")
    update_properties(LocalStorage(path), change)
    rows = spark.sql("SELECT 'a' id, 'n' name, 1L qty, 1D price, 'eu' region, 1L ts")
    with pytest.raises(UnsupportedTableError, match=message):
        HudiSink(path, {}).write(rows)
    assert len(HudiTable.open(path).load_timeline().completed_of(Action.COMMIT)) == 3


def test_buckets_of_log_files_alone_are_read_and_continued_by_both(hudi, tmp_path):
    """Made by hand from the bytes: Hudi reads the same rows before and after our upsert."""
    path = str(tmp_path / "t")
    wanted = write_table(path)

    def by_hudi():
        return sorted((row["id"], int(row["ts"]), row["v"]) for row in hudi.read(path))

    assert by_hudi() == sorted((key, *row) for key, row in wanted.items())
    options = {
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "2",
        "hoodie.datasource.compaction.async.enable": "false",
    }
    sink = ArrowSink(path, options, operation="upsert")
    sink.write(pa.table({"id": ["a", "new"], "p": ["p", "p"], "ts": [3, 3], "v": ["a3", "n3"]}))
    sink.stop()
    assert by_hudi() == sorted((key, *row) for key, row in {**wanted, "a": (3, "a3"), "new": (3, "n3")}.items())


def test_rows_that_a_global_index_keeps_in_their_path_are_shown_alike(hudi, spark, tmp_path):
    """The file holds the value that arrived last; Hudi's reader, ours and Spark's through us show that of the path."""
    path = str(tmp_path / "t")
    options = {"hoodie.index.type": "GLOBAL_BLOOM", "hoodie.bloom.index.update.partition.path": "false"}
    with ArrowSink(path, options, key="id", partition_by="p", order_by="ts") as sink:
        sink.write(pa.table({"id": ["a", "b", "c"], "p": ["x", "y", "z"], "ts": [1, 1, 1]}))
        sink.write(pa.table({"id": ["a"], "p": ["y"], "ts": [2]}))
    wanted = [("a", "x", 2), ("b", "y", 1), ("c", "z", 1)]
    assert sorted((row["id"], row["p"], int(row["ts"])) for row in hudi.read(path)) == wanted
    assert sorted((row["id"], row["p"], row["ts"]) for row in read_table(path).to_pylist()) == wanted
    frame = read_hudi(spark, path)
    assert sorted((row.id, row.p, row.ts) for row in frame.collect()) == wanted
    assert [row.id for row in frame.filter("p = 'y'").collect()] == ["b"]
    assert [row["id"] for row in hudi.read(path, where="p = 'y'")] == ["b"]
    assert [row.id for row in read_hudi(spark, path, columns=["id", "p"], where=[("p", "=", "y")]).collect()] == ["b"]
    pushed = frame.filter("p = 'y'")._jdf.queryExecution().toString()
    assert "PushedFilters: [IsNotNull(_hoodie_partition_path), EqualTo(_hoodie_partition_path,y)]" in pushed


@pytest.mark.parametrize("styled", ["false", "true"])
def test_every_row_in_the_path_of_nulls_shows_null(hudi, spark, tmp_path, styled):
    """Empty texts lie there, too, and rows that a global index keeps there: all readers answer as Hudi does."""
    path = str(tmp_path / "t")
    options = {"hoodie.index.type": "GLOBAL_BLOOM", "hoodie.bloom.index.update.partition.path": "false"}
    options |= {"hoodie.datasource.write.hive_style_partitioning": styled, "hudistream.manifest.for": "delta"}
    with ArrowSink(path, options, key="id", partition_by="p", order_by="ts") as sink:
        named = ["n", "y", "e", "l"], [None, "y", "", "__HIVE_DEFAULT_PARTITION__"]
        sink.write(pa.table({"id": named[0], "p": named[1], "ts": [1] * 4}))
        sink.write(pa.table({"id": ["n"], "p": ["x"], "ts": [2]}))
    wanted = {"e": None, "l": None, "n": None, "y": "y"}
    assert {row["id"]: row["p"] for row in hudi.read(path)} == wanted
    assert {row["id"]: row["p"] for row in read_table(path).to_pylist()} == wanted
    assert {row.id: row.p for row in read_hudi(spark, path).collect()} == wanted
    delta = require("deltalake").DeltaTable(path).to_pyarrow_table()
    assert dict(zip(delta["id"].to_pylist(), delta["p"].to_pylist(), strict=True)) == wanted
    for terms, found in (([("p", "=", "x")], []), ([("p", "=", "")], []), ([("p", "!=", "y")], [])):
        assert sorted(make_scan(HudiTable.open(path), ["id"], terms).to_arrow()["id"].to_pylist()) == found
        assert sorted(row.id for row in read_hudi(spark, path, where=terms).collect()) == found
    is_null = pc.field("p").is_null()
    assert sorted(make_scan(HudiTable.open(path), ["id"], is_null).to_arrow()["id"].to_pylist()) == ["e", "l", "n"]
    assert sorted(row.id for row in read_hudi(spark, path, where=is_null).collect()) == ["e", "l", "n"]
