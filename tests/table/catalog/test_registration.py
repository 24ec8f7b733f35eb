"""What is registered is what Hudi 1.0.2's own sync registered in a Hive metastore, field by field."""

import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from fake_catalog import FakeCatalog

from hudistream import ArrowSink
from table import InvalidConfigError
from table.catalog.registration import OUTPUT_FORMAT, SERDE
from table.catalog.sync import sync_table
from table.hudi_table import HudiTable
from table.options.write_options import parse_options

DUMP = json.loads((Path(__file__).parents[2] / "data" / "hudi-1.0.2-hive-sync.json").read_text())
STYLED = {"hoodie.datasource.write.hive_style_partitioning": "true"}
LOGS = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
SYNC = "hoodie.datasource.hive_sync."
# of the metastore itself, and of the moment
OWN = ("transient_lastDdlTime", "numFiles", "totalSize", "last_commit_time_sync", "last_commit_completion_time_sync")
CASES = {
    "cow_hive": ("day", STYLED, {}),
    "cow_plain": ("day", {}, {}),
    "cow_none": ("", {}, {}),
    "cow_two": ("region,day", STYLED, {}),
    "mor_hive": ("day", {**STYLED, **LOGS}, {}),
    "mor_hive_ro": ("day", {**STYLED, **LOGS}, {}),
    "mor_hive_rt": ("day", {**STYLED, **LOGS}, {}),
    "mor_ro": ("day", {**STYLED, **LOGS}, {f"{SYNC}table.strategy": "RO"}),
    "cow_comment": ("day", STYLED, {f"{SYNC}support_timestamp": "true", f"{SYNC}schema_string_length_thresh": "600"}),
}


def batch(name, days=("2026-01-01", "2026-01-02"), more=None):
    """The rows that Hudi's tables of the dump have."""
    count = len(days)
    columns = {
        "id": pa.array(["a", "b"][:count]),
        "ts": pa.array([1, 2][:count], pa.int64()),
        "day": pa.array(days),
        "region": pa.array(["eu"] * count),
        "d": pa.array([Decimal("1.50")] * count, pa.decimal128(10, 2)),
        "xs": pa.array([[1, 2]] * count, pa.list_(pa.int32())),
        "m": pa.array([[("a", 1)]] * count, pa.map_(pa.string(), pa.int64())),
        "st": pa.array([{"x": 1, "y": "z"}] * count, pa.struct([("x", pa.int32()), ("y", pa.string())])),
        "at": pa.array([0] * count, pa.timestamp("us", "UTC")),
        "dt": pa.array([0] * count, pa.date32()),
        "f": pa.array([1] * count, pa.float32()),
        "g": pa.array([2] * count, pa.float64()),
        "b": pa.array([True] * count),
        "bin": pa.array([b"q"] * count),
        **(more or {}),
    }
    if name != "cow_two":
        del columns["region"]
    return pa.table(columns)


def write(path, name, rows, number, partitions, options):
    views = {"mor_hive_ro": "mor_hive", "mor_hive_rt": "mor_hive"}
    settings = {**options, "hoodie.table.name": views.get(name, name), "hoodie.clean.automatic": "false"}
    partition_by = partitions.split(",") if partitions else None
    with ArrowSink(path, settings, key="id", partition_by=partition_by, order_by="ts") as sink:
        sink.write(rows, number)


def settings_of(options):
    return parse_options({f"{SYNC}database": "lake", **options}).options.catalog


def as_dumped(one, partitions, path):
    """A registration in the words of the dump."""
    location = f"file:{path}"
    text = json.dumps(
        {
            "columns": [[column.name, column.type] for column in one.columns],
            "keys": [[column.name, column.type] for column in one.partition_keys],
            "location": one.location,
            "formats": [one.input_format, OUTPUT_FORMAT, SERDE],
            "serde": one.serde_parameters,
            "parameters": plain_parameters(one.parameters),
            "partitions": sorted(
                [list(values), place, columns == one.columns] for values, (place, columns) in partitions.items()
            ),
        }
    )
    return json.loads(text.replace(location, "ROOT"))


def as_told(dumped):
    table = dumped["table"]
    storage, serde = table["sd"], table["sd"]["serdeInfo"]
    text = json.dumps(
        {
            "columns": [[column["name"], column["type"]] for column in storage["cols"]],
            "keys": [[column["name"], column["type"]] for column in table["partitionKeys"]],
            "location": storage["location"],
            "formats": [storage["inputFormat"], storage["outputFormat"], serde["serializationLib"]],
            "serde": serde["parameters"],
            "parameters": plain_parameters(table["parameters"]),
            "partitions": sorted(
                [one["values"], one["location"], one["columns_are_the_tables"]] for one in dumped["partitions"]
            ),
        }
    )
    return json.loads(text.replace(storage["location"], "ROOT"))


def plain_parameters(parameters):
    """Without what is of the moment; the schema put together, and read."""
    kept = {key: value for key, value in parameters.items() if key not in OWN and ".part." not in key}
    pieces = int(kept.pop("spark.sql.sources.schema.numParts"))
    text = "".join(parameters[f"spark.sql.sources.schema.part.{number}"] for number in range(pieces))
    kept["schema"] = without_nulls(json.loads(text))
    kept.pop("spark.sql.create.version")
    return kept


def without_nulls(value):
    """A schema without what may be null: the columns of the dump come from literals, which are never null."""
    if isinstance(value, dict):
        return {
            k: without_nulls(v) for k, v in value.items() if k not in ("nullable", "containsNull", "valueContainsNull")
        }
    return [without_nulls(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", CASES)
def test_a_table_is_registered_as_hudi_registers_it(tmp_path, name):
    partitions, options, sync = CASES[name]
    path, catalog = str(tmp_path / "t"), FakeCatalog()
    write(path, name, batch(name), 0, partitions, options)
    sync_table(HudiTable.open(path), catalog, settings_of(sync))
    found = catalog.tables["lake", name]
    assert as_dumped(found, catalog.partitions["lake", name], path) == as_told(DUMP[name])
    assert all(len(value) <= 4000 for value in found.parameters.values())


def test_new_columns_new_partitions_and_dropped_ones_reach_the_catalog_as_hudis_do(tmp_path):
    path, catalog, settings = str(tmp_path / "t"), FakeCatalog(), settings_of({})
    write(path, "cow_hive", batch("cow_hive"), 0, "day", STYLED)
    sync_table(HudiTable.open(path), catalog, settings)
    more = {"newcol": pa.array([7, 7], pa.int32())}
    write(path, "cow_hive", batch("cow_hive", ("2026-01-03", "2026-01-02"), more), 1, "day", STYLED)
    done = sync_table(HudiTable.open(path), catalog, settings)
    assert (done.changed, done.partitions_added, done.has_listed) == (("lake.cow_hive",), 1, False)
    drop = {
        "hoodie.datasource.write.operation": "delete_partition",
        "hoodie.datasource.write.partitions.to.delete": "day=2026-01-02",
    }
    write(path, "cow_hive", batch("cow_hive", more=more).slice(0, 0), 2, "day", {**STYLED, **drop})
    done = sync_table(HudiTable.open(path), catalog, settings)
    assert (done.partitions_dropped, done.has_listed) == (1, False)
    found = catalog.tables["lake", "cow_hive"]
    assert as_dumped(found, catalog.partitions["lake", "cow_hive"], path) == as_told(DUMP["cow_hive_after_changes"])


def registered_as(tmp_path, table_type="COPY_ON_WRITE", **options):
    """The views of a table of one row, by name."""
    path, catalog = str(tmp_path / "t"), FakeCatalog()
    with ArrowSink(path, {"hoodie.datasource.write.table.type": table_type}, key="id", operation="upsert") as sink:
        sink.write(pa.table({"id": ["a"]}), 0)
    sync_table(HudiTable.open(path), catalog, parse_options(options).options.catalog)
    return {name: found for (_, name), found in catalog.tables.items()}


def test_what_a_registration_is_told_beside_the_table(tmp_path):
    told = {f"{SYNC}omit_metadata_fields": "true", f"{SYNC}serde_properties": "a=1\npath=/elsewhere"}
    told[f"{SYNC}table_properties"] = "owner = etl\ncomment=x=1, y\nEXTERNAL=FALSE"
    [found] = registered_as(tmp_path, **told).values()
    assert [column.name for column in found.columns] == ["id"]
    assert "_hoodie" not in found.parameters["spark.sql.sources.schema.part.0"]
    assert {key: found.parameters[key] for key in ("owner", "comment", "EXTERNAL")} == {
        "owner": "etl", "comment": "x=1, y", "EXTERNAL": "TRUE",
    }  # fmt: skip
    assert found.serde_parameters["a"] == "1"
    assert found.serde_parameters["path"] == found.location


def test_a_property_without_a_value_is_refused():
    with pytest.raises(InvalidConfigError, match="'owner' has no value: write it as name=value"):
        parse_options({f"{SYNC}table_properties": "owner"})


@pytest.mark.parametrize(
    ("given", "views"),
    [
        ({}, {"t", "t_ro", "t_rt"}),
        ({"hoodie.meta.sync.sync_snapshot_with_table_name": "false"}, {"t_ro", "t_rt"}),
        ({"hoodie.datasource.meta.sync.glue.table_name": "x"}, {"x", "x_ro", "x_rt"}),
        ({f"{SYNC}skip_ro_suffix": "true"}, {"t", "t_rt"}),
        ({f"{SYNC}table.strategy": "RT"}, {"t"}),
    ],
)
def test_the_views_of_a_merge_on_read_table(tmp_path, given, views):
    assert set(registered_as(tmp_path, "MERGE_ON_READ", **given)) == views


@pytest.mark.parametrize(("given", "made"), [({}, True), ({"hive_sync.auto_create_db": "false"}, False)])
def test_a_database_is_made_unless_it_is_not_to_be(tmp_path, given, made):
    catalog, path = FakeCatalog(), str(tmp_path / "t")
    with ArrowSink(path, key="id") as sink:
        sink.write(pa.table({"id": ["a"]}), 0)
    catalog.databases.add("default")
    sync_table(HudiTable.open(path), catalog, parse_options(given).options.catalog)
    assert ("create_database" in catalog.calls) is made
