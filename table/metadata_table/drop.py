"""Drops Hudi's metadata table: if a writer does not update it, it hides rows (HoodieTable.maybeDeleteMetadataTable).

Property first, folder second: a reader that still sees the property finds the folder.
"""

from table.config.table_config import PROPERTIES_FILE, TableConfig, load_table_config, update_properties
from table.config.writable import check_version_written
from table.log import get_logger
from table.metadata_table.metadata_table import METADATA_FOLDER
from table.storage.interface import Storage, join

log = get_logger("hudistream.metadata_table")


def drop_metadata_table(storage: Storage, config: TableConfig) -> TableConfig:
    """Removes the metadata table; a JVM writer that wants one builds it anew from a listing.

    Args:
        storage: of the table.
        config: its properties.

    Returns:
        The changed properties; those of the argument if they name no metadata table.

    Raises:
        UnsupportedTableError: tables of this version and type are not written here.
        StorageError: when the properties do not read back as written; their backup is then in force.
    """
    if not config.metadata_indexes:
        return config
    check_version_written(config, "drop the metadata table of")
    changes = {"hoodie.table.metadata.partitions": "", "hoodie.table.metadata.partitions.inflight": ""}
    changed = update_properties(storage, changes)
    now = made_since(storage, config.metadata_indexes)
    if now is not None:
        return now
    delete_metadata_folder(storage)
    now = made_since(storage, config.metadata_indexes)
    if now is not None:  # files of the new one may have been deleted
        return drop_metadata_table(storage, now)
    log.warning("metadata_table_dropped", table=storage.base_uri, partitions=config.metadata_partitions)
    return changed


def delete_metadata_folder(storage: Storage) -> None:
    """Deletes the files of the metadata table, its properties first: readers take what is left for none.

    And once more at the end: if this process stood still meanwhile, it may have deleted files of a new one.
    """
    properties = join(METADATA_FOLDER, PROPERTIES_FILE)
    storage.delete_metafile(properties)
    storage.delete_metafolder(METADATA_FOLDER)
    storage.delete_metafile(properties)


def made_since(storage: Storage, indexes: frozenset[str]) -> TableConfig | None:
    """The table's properties if they name one of some indexes that were just dropped; else None.

    This process stood still in that case, and another one has made the index anew.
    """
    now = load_table_config(storage)
    return now if now is not None and now.metadata_indexes & indexes else None


def drop_present_metadata_table(storage: Storage) -> None:
    """As `drop_metadata_table`, by the properties as they are now: another engine may have made one meanwhile.

    A process calls it before it deletes files that the lists may name and that no action deletes: strays, and what
    foreign rollbacks left. It also drops lists that cannot be maintained.

    Raises:
        UnsupportedTableError, StorageError: as `drop_metadata_table`.
    """
    config = load_table_config(storage)
    if config is not None:
        drop_metadata_table(storage, config)
