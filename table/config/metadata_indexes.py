"""The indexes of a metadata table, and what becomes of them (pure; MetadataPartitionType).

The lists of files and the statistics of columns are maintained, and a record index where rows are stored with keys.
Other indexes are refused: by an index in which a write is missing, Hudi reads and writes wrong rows.
"""

from table.errors import UnsupportedTableError

FILES, COLUMN_STATS, PARTITION_STATS = "files", "column_stats", "partition_stats"
RECORD_INDEX = "record_index"
STATISTICS = frozenset({COLUMN_STATS, PARTITION_STATS})


def indexes_in(metadata_partitions: str) -> frozenset[str]:
    """The names in ``hoodie.table.metadata.partitions``.

    Args:
        metadata_partitions: names with commas between them.
    """
    return frozenset(name.strip() for name in metadata_partitions.split(",") if name.strip())


def check_maintained(indexes: frozenset[str], *, tells_keys: bool) -> None:
    """Refuses a metadata table with indexes that are neither maintained nor dropped here.

    Args:
        indexes: those of the table; none: it has no metadata table.
        tells_keys: whether a write can name the record keys that it adds and deletes (`TableConfig.tells_keys`).

    Raises:
        UnsupportedTableError: names them, and both ways out.
    """
    others = sorted(indexes - STATISTICS - {FILES, *([RECORD_INDEX] if tells_keys else [])})
    if others or (indexes and FILES not in indexes):
        named = ", ".join(others) or "those without files"
        raise UnsupportedTableError(
            f"the table has hoodie.table.metadata.partitions={','.join(sorted(indexes))}: of these, {named} cannot be "
            "maintained here, and Hudi writes and reads wrong rows by an index without a write. Give the sink "
            "hoodie.metadata.enable=false, and the metadata table is dropped before anything is written; or let Hudi "
            "drop these indexes (DROP INDEX, or its option for the index set to false in its next write)"
        )
