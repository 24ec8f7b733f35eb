"""Makes statistics of the columns of a table's files (HoodieTableMetadataUtil)."""

from collections.abc import Mapping

import pyarrow as pa

from table.config.metadata_indexes import COLUMN_STATS, PARTITION_STATS
from table.config.table_config import TableConfig
from table.errors import UnsupportedTableError
from table.files.names import is_change_file
from table.metadata_table.file_ranges import read_ranges
from table.metadata_table.statistics import GroupRecords, Statistics, indexed_columns, new_statistics
from table.storage.interface import Storage

Records = list[tuple[bytes, bytes]]
"""Keys and values of a file group, ascending by key."""

_GROUPS = 2  # of the statistics of files, as Hudi makes them
_MOST_RECORDS = 1_000_000  # they are made in memory


def make_statistics(
    storage: Storage, config: TableConfig, kept: Statistics, schema: pa.Schema, files: Mapping[str, Mapping[str, int]]
) -> dict[str, list[Records]]:
    """The records of new statistics.

    Args:
        storage: of the table.
        config: its properties.
        kept: which statistics are made.
        schema: table columns without meta columns (Arrow).
        files: partition path -> names of the visible files with their sizes in bytes.

    Returns:
        By index, a list for each of its file groups.

    Raises:
        UnsupportedTableError: the table has too many files, or one whose ranges cannot be read.
        StorageError: the store fails.
    """
    if not config.populate_meta_fields:
        raise UnsupportedTableError("the rows of the table do not hold their meta columns")
    kinds = indexed_columns(schema, is_typed=kept.is_typed)
    files = {
        path: {name: size for name, size in sizes.items() if not is_change_file(name)} for path, sizes in files.items()
    }
    count = sum(map(len, files.values()))
    if count * len(kinds) > _MOST_RECORDS:
        raise UnsupportedTableError(f"{count} files have more than {_MOST_RECORDS} statistics")
    ranges = read_ranges(storage, files, tuple(kinds))
    counts = {COLUMN_STATS: _GROUPS, **({PARTITION_STATS: 1} if kept.of_partitions else {})}
    groups = new_statistics(kept, config.version, kinds, ranges, {}).by_group(counts)
    return {
        index: [list(groups.get((index, number), GroupRecords()).added) for number in range(count)]
        for index, count in counts.items()
    }
