"""Which statistics of columns a table keeps, and what an action adds to them (pure; HoodieTableMetadataUtil).

Hudi takes the meta columns and the first 32 columns whose type has statistics, or chosen columns. Its index definition
names those that it has taken. Statistics of chosen columns are not maintained.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice

import pyarrow as pa

from table.config.metadata_indexes import COLUMN_STATS, PARTITION_STATS
from table.config.table_config import TableConfig
from table.errors import UnsupportedTableError
from table.files.column_ranges import ColumnRange, Ranges, widen
from table.files.hfile.write_hfile import NO_ENTRIES, HFileEntries
from table.files.names import is_change_file
from table.metadata_table.column_stats import ColumnStats, StatsCodec, is_indexed
from table.metadata_table.index_keys import group_of_key, stats_key
from table.metadata_table.records import RecordType, key_of
from table.schema.avro_schema import COMMIT_TIME, PARTITION_PATH, RECORD_KEY

_META = (COMMIT_TIME, PARTITION_PATH, RECORD_KEY)
_MOST_COLUMNS = 32

RangesByFile = Mapping[str, Mapping[str, Ranges]]  # partition path -> name of the file -> ranges of its columns


@dataclass(frozen=True)
class Statistics:
    """The statistics that a table keeps.

    Attributes:
        columns: names of the columns, as the index definition has them.
        is_typed: whether the index is of version 2.
        of_partitions: whether the table keeps statistics of partition paths, too.
    """

    columns: tuple[str, ...]
    is_typed: bool
    of_partitions: bool


def indexed_columns(schema: pa.Schema, *, is_typed: bool) -> dict[str, pa.DataType]:
    """The columns that have statistics, with their types (HoodieTableMetadataUtil.getColumnsToIndex).

    Args:
        schema: table columns without meta columns (Arrow).
        is_typed: whether the index is of version 2.
    """
    found = (field for field in schema if is_indexed(field.type, is_typed=is_typed))
    return {**dict.fromkeys(_META, pa.string()), **{field.name: field.type for field in islice(found, _MOST_COLUMNS)}}


def ranged_columns(config: TableConfig, schema: pa.Schema) -> tuple[str, ...]:
    """The columns whose ranges a write records; none where the table keeps no statistics.

    Args:
        config: the table's properties.
        schema: table columns without meta columns (Arrow).
    """
    if COLUMN_STATS not in config.metadata_indexes or not config.populate_meta_fields:
        return ()
    return tuple({**indexed_columns(schema, is_typed=False), **indexed_columns(schema, is_typed=True)})


@dataclass(frozen=True)
class GroupRecords:
    """What an action writes into one file group.

    Attributes:
        added: keys and values.
        deleted: keys whose records go, ascending (string array).
    """

    added: HFileEntries = NO_ENTRIES
    deleted: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))

    def __len__(self) -> int:
        return len(self.added) + len(self.deleted)


@dataclass(frozen=True)
class NewStatistics:
    """The records that an action adds to the statistics.

    Attributes:
        of_files: key -> value; ascending keys are not needed.
        of_partitions: key -> value.
        deleted: keys of files that were deleted.
    """

    of_files: Mapping[str, bytes]
    of_partitions: Mapping[str, bytes]
    deleted: tuple[str, ...]

    def by_group(self, counts: Mapping[str, int]) -> dict[tuple[str, int], GroupRecords]:
        """The records by index and number of the file group.

        Args:
            counts: index -> number of its file groups, for each index that gets records.
        """
        added: dict[tuple[str, int], dict[bytes, bytes]] = {}
        gone: dict[tuple[str, int], list[str]] = {}
        for index, records in ((COLUMN_STATS, self.of_files), (PARTITION_STATS, self.of_partitions)):
            for key, value in records.items():
                added.setdefault((index, group_of_key(key, counts[index])), {})[key.encode()] = value
        for key in self.deleted:
            gone.setdefault((COLUMN_STATS, group_of_key(key, counts[COLUMN_STATS])), []).append(key)
        return {
            group: GroupRecords(
                HFileEntries.of(sorted(added.get(group, {}).items())),
                pa.array(sorted(gone.get(group, ())), pa.string()),
            )
            for group in sorted({*added, *gone})
        }


def agree_columns(kept: Statistics, schema: pa.Schema, before: pa.Schema | None) -> dict[str, pa.DataType]:
    """The columns that have statistics after a commit, with their types.

    A column that the commit adds gets statistics in the files of the commit. Hudi takes it for null in all files whose
    statistics do not have it, and in earlier files it is.

    Args:
        kept: which statistics the table keeps.
        schema: table columns of the commit without meta columns (Arrow).
        before: those of the table before it; None: they were the same.

    Raises:
        UnsupportedTableError: the statistics are of chosen columns, or the commit changes one of them.
    """
    now = indexed_columns(schema, is_typed=kept.is_typed)
    old = now if before is None else indexed_columns(before, is_typed=kept.is_typed)
    if old.keys() != set(kept.columns):
        differing = ", ".join(sorted(old.keys() ^ set(kept.columns)))
        raise UnsupportedTableError(f"statistics of chosen columns are not maintained: {differing}")
    changed = sorted(name for name, kind in old.items() if now.get(name) != kind)
    if changed:
        raise UnsupportedTableError(f"the commit changes the type of {', '.join(changed)}, or leaves it out")
    return now


def new_statistics(
    kept: Statistics,
    version: int,
    kinds: Mapping[str, pa.DataType],
    ranges: RangesByFile,
    deleted: Mapping[str, Iterable[str]],
) -> NewStatistics:
    """The records of an action.

    Args:
        kept: which statistics the table keeps.
        version: of the metadata table.
        kinds: columns with their types (Arrow); of `agree_columns`.
        ranges: of the files that were added, at least of these columns.
        deleted: partition path -> names of the files that were deleted.

    Raises:
        UnsupportedTableError: a range has values of another type than its column.
    """
    gone = tuple(stats_key(name, path, file) for path, files in deleted.items() for file in files for name in kinds)
    codec = StatsCodec(kinds, version, is_typed=kept.is_typed)
    of_files: dict[str, bytes] = {}
    of_partitions: dict[str, bytes] = {}
    for path, ranges_of_path in ranges.items():
        by_name = {name: _only(kinds, of_file) for name, of_file in ranges_of_path.items()}
        for name, of_file in by_name.items():
            for column, found in of_file.items():
                value = codec.encode(RecordType.COLUMN_STATS, ColumnStats(name, column, found))
                of_files[stats_key(column, path, name)] = value
        for column, found in _widened(by_name.values()).items() if kept.of_partitions else ():
            if not found.values:
                continue  # deletes alone
            # earlier files of the path may lack the column, and no record says so: their rows are null
            one_null = 0 if column in _META else 1
            whole = replace(found, values=found.values + one_null, nulls=found.nulls + one_null)
            stats = ColumnStats(key_of(path), column, whole)
            of_partitions[stats_key(column, path)] = codec.encode(RecordType.PARTITION_STATS, stats)
    return NewStatistics(of_files, of_partitions, gone)


def _only(columns: Iterable[str], ranges: Ranges) -> Ranges:
    return {name: ranges[name] for name in columns if name in ranges}


def _widened(files: Iterable[Ranges]) -> dict[str, ColumnRange]:
    """The range of each column over several files."""
    parts: dict[str, list[ColumnRange]] = {}
    for ranges in files:
        for column, found in ranges.items():
            parts.setdefault(column, []).append(found)
    return {column: widen(of_column) for column, of_column in parts.items()}


def find_untold(
    added: Mapping[str, Mapping[str, int]], ranges: RangesByFile, columns: Iterable[str]
) -> dict[str, dict[str, int]]:
    """The files whose ranges are not known, or not of all columns, with their sizes. Change files have none.

    Args:
        added: partition path -> names of the files that were added, with their sizes.
        ranges: of these files, as far as known.
        columns: with statistics.
    """
    wanted = set(columns)
    untold: dict[str, dict[str, int]] = {}
    for path, sizes in added.items():
        known = ranges.get(path, {})
        for name, size in sizes.items():
            if not is_change_file(name) and not wanted <= known.get(name, {}).keys():
                untold.setdefault(path, {})[name] = size
    return untold
