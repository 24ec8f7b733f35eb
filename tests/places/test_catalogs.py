"""Tables in a real Hive metastore: what is there afterwards, and what Trino and Spark with Hudi read through it."""

import json
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from engine import rows
from fake_catalog import FakeCatalog
from kafka_broker import fetch_jars
from metastore import serve_metastore
from oracles.trino import serve_trino
from s3_server import s3_options
from servers import free_port

from hudistream import ArrowSink
from table import CatalogError, read_table
from table.catalog import hive_metastore
from table.catalog.hive_metastore import HiveMetastore
from table.catalog.in_parts import act_in_parts
from table.catalog.sync import sync_table
from table.hudi_table import HudiTable
from table.options.write_options import parse_options

pytestmark = [pytest.mark.slow, pytest.mark.places]
SYNC = "hoodie.datasource.hive_sync."
READER = Path(__file__).with_name("read_by_spark.py")
BUNDLE = "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.0.2"
HADOOP = "3.3.4"  # of the PySpark wheel
BY_HAND = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
PARTITIONS = int(os.environ.get("PARTITIONS", "35000"))


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with serve_metastore(tmp_path_factory.mktemp("metastore") / "m") as (found, _):
        yield found


def settings_of(address, database, **options):
    named = {f"{SYNC}metastore.uris": address, f"{SYNC}database": database, **options}
    return parse_options(named).options.catalog


def write(path, options, number, batch, store=None):
    """Writes a batch, and waits for the services after it."""
    with ArrowSink(
        path, {"hoodie.clean.automatic": "false", **options}, store, key="id", partition_by="p", order_by="ts"
    ) as sink:
        sink.write(batch, number)


def wider(numbers, **values):
    batch = rows(numbers, **values)
    return batch.append_column("w", pa.array([1.5] * len(batch)))


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("is_styled", [False, True])
def test_the_metastore_has_what_the_catalog_in_memory_has(address, tmp_path, kind, is_styled):
    path, database = str(tmp_path / "t"), f"lake_{kind[:4].lower()}_{str(is_styled).lower()}"
    options = {
        "hoodie.datasource.write.table.type": kind,
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.datasource.write.hive_style_partitioning": str(is_styled).lower(),
    }
    settings = settings_of(address, database, **{f"{SYNC}batch_num": "10"})
    memory, catalog = FakeCatalog(), HiveMetastore(settings)
    names = ["t", "t_ro", "t_rt"] if kind == "MERGE_ON_READ" else ["t"]

    def both():
        done = [sync_table(HudiTable.open(path), one, settings) for one in (memory, catalog)]
        assert done[0] == done[1]
        for name in names:
            found, wanted = catalog.find_table(database, name), memory.find_table(database, name)
            own = {"transient_lastDdlTime", "last_modified_by", "last_modified_time", "COLUMN_STATS_ACCURATE"}
            assert {k: v for k, v in found.parameters.items() if k not in own} == dict(wanted.parameters)
            assert (found.columns, found.partition_keys, found.location) == (
                wanted.columns, wanted.partition_keys, wanted.location,
            )  # fmt: skip
            assert catalog.list_partitions(found) == memory.list_partitions(found)
            with catalog._asking("test") as client:
                stored = client.get_partitions(database, name, -1)
            assert {tuple(c.name for c in one.sd.cols) for one in stored} == {tuple(c.name for c in found.columns)}
        return done[0]

    write(path, options, 0, rows(range(45), partition=lambda n: f"p{n}"))
    assert both().partitions_added == 45 * len(names)
    with catalog._asking("test") as client:
        stored = client.get_table(database, "t")
        stored.sd.cols[5].comment = "the key"
        client.alter_table(database, "t", stored)
    batch = wider(range(45, 50), partition=lambda n: f"p{n}")
    write(path, options, 1, batch)
    assert (both().partitions_added, both().is_empty) == (5 * len(names), True)
    gone = "p=p1*" if is_styled else "p1*"
    drop = {
        "hoodie.datasource.write.operation": "delete_partition",
        "hoodie.datasource.write.partitions.to.delete": gone,
    }
    write(path, {**options, **drop}, 2, batch.slice(0, 0))
    assert both().partitions_dropped == 11 * len(names)
    with catalog._asking("test") as client:
        assert client.get_table(database, "t").sd.cols[5].comment == "the key"
    catalog.close()


def test_spark_with_hudis_bundle_reads_through_the_metastore(address, tmp_path):
    wanted = {}
    for name, options in {
        "cow": {"hoodie.datasource.write.hive_style_partitioning": "true"},
        "plain": {},
        "mor": {"hoodie.datasource.write.table.type": "MERGE_ON_READ"},
        "eight": {"hoodie.write.table.version": "8"},
    }.items():
        path = str(tmp_path / name)
        shown = {**options, "hoodie.table.name": name, "hoodie.datasource.write.operation": "upsert"}
        shown |= {f"{SYNC}enable": "true", f"{SYNC}metastore.uris": address, f"{SYNC}database": "read"}
        write(path, shown, 0, rows(range(9)))
        write(path, shown, 1, rows(range(5), ts=1, v="new"))
        write(path, shown, 2, wider(range(5, 12), ts=2, v="newer"))
        wanted[name] = sorted(
            [row["id"], row["p"], row["ts"], row["v"], row["w"]] for row in read_table(path).to_pylist()
        )
    asked = [
        f"SELECT id, p, ts, v, w FROM read.{name} WHERE p <> 'p9' ORDER BY id"
        for name in ("cow", "plain", "mor", "mor_rt")
    ]
    asked += [
        "SELECT count(*) FROM read.mor_ro",
        "SELECT id, p, ts, v, w FROM read.eight ORDER BY id",
        "SHOW PARTITIONS read.cow",
    ]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, str(READER), BUNDLE, address, json.dumps(asked)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-30000:]
    found = json.loads(done.stdout.strip().splitlines()[-1])
    assert [sorted(answer) for answer in found[:4]] == [wanted["cow"], wanted["plain"], wanted["mor"], wanted["mor"]]
    assert found[4] == [[12]]  # new rows have base files at once; what changed since is not seen
    assert sorted(found[5]) == wanted["eight"]
    assert sorted(row[0] for row in found[6]) == ["p=p0", "p=p1", "p=p2"]


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """(options of a store that speaks S3, address of a metastore, Trino above both)."""
    folder = tmp_path_factory.mktemp("lake")
    jars = fetch_jars(folder / "hadoop-aws", "org.apache.hadoop", "hadoop-aws", HADOOP)
    with s3_options() as store:
        endpoint = store["client_kwargs"]["endpoint_url"]
        hadoop = {
            "fs_s3a_endpoint": endpoint,
            "fs_s3a_path_style_access": "true",
            "fs_s3a_access_key": store["key"],
            "fs_s3a_secret_key": store["secret"],
        }
        with serve_metastore(folder / "m", jars, **hadoop) as (address, _):
            properties = {
                "hive.metastore.uri": address,
                "fs.native-s3.enabled": "true",
                "s3.endpoint": endpoint,
                "s3.region": store["client_kwargs"]["region_name"],
                "s3.path-style-access": "true",
                "s3.aws-access-key": store["key"],
                "s3.aws-secret-key": store["secret"],
            }
            (folder / "trino").mkdir()
            with serve_trino(folder / "trino", properties) as trino:
                yield store, address, trino


def test_trino_reads_tables_on_s3_through_the_metastore(lake):
    store, address, trino = lake
    for name, options in {
        "styled": {"hoodie.datasource.write.hive_style_partitioning": "true"},
        "plain": {},
        "mor": {"hoodie.datasource.write.table.type": "MERGE_ON_READ"},
    }.items():
        path = f"s3a://lake/{name}"
        shown = {**options, "hoodie.table.name": name, "hoodie.datasource.write.operation": "upsert"}
        shown |= {f"{SYNC}enable": "true", f"{SYNC}metastore.uris": address, f"{SYNC}database": "lake"}
        changes = [rows(range(9)), rows(range(5), ts=1, v="new"), wider(range(5, 12), ts=2, v="newer")]
        for number, batch in enumerate(changes):
            write(path, shown, number, batch, store)
        view, wanted = f"lake.{name}", read_table(path, storage_options=store)
        if name == "mor":  # Trino reads base files: new rows have them at once, changed ones after their compaction
            view, wanted = "lake.mor_ro", pa.concat_tables([changes[0], changes[2].slice(4)], promote_options="default")
        found = trino.ask(f"SELECT id, p, ts, v, w FROM {view} WHERE p <> 'p9'")
        in_order = partial(sorted, key=lambda row: row[0])
        assert in_order(found) == in_order(
            [row[key] for key in ("id", "p", "ts", "v", "w")] for row in wanted.to_pylist()
        )
        assert len(found) == 12
        some = trino.ask(f"SELECT count(*) FROM {view} WHERE p = 'p1'")
        assert some == [[sum(value == "p1" for value in wanted.column("p").to_pylist())]]
    drop = {
        "hoodie.datasource.write.operation": "delete_partition",
        "hoodie.datasource.write.partitions.to.delete": "p=p1",
    }
    shown = {"hoodie.table.name": "styled", f"{SYNC}enable": "true", f"{SYNC}metastore.uris": address}
    write("s3a://lake/styled", {**shown, f"{SYNC}database": "lake", **drop}, 3, rows([]), store)
    assert trino.ask("SELECT p, count(*) FROM lake.styled GROUP BY p ORDER BY p") == [["p0", 4], ["p2", 4]]


def test_many_new_partitions_go_over_several_connections(tmp_path, monkeypatch):
    """Two catalogs of one metastore each: one connection, and four; with the processor time of the metastore."""
    path, told = str(tmp_path / "t"), []
    with ArrowSink(path, BY_HAND, key="id", partition_by="p") as sink:
        for first in range(0, PARTITIONS, 5000):
            sink.write(rows(range(first, min(first + 5000, PARTITIONS)), partition=lambda n: f"p{n}"))
    for connections in (1, 4):
        with serve_metastore(tmp_path / f"m{connections}") as (address, process):
            settings = settings_of(address, "many")
            catalog = HiveMetastore(settings)
            catalog.create_database("warm")
            monkeypatch.setattr(hive_metastore, "act_in_parts", partial(act_in_parts, connections=connections))
            server, started = psutil.Process(process.pid), time.monotonic()
            before = server.cpu_times()
            done = sync_table(HudiTable.open(path), catalog, settings)
            seconds, after = time.monotonic() - started, server.cpu_times()
            assert done.partitions_added == PARTITIONS
            spent = after.user + after.system - before.user - before.system
            told.append((connections, round(seconds, 1), round(spent, 1)))
            found = catalog.list_partitions(catalog.find_table("many", "t"))
            assert len(found) == PARTITIONS
            catalog.close()
    print("\n(connections, seconds, processor seconds of the metastore):", told)
    (_, alone, _), (_, together, spent) = told
    # Derby does one thing at a time: then the metastore computes all the while, and connections cannot help
    assert together < alone / 2 or spent > 0.8 * together, told


def test_a_metastore_that_is_down_for_ten_batches_is_caught_up_with(tmp_path):
    path, port = str(tmp_path / "t"), free_port()
    options = {
        "hoodie.table.name": "t",
        f"{SYNC}enable": "true",
        f"{SYNC}metastore.uris": f"thrift://127.0.0.1:{port}",
        f"{SYNC}database": "down",
    }

    def registered():
        catalog = HiveMetastore(settings_of(f"thrift://127.0.0.1:{port}", "down"))
        found = catalog.list_partitions(catalog.find_table("down", "t"))
        catalog.close()
        return sorted(value for (value,) in found)

    def write_each(numbers):
        for number in numbers:
            write(path, options, number, rows([number], partition=lambda n: f"p{n:02}"))

    with serve_metastore(tmp_path / "m", port=port):
        write_each(range(2))
        assert registered() == ["p00", "p01"]
    write_each(range(2, 12))  # no batch fails
    assert len(read_table(path)) == 12
    with serve_metastore(tmp_path / "m", port=port):
        assert registered() == ["p00", "p01"]
        write_each([12])
        assert registered() == [f"p{n:02}" for n in range(13)]


def test_a_metastore_that_is_down_is_named(tmp_path):
    write(str(tmp_path / "t"), {}, 0, rows([0]))
    settings = settings_of("thrift://127.0.0.1:9", "lake")
    with pytest.raises(CatalogError, match=r"thrift://127\.0\.0\.1:9 did not answer for the database 'lake'"):
        sync_table(HudiTable.open(str(tmp_path / "t")), HiveMetastore(settings), settings)


def test_a_metastore_behind_an_address_that_is_down_is_found(address, tmp_path):
    write(str(tmp_path / "t"), {}, 0, rows([0]))
    settings = settings_of(f"thrift://127.0.0.1:9,{address}", "behind")
    assert sync_table(HudiTable.open(str(tmp_path / "t")), HiveMetastore(settings), settings).created == ("behind.t",)
