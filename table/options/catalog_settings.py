"""Where and how a table is registered: ``hoodie.datasource.hive_sync.*`` (pure; HiveSyncConfig)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from table.config.choice import Choice
from table.errors import InvalidConfigError
from table.options.numbers import Whole
from table.options.settings import Settings, option
from table.options.values import Flag, Names, OneOf, Pairs, Text, refuse


class CatalogKind(Choice):
    """The catalog that the table is registered in."""

    HMS = "hms"
    GLUE = "glue"


class ManifestFor(Choice):
    """Who reads a list of the table's files."""

    BIGQUERY = "bigquery"
    REDSHIFT = "redshift"
    DELTA = "delta"


class RegisteredAs(Choice):
    """Which views of a merge-on-read table are registered (``hoodie.datasource.hive_sync.table.strategy``)."""

    ALL = "ALL"
    READ_OPTIMIZED = "RO"
    REALTIME = "RT"


class PartitionExtractor(Choice):
    """How a partition path is split into values."""

    WHOLE_PATH = "SinglePartPartitionValueExtractor"
    HIVE_STYLE = "HiveStylePartitionValueExtractor"
    EACH_LEVEL = "MultiPartKeysValueExtractor"
    SLASHED_DAY = "SlashEncodedDayPartitionValueExtractor"
    NONE = "NonPartitionedExtractor"


@dataclass(frozen=True)
class ClassNamed:
    """A choice that is given as the name of Hudi's class, with or without its package."""

    names: Mapping[str, Choice]
    what: str

    @property
    def allowed(self) -> str:
        """The values that may be given."""
        return ", ".join(self.names)

    def read(self, name: str, value: Any) -> Choice | None:
        """The choice; None if the value is empty."""
        if isinstance(value, Choice):
            return value
        if not isinstance(value, str):
            refuse(name, value, f"must be the name of a {self.what}")
        if not value.strip():
            return None
        found = self.names.get(value.strip().rpartition(".")[2])
        if found is None:
            refuse(name, value, f"is no {self.what} that is known here: use one of {self.allowed}")
        return found


EXTRACTORS = ClassNamed(MappingProxyType({one.value: one for one in PartitionExtractor}), "partition extractor")
SYNC_TOOLS = ClassNamed(
    MappingProxyType(
        {
            "HiveSyncTool": CatalogKind.HMS,
            "AwsGlueCatalogSyncTool": CatalogKind.GLUE,
            "AWSGlueCatalogSyncTool": CatalogKind.GLUE,
        }
    ),
    "sync tool",
)


@dataclass(frozen=True)
class CatalogSettings(Settings):
    """Registration of the table in a catalog, after commits (HiveSyncConfig, GlueCatalogSyncClientConfig).

    Attributes:
        hive_enabled: whether commits are followed by a sync (``hoodie.datasource.hive_sync.enable``).
        meta_enabled: the same by the newer key.
        mode: ``hms`` for a Hive metastore by thrift, ``glue`` for AWS Glue; None: ``hms`` where `uris` are given.
        tool: Hudi's class of the sync, which says the same as `mode`.
        uris: of the metastore, such as ``thrift://host:9083``; the first one that answers is used.
        database: the table's; created where it is absent.
        table: its name there; None: the table's own.
        partition_fields: names of the partition columns there; None: the table's partition fields.
        extractor: how partition paths are taken apart; None: by the number of fields.
        strategy: of a merge-on-read table: ALL registers ``t``, ``t_ro`` and ``t_rt``.
        skip_ro_suffix: whether the read-optimised view is ``t`` instead of ``t_ro``.
        supports_timestamp: whether instants are ``timestamp`` there, and not ``bigint``.
        creates_database: whether a database that is absent is created.
        only_changes: whether a commit that changes neither columns nor partitions changes nothing there, not even
            the time of the last sync.
        omits_meta_fields: whether the meta columns are left out there.
        decodes_paths: whether partition paths are percent-decoded; None: where the table encodes them.
        reads_changes: whether a sync reads the writes since the last one; false: it lists the table each time.
        registers_name: of a merge-on-read table: whether ALL registers ``t`` beside ``t_ro`` and ``t_rt``.
        table_properties: properties that the table gets there, each on a line of its own: ``owner=etl``.
        serde_properties: properties that its SerDe gets there, as `table_properties`.
        batch: partitions of one call; the limits of Glue apply there.
        property_piece: most letters of one property of the schema.
        manifest: after each commit a list of the newest snapshot's files is written for this engine (``delta``: a Delta
            log is kept); None: none is.
    """

    hive_enabled: bool = option(default=False, kind=Flag())
    meta_enabled: bool = option(default=False, kind=Flag())
    mode: CatalogKind | None = option(None, OneOf(CatalogKind, what="catalog"))
    tool: CatalogKind | None = option(None, SYNC_TOOLS)
    uris: tuple[str, ...] | None = option(None, Names("addresses such as thrift://host:9083, separated by commas"))
    database: str = option("default", Text())
    table: str | None = option(None, Text())
    partition_fields: tuple[str, ...] | None = option(None, Names())
    extractor: PartitionExtractor | None = option(None, EXTRACTORS)
    strategy: RegisteredAs = option(RegisteredAs.ALL, OneOf(RegisteredAs))
    skip_ro_suffix: bool = option(default=False, kind=Flag())
    supports_timestamp: bool = option(default=False, kind=Flag())
    creates_database: bool = option(default=True, kind=Flag())
    only_changes: bool = option(default=False, kind=Flag())
    omits_meta_fields: bool = option(default=False, kind=Flag())
    decodes_paths: bool | None = option(None, Flag())
    reads_changes: bool = option(default=True, kind=Flag())
    registers_name: bool = option(default=True, kind=Flag())
    table_properties: tuple[tuple[str, str], ...] = option((), Pairs())
    serde_properties: tuple[tuple[str, str], ...] = option((), Pairs())
    batch: int = option(1000, Whole(1))
    property_piece: int = option(4000, Whole(100))
    manifest: ManifestFor | None = option(None, OneOf(ManifestFor, what="reader"))

    @property
    def enabled(self) -> bool:
        """Whether commits are followed by a sync."""
        return self.hive_enabled or self.meta_enabled

    @property
    def kind(self) -> CatalogKind | None:
        """The catalog; None if no setting names one."""
        if self.tool is CatalogKind.GLUE:  # the tool decides; the mode says how to reach a Hive metastore
            return self.tool
        return self.mode or self.tool or (CatalogKind.HMS if self.uris else None)


_ADDRESS = re.compile(r"(thrift://)?[^:/\s]+(:[0-9]{1,5})?|(thrift://)?\[[0-9a-fA-F:]+\](:[0-9]{1,5})?")


def check_names_catalog(settings: CatalogSettings) -> CatalogKind:
    """Returns the catalog that the settings name, after checking that its address is given.

    Raises:
        InvalidConfigError: no catalog is named, or an address is missing or malformed.
    """
    kind = settings.kind
    if kind is None or (kind is CatalogKind.HMS and not settings.uris):
        raise InvalidConfigError(
            "the table is to be registered in a catalog, and nothing says in which: set "
            "hoodie.datasource.hive_sync.metastore.uris=thrift://host:9083 for a Hive metastore, or "
            "hoodie.datasource.hive_sync.mode=glue for AWS Glue"
        )
    for uri in settings.uris or ():
        if not _ADDRESS.fullmatch(uri):
            raise InvalidConfigError(
                f"hoodie.datasource.hive_sync.metastore.uris={uri}: is no address of a metastore: thrift://host:9083"
            )
    return kind


_SYNC = "hoodie.datasource.hive_sync."
# key -> field of `CatalogSettings`
CATALOG_KEYS: Mapping[str, str] = MappingProxyType(
    {
        f"{_SYNC}enable": "hive_enabled",
        "hoodie.datasource.meta.sync.enable": "meta_enabled",
        f"{_SYNC}mode": "mode",
        "hoodie.meta.sync.client.tool.class": "tool",
        f"{_SYNC}metastore.uris": "uris",
        f"{_SYNC}database": "database",
        f"{_SYNC}table": "table",
        f"{_SYNC}partition_fields": "partition_fields",
        f"{_SYNC}partition_extractor_class": "extractor",
        f"{_SYNC}table.strategy": "strategy",
        f"{_SYNC}skip_ro_suffix": "skip_ro_suffix",
        f"{_SYNC}support_timestamp": "supports_timestamp",
        f"{_SYNC}auto_create_database": "creates_database",
        "hoodie.datasource.meta_sync.condition.sync": "only_changes",
        f"{_SYNC}omit_metadata_fields": "omits_meta_fields",
        "hoodie.meta.sync.decode_partition": "decodes_paths",
        "hoodie.meta.sync.incremental": "reads_changes",
        "hoodie.meta.sync.sync_snapshot_with_table_name": "registers_name",
        f"{_SYNC}table_properties": "table_properties",
        f"{_SYNC}serde_properties": "serde_properties",
        f"{_SYNC}batch_num": "batch",
        f"{_SYNC}schema_string_length_thresh": "property_piece",
    }
)
# Flink's spellings, and an older one
CATALOG_ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "hive_sync.enable": f"{_SYNC}enable",
        "hive_sync.enabled": f"{_SYNC}enable",
        f"{_SYNC}enabled": f"{_SYNC}enable",
        "hive_sync.mode": f"{_SYNC}mode",
        "hive_sync.metastore.uris": f"{_SYNC}metastore.uris",
        "hive_sync.db": f"{_SYNC}database",
        "hive_sync.table": f"{_SYNC}table",
        "hive_sync.partition_fields": f"{_SYNC}partition_fields",
        "hive_sync.partition_extractor_class": f"{_SYNC}partition_extractor_class",
        "hive_sync.table.strategy": f"{_SYNC}table.strategy",
        "hive_sync.skip_ro_suffix": f"{_SYNC}skip_ro_suffix",
        "hive_sync.support_timestamp": f"{_SYNC}support_timestamp",
        "hive_sync.auto_create_db": f"{_SYNC}auto_create_database",
        "hive_sync.table_properties": f"{_SYNC}table_properties",
        "hive_sync.serde_properties": f"{_SYNC}serde_properties",
        "hoodie.datasource.meta.sync.glue.database_name": f"{_SYNC}database",
        "hoodie.datasource.meta.sync.glue.table_name": f"{_SYNC}table",
        "hive_sync.conditional_sync": "hoodie.datasource.meta_sync.condition.sync",
    }
)
