"""Groups of options for writing batches (pure); the other groups stand in `table.options.groups`."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from table.config.change_images import ChangeImages
from table.config.key_generator import KeyGenerator
from table.config.merge_mode import MergeMode
from table.config.metadata_indexes import PARTITION_STATS, RECORD_INDEX, STATISTICS
from table.errors import InvalidConfigError
from table.options.catalog_settings import CatalogSettings
from table.options.choices import (
    BadRows,
    BadRowsShown,
    ConcurrencyMode,
    FailedWrites,
    IndexType,
    InstantZone,
    PartitionKind,
    SchemaMode,
    SortMode,
    TableCreation,
    TableType,
    WriteLocation,
    resolve_index,
)
from table.options.clustering_settings import ClusteringSettings
from table.options.groups import (
    ArchiveSettings,
    BaseFileSettings,
    CleanSettings,
    CompactionSettings,
    HeartbeatSettings,
    LogFileSettings,
    ServiceSettings,
)
from table.options.lock_settings import LockSettings
from table.options.numbers import Number, Share, Size, Tasks, VersionNumber, Whole
from table.options.operation import Operation
from table.options.schema_value import AvroSchema
from table.options.settings import Settings, option
from table.options.values import (
    Flag,
    FolderName,
    KeyGeneratorName,
    Names,
    OneOf,
    Text,
    TimebasedSettings,
)

_MB = 1024 * 1024
DEFAULT_SINK_ID = "default_single_writer"
_RECORD_INDEX_BYTES = 48  # of a key's record, as Hudi reckons


@dataclass(frozen=True)
class KeySettings(Settings):
    """Columns that identify a row, place it and order it. None means the table's own value.

    Attributes:
        record_key_fields: columns of the record key.
        partition_fields: columns of the partition path; an empty list for a table without partitions.
        ordering_fields: columns that order the records of one key, the most significant first; several in tables of
            version 9. Without one, the record that arrived last stays.
        keygen_type: the key generator; for a new table it follows from the columns where it is not given.
        partition_kinds: per partition field, for the custom key generator; ``field:TIMESTAMP`` says the same.
        timebased: ``hoodie.keygen.timebased.*`` keys and values, for the timestamp-based key generator.
        hive_style: folders are called ``region=eu`` instead of ``eu``.
        url_encode: special characters of partition values become ``%XX``.
        value_only: whether the complex key generator spells the key of one field as the value alone, in a new table of
            version 6 or 8; None: it does. Tables of version 9 have the field's name before it.
    """

    record_key_fields: tuple[str, ...] | None = option(None, Names())
    partition_fields: tuple[str, ...] | None = option(None, Names())
    ordering_fields: tuple[str, ...] | None = option(None, Names())
    keygen_type: KeyGenerator | None = option(None, KeyGeneratorName())
    partition_kinds: tuple[str, ...] = option((), Names(", ".join(PartitionKind)))
    timebased: tuple[tuple[str, str], ...] = option((), TimebasedSettings())
    hive_style: bool | None = option(None, Flag())
    url_encode: bool | None = option(None, Flag())
    value_only: bool | None = option(None, Flag())

    def _check(self) -> None:
        """Splits ``field:kind``, the form of the custom key generator's partition fields."""
        fields, kinds = self.partition_fields or (), self.partition_kinds
        if self.keygen_type is KeyGenerator.CUSTOM and not kinds:
            split = [text.rpartition(":") for text in fields]
            fields, kinds = tuple(name for name, _, _ in split), tuple(kind for _, _, kind in split)
        shown = "hoodie.datasource.write.partitionpath.field=" + ",".join(self.partition_fields or ())
        for name, kind in zip(fields, kinds, strict=False):
            if not name or kind.upper() not in {*PartitionKind}:
                raise InvalidConfigError(
                    f"{shown}: the custom key generator takes field:SIMPLE or field:TIMESTAMP, and "
                    f"{f'{name}:{kind}'.strip(':')!r} is neither"
                )
        if len(fields) != len(kinds) and kinds:
            raise InvalidConfigError(f"{shown}: {len(kinds)} kinds for {len(fields)} fields; give one kind per field")
        if kinds:
            object.__setattr__(self, "partition_fields", fields)
            object.__setattr__(self, "partition_kinds", tuple(PartitionKind(kind.upper()) for kind in kinds))


TABLE_TYPE = OneOf(TableType, {"cow": TableType.COPY_ON_WRITE, "mor": TableType.MERGE_ON_READ}, what="table type")


@dataclass(frozen=True)
class TableSettings(Settings):
    """Properties of a new table; they must agree with an existing table. None means the table's own value.

    Attributes:
        name: name of a new table; without it, the last part of the path.
        database: name of the database; a part of the checksum in the table's properties.
        table_type: ``COPY_ON_WRITE``, or ``MERGE_ON_READ``, where changes of rows go to log files.
        merge_mode: how records of one key become one.
        timezone: the zone of a new table's instant times.
        archive_folder: folder within ``.hoodie`` for archived instants.
        version: of a new table: 6, 8 or 9; None: 6. A table that exists is continued in the version that it has.
        auto_upgrade: whether a table of an earlier version than `version` is upgraded before the first batch.
        metadata_enabled: true lets the sink make a metadata table with lists of files, if the table has none; false
            lets it drop the table's metadata table; not given: one that exists is maintained.
        column_stats_enabled: true lets the sink make statistics of columns with a metadata table that it makes; false
            lets it drop them; not given: statistics that exist are maintained.
        metadata_made: false: no metadata table is made; one that exists is maintained.
        indexes_dropped: false: switches of indexes that say false drop no index that exists; it is maintained.
        partition_stats_enabled: whether statistics of columns that the sink makes are those of partition paths, too;
            false lets it drop those; not given: as Hudi does by the table's version.
        record_index_enabled: true lets the sink make a record index with a metadata table that it makes; false lets it
            drop it; not given: one that exists is maintained.
        record_index_least_groups: file groups of a record index that is made here, at least.
        record_index_most_groups: file groups of it, at most. The same number twice: so many.
        record_index_growth: how many times as many keys as there are find room in them.
        record_index_group_bytes: bytes of one of these file groups, at most.
        metadata_delta_commits: delta commits of the metadata table after which its lists are compacted.
        creation: whether a table that is not there is created: ``if_absent`` or ``never``.
        create_schema: schema of a new table, an Avro record as JSON text; None: the first batch has it.
        populates_meta_fields: false: rows of a new table have null meta columns, and keys are made from the rows' own
            columns (virtual keys). Such a table is smaller, and gives no changes since a commit.
        has_change_files: whether a new table gets change files, which Hudi's change data capture reads.
        change_images: what the change files of a new table hold of a row, besides its key; None: the row before and
            after.
    """

    name: str | None = option(None, Text())
    database: str | None = option(None, Text())
    table_type: TableType | None = option(None, TABLE_TYPE)
    merge_mode: MergeMode | None = option(None, OneOf(MergeMode, what="merge mode"))
    timezone: InstantZone | None = option(None, OneOf(InstantZone))
    archive_folder: str | None = option(None, FolderName())
    version: int | None = option(None, VersionNumber())
    auto_upgrade: bool = option(default=False, kind=Flag())
    metadata_enabled: bool | None = option(None, Flag())
    column_stats_enabled: bool | None = option(None, Flag())
    metadata_made: bool = option(default=True, kind=Flag())
    indexes_dropped: bool = option(default=True, kind=Flag())
    partition_stats_enabled: bool | None = option(None, Flag())
    record_index_enabled: bool | None = option(None, Flag())
    record_index_least_groups: int = option(10, Whole(1))
    record_index_most_groups: int = option(10_000, Whole(1))
    record_index_growth: float = option(2.0, Number(0, 1e6))
    record_index_group_bytes: int = option(1024 * _MB, Size(1))
    metadata_delta_commits: int = option(10, Whole(1))
    creation: TableCreation = option(TableCreation.IF_ABSENT, OneOf(TableCreation, what="value"))
    create_schema: str | None = option(None, AvroSchema())
    populates_meta_fields: bool | None = option(None, Flag())
    has_change_files: bool | None = option(None, Flag())
    change_images: ChangeImages | None = option(None, OneOf(ChangeImages))

    def _check(self) -> None:
        least, most = self.record_index_least_groups, self.record_index_most_groups
        if least > most:
            raise InvalidConfigError(
                f"hoodie.metadata.global.record.level.index.min.filegroup.count={least} is more than "
                f"hoodie.metadata.global.record.level.index.max.filegroup.count={most}: lower one or raise the other"
            )

    @property
    def new_images(self) -> ChangeImages | None:
        """What the change files of a new table hold; None: it has none."""
        return (self.change_images or ChangeImages.DATA_BEFORE_AFTER) if self.has_change_files else None

    @property
    def dropped_indexes(self) -> dict[str, frozenset[str]]:
        """The indexes of a metadata table that are dropped if it has them, by the option that says so."""
        switches = {
            "hoodie.metadata.index.column.stats.enable": (self.column_stats_enabled, STATISTICS),
            "hoodie.metadata.index.partition.stats.enable": (
                self.partition_stats_enabled,
                frozenset({PARTITION_STATS}),
            ),
            "hoodie.metadata.record.index.enable": (self.record_index_enabled, frozenset({RECORD_INDEX})),
        }
        off = {key: indexes for key, (is_enabled, indexes) in switches.items() if is_enabled is False}
        return off if self.indexes_dropped else {}

    def count_record_index_groups(self, keys: int) -> int:
        """File groups of a new record index of so many keys (HoodieTableMetadataUtil.estimateFileGroupCount)."""
        room = self.record_index_group_bytes // _RECORD_INDEX_BYTES
        wanted = math.ceil(keys * self.record_index_growth) // max(room, 1)
        return min(max(wanted, self.record_index_least_groups), self.record_index_most_groups)


@dataclass(frozen=True)
class SizeSettings(Settings):
    """How large base files become, in bytes.

    Attributes:
        max_file_bytes: size at which a base file is full.
        small_file_limit_bytes: new rows join files below this size; 0 or less: they join none.
        record_bytes_estimate: size of a row before any file was written. None: a task encodes some of its rows to find
            out; where it has few, a row counts as 1,024 bytes, as in Hudi.
        record_size_threshold: Hudi's rule for the average size of a row: a commit counts if it has more bytes than
            this share of the small file limit. None: every committed base file counts.
        rows_per_new_file: fixed size of new file groups in rows; None: it follows from the average size of a row.
        groups_filled: file groups of a merge-on-read table, per partition path and task, that a batch fills with new
            rows, the smallest ones first; an upsert merges their changes into the base file.
        joins_logs: new rows go to the log files of small file slices, those under pending compaction included: in
            merge-on-read tables with a record index, for writers that look for keys by it. False: they go into base
            files of slices without log files.
        log_ratio: bytes of a base file that a byte of log files becomes (hoodie.logfile.to.parquet.compression.ratio).
        max_rewrite_ratio: no rows join a small file that has more than this many bytes per byte that they add;
            None: no bound.
    """

    max_file_bytes: int = option(120 * _MB, Size(1))
    small_file_limit_bytes: int = option(100 * _MB, Size(-(2**63)))
    record_bytes_estimate: int | None = option(None, Size(1))
    record_size_threshold: float | None = option(None, Number(-1e9, 1e9))
    rows_per_new_file: int | None = option(None, Whole(1))
    groups_filled: int = option(1, Whole(0))
    joins_logs: bool = option(default=False, kind=Flag())
    log_ratio: float = option(0.35, Number(0, 100))
    max_rewrite_ratio: float | None = option(None, Number(0, 1e12))


SCHEMA_MODE = OneOf(SchemaMode, what="schema mode")
BAD_ROWS = OneOf(BadRows, what="treatment of bad rows")
# what Hudi names the record index from 1.1 on
_INDEX_NAMES = {"inmemory": IndexType.FLINK_STATE, "global_record_level_index": IndexType.RECORD_INDEX}
INDEX = OneOf(IndexType, _INDEX_NAMES, "index")


@dataclass(frozen=True)
class IndexSettings(Settings):
    """How the index looks for keys in the table.

    Attributes:
        type: how keys are found. FLINK_STATE, an engine's own memory of what the files say, becomes GLOBAL_BLOOM, or
            BLOOM where `global_keys` is False. RECORD_INDEX asks the table's record index which files hold the
            keys; where there is none, keys are looked up as with GLOBAL_BLOOM.
        global_keys: Flink's switch: whether a key is unique in the table, not only in its partition path. It makes
            BLOOM and SIMPLE global. None: as the type says.
        prune_by_ranges: whether a bloom index compares key ranges before it asks the filters.
        bloom_updates_partition_path: whether GLOBAL_BLOOM moves a row whose key arrives with another partition path.
        simple_updates_partition_path: whether GLOBAL_SIMPLE does.
        record_updates_partition_path: whether RECORD_INDEX does.
        buckets: number of buckets per partition path.
        bucket_hash_fields: record key fields that the bucket index hashes; None: all.
        cache_bytes: what a worker may remember of the files that it looked for keys in.
    """

    type: IndexType = option(
        IndexType.BLOOM,
        # Flink's own state, a copy of what the files hold
        INDEX,
    )
    global_keys: bool | None = option(None, Flag())
    prune_by_ranges: bool = option(default=True, kind=Flag())
    bloom_updates_partition_path: bool = option(default=True, kind=Flag())
    simple_updates_partition_path: bool = option(default=True, kind=Flag())
    record_updates_partition_path: bool = option(default=False, kind=Flag())
    buckets: int = option(256, Whole(1))
    bucket_hash_fields: tuple[str, ...] | None = option(None, Names())
    cache_bytes: int = option(64 * _MB, Size(0))

    def _check(self) -> None:
        """Combines the switch of global keys and the type into one type."""
        object.__setattr__(self, "type", resolve_index(self.type, self.global_keys))

    @property
    def updates_partition_path(self) -> bool:
        """Whether a row whose key arrives with another partition path moves there."""
        if self.type is IndexType.GLOBAL_BLOOM:
            return self.bloom_updates_partition_path
        if self.type is IndexType.RECORD_INDEX:
            return self.record_updates_partition_path
        return self.simple_updates_partition_path


@dataclass(frozen=True)
class DuplicateSettings(Settings):
    """How rows with the same key are treated.

    Attributes:
        combine_before_insert: a batch of inserts is reduced to one record per key.
        combine_before_upsert: a batch of upserts is reduced to one record per key.
        combine_before_delete: a batch of deletes is reduced to one record per key.
        allow_on_insert: inserts do not look for their key in the file they join.
        drop_on_insert: inserts whose key the table has are dropped.
    """

    combine_before_insert: bool = option(default=False, kind=Flag())
    combine_before_upsert: bool = option(default=True, kind=Flag())
    combine_before_delete: bool = option(default=True, kind=Flag())
    allow_on_insert: bool = option(default=True, kind=Flag())
    drop_on_insert: bool = option(default=False, kind=Flag())

    def combine_before(self, operation: Operation) -> bool:
        """Whether a batch is reduced to one record per key before anything else."""
        if operation is Operation.UPSERT:
            return self.combine_before_upsert
        return self.combine_before_delete if operation is Operation.DELETE else self.combine_before_insert


@dataclass(frozen=True)
class OverwriteSettings(Settings):
    """Limits of overwriting operations.

    Attributes:
        partitions_to_delete: partition paths that ``delete_partition`` deletes; ``*`` stands for anything.
        in_stream: whether every micro-batch of a stream may replace what was there.
    """

    partitions_to_delete: tuple[str, ...] = option((), Names("partition paths, separated by commas"))
    in_stream: bool = option(default=False, kind=Flag())


@dataclass(frozen=True)
class SchemaSettings(Settings):
    """The columns that a batch may have.

    Attributes:
        mode: ``strict``: the table's columns; ``add``: new columns are added; ``reconcile``: as ``add``, and columns
            that the batch does not have are null.
        fill_missing: columns that the batch does not have are null, whatever the mode.
        numbers_to_text: whether a column of numbers becomes text for good if a batch has text there, as in Hudi.
        integers_to_floats: whether a column of integers becomes one of floats for good if a batch has floats there, as
            in Hudi. Else floats that are whole, up to 2^53 (float: 2^24), become integers, and others are refused.
        expected: Avro schema of the rows; a batch with other columns, or columns of another type, is refused. None:
            nothing is expected.
    """

    mode: SchemaMode = option(SchemaMode.ADD, SCHEMA_MODE)
    fill_missing: bool = option(default=False, kind=Flag())
    numbers_to_text: bool = option(default=False, kind=Flag())
    integers_to_floats: bool = option(default=False, kind=Flag())
    expected: str | None = option(None, AvroSchema())


@dataclass(frozen=True)
class TaskSettings(Settings):
    """How a batch is spread over tasks. Without a number of tasks, Spark's shuffle partitions and cores decide.

    Attributes:
        insert_parallelism: most tasks that write a batch.
        upsert_parallelism: most tasks of an upsert; None: as for inserts.
        delete_parallelism: most tasks of a delete; None: as for inserts.
        bulk_insert_parallelism: most tasks of a bulk insert; None: as Spark's settings say.
        bulk_insert_sort: how the rows of a bulk insert are sorted.
        bulk_insert_columns: columns by which the rows of a bulk insert are sorted within each partition path, in place
            of `bulk_insert_sort`; several along the curve that ``hoodie.layout.optimize.strategy`` names.
        slots_per_partition: tasks that share a partition path of which nothing is known.
        memory_bytes: Arrow bytes of rows that a task holds to bring them together by file; more go to the worker's
            local disk.
        location: who writes the files of a batch of Spark: ``executors``; or ``driver``, where the executors cannot
            reach the table's store. Then the rows come to the driver.
        driver_bytes: most Arrow bytes of rows that come to the driver for one batch.
    """

    insert_parallelism: int | None = option(None, Tasks())
    upsert_parallelism: int | None = option(None, Tasks())
    delete_parallelism: int | None = option(None, Tasks())
    bulk_insert_parallelism: int | None = option(None, Tasks())
    bulk_insert_sort: SortMode = option(SortMode.NONE, OneOf(SortMode))
    bulk_insert_columns: tuple[str, ...] = option((), Names())
    slots_per_partition: int = option(1, Whole(1))
    memory_bytes: int = option(128 * _MB, Size(1))
    location: WriteLocation = option(WriteLocation.EXECUTORS, OneOf(WriteLocation))
    driver_bytes: int = option(256 * _MB, Size(1))

    def most_tasks(self, operation: Operation) -> int | None:
        """Most tasks that write a batch; None if the options give no number."""
        if operation is Operation.BULK_INSERT:
            return self.bulk_insert_parallelism
        given = {Operation.UPSERT: self.upsert_parallelism, Operation.DELETE: self.delete_parallelism}
        return given.get(operation) or self.insert_parallelism


@dataclass(frozen=True)
class BadRowSettings(Settings):
    """How a batch treats rows that cannot be stored, such as rows without a key.

    Attributes:
        action: ``fail``: the batch fails; ``quarantine``: they go to Parquet files beside the table.
        path: folder of these files; None: the table's path and ``_bad_rows``.
        max_share: greatest share of bad rows in a batch, from 0 to 1, that is put aside; with more, the batch fails.
            None: no bound.
        shown: what errors show of a bad row: ``keys``: record key, partition fields, the reason; ``rows``: all columns.
    """

    action: BadRows = option(BadRows.FAIL, BAD_ROWS)
    path: str | None = option(None, Text())
    max_share: float | None = option(None, Share())
    shown: BadRowsShown = option(BadRowsShown.KEYS, OneOf(BadRowsShown))


@dataclass(frozen=True)
class SinkSettings(Settings):
    """The name under which commits record the batches of this sink, and what the sink shows.

    Attributes:
        id: name of the sink in the commits; two streams into one table need two names.
        checkpoint_location: the query's ``checkpointLocation``. With it, commits record where the sources stood, so
            that another query can go on there. Spark Connect needs it, because a query's id cannot be asked for there.
        sensitive: parts of keys whose values no log and no error shows, beside those that are never shown.
        commits_empty: whether a batch without rows is a commit, which records how far the sources were read.
    """

    id: str = option(DEFAULT_SINK_ID, Text())
    checkpoint_location: str | None = option(None, Text())
    sensitive: tuple[str, ...] = option((), Names("parts of keys, separated by commas"))
    commits_empty: bool = option(default=False, kind=Flag())


@dataclass(frozen=True)
class ConcurrencySettings(Settings):
    """Whether other writers may write the table at the same time.

    Attributes:
        mode: ``SINGLE_WRITER``: no other writer; ``OPTIMISTIC_CONCURRENCY_CONTROL``: others of the same mode.
            Of two commits that change the same file group, the second one is written anew.
        failed_writes: ``EAGER``, the only policy of a single writer, ends what others left before each batch; ``LAZY``,
            the only one of several, ends only what the heartbeat shows to be dead. None: as the mode needs it.
        retries: how often a batch that met a conflict is written anew; then it fails, and can be run again. Only with
            several writers.
    """

    mode: ConcurrencyMode = option(ConcurrencyMode.SINGLE_WRITER, OneOf(ConcurrencyMode, what="concurrency mode"))
    failed_writes: FailedWrites | None = option(None, OneOf(FailedWrites, what="policy"))
    retries: int = option(4, Whole(0))

    @property
    def is_shared(self) -> bool:
        """Whether other writers may write at the same time."""
        return self.mode is ConcurrencyMode.OPTIMISTIC

    def _check(self) -> None:
        needed = FailedWrites.LAZY if self.is_shared else FailedWrites.EAGER
        if self.failed_writes not in (None, needed):
            raise InvalidConfigError(
                f"hoodie.clean.failed.writes.policy={self.failed_writes} does not go with "
                f"hoodie.write.concurrency.mode={self.mode}: leave the policy out, or set {needed}"
            )


OPERATION = OneOf(Operation, what="operation")
GROUPS: Mapping[str, type[Settings]] = MappingProxyType(
    {
        "keys": KeySettings,
        "table": TableSettings,
        "sizes": SizeSettings,
        "base_file": BaseFileSettings,
        "log_files": LogFileSettings,
        "compaction": CompactionSettings,
        "clustering": ClusteringSettings,
        "index": IndexSettings,
        "duplicates": DuplicateSettings,
        "overwrite": OverwriteSettings,
        "schema": SchemaSettings,
        "tasks": TaskSettings,
        "bad_rows": BadRowSettings,
        "sink": SinkSettings,
        "concurrency": ConcurrencySettings,
        "heartbeat": HeartbeatSettings,
        "services": ServiceSettings,
        "clean": CleanSettings,
        "archive": ArchiveSettings,
        "lock": LockSettings,
        "catalog": CatalogSettings,
    }
)
