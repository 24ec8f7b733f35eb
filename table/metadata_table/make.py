"""Makes a metadata table for a table that has none: lists of its files, from one listing, and statistics of columns.

Its writer has the table alone, and no action is pending. The property comes last: until then nothing reads the lists.
An action that is completed meanwhile prevents it (`table.config.held_change`). Those of other engines do not: so the
timeline is listed again after the property, and the new metadata table is dropped if anything has begun.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from table import clock
from table.config.held_change import Holding, change_held, mark_change, withdraw_change
from table.config.merge_mode import PAYLOAD_STRATEGY, mode_properties
from table.config.metadata_indexes import FILES, RECORD_INDEX
from table.config.properties import format_properties
from table.config.table_config import (
    MERGER_VERSION,
    PROPERTIES_FILE,
    TableConfig,
    checksum,
    config_from_properties,
    update_properties,
)
from table.errors import TableHeldError, UnsupportedTableError
from table.files.hfile.write_hfile import encode_hfile
from table.files.log.framing import BlockType, Header, LogBlock, encode_block
from table.files.names import BaseFileName, LogFileName
from table.files.partition_metadata import create_partition_metadata
from table.log import get_logger
from table.metadata_table.changes import check_paths
from table.metadata_table.compact import records_of_lists
from table.metadata_table.drop import (
    delete_metadata_files,
    drop_metadata_table,
    drop_present_metadata_table,
    list_metadata_files,
)
from table.metadata_table.groups import EMPTY_DELETE_BLOCK
from table.metadata_table.index_definitions import DEFINITIONS_FILE, define_record_index, define_statistics
from table.metadata_table.index_keys import file_id_of
from table.metadata_table.make_record_index import GroupKeys, make_record_index
from table.metadata_table.make_statistics import Records, make_statistics
from table.metadata_table.metadata_table import METADATA_FOLDER, GroupKey, token_of_group
from table.metadata_table.numbering import COUNT, count_made, counted, first_time
from table.metadata_table.record_codec import schema_of
from table.metadata_table.records import ALL_PARTITIONS, key_of
from table.metadata_table.statistics import Statistics, indexed_columns
from table.options.write_groups import TableSettings
from table.storage.interface import FileInfo, Storage, join
from table.storage.subfolder import Subfolder
from table.timeline.active_timeline import begin_instant, create_settled, load_timeline
from table.timeline.instant import Action, State
from table.timeline.layout import layout_of, name_instant
from table.timeline.metadata.commit import CommitMetadata, WriteStat
from table.timeline.timeline import Timeline
from table.view.file_group import CommittedInstants, committed_instants, parse_data_files
from table.view.listing import Listing

log = get_logger("hudistream.metadata_table")


@dataclass(frozen=True)
class WantedIndexes:
    """What is made beside the lists of files.

    Attributes:
        schema: table columns without meta columns (Arrow), if statistics of them are wanted.
        load_keys: loads the keys of each file group at a timeline, if a record index is wanted.
        count_groups: number of keys -> number of file groups of the record index.
        of_partitions: whether there are statistics of partition paths, too, where Hudi makes them.
    """

    schema: pa.Schema | None = None
    load_keys: Callable[[Timeline], Iterable[GroupKeys]] | None = None
    count_groups: Callable[[int], int] = TableSettings().count_record_index_groups
    of_partitions: bool = True


def make_lists(
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    listing: Listing,
    wanted: WantedIndexes,
    holding: Holding | None = None,
) -> TableConfig:
    """Makes the lists of files of a table, and other indexes if these are wanted.

    Args:
        storage: of the table.
        config: its properties, which name no metadata table.
        timeline: of the table, as listed now.
        listing: of the store.
        wanted: the other indexes.
        holding: how the caller holds the table; None where nobody else writes it.

    Returns:
        The table's properties: unchanged where an action is pending, or began meanwhile.

    Raises:
        StorageError: the store fails; nothing reads what was written.
        CommitConflictError: another writer has taken the table over.
    """
    if timeline.pending:
        return _not_made(storage, config, f"{timeline.pending[0].file_name} is pending")
    committed = committed_instants(timeline, {})
    files = {path: _visible(path, entries, committed) for path, entries in listing.walk()}
    try:
        check_paths(files)
    except UnsupportedTableError as error:
        return _not_made(storage, config, str(error))
    listed = {path: sizes for path, sizes in files.items() if sizes}
    indexes, kept = _make_indexes(storage, config, wanted, timeline, listed)
    number = count_made(storage) + 1
    remains = list_metadata_files(storage)
    if holding is not None:
        # a process that stood still takes no number back that others have reached
        mark_change(storage, holding, lambda properties: {COUNT: str(max(number, counted(properties)))})
        if _has_begun(timeline, load_timeline(storage, timeline.layout)):
            withdraw_change(storage)
            return _not_made(storage, config, "another action began meanwhile")
        holding.confirm()  # another writer that took the table over may have made a metadata table
    if remains:
        delete_metadata_files(storage, remains)
    _write(storage, config, timeline, indexes, number)
    properties = {"hoodie.table.metadata.partitions": ",".join(sorted(indexes)), COUNT: str(number)}
    if kept is not None:
        define_statistics(storage, kept, kept.columns)
        properties["hoodie.table.index.defs.path"] = DEFINITIONS_FILE
    if RECORD_INDEX in indexes and config.version >= MERGER_VERSION:
        define_record_index(storage)
        properties["hoodie.table.index.defs.path"] = DEFINITIONS_FILE
    changed = _name(storage, properties, holding)
    if changed is None:
        return _not_made(storage, config, "another action was completed meanwhile")
    if _has_begun(timeline, load_timeline(storage, timeline.layout)):
        return drop_metadata_table(storage, _not_made(storage, changed, "another action began meanwhile"))
    log.info("metadata_table_made", table=storage.base_uri, partition_paths=len(files), indexes=sorted(indexes))
    return changed


def _make_indexes(
    storage: Storage,
    config: TableConfig,
    wanted: WantedIndexes,
    timeline: Timeline,
    files: Mapping[str, Mapping[str, int]],
) -> tuple[dict[str, list[Records]], Statistics | None]:
    """The records of each index, by its name, and the statistics that are among them.

    Args:
        files: partition path -> name -> size in bytes.
    """
    indexes = {FILES: [sorted(records_of_lists(_lists_of(files)).items())]}
    schema, kept = wanted.schema, None
    if schema is not None:
        kept = _statistics_of(config, schema, of_partitions=wanted.of_partitions)
        made = _tried(storage, partial(make_statistics, storage, config, kept, schema, files))
        kept, indexes = (kept, indexes | made) if made else (None, indexes)
    if wanted.load_keys is not None:
        indexes |= _tried(storage, partial(_make_record_index, config, wanted, timeline))
    return indexes, kept


def _not_made(storage: Storage, config: TableConfig, why: str) -> TableConfig:
    log.info("metadata_table_not_made", table=storage.base_uri, why=why)
    return config


def _name(storage: Storage, properties: Mapping[str, str], holding: Holding | None) -> TableConfig | None:
    """Names the metadata table in the table's properties.

    Returns:
        The changed properties; None if an action was completed meanwhile, which the metadata table does not have.

    Raises:
        CommitConflictError: another writer has taken the table over.
    """
    if holding is None:
        return update_properties(storage, properties)
    try:
        return change_held(storage, holding, properties)
    except TableHeldError:
        drop_present_metadata_table(storage)  # one that others made meanwhile may have lost files by this one
        holding.confirm()
        return None


def _tried(storage: Storage, make: Callable[[], dict[str, list[Records]]]) -> dict[str, list[Records]]:
    """The records of indexes, by index; none where they cannot be made."""
    try:
        return make()
    except UnsupportedTableError as error:
        log.info("metadata_indexes_not_made", table=storage.base_uri, why=str(error))
        return {}


def _make_record_index(config: TableConfig, wanted: WantedIndexes, timeline: Timeline) -> dict[str, list[Records]]:
    groups = wanted.load_keys(timeline) if wanted.load_keys is not None else ()
    return {RECORD_INDEX: make_record_index(config, groups, wanted.count_groups)}


def _statistics_of(config: TableConfig, schema: pa.Schema, *, of_partitions: bool) -> Statistics:
    """The statistics that Hudi keeps of a table of that version."""
    is_typed = config.version >= MERGER_VERSION
    has_paths = of_partitions and bool(config.partition_fields) and config.layout_version > 1
    return Statistics(tuple(indexed_columns(schema, is_typed=is_typed)), is_typed, has_paths)


def _lists_of(files: Mapping[str, Mapping[str, int]]) -> dict[str, Mapping[str, int]]:
    lists: dict[str, Mapping[str, int]] = {ALL_PARTITIONS: {key_of(path): 0 for path in files}}
    return lists | {key_of(path): sizes for path, sizes in files.items()}


def _has_begun(before: Timeline, now: Timeline) -> bool:
    """Whether an action began or went on: it may have looked for lists of files before there were any (pure)."""
    return set(now.files) != set(before.files)


def _visible(path: str, entries: Iterable[FileInfo], committed: CommittedInstants) -> dict[str, int]:
    """The files of a folder that completed instants wrote (pure)."""
    bases, logs = parse_data_files(path, entries)
    all_logs = not committed.logs_name_writers
    return {
        **{base.name: base.size_bytes for base in bases if committed.includes(base.instant_time)},
        **{one.name: one.size_bytes for one in logs if all_logs or committed.includes(one.base_instant_time)},
    }


def _write(
    storage: Storage, config: TableConfig, timeline: Timeline, indexes: Mapping[str, list[Records]], count: int
) -> None:
    """Writes the metadata table: each index with an instant of its own, as Hudi does.

    Args:
        count: how many metadata tables of the table were begun, with this one.
    """
    own = Subfolder(storage, METADATA_FOLDER)
    properties = metadata_properties(config)
    made = config_from_properties(properties)
    layout = layout_of(made.layout_version, made.timeline_folder)
    own.make_dir(layout.open_archive(own, made.archive_folder).folder)
    create_settled(own, PROPERTIES_FILE, format_properties(properties, clock.now_ms()))
    first, done = first_time(layout, timeline, count), timeline.last_time
    for number, index in enumerate(sorted(indexes, key=lambda name: (name != FILES, name))):
        time = f"{first[:-1]}{number}"
        create_partition_metadata(own, index, time)
        requested = name_instant(layout, time, Action.DELTA_COMMIT, State.REQUESTED)
        own.create_exclusive(requested.path, b"", durable=True)
        begun = begin_instant(own, requested)
        file_ids = [file_id_of(index, number) for number in range(len(indexes[index]))]
        stats = [
            stat
            for file_id, records in zip(file_ids, indexes[index], strict=True)
            for stat in _write_group(
                own, (index, file_id), token_of_group(file_id, len(file_ids)), time, records, config.version
            )
        ]
        done = clock.next_instant_time(done, clock.now_ms(), config.timezone)
        completed = begun.to(State.COMPLETED, done if layout.names.hold_completion else None)
        metadata = CommitMetadata(tuple(stats), "BULK_INSERT_PREPPED")
        create_settled(own, completed.path, layout.encode_commit(metadata))


def _write_group(
    own: Storage, group: GroupKey, token: str, time: str, records: Records, version: int
) -> Iterator[WriteStat]:
    """The log file with which Hudi begins each file group, and a base file if there are records."""
    index, file_id = group
    empty = LogBlock(BlockType.DELETE, {Header.INSTANT_TIME: time}, EMPTY_DELETE_BLOCK)
    create_settled(own, join(index, str(LogFileName(file_id, time, 1, token))), encode_block(empty))
    if not records:
        return
    name = str(BaseFileName(file_id, token, time, ".hfile"))
    data = encode_hfile(records, schema_of(version), is_base_file=True)
    create_settled(own, join(index, name), data)
    yield WriteStat(
        file_id, join(index, name), index, num_writes=len(records), num_inserts=len(records),
        total_write_bytes=len(data), file_size_bytes=len(data),
    )  # fmt: skip


def metadata_properties(config: TableConfig) -> dict[str, str]:
    """The properties of a table's metadata table (HoodieTableMetaClient.TableBuilder, pure)."""
    name = f"{config.name}_metadata"
    properties = {
        "hoodie.table.name": name,
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.table.version": str(config.version),
        "hoodie.timeline.layout.version": str(config.layout_version),
        "hoodie.table.recordkey.fields": "key",
        "hoodie.table.keygenerator.type": "HOODIE_TABLE_METADATA",
        "hoodie.table.base.file.format": "HFILE",
        "hoodie.populate.meta.fields": "false",
        "hoodie.datasource.write.drop.partition.columns": "false",
        "hoodie.compaction.payload.class": "org.apache.hudi.metadata.HoodieMetadataPayload",
        "hoodie.record.merge.strategy.id": PAYLOAD_STRATEGY,
        "hoodie.archivelog.folder": "archived" if config.layout_version == 1 else "history",
        "hoodie.timeline.path": "timeline",
        "hoodie.timeline.history.path": "history",
        "hoodie.table.checksum": str(checksum(name)),
    }
    if config.layout_version > 1:
        properties |= {"hoodie.table.initial.version": str(config.version), **mode_properties(None, by_class=True)}
    return properties
