"""Real Hudi 1.0.2 and hudi-rs read what we wrote, write on in it, and we write on in theirs."""

import json
import os

import pyarrow as pa
import pytest
from engine import Engine, rows
from faults import FaultyStorage, Fuse, PowerCut
from oracles import hudi_rs
from oracles.hudi import JVM
from tiers import quick

from table import read_table
from table.config.table_config import load_table_config
from table.hudi_table import HudiTable
from table.storage.local import LocalStorage
from table.timeline.instant import Action

pytestmark = pytest.mark.hudi

COLUMNS = ["id", "p", "ts", "v"]


def multiset(table_or_rows, columns=COLUMNS):
    listed = table_or_rows.to_pylist() if isinstance(table_or_rows, pa.Table) else table_or_rows
    return sorted(tuple(row[name] for name in columns) for row in listed)


def assert_all_read(path, hudi, expected):
    """Four readers, one multiset of rows."""
    wanted = multiset(expected)
    assert multiset(read_table(path)) == wanted
    assert multiset(hudi_rs.read(path)) == wanted
    assert multiset(hudi.read(path)) == wanted


def last_commit(path):
    return HudiTable.open(path).load_timeline().completed_writes[-1].time


@pytest.mark.slow
def test_hudi_reads_upserts_by_our_filters_and_we_go_on(hudi, tmp_path):
    path = str(tmp_path / "t")
    engine = Engine(path, {"hoodie.parquet.max.file.size": "9000"})
    engine.write(0, rows(range(200)))
    first = last_commit(path)
    engine.write(1, rows(range(200, 300), v="second"))
    ours = rows(range(200)).to_pylist() + rows(range(200, 300), v="second").to_pylist()
    assert_all_read(path, hudi, ours)
    assert multiset(hudi.read_incremental(path, first)) == multiset(rows(range(200, 300), v="second"))
    # it prunes by our ranges and filters, and must find every key it updates
    update = rows([*range(0, 300, 7), *range(1000, 1010)], ts=5, v="hudi")
    hudi.write(path, update, JVM)
    updated = {row["id"]: row for row in ours} | {row["id"]: row for row in update.to_pylist()}
    assert_all_read(path, hudi, updated.values())
    assert load_table_config(LocalStorage(path)).version == 6
    engine.write(2, rows(range(2000, 2050), v="third"))
    assert_all_read(path, hudi, [*updated.values(), *rows(range(2000, 2050), v="third").to_pylist()])
    # nothing doubled: every key of ours that Hudi updated was found
    keys = read_table(path).column("id").to_pylist()
    assert len(keys) == len(set(keys))


@pytest.mark.usefixtures("utc")
def test_ours_goes_on_in_a_table_that_hudi_made(hudi, golden):
    path, expected = golden("cow_insert_partitioned")
    more = pa.Table.from_pylist(
        [{"id": f"x{n}", "name": "ours", "qty": n, "price": n / 2, "region": "eu", "ts": n} for n in range(50)]
    )
    columns = ["id", "name", "qty", "price", "region", "ts"]
    options = {"hoodie.table.name": "cow_insert_partitioned", "hoodie.datasource.write.partitionpath.field": "region"}
    engine = Engine(path, options)
    summary = engine.write(0, more)
    assert summary.files_topped_up == 1
    wanted = expected["rows"] + more.to_pylist()
    assert multiset(read_table(path), columns) == multiset(wanted, columns)
    assert multiset(hudi.read(path), columns) == multiset(wanted, columns)
    assert multiset(hudi_rs.read(path), columns) == multiset(wanted, columns)
    theirs = {
        **JVM,
        "hoodie.datasource.write.partitionpath.field": "region",
        "hoodie.table.name": "cow_insert_partitioned",
    }
    hudi.write(path, more.slice(0, 10), theirs)
    assert multiset(hudi.read(path), columns) == multiset(wanted, columns)


@pytest.mark.usefixtures("utc")
@pytest.mark.parametrize("name", quick(1, ["cow_with_failed_inflight", "cow_with_failed_inflight_direct"]))
def test_our_rollback_of_hudis_dead_commit_is_accepted(hudi, golden, name):
    path, expected = golden(name)
    columns = ["id", "name", "qty", "price", "region", "ts"]
    more = pa.Table.from_pylist(
        [{"id": f"x{n}", "name": "ours", "qty": n, "price": n / 2, "region": "eu", "ts": n} for n in range(5)]
    )
    engine = Engine(path, {"hoodie.table.name": name, "hoodie.datasource.write.partitionpath.field": "region"})
    dead = HudiTable.open(path).load_timeline().pending[0].time
    engine.write(0, more)
    timeline = HudiTable.open(path).load_timeline()
    assert timeline.pending == ()
    assert [i.action for i in timeline if i.action is Action.ROLLBACK] == [Action.ROLLBACK]
    left = [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names if dead in name]
    assert [name for name in left if ".hudistream" not in name] == []  # the end record stays until it is archived
    wanted = expected["rows"] + more.to_pylist()
    assert multiset(hudi.read(path), columns) == multiset(wanted, columns)
    theirs = {**JVM, "hoodie.table.name": name, "hoodie.datasource.write.partitionpath.field": "region"}
    hudi.write(path, more, theirs)
    assert multiset(hudi.read(path), columns) == multiset(wanted, columns)
    assert multiset(hudi_rs.read(path), columns) == multiset(wanted, columns)


def half_written(path):
    """A table with one commit, and a batch that died just before its commit file."""
    Engine(path).write(0, rows(range(60)))
    fuse = Fuse()
    twin = path + "-twin"
    Engine(twin).write(0, rows(range(60)))
    Engine(FaultyStorage(LocalStorage(twin), fuse)).write(1, rows(range(60, 90)))
    dies_at = next(i for i, call in enumerate(fuse.calls, 1) if call.startswith("create") and call.endswith(".commit"))
    with pytest.raises(PowerCut):
        Engine(FaultyStorage(LocalStorage(path), Fuse(dies_at))).write(1, rows(range(60, 90)))
    assert len(HudiTable.open(path).load_timeline().pending) == 1


def test_hudi_rolls_back_our_dead_commit(hudi, tmp_path):
    path = str(tmp_path / "t")
    half_written(path)
    dead = HudiTable.open(path).load_timeline().pending[0].time
    assert multiset(hudi.read(path)) == multiset(rows(range(60)))
    hudi.write(path, rows([0, 500], ts=9, v="hudi"), JVM)
    wanted = rows(range(1, 60)).to_pylist() + rows([0, 500], ts=9, v="hudi").to_pylist()
    assert_all_read(path, hudi, wanted)
    data = [name for _, _, names in os.walk(path) for name in names if dead in name and name.endswith(".parquet")]
    assert data == []
    Engine(path).write(1, rows(range(60, 90)))
    assert_all_read(path, hudi, wanted + rows(range(60, 90)).to_pylist())


def test_hudi_goes_on_after_our_own_rollback(hudi, tmp_path):
    path = str(tmp_path / "t")
    half_written(path)
    Engine(path).write(1, rows(range(60, 90)))
    hudi.write(path, rows([0, 500], ts=9, v="hudi"), JVM)
    wanted = rows(range(1, 90)).to_pylist() + rows([0, 500], ts=9, v="hudi").to_pylist()
    assert_all_read(path, hudi, wanted)


def keyed(*triples):
    return pa.table(
        {
            "id": [key for key, _, _ in triples],
            "ts": pa.array([ts for _, ts, _ in triples], pa.int64()),
            "v": [value for _, _, value in triples],
        }
    )


FIRST = keyed(
    ("k1", 5, "a"), ("k2", 5, "a"), ("k3", 5, "a"), ("k3", 5, "a2"), ("k4", 5, "x"), ("k4", 7, "y"), ("k4", 6, "z")
)
SECOND = keyed(
    ("k1", 3, "late"), ("k2", 5, "tie"), ("k9", 5, "b"), ("k9", 9, "b2"), ("k9", 7, "b3"), ("k3", 6, "b"),
    ("k4", 9, "w1"), ("k4", 8, "w2"),
)  # fmt: skip
OVERWRITE = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(
    "options",
    [
        {"hoodie.merge.allow.duplicate.on.inserts": "false"},
        {"hoodie.combine.before.insert": "true"},
        {},
        {"hoodie.combine.before.insert": "true", "hoodie.merge.allow.duplicate.on.inserts": "false"},
        {"hoodie.merge.allow.duplicate.on.inserts": "false", "hoodie.datasource.write.payload.class": OVERWRITE},
    ],
    ids=["merged into the file", "combined", "duplicates kept", "combined and merged", "merged, latest wins"],
)
def test_duplicates_are_kept_or_merged_as_hudi_does(hudi, spark, tmp_path, options):
    from streaming import HudiSink

    base = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        "hoodie.datasource.write.operation": "insert",
        **options,
    }
    theirs, ours = str(tmp_path / "theirs"), str(tmp_path / "ours")
    sink = HudiSink(ours, base)
    for batch_id, batch in enumerate((FIRST, SECOND)):
        hudi.write(theirs, batch, base)
        sink(spark.createDataFrame(batch.to_pandas()).coalesce(1), batch_id)
    columns = ["id", "ts", "v"]
    assert multiset(read_table(ours), columns) == multiset(hudi.read(theirs), columns)
    assert multiset(hudi.read(ours), columns) == multiset(hudi.read(theirs), columns)


@pytest.mark.spark
def test_every_type_from_spark_through_the_sink_and_back_through_hudi(hudi, spark, tmp_path):
    from streaming import HudiSink

    frame = spark.range(40).selectExpr(
        "concat('k', id) id", "CAST(id % 3 AS INT) part", "id % 2 = 0 b", "CAST(id AS INT) i", "id * 1000000007 l",
        "CAST(id / 3 AS FLOAT) f", "id / 7 d", "CAST(id / 4 AS DECIMAL(10,2)) d1", "CAST(-id AS DECIMAL(38,18)) d2",
        "date_add(DATE'1969-12-28', CAST(id AS INT)) dt", "TIMESTAMP'1969-12-31 23:59:59.123456 UTC' t",
        "IF(id % 5 = 0, NULL, concat('sträng ', id)) s", "CAST(concat('b', id) AS BINARY) bin", "id ts",
    )  # fmt: skip
    path = str(tmp_path / "t")
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.operation": "insert",
    }
    sink = HudiSink(path, options)
    sink(frame.where("ts < 30"), 0)
    sink(frame.where("ts >= 30"), 1)
    columns = frame.columns
    by_hudi = multiset(hudi.read(path), columns)
    assert len(by_hudi) == 40
    from values import rows_of

    assert multiset(rows_of(read_table(path)), columns) == by_hudi
    assert multiset(rows_of(hudi_rs.read(path)), columns) == by_hudi
    # and Hudi rewrites our files through its own readers
    hudi.write(path, read_table(path).select(columns).slice(0, 1), {**JVM, **options, "hoodie.index.type": "BLOOM",
               "hoodie.datasource.write.operation": "upsert"})  # fmt: skip
    assert multiset(hudi.read(path), columns) == by_hudi


def test_the_batch_id_stands_where_hudis_own_sink_reads_it(tmp_path):
    path = str(tmp_path / "t")
    Engine(path, {"hoodie.datasource.write.streaming.checkpoint.identifier": "mine"}).write(7, rows(range(3)))
    with open(f"{path}/.hoodie/{last_commit(path)}.commit") as file:
        extra = json.load(file)["extraMetadata"]
    assert json.loads(extra["_hudi_streaming_sink_checkpoint"]) == {"mine": "7"}
    entry = {"batch_id": 7, "query_id": "q", "operation": "INSERT"}
    assert json.loads(extra["hudistream.checkpoint"]) == {"mine": entry}
