"""Drops Hudi's metadata table: if a writer does not update it, it hides rows (HoodieTable.maybeDeleteMetadataTable).

Property first, folder second: a reader that still sees the property finds the folder.

What is deleted was listed before the property was cleared, or before the caller looked at its lease. So a process that
stands still before the deletion deletes no list of a metadata table that others make meanwhile: its files have names of
their own (`table.metadata_table.numbering`). It may delete its properties, and readers then take it for none.
"""

from collections.abc import Collection

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
    names = list_metadata_files(storage)
    changes = {"hoodie.table.metadata.partitions": "", "hoodie.table.metadata.partitions.inflight": ""}
    changed = update_properties(storage, changes)
    now = _made_since(storage, config.metadata_indexes)
    if now is not None:
        return now
    delete_metadata_files(storage, names)
    now = _made_since(storage, config.metadata_indexes)
    if now is not None:  # its properties may have been deleted
        return drop_metadata_table(storage, now)
    log.warning("metadata_table_dropped", table=storage.base_uri, partitions=config.metadata_partitions)
    return changed


def list_metadata_files(storage: Storage, index: str = "") -> frozenset[str]:
    """The names of the files of the metadata table, relative to its folder.

    Args:
        storage: of the table.
        index: only those of this index; empty: all.
    """
    return frozenset(join(index, name) for name in storage.list_tree(join(METADATA_FOLDER, index)))


def delete_metadata_files(storage: Storage, names: Collection[str]) -> None:
    """Deletes files of the metadata table. Its properties go first: readers take what is left for none.

    Args:
        storage: of the table.
        names: of `list_metadata_files`, before the caller's last look at what it holds.
    """
    if PROPERTIES_FILE in names:
        storage.delete_metafile(join(METADATA_FOLDER, PROPERTIES_FILE))
    storage.delete_metafiles(METADATA_FOLDER, sorted({*names} - {PROPERTIES_FILE}))


def _made_since(storage: Storage, indexes: frozenset[str]) -> TableConfig | None:
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
