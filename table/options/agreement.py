"""Options and the properties of a table: those of a new table, and whether both agree (pure)."""

from collections.abc import Sequence
from typing import Any

from table.config.change_images import CDC_KEY, IMAGES_KEY
from table.config.merge_mode import mode_in_force
from table.config.table_config import (
    DEFAULT_PAYLOAD,
    KEYGEN_CLASSES,
    LAYOUTS,
    MERGER_VERSION,
    TABLE_VERSION,
    TableConfig,
)
from table.errors import InvalidConfigError
from table.keys.keygen import KINDS
from table.keys.option_words import in_words
from table.keys.time_partition import PREFIX, parse_time_partition
from table.options.choices import TableType
from table.options.key_spelling import encoding_pair, new_encoding
from table.options.operation import Operation
from table.options.write_options import WriteOptions

BUCKETS, HASHED = "hoodie.bucket.index.num.buckets", "hoodie.bucket.index.hash.field"


def new_table_config(options: WriteOptions, default_name: str) -> TableConfig:
    """Properties of a table that these options create.

    Args:
        options: the user's options.
        default_name: the table's name if the user gave none.

    Raises:
        InvalidConfigError: when there is no record key, or fields and key generator disagree.
    """
    keys = options.keys.record_key_fields or ()
    paths = options.keys.partition_fields or ()
    order, version = options.keys.ordering_fields or (), options.table.version or TABLE_VERSION
    _check_fields(keys, paths, order)
    if len(order) > 1 and version < MERGER_VERSION:
        raise InvalidConfigError(
            f"hoodie.datasource.write.precombine.field={','.join(order)}: one field orders the records of a table of "
            f"version {version}; name one, or give hoodie.write.table.version={MERGER_VERSION}"
        )
    several = len(keys) > 1 or len(paths) > 1
    keygen: str = options.keys.keygen_type or ("NON_PARTITION" if not paths else "COMPLEX" if several else "SIMPLE")
    _check_keygen(keygen, keys, paths)
    extra = {"hoodie.database.name": options.table.database} if options.table.database else {}
    if options.table.create_schema:
        extra["hoodie.table.create.schema"] = options.table.create_schema
    if options.index.type.has_buckets:  # no other property tells where a key lies
        extra[BUCKETS] = str(options.index.buckets)
        extra[HASHED] = ",".join(options.index.bucket_hash_fields or keys)
    if keygen == "CUSTOM":
        extra[KINDS] = ",".join(options.keys.partition_kinds)
    if keygen == "TIMESTAMP" or "TIMESTAMP" in options.keys.partition_kinds:
        parse_time_partition(dict(options.keys.timebased))
        extra |= dict(options.keys.timebased)  # as Hudi does: readers and other writers find them in the properties
    layout = LAYOUTS[version]
    config = TableConfig(
        name=options.table.name or default_name,
        table_type=(options.table.table_type or TableType.COPY_ON_WRITE).value,
        record_key_fields=keys,
        partition_fields=paths,
        ordering_fields=order,
        keygen_type=keygen,
        hive_style=bool(options.keys.hive_style),
        url_encode=bool(options.keys.url_encode),
        timezone=options.table.timezone or "UTC",
        archive_folder=options.table.archive_folder or ("archived" if layout == 1 else "history"),
        populate_meta_fields=options.table.populates_meta_fields is not False,
        change_images=options.table.new_images,
        version=version,
        layout_version=layout,
        payload_class=options.table.merge_mode.payload_class if options.table.merge_mode else DEFAULT_PAYLOAD,
        key_encoding=new_encoding(keygen, keys, version, value_only=options.keys.value_only),
        extra=extra,
    )
    _check_virtual_keys(options, config)
    return config


def _check_fields(keys: tuple[str, ...], paths: tuple[str, ...], order: tuple[str, ...]) -> None:
    if not keys:
        raise InvalidConfigError(
            "a new table needs a record key: set hoodie.datasource.write.recordkey.field (key= of HudiSink) to the "
            "column that identifies a row"
        )
    for option, names in (("recordkey.field", keys), ("partitionpath.field", paths), ("precombine.field", order)):
        if len(set(names)) < len(names):
            raise InvalidConfigError(f"hoodie.datasource.write.{option}={','.join(names)} names a column twice")


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
    mode = options.table.merge_mode
    in_force = mode_in_force(config.version, config.payload_class, config.extra) if mode else None
    merged_by = in_force.payload_class if in_force else config.payload_class
    archive_folder = options.table.archive_folder if config.layout_version == 1 else None  # layout 2 does not use it
    pairs = (
        ("hoodie.table.name", options.table.name, config.name),
        ("hoodie.datasource.write.table.type", options.table.table_type, config.table_type),
        ("hoodie.datasource.write.recordkey.field", options.keys.record_key_fields, config.record_key_fields),
        ("hoodie.datasource.write.partitionpath.field", options.keys.partition_fields, config.partition_fields),
        ("hoodie.datasource.write.precombine.field", options.keys.ordering_fields, config.ordering_fields),
        ("hoodie.datasource.write.keygenerator.type", options.keys.keygen_type, config.keygen_type),
        ("hoodie.datasource.write.hive_style_partitioning", options.keys.hive_style, config.hive_style),
        ("hoodie.datasource.write.partitionpath.urlencode", options.keys.url_encode, config.url_encode),
        (
            "hoodie.datasource.write.payload.class",
            mode and mode.payload_class,
            merged_by,
        ),
        ("hoodie.table.timeline.timezone", options.table.timezone, config.timezone),
        ("hoodie.populate.meta.fields", options.table.populates_meta_fields, config.populate_meta_fields),
        (CDC_KEY, options.table.has_change_files, config.change_images is not None),
        (IMAGES_KEY, config.change_images and options.table.change_images, config.change_images),
        ("hoodie.archivelog.folder", archive_folder, config.archive_folder),
    )
    encoding = encoding_pair(config, value_only=options.keys.value_only)
    ours_by_kind = _with_kinds(config.partition_fields, options.keys.partition_kinds)
    by_kind = _with_kinds(config.partition_fields, config.extra.get(KINDS, "").split(","))
    named = [("hoodie.datasource.write.partitionpath.field", ours_by_kind, by_kind)] if by_kind else []
    stored = [(key, value, config.extra[key]) for key, value in options.keys.timebased if key in config.extra]
    for key, ours, theirs in (*pairs, encoding, *named, *stored):
        if ours is not None and ours != theirs:
            raise InvalidConfigError(
                f"{in_words(key, _shown(ours))} contradicts the table, which has {_shown(theirs) or 'none'} and cannot "
                "change it: leave the option out, or write to another path"
            )
    _check_times(options, config)
    _check_virtual_keys(options, config)


def _with_kinds(fields: tuple[str, ...], kinds: Sequence[str]) -> tuple[str, ...] | None:
    """Partition fields as the custom key generator names them; None where the kinds are not known."""
    return tuple(f"{name}:{kind}" for name, kind in zip(fields, kinds, strict=True)) if any(kinds) else None


def _check_times(options: WriteOptions, config: TableConfig) -> None:
    """Refuses a setting that the table was made without, where its default makes other partition paths."""
    if config.keygen_type != "TIMESTAMP" and "TIMESTAMP" not in config.extra.get(KINDS, ""):
        return
    held = {key: value for key, value in config.extra.items() if key.startswith(PREFIX)}
    try:
        made = parse_time_partition(held)
    except InvalidConfigError:
        return  # another engine did not keep all of them: each sink names them
    for key, value in options.keys.timebased:
        if parse_time_partition({**held, key: value}) != made:
            raise InvalidConfigError(
                f"{key}={value} contradicts the table, which was made without it, so that its default counts: the same "
                "time would lie in two partition paths; leave the option out, or write to another path"
            )


def check_buckets(options: WriteOptions, config: TableConfig) -> None:
    """Refuses rows that would not lie where the bucket index of a table looks for them.

    Args:
        options: of the batch.
        config: of the table.

    Raises:
        InvalidConfigError: names the option and the table's value.
    """
    stored, operation, index = config.extra.get(BUCKETS), options.effective_operation, options.index
    if stored is None:
        return
    if not index.type.has_buckets:
        if operation in (Operation.DELETE, Operation.DELETE_PARTITION):
            return
        raise InvalidConfigError(
            f"hoodie.index.type={index.type} contradicts the table, whose rows lie in {stored} buckets: a writer with "
            "the bucket index would not find the new ones, and would double their keys. Set hoodie.index.type=BUCKET "
            f"and {BUCKETS}={stored}, or write to another path. If no writer uses the bucket index any more, remove "
            f"{BUCKETS} from hoodie.properties"
        )
    if stored != str(index.buckets):
        raise InvalidConfigError(
            f"{BUCKETS}={index.buckets} contradicts the table, which has {stored}: the number of buckets is fixed when "
            "a table is made"
        )
    hashed, theirs = index.bucket_hash_fields or config.record_key_fields, config.extra.get(HASHED)
    if theirs is not None and {*hashed} != {*theirs.split(",")}:
        raise InvalidConfigError(
            f"{HASHED}={','.join(hashed)} contradicts the table, which hashes {theirs}: keys would be looked for in "
            f"other buckets; set {HASHED}={theirs}, or write to another path"
        )


def _check_virtual_keys(options: WriteOptions, config: TableConfig) -> None:
    """Refuses options that need record keys or commit times in the rows of a table that does not store them.

    Raises:
        InvalidConfigError: names the option and its value.
    """
    if config.populate_meta_fields:
        return
    refusals = (
        (
            options.table.table_type is TableType.MERGE_ON_READ,
            "hoodie.datasource.write.table.type=MERGE_ON_READ",
            "records of log files are found by their meta columns; use COPY_ON_WRITE",
        ),
        (
            options.index.type.has_buckets,
            f"hoodie.index.type={options.index.type}",
            "Hudi reads such tables by SIMPLE and GLOBAL_SIMPLE alone; use one of these",
        ),
        (
            options.clustering.way is not None,
            f"{options.clustering.way}=true",
            "rows that are moved would not say which commit wrote them; leave it out",
        ),
        (
            bool(options.table.has_change_files),
            f"{CDC_KEY}=true",
            "change files hold the keys of rows; leave it out",
        ),
        (
            not options.duplicates.allow_on_insert,
            "hoodie.merge.allow.duplicate.on.inserts=false",
            "the file that takes a row does not hold its keys; use hoodie.datasource.write.operation=upsert",
        ),
    )
    for refused, option, reason in refusals:
        if refused:
            raise InvalidConfigError(f"{option} with hoodie.populate.meta.fields=false: {reason}")


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)
