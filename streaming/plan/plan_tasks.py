"""Makes the plan of a batch's tasks from options, table properties and write profile (pure)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from streaming.plan.bucket_assigner import AssignRules, drop_costly, find_small_files
from streaming.plan.live_files import LiveFiles
from streaming.plan.routes import Routes, plan_change_routes, plan_routes
from streaming.plan.task_plan import ChangePlan, LogPlan, TaskPlan
from streaming.plan.write_profile import (
    FILES_REMEMBERED,
    FILES_SENT,
    WriteProfile,
    assign_rules,
    last_written,
    sent_files,
)
from table.columns.near_name import did_you_mean
from table.columns.required_values import required_columns
from table.config.merge_mode import MergeMode, mode_in_force
from table.config.metadata_indexes import RECORD_INDEX
from table.config.table_config import MERGER_VERSION, TableConfig
from table.errors import InvalidConfigError
from table.files.markers import APPEND, CREATE
from table.index.virtual_keys import virtual_keys_of
from table.keys.keygen import KeyRules, build_key_expressions, find_key_column
from table.metadata_table.read_record_index import RecordIndex
from table.metadata_table.statistics import ranged_columns
from table.options.choices import BadRowsShown, IndexType, TableType
from table.options.clustering_settings import RowOrder
from table.options.groups import LogFileSettings
from table.options.inserts import check_inserts_stay
from table.options.write_options import WriteOptions
from table.records.merge import MergeRules, can_order
from table.schema.avro_schema import relaxed, schema_json, with_meta_columns
from table.storage.interface import Storage
from table.view.file_group import CommittedInstants
from table.view.listing import Listing
from table.view.pending_compactions import CompactingSlice
from table.write.context import ChangeFileSettings, WriteContext
from table.write.row_order import check_sortable


def merge_rules(options: WriteOptions, config: TableConfig) -> MergeRules:
    """How records with the same key are merged, according to the table's properties and the operation."""
    mode = mode_in_force(config.version, config.payload_class, config.extra) or MergeMode.EVENT_TIME
    return MergeRules(
        mode,
        config.ordering_fields,
        deletes_all=options.effective_operation.deletes_all,
        orders_deletes=config.version >= MERGER_VERSION,
    )


def plan_changes(options: WriteOptions, config: TableConfig) -> ChangePlan | None:
    """How the rows of a batch change the records of the table; None where the batch only adds rows.

    Raises:
        InvalidConfigError: the operation is not supported with the index.
    """
    operation, index = options.effective_operation, options.index
    drops_known, in_buckets = _drops_known(options), index.type.has_buckets
    if operation.removes_partitions or not _meets_records(options):
        return None
    is_merge_on_read = config.table_type == TableType.MERGE_ON_READ
    if is_merge_on_read:
        _check_log_rules(options)
        check_inserts_stay(operation, index.type, options.duplicates, config.table_type)
    if not operation.can_write_buckets:
        raise InvalidConfigError(
            f"hoodie.datasource.write.operation={operation} with hoodie.index.type=BUCKET is not supported: rows would "
            "not lie in their buckets; use insert or upsert"
        )
    return ChangePlan(
        index=index.type,
        prune_by_ranges=index.prune_by_ranges,
        combines=options.duplicates.combine_before(operation) or drops_known,
        drops_known=drops_known,
        adds_only=not operation.looks_for_keys and not drops_known and options.duplicates.allow_on_insert,
        moves=index.updates_partition_path,
        buckets=options.index.buckets if in_buckets else 0,
        bucket_fields=_bucket_fields(options, config) if in_buckets else (),
        cache_bytes=index.cache_bytes,
        to_logs=is_merge_on_read,
    )


_UPDATE_KEYS = {IndexType.GLOBAL_BLOOM: "bloom", IndexType.GLOBAL_SIMPLE: "simple", IndexType.RECORD_INDEX: "record"}


def _check_log_rules(options: WriteOptions) -> None:
    """Refuses options for which a task would have to look up older records in log files."""
    index = options.index
    if index.type.is_global and index.updates_partition_path:
        key = _UPDATE_KEYS[index.type]
        raise InvalidConfigError(
            f"hoodie.index.type={index.type} moves rows to other partition paths, which is not supported on "
            f"merge-on-read tables: set hoodie.{key}.index.update.partition.path=false, or use an index that is "
            "not global (index.global.enabled=false with index.type=FLINK_STATE)"
        )
    if index.type.has_buckets and _drops_known(options):
        raise InvalidConfigError(
            "hoodie.datasource.write.insert.drop.duplicates=true with hoodie.index.type=BUCKET is not supported on "
            "merge-on-read tables: keys may be in log files; use another index, or upsert"
        )


def _bucket_fields(options: WriteOptions, config: TableConfig) -> tuple[str, ...]:
    hashed = options.index.bucket_hash_fields or config.record_key_fields
    strangers = [name for name in hashed if name not in config.record_key_fields]
    if strangers:
        raise InvalidConfigError(
            f"hoodie.bucket.index.hash.field={','.join(hashed)}: {strangers[0]!r} is not one of the record key fields "
            f"({', '.join(config.record_key_fields)})"
        )
    return hashed


def remembered_below(options: WriteOptions) -> int | None:
    """Size from which the profile need not remember a file; None where keys are looked up, which needs every file."""
    if _meets_records(options):
        return None
    return options.sizes.small_file_limit_bytes if options.effective_operation.fills_small_files else 0


def looks_everywhere(options: WriteOptions) -> bool:
    """Whether keys are looked up in every partition path of the table."""
    return options.index.type.is_global and _meets_records(options)


def _meets_records(options: WriteOptions) -> bool:
    """Whether the batch looks up keys in the table, or an index decides the file group of each row."""
    looks_for_keys = options.effective_operation.looks_for_keys
    return looks_for_keys or _drops_known(options) or options.index.type.has_buckets


def _drops_known(options: WriteOptions) -> bool:
    return options.effective_operation.may_drop_duplicates and options.duplicates.drop_on_insert


def check_ordering(options: WriteOptions, config: TableConfig, schema: pa.Schema) -> None:
    """Refuses an ordering field that cannot order.

    Args:
        options: how to write.
        config: the table's properties.
        schema: table columns (Arrow).

    Raises:
        InvalidConfigError: names the column and its type.
    """
    rules, changes, duplicates = merge_rules(options, config), plan_changes(options, config), options.duplicates
    if changes is None:
        compares = duplicates.combine_before_insert or not duplicates.allow_on_insert
    else:
        compares = changes.combines or not changes.adds_only
    if not compares or rules.deletes_all:
        return
    for name in rules.ordering_fields:
        if name not in schema.names:
            raise InvalidConfigError(
                f"hoodie.datasource.write.precombine.field={name}: the table has no such column; it has "
                f"{', '.join(schema.names)}{did_you_mean(name, schema.names)}"
            )
        if not can_order(schema.field(name).type):
            raise InvalidConfigError(
                f"hoodie.datasource.write.precombine.field={name}: a column of type {schema.field(name).type} has no "
                "order that records could follow; use a number, a time or text"
            )


@dataclass(frozen=True)
class Scene:
    """The state of the table in which a commit begins.

    Attributes:
        storage: the table's.
        listing: lists the table's files.
        instant_time: the commit's.
        committed: the instants that decide which files are visible.
        partition_paths: of the table; filled only for a global index whose profile does not know all paths, without
            `record_index`.
        logs: for merge-on-read tables.
        share: this writer's number among the writers of the table, and the number of writers.
        record_index: the table's, if the batch looks up keys by it.
        clustered: (partition path, file id) -> the pending clustering of another engine that replaces the file group.
    """

    storage: Storage
    listing: Listing
    instant_time: str
    committed: CommittedInstants
    partition_paths: tuple[str, ...] = ()
    logs: LogPlan | None = None
    share: tuple[int, int] = (0, 1)
    record_index: RecordIndex | None = None
    clustered: Mapping[tuple[str, str], str] = field(default_factory=dict)


def plan_tasks(
    options: WriteOptions,
    config: TableConfig,
    profile: WriteProfile,
    schema: pa.Schema,
    scene: Scene,
    parallelism: int,
) -> TaskPlan:
    """Plans the tasks of a batch.

    Args:
        options: how to write.
        config: the table's properties.
        profile: the table's write profile.
        schema: table columns (Arrow) as the commit will have them.
        scene: the state of the table.
        parallelism: the largest number of tasks.
    """
    operation = options.effective_operation
    changes = plan_changes(options, config)
    rules = replace(assign_rules(profile, options), share=scene.share)
    if not operation.fills_small_files:  # every task opens files of its own
        rules = replace(rules, small_file_limit_bytes=0)
    most = options.tasks.most_tasks(operation) or parallelism
    if operation.is_bulk:
        routes = Routes(most)
    elif changes is not None:
        routes, apart = plan_change_routes(profile, rules, most, spread=changes.is_global)
        files = sent_files(profile, FILES_REMEMBERED if changes.is_global else FILES_SENT)
        changes = replace(
            changes,
            apart=apart,
            files=files,
            partition_paths=scene.partition_paths,
            virtual=virtual_keys_of(config, schema),
            record_index=scene.record_index,
            path_rules=_path_rules(options, config, schema) if changes.is_global and changes.moves else None,
        )
    else:
        routes = plan_routes(profile, rules, most, options.tasks.slots_per_partition)
    context = _write_context(options, config, schema, scene)
    small_files = LiveFiles()
    if changes is None:
        small_files = _small_files(profile, rules, options.sizes.max_rewrite_ratio, scene)
    shown = (*config.record_key_fields, *config.partition_fields)
    return TaskPlan(
        context,
        routes,
        rules,
        small_files,
        _committed_for(scene.committed, small_files if changes is None else changes.files),
        scene.listing,
        options.tasks.bulk_insert_sort if operation.is_bulk else None,
        _checked_order(options, schema),
        memory_bytes=options.tasks.memory_bytes,
        changes=changes,
        logs=scene.logs,
        clustered=scene.clustered,
        shown=shown if options.bad_rows.shown is BadRowsShown.KEYS else None,
    )


def plan_logs(
    options: WriteOptions,
    config: TableConfig,
    compacting: Mapping[tuple[str, str], CompactingSlice],
    *,
    knows_logs: bool,
) -> LogPlan:
    """How tasks write to file groups with log files.

    Args:
        options: how to write.
        config: of the table.
        compacting: (partition path, file id) -> the slice that a pending compaction reads.
        knows_logs: whether the batch finds keys by the record index. Else no new rows join log files.
    """
    sizes = options.sizes
    ratio = sizes.log_ratio if sizes.joins_logs and knows_logs else None
    times = {key: found.time for key, found in compacting.items()}
    return LogPlan(times, sizes.groups_filled, ratio, sizes.joins_logs or config.has_rows_in_logs)


def _path_rules(options: WriteOptions, config: TableConfig, schema: pa.Schema) -> KeyRules | None:
    """How merged records make partition paths. Before version 9 incoming ones do, as in Hudi 1.0.2."""
    rules = merge_rules(options, config)
    if not rules.mode.fills_nulls or rules.deletes_all or config.version < MERGER_VERSION:
        return None
    return build_key_expressions(config, schema, options.keys.partition_kinds, dict(options.keys.timebased)).rules


def _committed_for(committed: CommittedInstants, sent: LiveFiles) -> CommittedInstants:
    """The instants with the files that they name in the paths that tasks list, those written last first."""
    if committed.named is None:
        return committed
    listed = [path for path in committed.named.newest_first() if sent.of(path) is None]
    return replace(committed, named=committed.named.within(listed, FILES_SENT))


def _write_context(options: WriteOptions, config: TableConfig, schema: pa.Schema, scene: Scene) -> WriteContext:
    operation, duplicates = options.effective_operation, options.duplicates
    return WriteContext(
        storage=scene.storage,
        instant_time=scene.instant_time,
        schema=relaxed(schema),
        required=required_columns(schema),
        avro_schema=schema_json(with_meta_columns(schema), config.name),
        settings=replace(options.file_settings, has_meta_fields=config.populate_meta_fields),
        log_settings=_log_settings(options.log_files, config),
        merge=merge_rules(options, config),
        key_column=find_key_column(config, schema),
        allow_duplicates=duplicates.allow_on_insert or operation.is_bulk,
        combine_before_insert=duplicates.combine_before_insert,
        ranged=ranged_columns(config, schema),
        tells_keys=RECORD_INDEX in config.metadata_indexes and config.tells_keys,
        has_unique_keys=options.index.type.is_global or not config.partition_fields,
        change_files=_change_files(config),
    )


def _change_files(config: TableConfig) -> ChangeFileSettings | None:
    """How change files are written; None in a table that has none."""
    if config.change_images is None:
        return None
    return ChangeFileSettings(config.change_images, APPEND if config.layout_version == 1 else CREATE)


def _checked_order(options: WriteOptions, schema: pa.Schema) -> RowOrder | None:
    """The order of the rows of a bulk insert.

    Raises:
        InvalidConfigError: a sort column is not in the table, or its values have no order.
    """
    order = options.bulk_insert_order
    for name in order.columns if order is not None else ():
        if name not in schema.names:
            near = did_you_mean(name, schema.names)
            raise InvalidConfigError(f"the batch cannot be sorted by {name!r}: the table has no such column{near}")
        check_sortable(name, schema.field(name).type)
    return order


def _log_settings(settings: LogFileSettings, config: TableConfig) -> LogFileSettings:
    """Blocks of version 6 have no positions."""
    return settings if config.layout_version > 1 else replace(settings, record_positions=False)


def _small_files(profile: WriteProfile, rules: AssignRules, most_ratio: float | None, scene: Scene) -> LiveFiles:
    """The small files that are sent to tasks. The task that writes a path which does not fit into the plan lists it."""
    taken = {*scene.clustered, *(scene.logs.compacting if scene.logs is not None else ())}
    small = {
        path: drop_costly(
            find_small_files((file for file in known.files if (path, file.file_id) not in taken), rules),
            known.rows,
            rules,
            most_ratio,
        )
        for path, known in profile.paths.items()
        if known.files is not None
    }
    return last_written(small, FILES_SENT, is_complete=profile.is_complete)
