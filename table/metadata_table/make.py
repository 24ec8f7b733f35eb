"""Makes a metadata table for a table that has none: lists of its files, from one listing of the store.

Its writer has the table alone, and no action is pending. The property comes last: until then nothing reads the lists.
An action that begins meanwhile may not know of them. So the timeline is listed again behind the property, and the new
metadata table is dropped if anything has begun.
"""

from collections.abc import Iterable, Mapping

from table import clock
from table.config.merge_mode import PAYLOAD_STRATEGY, mode_properties
from table.config.metadata_indexes import FILES
from table.config.properties import format_properties
from table.config.table_config import (
    PROPERTIES_FILE,
    TableConfig,
    checksum,
    config_from_properties,
    update_properties,
)
from table.errors import UnsupportedTableError
from table.files.log.framing import BlockType, Header, LogBlock, encode_block
from table.files.names import BaseFileName, LogFileName
from table.files.partition_metadata import create_partition_metadata
from table.log import get_logger
from table.metadata_table.changes import check_paths
from table.metadata_table.compact import encode_lists
from table.metadata_table.drop import drop_metadata_table
from table.metadata_table.file_lists import EMPTY_DELETE_BLOCK
from table.metadata_table.metadata_table import FILE_ID, MADE, METADATA_FOLDER
from table.metadata_table.records import ALL_PARTITIONS, key_of
from table.storage.interface import FileInfo, Storage, join
from table.storage.subfolder import Subfolder
from table.timeline.active_timeline import begin_instant, create_settled, load_timeline
from table.timeline.instant import Action, State
from table.timeline.layout import TimelineLayout, layout_of, name_instant
from table.timeline.metadata.commit import CommitMetadata, WriteStat
from table.timeline.timeline import Timeline
from table.view.file_group import CommittedInstants, committed_instants, parse_data_files
from table.view.listing import Listing

_TASK = "0-0-0"
_LAYOUT_1_SUFFIX = "010"

log = get_logger("hudistream.metadata_table")


def make_lists(storage: Storage, config: TableConfig, timeline: Timeline, listing: Listing) -> TableConfig:
    """Makes the lists of files of a table.

    Args:
        storage: of the table.
        config: its properties, which name no metadata table.
        timeline: of the table, as listed now.
        listing: of the store.

    Returns:
        The table's properties: unchanged where an action is pending, or began meanwhile.

    Raises:
        StorageError: the store fails; nothing reads what was written.
    """
    if timeline.pending:
        log.info("metadata_table_not_made", table=storage.base_uri, why=f"{timeline.pending[0].file_name} is pending")
        return config
    committed = committed_instants(timeline, {})
    files = {path: _visible(path, entries, committed) for path, entries in listing.walk()}
    try:
        check_paths(files)
    except UnsupportedTableError as error:
        log.info("metadata_table_not_made", table=storage.base_uri, why=str(error))
        return config
    storage.delete_metafolder(METADATA_FOLDER)
    _write(storage, config, timeline, {path: sizes for path, sizes in files.items() if sizes})
    changed = update_properties(storage, {"hoodie.table.metadata.partitions": FILES})
    now = load_timeline(storage, timeline.layout)
    if _has_begun(timeline, now):
        log.info("metadata_table_not_made", table=storage.base_uri, why="another action began meanwhile")
        return drop_metadata_table(storage, changed)
    log.info("metadata_table_made", table=storage.base_uri, partition_paths=len(files))
    return changed


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


def _write(storage: Storage, config: TableConfig, timeline: Timeline, files: Mapping[str, Mapping[str, int]]) -> None:
    own = Subfolder(storage, METADATA_FOLDER)
    properties = metadata_properties(config)
    made = config_from_properties(properties)
    layout = layout_of(made.layout_version, made.timeline_folder)
    own.make_dir(layout.open_archive(own, made.archive_folder).folder)
    create_settled(own, PROPERTIES_FILE, format_properties(properties, clock.now_ms()))
    time = first_time(layout, timeline)
    create_partition_metadata(own, FILES, time)
    requested = name_instant(layout, time, Action.DELTA_COMMIT, State.REQUESTED)
    own.create_exclusive(requested.path, b"", durable=True)
    begun = begin_instant(own, requested)
    empty = LogBlock(BlockType.DELETE, {Header.INSTANT_TIME: time}, EMPTY_DELETE_BLOCK)
    create_settled(own, join(FILES, str(LogFileName(FILE_ID, time, 1, _TASK))), encode_block(empty))
    lists: dict[str, Mapping[str, int]] = {ALL_PARTITIONS: {key_of(path): 0 for path in files}}
    lists.update({key_of(path): sizes for path, sizes in files.items()})
    data = encode_lists(lists, config.version)
    name = str(BaseFileName(FILE_ID, _TASK, time, ".hfile"))
    create_settled(own, join(FILES, name), data)
    stat = WriteStat(
        FILE_ID, join(FILES, name), FILES, num_writes=len(lists), num_inserts=len(lists),
        total_write_bytes=len(data), file_size_bytes=len(data),
    )  # fmt: skip
    at = clock.next_instant_time(timeline.last_time, clock.now_ms(), config.timezone)
    completed = begun.to(State.COMPLETED, at if layout.names.hold_completion else None)
    create_settled(own, completed.path, layout.encode_commit(CommitMetadata((stat,), "BULK_INSERT_PREPPED")))


def first_time(layout: TimelineLayout, timeline: Timeline) -> str:
    """The time of the instant that makes the lists of files (HoodieBackedTableMetadataWriter, pure).

    Layout 2 has a completion time to say which writes the lists contain. In layout 1 the time says it.
    """
    if layout.names.hold_completion:
        return MADE + "000"
    writes = timeline.completed_writes
    return (writes[-1].time if writes else MADE) + _LAYOUT_1_SUFFIX


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
