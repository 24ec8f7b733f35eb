"""From options, properties and profile to what the tasks of one batch get (pure)."""

from dataclasses import dataclass, replace

import pyarrow as pa

from streaming.plan.bucket_assigner import AssignRules, drop_costly, find_small_files
from streaming.plan.live_files import LiveFiles
from streaming.plan.replacement import OVERWRITES
from streaming.plan.routes import Routes, plan_change_routes, plan_routes
from streaming.plan.task_plan import ChangePlan, TaskPlan
from streaming.plan.write_profile import FILES_REMEMBERED, FILES_SENT, WriteProfile, assign_rules, sent_files
from table.config.table_config import OVERWRITE_PAYLOAD, PARTIAL_UPDATE_PAYLOAD, TableConfig
from table.errors import InvalidConfigError
from table.index.key_lookup import BUCKET, GLOBAL_BLOOM, GLOBAL_INDEXES
from table.keys.keygen import find_key_column
from table.options.write_options import WriteOptions
from table.records.merge import COMMIT_TIME, EVENT_TIME, PARTIAL_UPDATE, MergeRules, can_order
from table.schema.avro_schema import relaxed, required_columns, schema_json, with_meta_columns
from table.storage.interface import Storage
from table.view.file_group import CommittedInstants
from table.write.context import WriteContext

_LOOKS_FOR_KEYS = ("upsert", "delete")


def merge_rules(options: WriteOptions, config: TableConfig) -> MergeRules:
    """How records of one key become one, as the table's payload class and the operation say."""
    modes = {OVERWRITE_PAYLOAD: COMMIT_TIME, PARTIAL_UPDATE_PAYLOAD: PARTIAL_UPDATE}
    mode = modes.get(config.payload_class, EVENT_TIME)
    return MergeRules(mode, config.ordering_field, deletes_all=options.operation == "delete")


def plan_changes(options: WriteOptions, config: TableConfig) -> ChangePlan | None:
    """How the rows of a batch meet the records of the table; None where they are only added.

    Raises:
        InvalidConfigError: when operation and index do not go together.
    """
    operation, index = options.operation, options.index_type
    drops_known, in_buckets = _drops_known(options), index == BUCKET
    if not _meets_records(options):
        return None
    if operation not in (*_LOOKS_FOR_KEYS, "insert"):
        raise InvalidConfigError(
            f"hoodie.datasource.write.operation={operation} with hoodie.index.type=BUCKET is not supported: rows would "
            "not lie in their buckets; use insert or upsert"
        )
    combines = {
        "upsert": options.combine_before_upsert,
        "delete": options.combine_before_delete,
        "insert": options.combine_before_insert or drops_known,
    }[operation]
    return ChangePlan(
        index=index,
        prune_by_ranges=options.prune_by_ranges,
        combines=combines,
        drops_known=drops_known,
        adds_only=operation == "insert" and not drops_known and options.allow_duplicates,
        moves=options.bloom_moves if index == GLOBAL_BLOOM else options.simple_moves,
        buckets=_checked_buckets(options, config) if in_buckets else 0,
        bucket_fields=_bucket_fields(options, config) if in_buckets else (),
        cache_bytes=options.index_cache_bytes,
    )


def _checked_buckets(options: WriteOptions, config: TableConfig) -> int:
    stored = config.extra.get("hoodie.bucket.index.num.buckets")
    if stored is not None and stored != str(options.buckets):
        raise InvalidConfigError(
            f"hoodie.bucket.index.num.buckets={options.buckets} contradicts the table, which has {stored}: the number "
            "of buckets is fixed when a table is made"
        )
    return options.buckets


def _bucket_fields(options: WriteOptions, config: TableConfig) -> tuple[str, ...]:
    hashed = options.bucket_hash_fields or config.record_key_fields
    strangers = [name for name in hashed if name not in config.record_key_fields]
    if strangers:
        raise InvalidConfigError(
            f"hoodie.bucket.index.hash.field={','.join(hashed)}: {strangers[0]!r} is not one of the record key fields "
            f"({', '.join(config.record_key_fields)})"
        )
    return hashed


def remembered_below(options: WriteOptions) -> int | None:
    """The size from which a file need not be remembered; None where keys are looked for: then every file counts."""
    return None if _meets_records(options) else options.small_file_limit_bytes


def looks_everywhere(options: WriteOptions) -> bool:
    """Whether keys are looked for in every partition path of the table."""
    return options.index_type in GLOBAL_INDEXES and _meets_records(options)


def _meets_records(options: WriteOptions) -> bool:
    """Whether the rows of a batch meet those of the table, or lie where an index has them."""
    return options.operation in _LOOKS_FOR_KEYS or _drops_known(options) or options.index_type == BUCKET


def _drops_known(options: WriteOptions) -> bool:
    return options.operation == "insert" and options.insert_drop_duplicates


def check_ordering(options: WriteOptions, config: TableConfig, schema: pa.Schema) -> None:
    """Refuses an ordering field that cannot order.

    Args:
        options: how to write.
        config: the table's properties.
        schema: table columns (Arrow).

    Raises:
        InvalidConfigError: names the column and its type.
    """
    rules, changes = merge_rules(options, config), plan_changes(options, config)
    name = rules.ordering_field
    compares = not options.allow_duplicates if changes is None else not changes.adds_only
    if name is None or not compares or rules.deletes_all:
        return
    if name not in schema.names:
        raise InvalidConfigError(
            f"hoodie.datasource.write.precombine.field={name}: the table has no such column; it has "
            f"{', '.join(schema.names)}"
        )
    if not can_order(schema.field(name).type):
        raise InvalidConfigError(
            f"hoodie.datasource.write.precombine.field={name}: a column of type {schema.field(name).type} has no order "
            "that records could follow; use a number, a time or text"
        )


@dataclass(frozen=True)
class Scene:
    """What a commit finds.

    Attributes:
        storage: the table's.
        instant_time: the commit's.
        committed: which files are visible.
        partition_paths: of the table; only a global index asks for them, where the profile does not know them all.
    """

    storage: Storage
    instant_time: str
    committed: CommittedInstants
    partition_paths: tuple[str, ...] = ()


def plan_tasks(
    options: WriteOptions,
    config: TableConfig,
    profile: WriteProfile,
    schema: pa.Schema,
    scene: Scene,
    parallelism: int,
) -> TaskPlan:
    """What the tasks of a batch get.

    Args:
        options: how to write.
        config: the table's properties.
        profile: what its past says.
        schema: table columns (Arrow) as the commit will have them.
        scene: what the commit finds.
        parallelism: most tasks.
    """
    bulk = options.operation == "bulk_insert"
    changes = plan_changes(options, config)
    rules = assign_rules(profile, options)
    if bulk or options.operation in OVERWRITES:
        # every task opens files of its own; none is topped up
        rules = replace(rules, small_file_limit_bytes=0)
    of_operation = {"upsert": options.upsert_parallelism, "delete": options.delete_parallelism}
    most = of_operation.get(options.operation) or options.parallelism or parallelism
    if bulk:
        routes = Routes(options.bulk_parallelism or parallelism)
    elif changes is not None:
        routes, apart = plan_change_routes(profile, rules, most, spread=changes.is_global)
        files = sent_files(profile, FILES_REMEMBERED if changes.is_global else FILES_SENT)
        changes = replace(changes, apart=apart, files=files, partition_paths=scene.partition_paths)
    else:
        routes = plan_routes(profile, rules, most, options.slots_per_partition)
    context = WriteContext(
        storage=scene.storage,
        instant_time=scene.instant_time,
        schema=relaxed(schema),
        required=required_columns(schema),
        avro_schema=schema_json(with_meta_columns(schema), config.name),
        settings=options.base_file,
        merge=merge_rules(options, config),
        key_column=find_key_column(config, schema),
        allow_duplicates=options.allow_duplicates or bulk,
        combine_before_insert=options.combine_before_insert and not bulk,
    )
    return TaskPlan(
        context,
        routes,
        rules,
        _small_files(profile, rules, options.max_rewrite_ratio) if changes is None else LiveFiles(),
        scene.committed,
        options.sort_mode if bulk else None,
        memory_bytes=options.task_memory_bytes,
        changes=changes,
    )


def _small_files(profile: WriteProfile, rules: AssignRules, most_ratio: float | None) -> LiveFiles:
    small = {
        path: drop_costly(find_small_files(known.files, rules), known.rows, rules, most_ratio)
        for path, known in profile.paths.items()
        if known.files is not None
    }
    return LiveFiles(small, is_complete=profile.is_complete)
