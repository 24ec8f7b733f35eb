"""Options: the ``hoodie.*`` strings people copy around -> one frozen, typed value (pure).

Every key falls into one of three classes: honoured and refused (`table.options.keys`; ignoring a
refused one would change results), without effect here (`table.options.without_effect`, said once in the log).
Old, new and Flink spellings are accepted. Any other key is an error with the nearest name.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from table.config.table_config import DEFAULT_PAYLOAD, KEYGEN_CLASSES, TableConfig
from table.errors import InvalidConfigError
from table.keys.time_partition import parse_time_partition
from table.options.groups import ArchiveSettings, BaseFileSettings, CleanSettings, HeartbeatSettings
from table.options.keys import ALIASES, HONOURED, REFUSED
from table.options.rules import check_clean_spellings, check_level, checked_retention
from table.options.without_effect import WITHOUT_EFFECT, WITHOUT_EFFECT_PREFIXES

DEFAULT_SINK_ID = "default_single_writer"
_MB = 1024 * 1024


@dataclass(frozen=True)
class WriteOptions:
    """Everything one can say about writing, typed.

    Attributes:
        table_name: name of a new table; None means the last part of the path.
        database: ``hoodie.database.name``; part of the properties' checksum.
        record_key_fields: columns of the record key; None means the table's.
        partition_fields: columns of the partition path; None means the table's, or none.
        ordering_field: column that orders records of one key.
        partition_kinds: ``SIMPLE`` or ``TIMESTAMP`` a partition field, for the custom key generator.
        keygen_type: ``SIMPLE``, ``NON_PARTITION``, ``COMPLEX``, ``TIMESTAMP``, ``CUSTOM``; None is derived from the
            fields.
        timebased: ``hoodie.keygen.timebased.*`` keys and values, sorted.
        metadata_enabled: ``hoodie.metadata.enable``; False lets the sink drop a table's metadata table.
        hive_style: folders ``region=eu``.
        url_encode: special characters of partition values as ``%XX``.
        payload_class: merge semantics of a new table.
        timezone: ``UTC`` or ``LOCAL``, the zone of a new table's instants.
        archive_folder: of a new table.
        operation: ``insert``, ``bulk_insert``, ``upsert`` or ``delete``; through `write` also
            ``insert_overwrite``, ``insert_overwrite_table`` and ``delete_partition``.
        index_type: how keys are found: ``BLOOM``, ``SIMPLE``, ``BUCKET``, ``GLOBAL_BLOOM``, ``GLOBAL_SIMPLE``.
        prune_by_ranges: whether a bloom index asks key ranges before filters.
        bloom_moves: whether GLOBAL_BLOOM moves a key that comes with another partition path there.
        simple_moves: the same for GLOBAL_SIMPLE.
        buckets: number of buckets a partition path.
        bucket_hash_fields: record key fields that the bucket index hashes; None: all.
        index_cache_bytes: what a worker may remember of files that it looked for keys in.
        combine_before_upsert: one record a key within a batch of upserts.
        combine_before_delete: the same for deletes.
        insert_drop_duplicates: inserts of keys that the table has are dropped.
        partitions_to_delete: what ``delete_partition`` takes out of sight; ``*`` stands for anything.
        schema_mode: ``strict``, ``add`` or ``reconcile``: what columns a batch may have (`table.schema.evolution`).
        fill_missing: columns that a batch lacks are null, whatever the mode.
        overwrite_in_stream: whether every micro-batch may replace what was there.
        sort_mode: of bulk inserts: ``NONE``, ``GLOBAL_SORT``, ``PARTITION_SORT``, ``PARTITION_PATH_REPARTITION``,
            ``PARTITION_PATH_REPARTITION_AND_SORT``.
        bulk_parallelism: most tasks of a bulk insert; None means as for inserts.
        upsert_parallelism: most tasks of an upsert; None means as for inserts.
        delete_parallelism: most tasks of a delete; None means as for inserts.
        combine_before_insert: one record a key within a batch.
        allow_duplicates: inserts do not look for their key in the file they join.
        max_file_size_bytes: size at which a base file is full.
        small_file_limit_bytes: files below it are topped up; 0 or less: none are.
        record_size_estimate_bytes: of a row, before any file was written.
        record_size_threshold: Hudi's rule for the average (share of the small file limit that a
            commit must exceed to count); None learns from every committed base file.
        rows_per_new_file: fixed size of new file groups in rows; None derives it from the average.
        parallelism: most tasks a batch is written by; None means Spark's shuffle partitions.
        slots_per_partition: tasks that share an unknown partition path.
        sink_id: name of this sink in the commits' checkpoint.
        checkpoint_location: the query's checkpoint, needed where its id cannot be asked for
            (Spark Connect).
        bad_rows: ``fail``, or ``quarantine``: rows that cannot be stored go to Parquet files beside the table.
        bad_rows_path: where; None means the table's path and ``_bad_rows``.
        max_rewrite_ratio: a small file is passed over when it has more than this many bytes for each byte that
            is expected to be added to it; None: never.
        task_memory_bytes: rows (Arrow) that a task holds to bring them together by file; what is more goes
            to the worker's local disk.
        base_file: codec, row groups, bloom filter.
        heartbeat: how often a running batch says that it is alive.
        clean: which old versions of files go, and when.
        archive: when instants leave the active timeline.
    """

    table_name: str | None = None
    database: str | None = None
    record_key_fields: tuple[str, ...] | None = None
    partition_fields: tuple[str, ...] | None = None
    ordering_field: str | None = None
    partition_kinds: tuple[str, ...] = ()
    keygen_type: str | None = None
    timebased: tuple[tuple[str, str], ...] = ()
    metadata_enabled: bool | None = None
    hive_style: bool | None = None
    url_encode: bool | None = None
    payload_class: str | None = None
    timezone: str | None = None
    archive_folder: str | None = None
    operation: str = "insert"
    index_type: str = "BLOOM"
    prune_by_ranges: bool = True
    bloom_moves: bool = True
    simple_moves: bool = True
    buckets: int = 256
    bucket_hash_fields: tuple[str, ...] | None = None
    index_cache_bytes: int = 64 * _MB
    combine_before_upsert: bool = True
    combine_before_delete: bool = True
    insert_drop_duplicates: bool = False
    partitions_to_delete: tuple[str, ...] = ()
    overwrite_in_stream: bool = False
    schema_mode: str = "add"
    fill_missing: bool = False
    sort_mode: str = "NONE"
    bulk_parallelism: int | None = None
    upsert_parallelism: int | None = None
    delete_parallelism: int | None = None
    combine_before_insert: bool = False
    allow_duplicates: bool = True
    max_file_size_bytes: int = 120 * _MB
    small_file_limit_bytes: int = 100 * _MB
    record_size_estimate_bytes: int = 1024
    record_size_threshold: float | None = None
    rows_per_new_file: int | None = None
    parallelism: int | None = None
    slots_per_partition: int = 1
    sink_id: str = DEFAULT_SINK_ID
    checkpoint_location: str | None = None
    bad_rows: str = "fail"
    bad_rows_path: str | None = None
    max_rewrite_ratio: float | None = None
    task_memory_bytes: int = 128 * _MB
    base_file: BaseFileSettings = field(default_factory=BaseFileSettings)
    heartbeat: HeartbeatSettings = field(default_factory=HeartbeatSettings)
    clean: CleanSettings = field(default_factory=CleanSettings)
    archive: ArchiveSettings = field(default_factory=ArchiveSettings)


@dataclass(frozen=True)
class ParsedOptions:
    """Typed options, and the keys that have no effect with the reason why."""

    options: WriteOptions
    without_effect: Mapping[str, str]


def parse_options(options: Mapping[str, Any], base_path: str | None = None) -> ParsedOptions:
    """Reads option strings.

    Args:
        options: keys and values as people write them; values may be strings, numbers, booleans.
        base_path: where the sink writes; ``hoodie.base.path`` must agree.

    Raises:
        InvalidConfigError: names the key, its value, and the way out.
    """
    values: dict[str, tuple[str, str]] = {}
    ignored: dict[str, str] = {}
    for key, raw in options.items():
        value = ("true" if raw else "false") if isinstance(raw, bool) else str(raw)
        name = ALIASES.get(key, key)
        if name in HONOURED or name in REFUSED:
            if name in values and values[name][1] != value:
                raise InvalidConfigError(
                    f"{values[name][0]}={values[name][1]} and {key}={value} say different things: keep one"
                )
            values[name] = (key, value)
        else:
            ignored[key] = _reason_without_effect(key)
    for name, (key, value) in values.items():
        if name in REFUSED:
            _refuse(key, value, *REFUSED[name])
    return ParsedOptions(_build(values, base_path), ignored)


def parse_operation(text: str) -> str:
    """The name of an operation, checked.

    Raises:
        InvalidConfigError: when it is not supported.
    """
    _, parse = HONOURED["hoodie.datasource.write.operation"]
    return str(parse("operation", text))


def _refuse(key: str, value: str, harmless: tuple[str, ...], reason: str) -> None:
    if value.strip().lower() not in {choice.lower() for choice in harmless}:
        allowed = " or ".join(choice for choice in harmless if choice)
        way_out = f"leave it out, or set {allowed}" if allowed else "leave it out"
        raise InvalidConfigError(f"{key}={value} is refused: {reason}; {way_out}")


def _reason_without_effect(key: str) -> str:
    if key in WITHOUT_EFFECT:
        return WITHOUT_EFFECT[key]
    for prefix, reason in WITHOUT_EFFECT_PREFIXES.items():
        if key.startswith(prefix):
            return reason
    known = [*HONOURED, *REFUSED, *ALIASES, *WITHOUT_EFFECT]
    near = difflib.get_close_matches(key, known, 1, 0.6)
    hint = f"; did you mean {near[0]}?" if near else "; see the options table in the README"
    raise InvalidConfigError(f"unknown option {key}{hint}")


def _build(values: Mapping[str, tuple[str, str]], base_path: str | None) -> WriteOptions:
    parsed: dict[str, Any] = {}
    timebased: dict[str, str] = {}
    said: dict[str, str] = {}
    for name, (key, value) in values.items():
        if name in HONOURED:
            field_name, parse = HONOURED[name]
            found = parse(key, value)
            if field_name == "timebased":
                timebased[name] = found
                continue
            if parsed.setdefault(field_name, found) != found:
                raise InvalidConfigError(f"{said[field_name]} and {key}={value} say different things: keep one")
            said[field_name] = f"{key}={value}"
    check_clean_spellings(parsed, said)
    given_path = parsed.pop("base_path", None)
    if given_path is not None and base_path is not None and given_path.rstrip("/") != base_path.rstrip("/"):
        raise InvalidConfigError(f"the options say the table is at {given_path!r}, the sink writes to {base_path!r}")
    auto_split, split_size = parsed.pop("auto_split", True), parsed.pop("split_size", 500_000)
    if not auto_split:
        parsed["rows_per_new_file"] = split_size
    _split_partition_kinds(parsed)
    parsed["timebased"] = tuple(sorted(timebased.items()))
    for name in ("parallelism", "bulk_parallelism", "upsert_parallelism", "delete_parallelism"):
        parsed[name] = parsed.get(name) or None  # 0 is Hudi's word for "choose"
    check_level(parsed.get("base_file.codec", "zstd"), parsed.get("base_file.codec_level"))
    if "base_file.codec" in parsed and "base_file.codec_level" not in parsed:
        parsed["base_file.codec_level"] = 1 if parsed["base_file.codec"] == "zstd" else None
    nested: dict[str, dict[str, Any]] = {"base_file": {}, "heartbeat": {}, "clean": {}, "archive": {}}
    for name in [name for name in parsed if "." in name]:
        group, inner = name.split(".")
        nested[group][inner] = parsed.pop(name)
    built = WriteOptions(**parsed)
    clean, archive = replace(built.clean, **nested["clean"]), replace(built.archive, **nested["archive"])
    return replace(
        built,
        base_file=replace(built.base_file, **nested["base_file"]),
        heartbeat=replace(built.heartbeat, **nested["heartbeat"]),
        clean=clean,
        archive=checked_retention(clean, archive, given=bool(nested["archive"])),
    )


def _split_partition_kinds(parsed: dict[str, Any]) -> None:
    """``field:kind`` is how partition fields of the custom key generator are written."""
    fields = parsed.get("partition_fields")
    if not fields or parsed.get("keygen_type") != "CUSTOM":
        return
    names, kinds = [], []
    for text in fields:
        name, _, kind = text.rpartition(":")
        if not name or kind.upper() not in ("SIMPLE", "TIMESTAMP"):
            raise InvalidConfigError(
                f"hoodie.datasource.write.partitionpath.field={','.join(fields)}: the custom key generator takes "
                f"field:SIMPLE or field:TIMESTAMP, and {text!r} is neither"
            )
        names.append(name)
        kinds.append(kind.upper())
    parsed["partition_fields"], parsed["partition_kinds"] = tuple(names), tuple(kinds)


def new_table_config(options: WriteOptions, default_name: str) -> TableConfig:
    """Properties of a table that these options create.

    Args:
        options: what the user said.
        default_name: the table's name where the user gave none.

    Raises:
        InvalidConfigError: when there is no record key, or fields and key generator disagree.
    """
    keys = options.record_key_fields or ()
    paths = options.partition_fields or ()
    if not keys:
        raise InvalidConfigError(
            "a new table needs a record key: set hoodie.datasource.write.recordkey.field to the column that "
            "identifies a row"
        )
    for option, names in (("recordkey.field", keys), ("partitionpath.field", paths)):
        if len(set(names)) < len(names):
            raise InvalidConfigError(f"hoodie.datasource.write.{option}={','.join(names)} names a column twice")
    several = len(keys) > 1 or len(paths) > 1
    keygen = options.keygen_type or ("NON_PARTITION" if not paths else "COMPLEX" if several else "SIMPLE")
    _check_keygen(keygen, keys, paths)
    extra = {"hoodie.database.name": options.database} if options.database else {}
    if options.index_type == "BUCKET":
        extra["hoodie.bucket.index.num.buckets"] = str(options.buckets)  # nothing else would tell another number apart
    if keygen == "TIMESTAMP":
        parse_time_partition(dict(options.timebased))
        extra |= dict(options.timebased)  # Hudi keeps them in the properties, for readers and other writers
    return TableConfig(
        name=options.table_name or default_name,
        record_key_fields=keys,
        partition_fields=paths,
        ordering_field=options.ordering_field,
        keygen_type=keygen,
        hive_style=bool(options.hive_style),
        url_encode=bool(options.url_encode),
        timezone=options.timezone or "UTC",
        archive_folder=options.archive_folder or "archived",
        payload_class=options.payload_class or DEFAULT_PAYLOAD,
        extra=extra,
    )


def _check_keygen(keygen: str, keys: tuple[str, ...], paths: tuple[str, ...]) -> None:
    if keygen == "NON_PARTITION" and paths:
        raise InvalidConfigError(
            f"the non-partitioned key generator and the partition field {paths[0]!r} contradict each other: drop one"
        )
    if keygen in ("SIMPLE", "TIMESTAMP"):
        for kind, names in (("record key", keys), ("partition", paths)):
            if len(names) > 1:
                raise InvalidConfigError(
                    f"{len(names)} {kind} fields ({', '.join(names)}) need the complex key generator: set "
                    f"hoodie.datasource.write.keygenerator.class={KEYGEN_CLASSES['COMPLEX']}"
                )
        if not paths:
            raise InvalidConfigError(
                f"the {keygen.lower()} key generator needs hoodie.datasource.write.partitionpath.field; for a table "
                f"without partitions use {KEYGEN_CLASSES['NON_PARTITION']}"
            )


def check_options_agree(options: WriteOptions, config: TableConfig) -> None:
    """Refuses options that contradict the table (HoodieWriteConfig against HoodieTableConfig).

    Raises:
        InvalidConfigError: names the option, its value and the table's.
    """
    pairs = (
        ("hoodie.table.name", options.table_name, config.name),
        ("hoodie.datasource.write.recordkey.field", options.record_key_fields, config.record_key_fields),
        ("hoodie.datasource.write.partitionpath.field", options.partition_fields, config.partition_fields),
        ("hoodie.datasource.write.precombine.field", options.ordering_field, config.ordering_field),
        ("hoodie.datasource.write.keygenerator.type", options.keygen_type, config.keygen_type),
        ("hoodie.datasource.write.hive_style_partitioning", options.hive_style, config.hive_style),
        ("hoodie.datasource.write.partitionpath.urlencode", options.url_encode, config.url_encode),
        ("hoodie.datasource.write.payload.class", options.payload_class, config.payload_class),
        ("hoodie.table.timeline.timezone", options.timezone, config.timezone),
        ("hoodie.archivelog.folder", options.archive_folder, config.archive_folder),
    )
    stored = [(key, value, config.extra[key]) for key, value in options.timebased if key in config.extra]
    for key, ours, theirs in (*pairs, *stored):
        if ours is not None and ours != theirs:
            raise InvalidConfigError(f"{key}={_shown(ours)} contradicts the table, which has {_shown(theirs)}")


def _shown(value: Any) -> str:
    return ",".join(value) if isinstance(value, tuple) else str(value)


def option_fields() -> frozenset[str]:
    """Names of all fields that `HONOURED` may fill; for the test that none is misspelled."""
    top = {f.name for f in fields(WriteOptions)}
    inner = {f"base_file.{f.name}" for f in fields(BaseFileSettings)}
    inner |= {f"clean.{f.name}" for f in fields(CleanSettings)} | {f"archive.{f.name}" for f in fields(ArchiveSettings)}
    return frozenset(top | inner | {f"heartbeat.{f.name}" for f in fields(HeartbeatSettings)})
