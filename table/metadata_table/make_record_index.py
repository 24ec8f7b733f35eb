"""Makes the record index of a table: the file group of each key (HoodieTableMetadataUtil)."""

from collections.abc import Iterable

import pyarrow as pa

from table import clock
from table.config.table_config import TableConfig
from table.errors import CorruptFileError, UnsupportedTableError
from table.files.base.stored_file import StoredBaseFile
from table.files.key_changes import KeyChanges
from table.metadata_table.record_index import MOST_KEYS, new_locations
from table.storage.interface import Storage
from table.view.file_group import BaseFile

_GROUPS = 10  # hoodie.metadata.record.index.min.filegroup.count


def make_record_index(
    storage: Storage, config: TableConfig, files: Iterable[BaseFile]
) -> list[list[tuple[bytes, bytes]]]:
    """The records of a new index.

    Args:
        storage: of the table.
        config: its properties.
        files: the newest base file of each file group.

    Returns:
        A list for each of its file groups.

    Raises:
        UnsupportedTableError: the table has too many keys, log files, or rows without keys, or a file cannot be read.
        StorageError: the store fails.
    """
    if not config.tells_keys:
        raise UnsupportedTableError("the base files of the table do not hold all rows with their keys")
    groups: list[dict[bytes, bytes]] = [{} for _ in range(_GROUPS)]
    count = 0
    for file in files:
        keys = _read_keys(storage, file)
        count += len(keys)
        if count > MOST_KEYS:
            raise UnsupportedTableError(f"the table has more than {MOST_KEYS} rows")
        made_ms = _time_of(file, config)
        found = new_locations({(file.partition_path, file.file_id): KeyChanges((keys,))}, config.version, made_ms)
        for (_, number), records in found.by_group(_GROUPS).items():
            groups[number].update(records.added)
    return [sorted(group.items()) for group in groups]


def _time_of(file: BaseFile, config: TableConfig) -> int:
    try:
        return clock.parse_instant_time(file.instant_time, config.timezone)
    except ValueError as error:
        raise UnsupportedTableError(f"the instant of {file.path} is no time: {error}") from error


def _read_keys(storage: Storage, file: BaseFile) -> pa.Array:
    try:
        with StoredBaseFile(storage, file.path, file.size_bytes or None) as stored:
            return pa.chunked_array(stored.read_keys(range(len(stored.group_rows))), pa.string()).combine_chunks()
    except CorruptFileError as error:
        raise UnsupportedTableError(f"the keys of a file cannot be read: {error}") from error
