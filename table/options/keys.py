"""One table of every honoured key, and one of the other spellings of honoured and refused keys (pure).

Refused keys stand in `table.options.refused`, keys without effect in `table.options.without_effect`. The field of an
honoured key (`table.options.groups`, `table.options.write_groups`) defines the key's values and meaning.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from table.config.change_images import CDC_KEY, IMAGES_KEY
from table.options.catalog_settings import CATALOG_ALIASES, CATALOG_KEYS
from table.options.lock_settings import LOCK_ALIASES, LOCK_KEYS
from table.options.numbers import Size, Whole
from table.options.settings import describe_fields, kinds_of
from table.options.values import (
    TIMEBASED_KEYS,
    TIMEBASED_PREFIX,
    AnyText,
    DuplicatePolicy,
    FailsFast,
    Flag,
    Kind,
    PayloadName,
    Reconciles,
    RecordMergeMode,
    Text,
)
from table.options.write_groups import GROUPS, OPERATION

_MB = 1024 * 1024


@dataclass(frozen=True)
class HonouredKey:
    """A key that has an effect.

    Attributes:
        path: the field of `table.options.write_options.WriteOptions` that it fills, such as ``clean.policy``; the
            name alone for the three keys that have no field of their own.
        own_kind: the kind of its values, if the field's kind does not fit.
        own_description: its meaning, if the field's description does not fit.
    """

    path: str
    own_kind: Kind | None = None
    own_description: str = ""

    @property
    def kind(self) -> Kind:
        """The kind of its values."""
        if self.own_kind is not None:
            return self.own_kind
        group, _, name = self.path.rpartition(".")
        return kinds_of(GROUPS[group])[name] if group else OPERATION

    @property
    def description(self) -> str:
        """The meaning of the key, on one line."""
        group, _, name = self.path.rpartition(".")
        return self.own_description or (describe_fields(GROUPS[group])[name] if group else "What a batch does.")


HONOURED: Mapping[str, HonouredKey] = MappingProxyType(
    {
        "hoodie.table.name": HonouredKey("table.name"),
        "hoodie.database.name": HonouredKey("table.database"),
        "hoodie.table.create.schema": HonouredKey("table.create_schema"),
        CDC_KEY: HonouredKey("table.has_change_files"),
        IMAGES_KEY: HonouredKey("table.change_images"),
        "hoodie.populate.meta.fields": HonouredKey("table.populates_meta_fields"),
        "hoodie.datasource.write.table.type": HonouredKey("table.table_type"),
        "hoodie.datasource.write.recordkey.field": HonouredKey("keys.record_key_fields"),
        "hoodie.datasource.write.partitionpath.field": HonouredKey("keys.partition_fields"),
        "hoodie.datasource.write.precombine.field": HonouredKey("keys.ordering_fields"),
        "hoodie.datasource.write.keygenerator.type": HonouredKey("keys.keygen_type"),
        "hoodie.datasource.write.hive_style_partitioning": HonouredKey("keys.hive_style"),
        "hoodie.datasource.write.partitionpath.urlencode": HonouredKey("keys.url_encode"),
        "hoodie.write.complex.keygen.new.encoding": HonouredKey("keys.value_only"),
        "hoodie.datasource.write.payload.class": HonouredKey(
            "table.merge_mode", PayloadName(), "The payload class, which says how records of one key become one."
        ),
        "hoodie.record.merge.mode": HonouredKey(
            "table.merge_mode", RecordMergeMode(), "How records of one key become one."
        ),
        "hoodie.table.timeline.timezone": HonouredKey("table.timezone"),
        "hoodie.archivelog.folder": HonouredKey("table.archive_folder"),
        "hoodie.write.table.version": HonouredKey("table.version"),
        "hoodie.write.auto.upgrade": HonouredKey("table.auto_upgrade"),
        "hudistream.table.create": HonouredKey("table.creation"),
        "hoodie.datasource.write.operation": HonouredKey("operation"),
        "hoodie.index.type": HonouredKey("index.type"),
        "index.global.enabled": HonouredKey("index.global_keys"),
        "hoodie.bloom.index.prune.by.ranges": HonouredKey("index.prune_by_ranges"),
        "hoodie.bloom.index.update.partition.path": HonouredKey("index.bloom_updates_partition_path"),
        "hoodie.simple.index.update.partition.path": HonouredKey("index.simple_updates_partition_path"),
        "hoodie.record.index.update.partition.path": HonouredKey("index.record_updates_partition_path"),
        "hoodie.bucket.index.num.buckets": HonouredKey("index.buckets"),
        "hoodie.bucket.index.hash.field": HonouredKey("index.bucket_hash_fields"),
        "hudistream.index.cache.bytes": HonouredKey("index.cache_bytes"),
        "hoodie.combine.before.upsert": HonouredKey("duplicates.combine_before_upsert"),
        "hoodie.combine.before.delete": HonouredKey("duplicates.combine_before_delete"),
        "hoodie.datasource.write.insert.drop.duplicates": HonouredKey("duplicates.drop_on_insert"),
        "hoodie.datasource.insert.dup.policy": HonouredKey(
            "duplicates.drop_on_insert", DuplicatePolicy(), "``drop``: inserts whose key the table has are dropped."
        ),
        "hoodie.datasource.write.partitions.to.delete": HonouredKey("overwrite.partitions_to_delete"),
        "hudistream.overwrite.in.stream": HonouredKey("overwrite.in_stream"),
        "hudistream.schema.mode": HonouredKey("schema.mode"),
        "hudistream.schema.numbers.to.text": HonouredKey("schema.numbers_to_text"),
        "hudistream.schema.integers.to.floats": HonouredKey("schema.integers_to_floats"),
        "hoodie.datasource.write.reconcile.schema": HonouredKey(
            "schema.mode", Reconciles(), "Whether columns that are missing in a batch are null; else they are refused."
        ),
        "hoodie.avro.schema": HonouredKey("schema.expected"),
        "hoodie.write.set.null.for.missing.columns": HonouredKey("schema.fill_missing"),
        "hoodie.bulkinsert.sort.mode": HonouredKey("tasks.bulk_insert_sort"),
        "hoodie.bulkinsert.user.defined.partitioner.sort.columns": HonouredKey("tasks.bulk_insert_columns"),
        "hoodie.bulkinsert.shuffle.parallelism": HonouredKey("tasks.bulk_insert_parallelism"),
        "hoodie.combine.before.insert": HonouredKey("duplicates.combine_before_insert"),
        "hoodie.merge.allow.duplicate.on.inserts": HonouredKey("duplicates.allow_on_insert"),
        "hoodie.parquet.max.file.size": HonouredKey("sizes.max_file_bytes"),
        "write.parquet.max.file.size": HonouredKey(
            "sizes.max_file_bytes", Size(_MB, _MB), "Size at which a base file is full, in MB."
        ),
        "hoodie.parquet.small.file.limit": HonouredKey("sizes.small_file_limit_bytes"),
        "hoodie.copyonwrite.record.size.estimate": HonouredKey("sizes.record_bytes_estimate"),
        "hoodie.record.size.estimation.threshold": HonouredKey("sizes.record_size_threshold"),
        "hoodie.copyonwrite.insert.auto.split": HonouredKey(
            "auto_split",
            Flag(),
            "Whether the rows of new files follow from the average size of a row; false: the split size says it.",
        ),
        "hoodie.copyonwrite.insert.split.size": HonouredKey(
            "split_size", Whole(1), "Rows of a new file group; only with insert.auto.split=false."
        ),
        "hoodie.insert.shuffle.parallelism": HonouredKey("tasks.insert_parallelism"),
        "hoodie.upsert.shuffle.parallelism": HonouredKey("tasks.upsert_parallelism"),
        "hoodie.delete.shuffle.parallelism": HonouredKey("tasks.delete_parallelism"),
        "hudistream.slots.per.partition": HonouredKey("tasks.slots_per_partition"),
        "hoodie.datasource.write.streaming.checkpoint.identifier": HonouredKey("sink.id"),
        "hudistream.checkpoint.location": HonouredKey("sink.checkpoint_location"),
        "hoodie.sensitive.config.keys": HonouredKey("sink.sensitive"),
        "hoodie.allow.empty.commit": HonouredKey("sink.commits_empty"),
        "hoodie.parquet.compression.codec": HonouredKey("base_file.codec"),
        "hudistream.parquet.compression.level": HonouredKey("base_file.codec_level"),
        "hoodie.parquet.block.size": HonouredKey("base_file.row_group_bytes"),
        "write.parquet.block.size": HonouredKey(
            "base_file.row_group_bytes", Size(_MB, _MB), "Arrow bytes of rows that make a row group, in MB."
        ),
        "hoodie.parquet.dictionary.enabled": HonouredKey("base_file.dictionary"),
        "hoodie.parquet.page.size": HonouredKey("base_file.page_bytes"),
        "write.parquet.page.size": HonouredKey(
            "base_file.page_bytes", Size(_MB, _MB), "Bytes of a page, about, in MB."
        ),
        "hudistream.parquet.shared.key.chunk": HonouredKey("base_file.shared_key_chunk"),
        "hoodie.index.bloom.num_entries": HonouredKey("base_file.bloom_entries"),
        "hoodie.index.bloom.fpp": HonouredKey("base_file.bloom_fpp"),
        "hoodie.bloom.index.filter.type": HonouredKey("base_file.bloom_type"),
        "hoodie.bloom.index.filter.dynamic.max.entries": HonouredKey("base_file.bloom_max_entries"),
        "hoodie.logfile.data.block.format": HonouredKey("log_files.block_format"),
        "hoodie.logfile.data.block.max.size": HonouredKey("log_files.block_bytes"),
        "hoodie.write.record.positions": HonouredKey("log_files.record_positions"),
        "hoodie.logfile.max.size": HonouredKey("log_files.file_bytes"),
        "write.log_block.size": HonouredKey(
            "log_files.block_bytes", Size(_MB, _MB), "Size from which rows go into the next data block, in MB."
        ),
        "write.log.max.size": HonouredKey(
            "log_files.file_bytes", Size(_MB, _MB), "Size from which blocks go into the next log file, in MB."
        ),
        "hoodie.merge.small.file.group.candidates.limit": HonouredKey("sizes.groups_filled"),
        "hoodie.logfile.to.parquet.compression.ratio": HonouredKey("sizes.log_ratio"),
        "hudistream.new.rows.join.logs": HonouredKey("sizes.joins_logs"),
        "hoodie.datasource.compaction.async.enable": HonouredKey("compaction.asynchronous"),
        "hoodie.compact.inline": HonouredKey("compaction.inline"),
        "compaction.schedule.enabled": HonouredKey("compaction.schedules"),
        "hoodie.compact.schedule.inline": HonouredKey("compaction.schedules_inline"),
        "hoodie.datasource.write.streaming.disable.compaction": HonouredKey("compaction.disabled"),
        "hoodie.compact.inline.trigger.strategy": HonouredKey("compaction.trigger"),
        "hoodie.compact.inline.max.delta.commits": HonouredKey("compaction.delta_commits"),
        "hoodie.compact.inline.max.delta.seconds": HonouredKey("compaction.delta_seconds"),
        "hoodie.compaction.target.io": HonouredKey("compaction.target_io_mb"),
        "hoodie.compaction.strategy": HonouredKey("compaction.strategy"),
        "hoodie.compaction.logfile.size.threshold": HonouredKey("compaction.log_bytes"),
        "hoodie.compaction.logfile.num.threshold": HonouredKey("compaction.log_files"),
        "hoodie.compaction.daybased.target.partitions": HonouredKey("compaction.days"),
        "compaction.tasks": HonouredKey("compaction.tasks"),
        "hudistream.compaction.executors.from.mb": HonouredKey("compaction.executors_from_mb"),
        "hoodie.clustering.inline": HonouredKey("clustering.inline"),
        "hoodie.clustering.async.enabled": HonouredKey("clustering.in_background"),
        "hoodie.clustering.schedule.inline": HonouredKey("clustering.schedules"),
        "hoodie.clustering.inline.max.commits": HonouredKey("clustering.max_commits"),
        "clustering.plan.strategy.small.file.limit": HonouredKey(
            "clustering.small_file_bytes", Size(_MB, _MB), "Only files below this size are candidates, in MB."
        ),
        "hoodie.layout.optimize.strategy": HonouredKey("clustering.layout"),
        "hoodie.clustering.plan.partition.filter.mode": HonouredKey("clustering.partition_filter"),
        "hoodie.clustering.plan.strategy.sort.columns": HonouredKey("clustering.sort_columns"),
        "hoodie.clustering.plan.strategy.small.file.limit": HonouredKey("clustering.small_file_bytes"),
        "hoodie.clustering.plan.strategy.target.file.max.bytes": HonouredKey("clustering.target_bytes"),
        "hoodie.clustering.plan.strategy.max.bytes.per.group": HonouredKey("clustering.group_bytes"),
        "hoodie.clustering.plan.strategy.max.num.groups": HonouredKey("clustering.most_groups"),
        "hoodie.clustering.plan.strategy.single.group.clustering.enabled": HonouredKey("clustering.takes_single"),
        "hoodie.clustering.plan.strategy.daybased.lookback.partitions": HonouredKey("clustering.days"),
        "hoodie.clustering.plan.strategy.daybased.skipfromlatest.partitions": HonouredKey("clustering.days_skipped"),
        "hoodie.clustering.plan.strategy.cluster.begin.partition": HonouredKey("clustering.first_partition"),
        "hoodie.clustering.plan.strategy.cluster.end.partition": HonouredKey("clustering.last_partition"),
        "hoodie.clustering.plan.strategy.partition.regex.pattern": HonouredKey("clustering.partition_pattern"),
        "hoodie.clustering.plan.strategy.partition.selected": HonouredKey("clustering.partitions"),
        "hudistream.clustering.executors.from.mb": HonouredKey("clustering.executors_from_mb"),
        "hoodie.write.concurrency.mode": HonouredKey("concurrency.mode"),
        "hoodie.clean.failed.writes.policy": HonouredKey("concurrency.failed_writes"),
        "hoodie.write.num.retries.on.conflict.failures": HonouredKey("concurrency.retries"),
        "hoodie.client.heartbeat.interval_in_ms": HonouredKey("heartbeat.interval_ms"),
        "hoodie.client.heartbeat.tolerable.misses": HonouredKey("heartbeat.tolerable_misses"),
        "hoodie.base.path": HonouredKey("base_path", Text(), "The table's path; must agree with the sink's."),
        "hoodie.metadata.enable": HonouredKey("table.metadata_enabled"),
        "hoodie.metadata.index.column.stats.enable": HonouredKey("table.column_stats_enabled"),
        "hoodie.metadata.auto.initialize": HonouredKey("table.metadata_made"),
        "hoodie.metadata.auto.delete.partitions": HonouredKey("table.indexes_dropped"),
        "hoodie.metadata.index.partition.stats.enable": HonouredKey("table.partition_stats_enabled"),
        "hoodie.metadata.record.index.enable": HonouredKey("table.record_index_enabled"),
        "hoodie.metadata.global.record.level.index.min.filegroup.count": HonouredKey("table.record_index_least_groups"),
        "hoodie.metadata.global.record.level.index.max.filegroup.count": HonouredKey("table.record_index_most_groups"),
        "hoodie.metadata.record.index.growth.factor": HonouredKey("table.record_index_growth"),
        "hoodie.metadata.record.index.max.filegroup.size": HonouredKey("table.record_index_group_bytes"),
        "hoodie.metadata.compact.max.delta.commits": HonouredKey("table.metadata_delta_commits"),
        "hoodie.table.services.enabled": HonouredKey("services.enabled"),
        "hudistream.clean.execute": HonouredKey("clean.executes"),
        "hoodie.clean.automatic": HonouredKey("clean.automatic"),
        "hoodie.clean.async.enabled": HonouredKey("clean.asynchronous"),
        "clean.async.enabled": HonouredKey("clean.at_checkpoint"),
        "hoodie.clean.policy": HonouredKey("clean.policy"),
        "hoodie.clean.commits.retained": HonouredKey("clean.commits_retained"),
        "hoodie.clean.fileversions.retained": HonouredKey("clean.versions_retained"),
        "hoodie.clean.hours.retained": HonouredKey("clean.hours_retained"),
        "hoodie.clean.trigger.max.commits": HonouredKey("clean.trigger_commits"),
        "hoodie.clean.incremental.enabled": HonouredKey("clean.incremental"),
        "hoodie.clean.parallelism": HonouredKey("clean.parallelism"),
        "hoodie.clean.max.commits.to.clean": HonouredKey("clean.most_commits"),
        "hoodie.clean.partition.filter.regex": HonouredKey("clean.partition_pattern"),
        "hoodie.clean.partition.filter.selected": HonouredKey("clean.partitions"),
        "hudistream.clean.grace.ms": HonouredKey("clean.grace_ms"),
        "hudistream.clean.readers.max.share": HonouredKey("clean.readers_share"),
        "hudistream.clean.max.share": HonouredKey("clean.most_share"),
        "hudistream.clean.on.failure": HonouredKey("clean.on_failure"),
        "hoodie.archive.automatic": HonouredKey("archive.automatic"),
        "hoodie.keep.min.commits": HonouredKey("archive.min_commits"),
        "hoodie.keep.max.commits": HonouredKey("archive.max_commits"),
        "hoodie.commits.archival.batch": HonouredKey("archive.batch"),
        "hoodie.archive.block.on.latest.clean.ectr": HonouredKey("archive.stops_at_clean"),
        "write.fail.fast": HonouredKey(
            "bad_rows.action", FailsFast(), "true: a batch with a row that cannot be stored fails; false says nothing."
        ),
        "hudistream.manifest.for": HonouredKey("catalog.manifest"),
        "hudistream.bad.rows": HonouredKey("bad_rows.action"),
        "hudistream.bad.rows.path": HonouredKey("bad_rows.path"),
        "hudistream.bad.rows.max.share": HonouredKey("bad_rows.max_share"),
        "hudistream.bad.rows.shown": HonouredKey("bad_rows.shown"),
        "hudistream.max.rewrite.ratio": HonouredKey("sizes.max_rewrite_ratio"),
        "hudistream.task.memory.bytes": HonouredKey("tasks.memory_bytes"),
        "hudistream.write.location": HonouredKey("tasks.location"),
        "hudistream.write.driver.max.bytes": HonouredKey("tasks.driver_bytes"),
        "hudistream.verify.share": HonouredKey("base_file.verify_share"),
        **{key: HonouredKey(f"lock.{field}") for key, field in LOCK_KEYS.items()},
        **{key: HonouredKey(f"catalog.{field}") for key, field in CATALOG_KEYS.items()},
        **{
            key: HonouredKey(
                "keys.timebased", AnyText(), f"``{key.removeprefix(TIMEBASED_PREFIX)}`` of the timestamp key generator."
            )
            for key in TIMEBASED_KEYS
        },
    }
)

_RECORD_INDEX = "hoodie.metadata.global.record.level.index"
# other spellings: older, newer, those of the table's properties, Flink's
_FLINK_TOO = (
    "sort.columns", "target.file.max.bytes", "max.num.groups", "daybased.lookback.partitions",
    "daybased.skipfromlatest.partitions", "cluster.begin.partition", "cluster.end.partition", "partition.regex.pattern",
    "partition.selected",
)  # fmt: skip
ALIASES: Mapping[str, str] = MappingProxyType(
    {
        **LOCK_ALIASES,
        **CATALOG_ALIASES,
        "hoodie.metadata.global.record.level.index.enable": "hoodie.metadata.record.index.enable",
        "hoodie.metadata.record.index.min.filegroup.count": f"{_RECORD_INDEX}.min.filegroup.count",
        "hoodie.metadata.record.index.max.filegroup.count": f"{_RECORD_INDEX}.max.filegroup.count",
        "metadata.compaction.delta_commits": "hoodie.metadata.compact.max.delta.commits",
        "hoodie.datasource.write.table.name": "hoodie.table.name",
        "hoodie.datasource.write.storage.type": "hoodie.datasource.write.table.type",
        "hoodie.datasource.meta.sync.base.path": "hoodie.base.path",
        "hoodie.cleaner.partition.filter.regex": "hoodie.clean.partition.filter.regex",
        "hoodie.cleaner.partition.filter.selected": "hoodie.clean.partition.filter.selected",
        "hoodie.deltastreamer.keygen.datetime.parser.class": "hoodie.keygen.datetime.parser.class",
        "clustering.plan.strategy.class": "hoodie.clustering.plan.strategy.class",
        "hive_sync.file_format": "hoodie.datasource.hive_sync.base_file_format",
        "hive_sync.assume_date_partitioning": "hoodie.datasource.hive_sync.assume_date_partitioning",
        "hoodie.table.recordkey.fields": "hoodie.datasource.write.recordkey.field",
        "hoodie.table.partition.fields": "hoodie.datasource.write.partitionpath.field",
        "hoodie.table.precombine.field": "hoodie.datasource.write.precombine.field",
        "hoodie.table.ordering.fields": "hoodie.datasource.write.precombine.field",
        "precombine.field": "hoodie.datasource.write.precombine.field",
        "write.precombine.field": "hoodie.datasource.write.precombine.field",
        "hoodie.payload.ordering.field": "hoodie.datasource.write.precombine.field",
        "hoodie.datasource.write.keygenerator.class": "hoodie.datasource.write.keygenerator.type",
        "hoodie.table.keygenerator.class": "hoodie.datasource.write.keygenerator.type",
        "hoodie.table.keygenerator.type": "hoodie.datasource.write.keygenerator.type",
        "hoodie.compaction.payload.class": "hoodie.datasource.write.payload.class",
        "payload.class": "hoodie.datasource.write.payload.class",
        "write.payload.class": "hoodie.datasource.write.payload.class",
        "hoodie.write.record.merge.mode": "hoodie.record.merge.mode",
        "record.merge.mode": "hoodie.record.merge.mode",
        "write.operation": "hoodie.datasource.write.operation",
        "write.insert.deduplicate": "hoodie.combine.before.insert",
        "write.precombine": "hoodie.combine.before.insert",
        "hoodie.parquet.compression.codec.name": "hoodie.parquet.compression.codec",
        "path": "hoodie.base.path",
        "hoodie.table.type": "hoodie.datasource.write.table.type",
        "table.type": "hoodie.datasource.write.table.type",
        "hoodie.base.file.format": "hoodie.table.base.file.format",
        "hoodie.table.ro.file.format": "hoodie.table.base.file.format",
        "hoodie.table.version": "hoodie.write.table.version",
        "cdc.enabled": CDC_KEY,
        "cdc.supplemental.logging.mode": IMAGES_KEY,
        "hoodie.clean.async": "hoodie.clean.async.enabled",
        "hoodie.cleaner.policy": "hoodie.clean.policy",
        "clean.policy": "hoodie.clean.policy",
        "hoodie.cleaner.commits.retained": "hoodie.clean.commits.retained",
        "clean.retain_commits": "hoodie.clean.commits.retained",
        "hoodie.cleaner.fileversions.retained": "hoodie.clean.fileversions.retained",
        "clean.retain_file_versions": "hoodie.clean.fileversions.retained",
        "hoodie.cleaner.hours.retained": "hoodie.clean.hours.retained",
        "clean.retain_hours": "hoodie.clean.hours.retained",
        "hoodie.clean.max.commits": "hoodie.clean.trigger.max.commits",
        "hoodie.cleaner.incremental.mode": "hoodie.clean.incremental.enabled",
        "hoodie.cleaner.parallelism": "hoodie.clean.parallelism",
        "archive.min_commits": "hoodie.keep.min.commits",
        "archive.max_commits": "hoodie.keep.max.commits",
        "hoodie.cleaner.policy.failed.writes": "hoodie.clean.failed.writes.policy",
        "index.type": "hoodie.index.type",
        "compaction.async.enabled": "hoodie.datasource.compaction.async.enable",
        "compaction.delta_commits": "hoodie.compact.inline.max.delta.commits",
        "compaction.delta_seconds": "hoodie.compact.inline.max.delta.seconds",
        "compaction.target_io": "hoodie.compaction.target.io",
        "compaction.trigger.strategy": "hoodie.compact.inline.trigger.strategy",
        "hoodie.datasource.clustering.inline.enable": "hoodie.clustering.inline",
        "hoodie.datasource.clustering.async.enable": "hoodie.clustering.async.enabled",
        "clustering.async.enabled": "hoodie.clustering.async.enabled",
        "hoodie.clustering.async.max.commits": "hoodie.clustering.inline.max.commits",
        "clustering.delta_commits": "hoodie.clustering.inline.max.commits",
        "clustering.plan.partition.filter.mode": "hoodie.clustering.plan.partition.filter.mode",
        **{f"clustering.plan.strategy.{name}": f"hoodie.clustering.plan.strategy.{name}" for name in _FLINK_TOO},
        "hoodie.write.record.merge.strategy.id": "hoodie.record.merge.strategy.id",
        "hoodie.datasource.write.record.merger.strategy": "hoodie.record.merge.strategy.id",
        "hoodie.compaction.record.merger.strategy": "hoodie.record.merge.strategy.id",
        "record.merger.impls": "hoodie.datasource.write.record.merger.impls",
        "record.merger.strategy": "hoodie.record.merge.strategy.id",
        **{
            old + key.removeprefix("hoodie.keygen.timebased."): key
            for key in TIMEBASED_KEYS
            for old in ("hoodie.deltastreamer.keygen.timebased.", "hoodie.streamer.keygen.timebased.", "")
        },
        "write.ignore.failed": "hoodie.write.ignore.failed",
        "metadata.enabled": "hoodie.metadata.enable",
        "hoodie.write.schema": "hoodie.avro.schema",
        "source.avro-schema": "hoodie.avro.schema",
        "write.partition.overwrite.mode": "hoodie.datasource.overwrite.mode",
        "clustering.schedule.enabled": "hoodie.clustering.schedule.inline",
    }
)
