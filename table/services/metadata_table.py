"""Drops Hudi's metadata table: if a writer does not update it, it hides rows (HoodieTable.maybeDeleteMetadataTable).

Property first, folder second: a reader that still sees the property finds the folder.
"""

from dataclasses import replace

from table.config.table_config import update_properties
from table.config.writable import check_version_written
from table.hudi_table import HudiTable
from table.log import get_logger
from table.storage.interface import METAFOLDER, join

METADATA_FOLDER = join(METAFOLDER, "metadata")

log = get_logger("hudistream.metadata_table")


def drop_metadata_table(table: HudiTable) -> HudiTable:
    """Removes the metadata table; a JVM writer that wants one builds it anew from a listing.

    Returns:
        The table with its changed properties.

    Raises:
        UnsupportedTableError: tables of this version and type are not written here.
        StorageError: when the properties do not read back as written; their backup is then in force.
    """
    check_version_written(table.config, "drop the metadata table of")
    dropped = table.config.metadata_partitions
    changes = {"hoodie.table.metadata.partitions": "", "hoodie.table.metadata.partitions.inflight": ""}
    config = update_properties(table.storage, changes)
    table.storage.delete_metafolder(METADATA_FOLDER)
    log.warning("metadata_table_dropped", table=table.storage.base_uri, partitions=dropped)
    return replace(table, config=config)
