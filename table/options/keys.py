"""One table of every key: honoured, refused, or another spelling of one of these (pure).

Keys without effect, the third class, stand in `table.options.without_effect`.
"""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from table.config.table_config import (
    DEFAULT_PAYLOAD,
    KEYGEN_CLASSES,
    OVERWRITE_PAYLOAD,
    PAYLOADS,
    SUPPORTED_KEYGENS,
    keygen_type_of,
)
from table.errors import InvalidConfigError
from table.options.groups import CLEAN_POLICIES

_MB = 1024 * 1024

Parser = Callable[[str, str], Any]


def _string(key: str, value: str) -> str:
    if not value.strip():
        raise InvalidConfigError(f"{key} is empty: give a value or leave the key out")
    return value.strip()


def _folder_name(key: str, value: str) -> str:
    name = _string(key, value)
    if "/" in name or name.startswith("."):
        raise InvalidConfigError(f"{key}={value}: must be the plain name of a folder within .hoodie")
    return name


def _boolean(key: str, value: str) -> bool:
    if value.strip().lower() not in ("true", "false"):
        raise InvalidConfigError(f"{key}={value}: neither true nor false")
    return value.strip().lower() == "true"


def _integer(least: int, scale: int = 1) -> Parser:
    def parse(key: str, value: str) -> int:
        try:
            number = int(value.strip()) * scale
        except ValueError:
            raise InvalidConfigError(f"{key}={value}: not a whole number") from None
        if number < least:
            raise InvalidConfigError(f"{key}={value}: {least} is the least that makes sense")
        return number

    return parse


def _number(above: float, below: float) -> Callable[[str, str], float]:
    def parse(key: str, value: str) -> float:
        try:
            number = float(value.strip())
        except ValueError:
            raise InvalidConfigError(f"{key}={value}: not a number") from None
        if not above < number < below:
            raise InvalidConfigError(f"{key}={value}: must lie between {above} and {below}")
        return number

    return parse


def _share(key: str, value: str) -> float:
    number = _number(-math.inf, math.inf)(key, value)
    if not 0 <= number <= 1:
        raise InvalidConfigError(f"{key}={value}: a share lies between 0 and 1")
    return number


def _one_of(*allowed: str) -> Parser:
    def parse(key: str, value: str) -> str:
        for choice in allowed:
            if value.strip().lower() == choice.lower():
                return choice
        raise InvalidConfigError(f"{key}={value}: one of {', '.join(allowed)} is supported")

    return parse


def _names(_key: str, value: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in value.split(",") if name.strip())


def _keygen(key: str, value: str) -> str:
    found = keygen_type_of(value)
    if found not in SUPPORTED_KEYGENS:
        known = ", ".join(KEYGEN_CLASSES[name] for name in SUPPORTED_KEYGENS)
        raise InvalidConfigError(f"{key}={value}: this key generator is not supported; use one of {known}")
    return found


def _payload(key: str, value: str) -> str:
    short = value.strip().rsplit(".", 1)[-1]
    for known in PAYLOADS:
        if short == known.rsplit(".", 1)[-1]:
            return known
    raise InvalidConfigError(f"{key}={value}: this payload is not supported; use one of {', '.join(PAYLOADS)}")


def _merge_mode(key: str, value: str) -> str:
    modes = {"EVENT_TIME_ORDERING": DEFAULT_PAYLOAD, "COMMIT_TIME_ORDERING": OVERWRITE_PAYLOAD}
    return modes[_one_of(*modes)(key, value)]


OPERATIONS = (
    "insert",
    "bulk_insert",
    "upsert",
    "delete",
    "insert_overwrite",
    "insert_overwrite_table",
    "delete_partition",
)
INDEX_TYPES = ("BLOOM", "SIMPLE", "BUCKET", "GLOBAL_BLOOM", "GLOBAL_SIMPLE")


def _index(key: str, value: str) -> str:
    name = value.strip().upper()
    if name in ("INMEMORY", "FLINK_STATE"):
        return "BLOOM"  # an engine's own memory of what the files say
    if name not in INDEX_TYPES:
        raise InvalidConfigError(f"{key}={value}: this index is not supported; use one of {', '.join(INDEX_TYPES)}")
    return name


def _reconcile(key: str, value: str) -> str:
    return "reconcile" if _boolean(key, value) else "add"


def _dup_policy(key: str, value: str) -> bool:
    return _one_of("none", "drop")(key, value) == "drop"  # type: ignore[no-any-return]


def _setting(_key: str, value: str) -> str:
    return value


SORT_MODES = (
    "NONE",
    "GLOBAL_SORT",
    "PARTITION_SORT",
    "PARTITION_PATH_REPARTITION",
    "PARTITION_PATH_REPARTITION_AND_SORT",
)

TIMEBASED_KEYS = tuple(
    "hoodie.keygen.timebased." + name
    for name in (
        "timestamp.type",
        "timestamp.scalar.time.unit",
        "output.dateformat",
        "output.timezone",
        "input.dateformat",
        "input.dateformat.list.delimiter.regex",
        "input.timezone",
        "timezone",
    )
)

_codec = _one_of("zstd", "snappy", "gzip", "lz4", "none")


def _codec_name(key: str, value: str) -> str:
    name = value.strip().lower()
    return "none" if name == "uncompressed" else _codec(key, "lz4" if name == "lz4_raw" else value)


# key -> (field of WriteOptions, or "base_file.x" / "heartbeat.x", how to read the value)
HONOURED: Mapping[str, tuple[str, Parser]] = MappingProxyType(
    {
        "hoodie.table.name": ("table_name", _string),
        "hoodie.database.name": ("database", _string),
        "hoodie.datasource.write.recordkey.field": ("record_key_fields", _names),
        "hoodie.datasource.write.partitionpath.field": ("partition_fields", _names),
        "hoodie.datasource.write.precombine.field": ("ordering_field", _string),
        "hoodie.datasource.write.keygenerator.type": ("keygen_type", _keygen),
        "hoodie.datasource.write.hive_style_partitioning": ("hive_style", _boolean),
        "hoodie.datasource.write.partitionpath.urlencode": ("url_encode", _boolean),
        "hoodie.datasource.write.payload.class": ("payload_class", _payload),
        "hoodie.record.merge.mode": ("payload_class", _merge_mode),
        "hoodie.table.timeline.timezone": ("timezone", _one_of("UTC", "LOCAL")),
        "hoodie.archivelog.folder": ("archive_folder", _folder_name),
        "hoodie.datasource.write.operation": ("operation", _one_of(*OPERATIONS)),
        "hoodie.index.type": ("index_type", _index),
        "hoodie.bloom.index.prune.by.ranges": ("prune_by_ranges", _boolean),
        "hoodie.bloom.index.update.partition.path": ("bloom_moves", _boolean),
        "hoodie.simple.index.update.partition.path": ("simple_moves", _boolean),
        "hoodie.bucket.index.num.buckets": ("buckets", _integer(1)),
        "hoodie.bucket.index.hash.field": ("bucket_hash_fields", _names),
        "hudistream.index.cache.bytes": ("index_cache_bytes", _integer(0)),
        "hoodie.combine.before.upsert": ("combine_before_upsert", _boolean),
        "hoodie.combine.before.delete": ("combine_before_delete", _boolean),
        "hoodie.datasource.write.insert.drop.duplicates": ("insert_drop_duplicates", _boolean),
        "hoodie.datasource.insert.dup.policy": ("insert_drop_duplicates", _dup_policy),
        "hoodie.datasource.write.partitions.to.delete": ("partitions_to_delete", _names),
        "hudistream.overwrite.in.stream": ("overwrite_in_stream", _boolean),
        "hudistream.schema.mode": ("schema_mode", _one_of("strict", "add", "reconcile")),
        "hoodie.datasource.write.reconcile.schema": ("schema_mode", _reconcile),
        "hoodie.write.set.null.for.missing.columns": ("fill_missing", _boolean),
        "hoodie.bulkinsert.sort.mode": ("sort_mode", _one_of(*SORT_MODES)),
        "hoodie.bulkinsert.shuffle.parallelism": ("bulk_parallelism", _integer(0)),
        "hoodie.combine.before.insert": ("combine_before_insert", _boolean),
        "hoodie.merge.allow.duplicate.on.inserts": ("allow_duplicates", _boolean),
        "hoodie.parquet.max.file.size": ("max_file_size_bytes", _integer(1)),
        "write.parquet.max.file.size": ("max_file_size_bytes", _integer(_MB, _MB)),
        "hoodie.parquet.small.file.limit": ("small_file_limit_bytes", _integer(-(2**63))),
        "hoodie.copyonwrite.record.size.estimate": ("record_size_estimate_bytes", _integer(1)),
        "hoodie.record.size.estimation.threshold": ("record_size_threshold", _number(-1e9, 1e9)),
        "hoodie.copyonwrite.insert.auto.split": ("auto_split", _boolean),
        "hoodie.copyonwrite.insert.split.size": ("split_size", _integer(1)),
        "hoodie.insert.shuffle.parallelism": ("parallelism", _integer(0)),
        "hoodie.upsert.shuffle.parallelism": ("upsert_parallelism", _integer(0)),
        "hoodie.delete.shuffle.parallelism": ("delete_parallelism", _integer(0)),
        "hudistream.slots.per.partition": ("slots_per_partition", _integer(1)),
        "hoodie.datasource.write.streaming.checkpoint.identifier": ("sink_id", _string),
        "hudistream.checkpoint.location": ("checkpoint_location", _string),
        "hoodie.parquet.compression.codec": ("base_file.codec", _codec_name),
        "hudistream.parquet.compression.level": ("base_file.codec_level", _integer(-(2**31))),
        "hoodie.parquet.block.size": ("base_file.row_group_bytes", _integer(1)),
        "write.parquet.block.size": ("base_file.row_group_bytes", _integer(_MB, _MB)),
        "hoodie.parquet.dictionary.enabled": ("base_file.dictionary", _boolean),
        "hoodie.index.bloom.num_entries": ("base_file.bloom_entries", _integer(1)),
        "hoodie.index.bloom.fpp": ("base_file.bloom_fpp", _number(0, 1)),
        "hoodie.bloom.index.filter.type": ("base_file.bloom_type", _one_of("SIMPLE", "DYNAMIC_V0")),
        "hoodie.bloom.index.filter.dynamic.max.entries": ("base_file.bloom_max_entries", _integer(1)),
        "hoodie.client.heartbeat.interval_in_ms": ("heartbeat.interval_ms", _integer(1)),
        "hoodie.client.heartbeat.tolerable.misses": ("heartbeat.tolerable_misses", _integer(1)),
        "hoodie.base.path": ("base_path", _string),
        "hoodie.metadata.enable": ("metadata_enabled", _boolean),
        "hoodie.clean.automatic": ("clean.automatic", _boolean),
        "hoodie.clean.async.enabled": ("clean.asynchronous", _boolean),
        "clean.async.enabled": ("clean.at_checkpoint", _boolean),
        "hoodie.clean.policy": ("clean.policy", _one_of(*CLEAN_POLICIES)),
        "hoodie.clean.commits.retained": ("clean.commits_retained", _integer(1)),
        "hoodie.clean.fileversions.retained": ("clean.versions_retained", _integer(1)),
        "hoodie.clean.hours.retained": ("clean.hours_retained", _integer(1)),
        "hoodie.clean.trigger.max.commits": ("clean.trigger_commits", _integer(1)),
        "hoodie.clean.incremental.enabled": ("clean.incremental", _boolean),
        "hoodie.clean.parallelism": ("clean.parallelism", _integer(1)),
        "hudistream.clean.grace.ms": ("clean.grace_ms", _integer(0)),
        "hudistream.clean.max.share": ("clean.most_share", _share),
        "hudistream.clean.on.failure": ("clean.on_failure", _one_of("warn", "pause", "fail")),
        "hoodie.archive.automatic": ("archive.automatic", _boolean),
        "hoodie.keep.min.commits": ("archive.min_commits", _integer(1)),
        "hoodie.keep.max.commits": ("archive.max_commits", _integer(1)),
        "hoodie.commits.archival.batch": ("archive.batch", _integer(1)),
        "hudistream.bad.rows": ("bad_rows", _one_of("fail", "quarantine")),
        "hudistream.bad.rows.path": ("bad_rows_path", _string),
        "hudistream.max.rewrite.ratio": ("max_rewrite_ratio", _number(0, 1e12)),
        "hudistream.task.memory.bytes": ("task_memory_bytes", _integer(1)),
        "hudistream.verify.share": ("base_file.verify_share", _share),
        **dict.fromkeys(TIMEBASED_KEYS, ("timebased", _setting)),
    }
)

# key -> (values that say what happens anyway, why any other is refused)
REFUSED: Mapping[str, tuple[tuple[str, ...], str]] = MappingProxyType(
    {
        "hoodie.clean.trigger.strategy": (("NUM_COMMITS",), "cleaning is triggered by the number of commits"),
        "hoodie.auto.commit": (("true",), "the stream's checkpoint would advance without data"),
        "hoodie.datasource.write.table.type": (("COPY_ON_WRITE",), "merge-on-read tables are not written yet"),
        "hoodie.table.base.file.format": (("PARQUET",), "base files are Parquet"),
        "hoodie.table.version": (("6",), "tables are of version 6"),
        "hoodie.timeline.layout.version": (("1",), "tables of version 6 have timeline layout 1"),
        "hoodie.timeline.path": (("timeline",), "timeline layout 1 has no such folder"),
        "hoodie.table.cdc.enabled": (("false",), "change logs are not written"),
        "hoodie.populate.meta.fields": (("true",), "the meta columns are always written"),
        "hoodie.datasource.write.drop.partition.columns": (("false",), "partition columns are kept in the files"),
        "hoodie.partition.metafile.use.base.format": (("false",), "partition metadata is text"),
        "hoodie.table.multiple.base.file.formats.enable": (("false",), "base files are Parquet"),
        "hoodie.allow.operation.metadata.field": (("false",), "the column _hoodie_operation is not written"),
        "hoodie.write.concurrency.mode": (("SINGLE_WRITER",), "one writer a table for now"),
        "hoodie.clean.failed.writes.policy": (("EAGER",), "failed writes are rolled back before the next batch"),
        "hoodie.index.bucket.engine": (("SIMPLE",), "the number of buckets is fixed"),
        "hoodie.index.class": (("",), "indexes of one's own are not loaded"),
        "hoodie.storage.layout.type": (("DEFAULT", "BUCKET"), "the index decides where records go"),
        "hoodie.schema.on.read.enable": (("false",), "schema history is not kept"),
        "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": (("false",), "columns are not dropped"),
        "hoodie.write.schema": (("",), "the batch's own schema is written"),
        "hoodie.avro.schema": (("",), "the batch's own schema is written"),
        "hoodie.internal.schema": (("",), "the batch's own schema is written"),
        "hoodie.write.partial.update.schema": (("",), "partial updates are not written"),
        "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled": (
            ("false",),
            "timestamps as keys are not supported yet",
        ),
        "hoodie.parquet.outputtimestamptype": (("TIMESTAMP_MICROS",), "timestamps have microseconds"),
        "hoodie.parquet.writelegacyformat.enabled": (("false",), "the standard Parquet format is written"),
        "hoodie.record.merge.strategy.id": (
            ("eeb8d96f-b1e4-49fd-bbf8-28ac514178e5", "ce9acb64-bde0-424c-9b91-f6ebba25356d"),
            "mergers of one's own are not loaded",
        ),
        "hoodie.bootstrap.base.path": (("",), "bootstrapped tables are not written"),
        "hoodie.errortable.enable": (("false",), "there is no error table"),
        "hoodie.precommit.validators": (("",), "validators of the JVM are not run"),
        "hoodie.write.commit.callback.on": (("false",), "callbacks of the JVM are not called"),
        "hoodie.client.init.callback.classes": (("",), "callbacks of the JVM are not called"),
        "hoodie.clustering.inline": (("false",), "clustering does not run here"),
        "hoodie.clustering.async.enabled": (("false",), "clustering does not run here"),
        "hoodie.partition.ttl.inline": (("false",), "partitions do not expire here"),
        "hoodie.metaserver.enabled": (("false",), "the timeline is files"),
        "hoodie.table.service.manager.enabled": (("false",), "table services run here"),
        "hoodie.bulkinsert.overwrite.operation.type": (("",), "overwriting is not supported yet"),
        "hoodie.static.overwrite.partition.paths": (("",), "overwriting is not supported yet"),
        "hoodie.datasource.hive_sync.enable": (("false",), "no catalog is told about new partitions"),
        "hoodie.datasource.meta.sync.enable": (("false",), "no catalog is told about new partitions"),
        "hoodie.datasource.write.streaming.ignore.failed.batch": (("false",), "a failed batch raises"),
        "write.ignore.failed": (("false",), "a failed batch raises"),
        "changelog.enabled": (("false",), "intermediate changes are not kept"),
        "cdc.supplemental.logging.mode": (("",), "change logs are not written"),
        "write.partition.format": (("",), "partition values are written as they are"),
    }
)

# other spellings: older, newer, the table's own, Flink's
ALIASES: Mapping[str, str] = MappingProxyType(
    {
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
        "hoodie.write.table.version": "hoodie.table.version",
        "cdc.enabled": "hoodie.table.cdc.enabled",
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
        "hoodie.datasource.clustering.inline.enable": "hoodie.clustering.inline",
        "hoodie.datasource.clustering.async.enable": "hoodie.clustering.async.enabled",
        "clustering.async.enabled": "hoodie.clustering.async.enabled",
        "hoodie.write.record.merge.strategy.id": "hoodie.record.merge.strategy.id",
        "hoodie.datasource.write.record.merger.strategy": "hoodie.record.merge.strategy.id",
        "hoodie.compaction.record.merger.strategy": "hoodie.record.merge.strategy.id",
        "record.merger.strategy": "hoodie.record.merge.strategy.id",
        **{
            old + key.removeprefix("hoodie.keygen.timebased."): key
            for key in TIMEBASED_KEYS
            for old in ("hoodie.deltastreamer.keygen.timebased.", "hoodie.streamer.keygen.timebased.", "")
        },
        "hive_sync.enable": "hoodie.datasource.hive_sync.enable",
        "hive_sync.enabled": "hoodie.datasource.hive_sync.enable",
        "hoodie.datasource.hive_sync.enabled": "hoodie.datasource.hive_sync.enable",
    }
)
