"""The registration of a table in a catalog (pure; HoodieSyncClient, HMSDDLExecutor, SparkDataSourceTableUtils)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import pyarrow as pa

from table.config.table_config import TableConfig
from table.options.catalog_settings import CatalogSettings, PartitionExtractor, RegisteredAs
from table.options.choices import TableType
from table.schema.avro_schema import META_FIELDS
from table.schema.column_types import hive_type, spark_schema

READ_OPTIMIZED_FORMAT = "org.apache.hudi.hadoop.HoodieParquetInputFormat"
REALTIME_FORMAT = "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat"
OUTPUT_FORMAT = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat"
SERDE = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
LAST_SYNC = "last_commit_time_sync"
SYNCED_BEYOND = "hudistream.synced.beyond"
# without it Spark reads a table as one of version 2.2 or earlier; any later version has the same effect
_SPARK_VERSION = "3.5.0"


@dataclass(frozen=True)
class CatalogColumn:
    """A column: its name in small letters, and Hive's name of its type."""

    name: str
    type: str


@dataclass(frozen=True)
class Registration:
    """A table as a catalog registers it.

    Attributes:
        database: database of the registration.
        name: name of the table in the catalog.
        location: address of the table's root.
        columns: the columns, without the partition columns.
        partition_keys: the partition columns.
        input_format: Hadoop's class that reads the table.
        is_read_optimized: whether the view shows base files only.
        parameters: properties of the table, the properties of its schema included.
        own_serde: properties of the SerDe that the options name.
    """

    database: str
    name: str
    location: str
    columns: tuple[CatalogColumn, ...]
    partition_keys: tuple[CatalogColumn, ...]
    input_format: str
    is_read_optimized: bool = False
    parameters: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    own_serde: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), compare=False)

    @property
    def serde_parameters(self) -> dict[str, str]:
        """Properties of the SerDe; they say how Spark is to open the table."""
        read_optimized = "true" if self.is_read_optimized else "false"
        parameters = {"hoodie.query.as.ro.table": read_optimized, "path": self.location, "serialization.format": "1"}
        return {**self.own_serde, **parameters}


def register_as(
    config: TableConfig, schema: pa.Schema, location: str, settings: CatalogSettings, last_sync: str
) -> tuple[Registration, ...]:
    """The registrations of a table: one view of a copy-on-write table, up to three of a merge-on-read table.

    Args:
        config: the table's properties.
        schema: the table's columns without meta columns (Arrow).
        location: address of the table's root for the catalog's readers.
        settings: names and spellings.
        last_sync: instant time up to which the table's writes are registered.
    """
    fields = tuple(settings.partition_fields or config.partition_fields)
    if settings.extractor is PartitionExtractor.NONE:
        fields = ()
    meta = [] if settings.omits_meta_fields else [pa.field(one.name, pa.string()) for one in META_FIELDS]
    all_columns = meta + list(schema)
    named = {name.lower() for name in fields}
    stored = [one for one in all_columns if one.name.lower() not in named]
    keys = [_partition_field(config, schema, name) for name in fields]
    parameters = {"EXTERNAL": "TRUE", LAST_SYNC: last_sync, "spark.sql.create.version": _SPARK_VERSION}
    parameters |= _spark_parameters(pa.schema([*stored, *keys]), fields, settings.property_piece)
    parameters = {**dict(settings.table_properties), **parameters}
    database, name = settings.database.lower(), (settings.table or config.name).lower()
    return tuple(
        Registration(
            database,
            name + suffix,
            location,
            tuple(_column(one, settings) for one in stored),
            tuple(_column(one, settings) for one in keys),
            READ_OPTIMIZED_FORMAT if config.table_type != TableType.MERGE_ON_READ or is_ro else REALTIME_FORMAT,
            is_ro,
            MappingProxyType(parameters),
            MappingProxyType(dict(settings.serde_properties)),
        )
        for suffix, is_ro in _views(config, settings)
    )


def _views(config: TableConfig, settings: CatalogSettings) -> Sequence[tuple[str, bool]]:
    """(suffix of the name, whether the view shows base files only), for each view."""
    if config.table_type != TableType.MERGE_ON_READ:
        return [("", False)]
    if settings.strategy is RegisteredAs.READ_OPTIMIZED:
        return [("", True)]
    if settings.strategy is RegisteredAs.REALTIME:
        return [("", False)]
    named = [("", False)] if settings.registers_name else []
    if settings.skip_ro_suffix:  # Hudi 1.0.2 then registers the realtime view over partitions that are read-optimised
        return [("", True), ("_rt", False)]
    return [*named, ("_ro", True), ("_rt", False)]


def _partition_field(config: TableConfig, schema: pa.Schema, name: str) -> pa.Field:
    """A partition column; its type is text if the path does not hold the column's plain value."""
    found = [number for number, one in enumerate(schema.names) if one.lower() == name.lower()]
    index = found[0] if found else -1
    is_formatted = config.keygen_type in ("TIMESTAMP", "CUSTOM")
    if index < 0 or is_formatted or pa.types.is_timestamp(schema.field(index).type):
        return pa.field(name, pa.string())
    return schema.field(index).with_name(name)


def _column(one: pa.Field, settings: CatalogSettings) -> CatalogColumn:
    return CatalogColumn(one.name.lower(), hive_type(one.type, timestamps=settings.supports_timestamp))


def _spark_parameters(schema: pa.Schema, keys: Sequence[str], piece: int) -> dict[str, str]:
    """The properties from which Spark reads the schema: its JSON, in pieces, and the partition columns."""
    text = spark_schema(schema)
    pieces = [text[start : start + piece] for start in range(0, len(text), piece)]
    found = {"spark.sql.sources.provider": "hudi", "spark.sql.sources.schema.numParts": str(len(pieces))}
    found |= {f"spark.sql.sources.schema.part.{number}": part for number, part in enumerate(pieces)}
    if keys:
        found["spark.sql.sources.schema.numPartCols"] = str(len(keys))
        found |= {f"spark.sql.sources.schema.partCol.{number}": key for number, key in enumerate(keys)}
    return found


def synced_until(one: Registration, time: str, beyond: str | None) -> Registration:
    """A registration with the writes that it has.

    Args:
        one: the registration.
        time: instant time up to which it is complete; empty: not yet complete.
        beyond: later writes that it has, as `table.catalog.path_changes.written_beyond` gives them; None: not known.
    """
    parameters = {LAST_SYNC: time, **({} if beyond is None else {SYNCED_BEYOND: beyond})}
    return replace(one, parameters=MappingProxyType({**one.parameters, **parameters}))


def others_parameters(stored: Mapping[str, str] | None) -> dict[str, str]:
    """Properties that other tools set. The schema's properties are left out: a sync writes all its pieces anew."""
    return {key: value for key, value in (stored or {}).items() if not key.startswith("spark.sql.sources.")}


def is_changed(wanted: Registration, found: Registration) -> bool:
    """Whether the columns or the properties that Spark reads differ; the time of the last sync does not count."""
    return (
        _definition(wanted) != _definition(found)
        or wanted.columns != found.columns
        or wanted.partition_keys != found.partition_keys
        or wanted.input_format != found.input_format
    )


def _definition(one: Registration) -> dict[str, str]:
    return {key: value for key, value in one.parameters.items() if key.startswith("spark.sql.sources.")}
