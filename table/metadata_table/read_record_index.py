"""Reads a record index: the file group of each key (SparkMetadataTableRecordLevelIndex)."""

import pyarrow as pa

from table.config.metadata_indexes import RECORD_INDEX
from table.metadata_table.groups import read_records
from table.metadata_table.index_keys import groups_of_keys
from table.metadata_table.location_codec import Location, decode_location
from table.metadata_table.metadata_table import MetadataTable, count_groups, slices_in
from table.storage.interface import Storage
from table.view.file_group import committed_instants


class RecordIndex:
    """The record index of a table.

    Args:
        storage: of the table.

    Raises:
        UnsupportedTableError: the index has no files.
        CorruptFileError, StorageError, FileNotFoundError: the metadata table cannot be read.
    """

    def __init__(self, storage: Storage) -> None:
        self._own = MetadataTable.open(storage)
        self._committed = committed_instants(self._own.load_timeline(), {})
        entries = self._own.list_files(RECORD_INDEX)
        self._count = count_groups(entries)
        slices = slices_in(RECORD_INDEX, entries, self._committed)
        self._slices = {int(one.file_id.split("-")[-2]): one for one in slices}

    def find(self, keys: pa.Array) -> dict[str, Location]:
        """Where keys are; keys that the index does not have are left out.

        Args:
            keys: record keys (string array without nulls).

        Raises:
            UnsupportedTableError, CorruptFileError, StorageError, FileNotFoundError: the index cannot be read.
        """
        found: dict[str, Location] = {}
        by_group: dict[int, list[str]] = {}
        for key, number in zip(keys.to_pylist(), groups_of_keys(keys, self._count).tolist(), strict=True):
            by_group.setdefault(number, []).append(key)
        for number in by_group.keys() & self._slices.keys():
            records = read_records(self._own, self._slices[number], self._committed)
            for key in sorted(by_group[number]):  # ascending, so each block is unpacked once
                location = decode_location(records.find(key.encode()))
                if location is not None:
                    found[key] = location
        return found
