"""Reads the ranges of files' columns from the statistics of the metadata table (ColumnStatsIndexSupport).

A file has one name for ever, and its statistics do not change. So they hold for each snapshot of the table, and a file
without statistics is just not bounded.
"""

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from table.config.metadata_indexes import COLUMN_STATS
from table.config.table_config import TableConfig
from table.files.column_ranges import ColumnRange, widen
from table.metadata_table.column_stats import StatsCodec, is_indexed, newest_values, widened_value
from table.metadata_table.file_lists import Failures, tell_not_used
from table.metadata_table.groups import SliceRecords, read_records
from table.metadata_table.index_definitions import load_statistics
from table.metadata_table.index_keys import group_of_key, stats_key
from table.metadata_table.metadata_table import MetadataTable, count_groups, slices_in
from table.metadata_table.record_codec import schema_of
from table.storage.interface import Storage
from table.view.file_group import DataFile, FileSlice, committed_instants

_FOOTER_BYTES = 64 * 1024  # that a reader asks for at the end of a base file

RangesOfFiles = Mapping[tuple[str, str], ColumnRange]  # path of the file and column -> range


def load_ranges(
    storage: Storage, config: TableConfig, kinds: Mapping[str, pa.DataType], slices: Sequence[FileSlice]
) -> RangesOfFiles:
    """The ranges of some columns in the files of slices, as far as the metadata table knows them.

    It is asked only if that takes fewer requests and fewer bytes than to read the footer of each slice.

    Args:
        storage: of the table.
        config: its properties.
        kinds: columns with their types (Arrow).
        slices: of the table.

    Returns:
        The ranges; none where the table has no statistics, or they cannot be read.
    """
    if COLUMN_STATS not in config.metadata_indexes:
        return {}
    try:
        index = StatisticsIndex(storage, config)
        costs_more = index.files >= len(slices) or index.size_bytes > _FOOTER_BYTES * len(slices)
        if costs_more or not kinds.keys() & set(index.columns):
            return {}
        return index.ranges(kinds, [file for found in slices for file in found.files])
    except Failures as error:
        tell_not_used("metadata_table_not_used", storage.base_uri, error)
        return {}


class StatisticsIndex:
    """The statistics of a table's files, or of its partition paths.

    Args:
        storage: of the table.
        config: its properties.
        index: COLUMN_STATS or PARTITION_STATS.

    Attributes:
        columns: names of the columns with statistics.
        files: number of the files that hold them.
        size_bytes: size of these files.

    Raises:
        UnsupportedTableError: no definition names the columns, or the index has no files.
        CorruptFileError, StorageError, FileNotFoundError: the metadata table cannot be read.
    """

    def __init__(self, storage: Storage, config: TableConfig, index: str = COLUMN_STATS) -> None:
        kept = load_statistics(storage, config)
        self.columns, self._is_typed, self._version = kept.columns, kept.is_typed, config.version
        self._own = MetadataTable.open(storage)
        self._committed = committed_instants(self._own.load_timeline(), {})
        entries = self._own.list_files(index)
        self._count = count_groups(entries)
        slices = slices_in(index, entries, self._committed)
        self._slices = {int(one.file_id.split("-")[-2]): one for one in slices}
        self.files = sum(len(one.files) for one in slices)
        self.size_bytes = sum(file.size_bytes for one in slices for file in one.files)

    def ranges(self, kinds: Mapping[str, pa.DataType], files: Iterable[DataFile]) -> RangesOfFiles:
        """The ranges of columns, as far as they are known.

        Args:
            kinds: columns with their types (Arrow); those without statistics are left out.
            files: base files and log files.

        Raises:
            UnsupportedTableError, CorruptFileError, StorageError, FileNotFoundError: the index cannot be read.
        """
        known = {name: kinds[name] for name in self.columns if name in kinds}
        wanted = {name: kind for name, kind in known.items() if is_indexed(kind, is_typed=self._is_typed)}
        codec = StatsCodec(wanted, self._version, is_typed=self._is_typed)
        asked: dict[int, list[tuple[str, DataFile, str]]] = {}
        for file in files:
            for column in wanted:
                key = stats_key(column, file.partition_path, file.name)
                asked.setdefault(group_of_key(key, self._count), []).append((key, file, column))
        found: dict[tuple[str, str], ColumnRange] = {}
        for number in asked.keys() & self._slices.keys():
            records = read_records(self._own, self._slices[number], self._committed)
            found.update(_find_all(records, codec, sorted(asked[number], key=lambda one: one[0])))
        return found

    def partition_ranges(
        self, kinds: Mapping[str, pa.DataType], paths: Iterable[str]
    ) -> Mapping[tuple[str, str], ColumnRange]:
        """The ranges of columns by partition path and column, as far as they are known (index PARTITION_STATS).

        Args:
            kinds: columns with their types (Arrow); those without statistics are left out.
            paths: partition paths.

        Raises:
            UnsupportedTableError, CorruptFileError, StorageError, FileNotFoundError: the index cannot be read.
        """
        wanted = {name: kinds[name] for name in self.columns if name in kinds}
        wanted = {name: kind for name, kind in wanted.items() if is_indexed(kind, is_typed=self._is_typed)}
        codec, version = StatsCodec(wanted, self._version, is_typed=self._is_typed), self._own.config.version
        asked: dict[int, list[tuple[str, str, str]]] = {}
        for path in paths:
            for column in wanted:
                key = stats_key(column, path)
                asked.setdefault(group_of_key(key, self._count), []).append((key, path, column))
        found: dict[tuple[str, str], ColumnRange] = {}
        for number in asked.keys() & self._slices.keys():
            records = read_records(self._own, self._slices[number], self._committed)
            for key, path, column in sorted(asked[number]):
                data = widened_value(records.find(key.encode()), version)
                stats = codec.decode(data, schema_of(version)) if data is not None else None
                if stats is not None and stats.column == column:
                    found[path, column] = stats.range
        return found


def _find_all(
    records: SliceRecords, codec: StatsCodec, keys: Iterable[tuple[str, DataFile, str]]
) -> dict[tuple[str, str], ColumnRange]:
    """Looks up keys, which ascend: so each block is unpacked once."""
    known = {}
    for key, file, column in keys:
        value = newest_values(records.find(key.encode()))
        stats = [codec.decode(one.data, one.schema) for one in value if one.data is not None]
        ranges = [
            one.range
            for one in stats
            if one is not None and (one.name, one.column, one.is_deleted) == (file.name, column, False)
        ]
        if ranges and len(ranges) == len(stats):
            known[file.path, column] = widen(ranges)
    return known
