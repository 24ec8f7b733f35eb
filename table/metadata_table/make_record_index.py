"""Makes the record index of a table: the file group of each key (HoodieTableMetadataUtil)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pyarrow as pa

from table import clock
from table.config.table_config import TableConfig
from table.errors import CorruptFileError, UnsupportedTableError
from table.files.key_changes import KeyChanges
from table.metadata_table.record_index import MOST_KEYS, NewLocations, new_locations


@dataclass(frozen=True)
class GroupKeys:
    """The record keys of a file group.

    Attributes:
        partition_path: "" in a non-partitioned table.
        instant_time: of its newest base file.
        keys: string array without nulls.
    """

    partition_path: str
    file_id: str
    instant_time: str
    keys: pa.Array


def make_record_index(
    config: TableConfig, groups: Iterable[GroupKeys], count_groups: Callable[[int], int]
) -> list[list[tuple[bytes, bytes]]]:
    """The records of a new index.

    Args:
        config: the table's properties.
        groups: the file groups of the newest snapshot, read one by one.
        count_groups: number of keys -> number of file groups of the index.

    Returns:
        A list for each of its file groups.

    Raises:
        UnsupportedTableError: the table has too many keys, a key twice, or rows without keys; or a file cannot be read.
        StorageError: the store fails.
    """
    if not config.tells_keys:
        raise UnsupportedTableError("the table does not hold rows with their keys")
    locations: list[NewLocations] = []
    count = 0
    try:
        for group in groups:
            count += len(group.keys)
            if count > MOST_KEYS:
                raise UnsupportedTableError(f"the table has more than {MOST_KEYS} rows")
            keys = {(group.partition_path, group.file_id): KeyChanges((group.keys,))}
            locations.append(new_locations(keys, config.version, _time_of(group, config)))
        made: list[dict[bytes, bytes]] = [{} for _ in range(count_groups(count))]
        for found in locations:
            for (_, number), records in found.by_group(len(made)).items():
                made[number].update(iter(records.added))
        if sum(map(len, made)) < count:
            raise UnsupportedTableError("the table has a key twice, and a record index names one place of a key")
    except CorruptFileError as error:
        raise UnsupportedTableError(f"the keys of a file cannot be read: {error}") from error
    return [sorted(records.items()) for records in made]


def _time_of(group: GroupKeys, config: TableConfig) -> int:
    try:
        return clock.parse_instant_time(group.instant_time, config.timezone)
    except ValueError as error:
        raise UnsupportedTableError(f"the instant of file group {group.file_id} is no time: {error}") from error
