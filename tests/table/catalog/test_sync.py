"""What a sync looks at, what it changes, and what it does where the catalog says something else."""

import json
from pathlib import Path
from urllib.request import Request, urlopen

import boto3
import pyarrow as pa
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from engine import Engine, rows
from fake_catalog import FakeCatalog
from needs import require
from tiers import quick

from hudistream import ArrowSink, create_savepoint
from hudistream import restore_to_savepoint as restore
from table import CatalogError, InvalidConfigError
from table.catalog import connect as connect_module
from table.catalog import sync as catalog_sync
from table.catalog.glue import GlueCatalog
from table.catalog.sync import catalog_location, sync_table
from table.hudi_table import HudiTable
from table.options.catalog_settings import CatalogKind
from table.options.write_options import parse_options
from table.services.catalog_service import CatalogService
from table.timeline.instant import Action

SYNC = "hoodie.datasource.hive_sync."
ARCHIVES = {
    "hoodie.archive.automatic": "true",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.automatic": "true",
    "hoodie.clean.commits.retained": "1",
    "hoodie.clean.async.enabled": "false",
}
ENABLED = {f"{SYNC}enable": "true", f"{SYNC}mode": "glue", f"{SYNC}database": "Lake"}


def settings_of(**options):
    return parse_options({f"{SYNC}database": "Lake", **options}).options.catalog


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "t")


def sync(path, catalog, everything=False, **options):
    return sync_table(HudiTable.open(path), catalog, settings_of(**options), everything=everything)


def test_a_sync_looks_at_what_was_written_since_the_last_one(path):
    catalog, engine = FakeCatalog(), Engine(path)
    engine.write(0, rows(range(3)))
    assert sync(path, catalog).has_listed
    assert sorted(catalog.list_partitions(catalog.tables["lake", "t"])) == [("p0",), ("p1",), ("p2",)]
    catalog.calls.clear()
    engine.write(1, rows([4], partition=lambda _: "p9"))
    engine.write(2, rows([5], partition=lambda _: "p8"))
    done = sync(path, catalog)
    assert (done.partitions_added, done.has_listed) == (2, False)
    assert catalog.calls == ["create_database", "find_table", "add_partitions", "change_table"]
    assert catalog.tables["lake", "t"].parameters["last_commit_time_sync"] == done.synced_until
    assert done.synced_until == HudiTable.open(path).load_timeline().last_time


def test_a_sync_that_missed_what_archival_took_lists(path):
    catalog, engine = FakeCatalog(), Engine(path, ARCHIVES)
    engine.write(0, rows([0], partition=lambda _: "p0"))
    sync(path, catalog)
    for number in range(1, 9):
        engine.write(number, rows([number], partition=lambda n: f"p{n}"))
    done = sync(path, catalog)
    assert (done.partitions_added, done.has_listed) == (8, True)


def test_a_partition_without_rows_leaves_and_one_that_is_written_again_comes_back(path):
    catalog = FakeCatalog()
    Engine(path).write(0, rows(range(3)))
    sync(path, catalog)
    drop = {
        "hoodie.datasource.write.operation": "delete_partition",
        "hoodie.datasource.write.partitions.to.delete": "p1,p2",
    }
    Engine(path, drop).write(1, rows([0]).slice(0, 0))
    Engine(path).write(2, rows([7], partition=lambda _: "p2"))
    assert sync(path, catalog).partitions_dropped == 1
    assert sorted(catalog.partitions["lake", "t"]) == [("p0",), ("p2",)]
    catalog.partitions["lake", "t"]["p7",] = ("elsewhere", ())
    catalog.partitions["lake", "t"]["p0",] = ("elsewhere", ())
    done = sync(path, catalog, everything=True)
    assert (done.partitions_dropped, done.partitions_moved, done.partitions_added) == (1, 1, 0)
    assert {v: place.rpartition("/")[2] for v, (place, _) in catalog.partitions["lake", "t"].items()} == {
        ("p0",): "p0", ("p2",): "p2",
    }  # fmt: skip


def test_a_write_that_was_pending_at_the_last_sync_is_looked_at_when_it_is_completed(path, tmp_path):
    """Several writers: the one that began first may be completed last."""
    catalog, engine = FakeCatalog(), Engine(path)
    engine.write(0, rows([0], partition=lambda _: "p0"))
    engine.write(1, rows([1], partition=lambda _: "p1"))
    engine.write(2, rows([2], partition=lambda _: "p2"))
    table = HudiTable.open(path)
    middle = table.load_timeline().completed_of(Action.COMMIT)[1]
    completed = Path(path, ".hoodie", f"{middle.time}.commit")
    completed.rename(tmp_path / "later")  # as it was before its completion
    first = sync(path, catalog)
    assert first.synced_until < middle.time
    (tmp_path / "later").rename(completed)
    catalog.partitions["lake", "t"].pop(("p1",), None)
    assert sync(path, catalog).has_listed is False
    assert sorted(catalog.partitions["lake", "t"]) == [("p0",), ("p1",), ("p2",)]


def test_the_partition_of_a_write_that_was_undone_behind_a_pending_one_leaves(path, tmp_path):
    catalog, engine = FakeCatalog(), Engine(path)
    for number in range(3):
        engine.write(number, rows([number], partition=lambda _, number=number: f"p{number}"))
    _, middle, last = HudiTable.open(path).load_timeline().completed_of(Action.COMMIT)
    Path(path, ".hoodie", f"{middle.time}.commit").rename(tmp_path / "later")
    sync(path, catalog)
    assert sorted(catalog.partitions["lake", "t"]) == [("p0",), ("p2",)]
    for left in [*Path(path, ".hoodie").glob(f"{last.time}.*"), *Path(path, "p2").glob("*.parquet")]:
        left.unlink()
    assert sync(path, catalog).has_listed
    assert sorted(catalog.partitions["lake", "t"]) == [("p0",)]
    (tmp_path / "later").rename(Path(path, ".hoodie", f"{middle.time}.commit"))
    assert not sync(path, catalog).has_listed
    assert not sync(path, catalog).has_listed
    assert sorted(catalog.partitions["lake", "t"]) == [("p0",), ("p1",)]


def test_a_sync_lists_each_time_where_it_is_told_to(path):
    catalog, engine = FakeCatalog(), Engine(path)
    engine.write(0, rows(range(3)))
    sync(path, catalog)
    assert not sync(path, catalog).has_listed
    assert sync(path, catalog, **{"hoodie.meta.sync.incremental": "false"}).has_listed


@pytest.mark.parametrize(("decodes", "value"), [(None, "a%20b"), ("true", "a b"), ("false", "a%20b")])
def test_partition_paths_are_decoded_where_it_is_told_to(path, decodes, value):
    catalog = FakeCatalog()
    Engine(path).write(0, rows([0], partition=lambda _: "a%20b"))
    sync(path, catalog, **({"hoodie.meta.sync.decode_partition": decodes} if decodes else {}))
    assert list(catalog.partitions["lake", "t"]) == [(value,)]


def registered(catalog):
    return catalog.tables, catalog.partitions


def test_a_sync_that_ends_at_any_call_is_finished_by_the_next_one(path):
    """A driver that dies in the middle of it, with new columns and partitions, and one that was deleted."""
    drop = {
        "hoodie.datasource.write.operation": "delete_partition",
        "hoodie.datasource.write.partitions.to.delete": "p1",
    }
    whole, stopped = FakeCatalog(), []
    Engine(path).write(0, rows(range(3)))
    for catalog in (whole, *(FakeCatalog() for _ in range(12))):
        sync(path, catalog)
        catalog.calls.clear()
        stopped.append(catalog)
    wider = rows(range(3, 9), partition=lambda n: f"p{n}").append_column("w", pa.array([1] * 6))
    Engine(path).write(1, wider, schema=wider.schema)
    Engine(path, drop).write(2, wider.slice(0, 0), schema=wider.schema)
    sync(path, whole)
    for number, catalog in enumerate(stopped[1:], start=1):
        catalog.ends_at = number
        if number <= len(whole.calls):
            with pytest.raises(CatalogError):
                sync(path, catalog)
        catalog.ends_at = None
        sync(path, catalog)
        assert registered(catalog) == registered(whole), number
    assert len(whole.calls) < 12


def test_a_field_with_large_letters_and_a_value_with_an_equals_sign_keep_their_values(tmp_path):
    styled = {"hoodie.datasource.write.hive_style_partitioning": "true"}
    batch = pa.table({"id": ["a", "b"], "Region": ["eu", "x=y"]})
    wanted = {}
    for name, options in (("styled", styled), ("plain", {})):
        path, catalog = str(tmp_path / name), FakeCatalog()
        with ArrowSink(path, {**options, "hoodie.table.name": "t"}, key="id", partition_by="Region") as sink:
            sink.write(batch, 0)
        sync(path, catalog, **{f"{SYNC}partition_fields": "region"})
        wanted[name] = sorted(catalog.partitions["lake", "t"])
        found = catalog.tables["lake", "t"]
        assert [column.name for column in found.columns][5:] == ["id"]
        assert [(key.name, key.type) for key in found.partition_keys] == [("region", "string")]
    assert wanted == {"styled": [("eu",), ("x=y",)], "plain": [("eu",), ("x=y",)]}


def test_a_deleted_partition_stays_away_after_its_deletion_was_archived(path):
    """Its folder is there yet, without a file that counts."""
    catalog = FakeCatalog()
    Engine(path, ARCHIVES).write(0, rows(range(3)))
    sync(path, catalog)
    drop = {
        "hoodie.datasource.write.operation": "delete_partition",
        "hoodie.datasource.write.partitions.to.delete": "p1",
    }
    Engine(path, {**ARCHIVES, **drop}).write(1, rows([0]).slice(0, 0))
    for number in range(2, 9):
        Engine(path, ARCHIVES).write(number, rows([number * 3]))
    assert sync(path, catalog).has_listed
    assert sorted(catalog.partitions["lake", "t"]) == [("p0",), ("p2",)]


def test_a_partition_comes_back_with_a_restore(path):
    catalog = FakeCatalog()
    Engine(path).write(0, rows(range(3)))
    table = HudiTable.open(path)
    saved = create_savepoint(table)
    drop = {
        "hoodie.datasource.write.operation": "delete_partition",
        "hoodie.datasource.write.partitions.to.delete": "p1",
    }
    Engine(path, drop).write(1, rows([0]).slice(0, 0))
    Engine(path).write(2, rows([1], partition=lambda _: "new"))
    sync(path, catalog)
    assert sorted(catalog.partitions["lake", "t"]) == [("new",), ("p0",), ("p2",)]
    restore(table, saved, force=True)
    sync(path, catalog)
    assert sorted(catalog.partitions["lake", "t"]) == [("p0",), ("p1",), ("p2",)]


@pytest.mark.parametrize("everything", [False, True])
def test_a_partition_that_another_writer_fills_while_a_sync_looks_is_not_dropped(path, everything):
    """The other writer has registered it, and its sync is the last one to say how far the catalog is."""

    class Slow(FakeCatalog):
        def list_partitions(self, of):
            self.act()
            return super().list_partitions(of)

        def find_table(self, database, name):
            found = super().find_table(database, name)
            if not everything:
                self.act()
            return found

        def act(self):
            Engine(path).write(9, rows([1], ts=5))
            self.act = lambda: None
            self.partitions["lake", "t"]["p1",] = (f"file:{path}/p1", ())

    catalog = Slow()
    catalog.act = lambda: None
    Engine(path).write(0, rows(range(3)))
    sync(path, catalog)
    del catalog.act
    drop = {
        "hoodie.datasource.write.operation": "delete_partition",
        "hoodie.datasource.write.partitions.to.delete": "p1",
    }
    Engine(path, drop).write(1, rows([0]).slice(0, 0))
    assert sync(path, catalog, everything=everything).partitions_dropped == 0
    assert sorted(catalog.partitions["lake", "t"]) == [("p0",), ("p1",), ("p2",)]


def test_views_of_a_table_are_compared_with_one_listing(path, monkeypatch):
    walked, walk = [], catalog_sync.walk_file_groups
    monkeypatch.setattr(catalog_sync, "walk_file_groups", lambda *given: walked.append(1) or walk(*given))
    Engine(path, {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}).write(0, rows(range(3)))
    assert len(sync(path, FakeCatalog()).created) == 3
    assert walked == [1]


def test_only_changes_reach_the_catalog_where_that_is_asked_for(path):
    catalog, engine = FakeCatalog(), Engine(path)
    only = {"hoodie.datasource.meta_sync.condition.sync": "true"}
    engine.write(0, rows(range(3)))
    sync(path, catalog, **only)
    engine.write(1, rows(range(3, 6)))
    catalog.calls.clear()
    assert sync(path, catalog, **only).is_empty
    assert "change_table" not in catalog.calls
    sync(path, catalog)
    assert "change_table" in catalog.calls


def test_another_table_of_that_name_is_not_touched(tmp_path):
    catalog = FakeCatalog()
    for name in "ab":
        Engine(str(tmp_path / name)).write(0, rows([0]))
    sync(str(tmp_path / "a"), catalog)
    with pytest.raises(CatalogError, match=r"has another table 'lake\.t', at .*hive_sync\.table"):
        sync(str(tmp_path / "b"), catalog)
    assert catalog.tables["lake", "t"].location.endswith("/a")


def test_paths_with_other_levels_than_fields_are_refused_with_the_way_out(path):
    Engine(path).write(0, rows([0], partition=lambda _: "2026/01/02"))
    with pytest.raises(CatalogError, match="has 3 levels, and the table has 1 partition fields"):
        sync(
            path,
            FakeCatalog(),
            **{f"{SYNC}partition_extractor_class": "org.apache.hudi.hive.MultiPartKeysValueExtractor"},
        )
    catalog = FakeCatalog()
    sync(path, catalog, **{f"{SYNC}partition_extractor_class": "SlashEncodedDayPartitionValueExtractor"})
    assert list(catalog.partitions["lake", "t"]) == [("2026-01-02",)]


def test_a_table_without_a_commit_is_not_registered(path):
    Engine(path).write(0, rows([0]).slice(0, 0))
    catalog = FakeCatalog()
    assert sync(path, catalog).is_empty
    assert catalog.tables == {}


def test_a_catalog_that_is_down_fails_no_batch_and_is_caught_up(path):
    engine = Engine(path, ENABLED)
    [service] = [one for one in engine.writer.services.services if isinstance(one, CatalogService)]
    service._catalog = catalog = FakeCatalog()
    catalog.is_down = True
    for number in range(10):
        engine.write(number, rows([number], partition=lambda n: f"p{n}"))
        engine.writer.services.wait()
    assert engine.writer.services.failures == 10
    assert catalog.tables == {}
    catalog.is_down = False
    engine.write(10, rows([10], partition=lambda n: f"p{n}"))
    engine.writer.services.wait()
    assert len(catalog.partitions["lake", "t"]) == 11
    assert engine.writer.services.failures == 10


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({f"{SYNC}enable": "true"}, "nothing says in which"),
        ({f"{SYNC}enable": "true", f"{SYNC}mode": "hms"}, "metastore.uris=thrift"),
        ({f"{SYNC}enable": "true", f"{SYNC}metastore.uris": "thrift://h:90a3"}, "no address of a metastore"),
        ({f"{SYNC}mode": "jdbc"}, "hms, glue"),
        ({"hoodie.meta.sync.client.tool.class": "org.apache.hudi.gcp.bigquery.BigQuerySyncTool"}, "no sync tool"),
        ({f"{SYNC}create_managed_table": "true"}, "owns a table deletes its files"),
    ],
)
def test_what_cannot_be_done_is_said_before_the_first_batch(options, told):
    with pytest.raises(InvalidConfigError, match=told):
        parse_options(options)


def test_flinks_and_hudis_words_mean_the_same():
    flink = {
        "hive_sync.enable": "true",
        "hive_sync.metastore.uris": "thrift://a:1",
        "hive_sync.db": "d",
        "hive_sync.table": "x",
    }
    hudi = {
        f"{SYNC}enable": "true",
        f"{SYNC}metastore.uris": "thrift://a:1",
        f"{SYNC}database": "d",
        f"{SYNC}table": "x",
    }
    assert parse_options(flink).options.catalog == parse_options(hudi).options.catalog
    tool = {"hoodie.meta.sync.client.tool.class": "org.apache.hudi.aws.sync.AwsGlueCatalogSyncTool"}
    assert parse_options({**tool, f"{SYNC}mode": "hms", f"{SYNC}enable": "true"}).options.catalog.kind == "glue"
    assert parse_options({**tool, "hoodie.datasource.meta.sync.enable": "true"}).options.catalog.kind == "glue"


@pytest.mark.parametrize(
    ("uri", "mode", "wanted"),
    [
        ("/data/t", "hms", "file:/data/t"),
        ("s3a://lake/t", "hms", "s3a://lake/t"),
        ("s3a://lake/t", "glue", "s3://lake/t"),
        ("s3://lake/t", "glue", "s3://lake/t"),
    ],
)
def test_locations_are_those_of_the_catalogs_readers(uri, mode, wanted):
    assert catalog_location(uri, settings_of(**{f"{SYNC}mode": mode})) == wanted


@pytest.fixture(scope="module")
def glue_address():
    server = require("moto.server").ThreadedMotoServer(port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    yield f"http://127.0.0.1:{port}"
    server.stop()


@pytest.fixture
def glue(glue_address):
    urlopen(Request(f"{glue_address}/moto-api/reset", method="POST")).close()
    return boto3.client(
        "glue", endpoint_url=glue_address, region_name="eu-west-1", aws_access_key_id="k", aws_secret_access_key="s"
    )


@pytest.mark.parametrize("is_mor", quick(1, [True, False]))
def test_glue_has_what_the_catalog_in_memory_has(path, glue, is_mor):
    options = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"} if is_mor else {}
    upserts = {**options, "hoodie.datasource.write.operation": "upsert"}
    memory, catalog = FakeCatalog(), GlueCatalog(settings_of(), glue)
    names = ["t", "t_ro", "t_rt"] if is_mor else ["t"]

    def both():
        done = [sync(path, one) for one in (memory, catalog)]
        assert done[0] == done[1]
        for name in names:
            found = catalog.find_table("lake", name)
            assert found == memory.find_table("lake", name)
            assert catalog.list_partitions(found) == memory.list_partitions(found)
            stored = glue.get_partitions(DatabaseName="lake", TableName=name)["Partitions"]
            columns = {
                name: [c["Name"] for c in one["StorageDescriptor"]["Columns"]] for name in names for one in stored
            }
            assert set(map(tuple, columns.values())) == {tuple(c.name for c in found.columns)}
        return done[0]

    Engine(path, upserts).write(0, rows(range(120), partition=lambda n: f"p{n}"))
    assert both().partitions_added == 120 * len(names)
    wider = rows(range(120, 130), partition=lambda n: f"p{n}").append_column("w", pa.array([1] * 10))
    Engine(path, upserts).write(1, wider, schema=wider.schema)
    done = both()
    assert (done.partitions_added, len(done.changed)) == (10 * len(names), len(names))
    drop = {
        "hoodie.datasource.write.operation": "delete_partition",
        "hoodie.datasource.write.partitions.to.delete": "p1*",
    }
    Engine(path, {**options, **drop}).write(2, wider.slice(0, 0), schema=wider.schema)
    assert both().partitions_dropped == 41 * len(names)
    stored = glue.get_table(DatabaseName="lake", Name="t")["Table"]
    said = {key: stored[key] for key in ("Name", "TableType", "Parameters", "PartitionKeys", "StorageDescriptor")}
    said["Parameters"] = {**said["Parameters"], "projection.enabled": "true", "spark.sql.sources.schema.part.7": "old"}
    said["StorageDescriptor"]["Columns"][5]["Comment"] = "the key"
    glue.update_table(DatabaseName="lake", TableInput={**said, "Description": "set by a user"})
    Engine(path, upserts).write(3, wider.slice(0, 1), schema=wider.schema)
    sync(path, catalog)
    stored = glue.get_table(DatabaseName="lake", Name="t")["Table"]
    assert (stored["Description"], stored["Parameters"]["projection.enabled"]) == ("set by a user", "true")
    assert stored["StorageDescriptor"]["Columns"][5]["Comment"] == "the key"
    assert "spark.sql.sources.schema.part.7" not in stored["Parameters"]
    parameters = stored["Parameters"]
    assert parameters["hudi.metadata-listing-enabled"] == "FALSE"
    assert json.loads(parameters["spark.sql.sources.schema.part.0"])["fields"][-1]["name"] == "p"


def test_a_new_column_reaches_all_partitions_of_glue_whatever_fails_before(path, glue):
    class Throttled:
        def __getattr__(self, name):
            return self._fail if name == self.fails else getattr(glue, name)

        def _fail(self, **_):
            raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "Rate exceeded"}}, self.fails)

    client = Throttled()
    client.fails = None
    catalog = GlueCatalog(settings_of(), client)
    Engine(path).write(0, rows(range(3)))
    sync(path, catalog)
    wider = rows(range(3, 6)).append_column("w", pa.array([1] * 3))
    Engine(path).write(1, wider, schema=wider.schema)
    for client.fails in ("batch_update_partition", "update_table"):
        with pytest.raises(CatalogError, match="Rate exceeded"):
            sync(path, catalog)
    client.fails = None
    assert sync(path, catalog).changed == ("lake.t",)
    stored = glue.get_partitions(DatabaseName="lake", TableName="t")["Partitions"]
    assert [one["StorageDescriptor"]["Columns"][-1]["Name"] for one in stored] == ["w"] * 3


def test_an_error_of_glue_names_the_table(path, glue_address):
    client = boto3.client(
        "glue",
        endpoint_url="http://127.0.0.1:9",
        region_name="eu-west-1",
        aws_access_key_id="k",
        aws_secret_access_key="s",
        config=Config(retries={"max_attempts": 0}),
    )
    Engine(path).write(0, rows([0]))
    with pytest.raises(CatalogError, match=r"AWS Glue did not do its part for the database 'lake': .*127\.0\.0\.1:9"):
        sync(path, GlueCatalog(settings_of(), client))


def test_each_kind_of_catalog_has_a_client():
    assert {*connect_module._CATALOGS} == {*CatalogKind}
