"""Keys and file groups of the statistics in the metadata table (pure; HoodieTableMetadataUtil, HashID).

The key of a record holds hashes of what the record is about, in base64. So all records of a column stand side by side.
"""

from base64 import b64encode
from functools import lru_cache
from hashlib import md5

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from table.config.metadata_indexes import COLUMN_STATS, FILES, PARTITION_STATS, RECORD_INDEX
from table.files.java_hash import java_hash, java_hashes
from table.files.xxh64 import hash_of_text
from table.metadata_table.records import key_of

_GROUP_NAMES = {
    FILES: "files",
    COLUMN_STATS: "col-stats",
    PARTITION_STATS: "partition-stats",
    RECORD_INDEX: "record-index",
}
_MOST_GROUPS = 10_000


def file_id_of(index: str, number: int) -> str:
    """The id of an index's file group.

    Args:
        index: name of the index, which is the partition path.
        number: of the file group, from 0.
    """
    return f"{_GROUP_NAMES[index]}-{number:04d}-0"


def group_of_key(key: str, count: int) -> int:
    """The number of the file group that holds a key (HoodieTableMetadataUtil.mapRecordKeyToFileGroupIndex).

    Args:
        key: of a record.
        count: file groups of the index.
    """
    if count == 1:
        return 0
    hashed = java_hash(key)
    return abs(hashed - (1 << 32) if hashed >> 31 else hashed) % count


def groups_of_keys(keys: pa.Array, count: int) -> npt.NDArray[np.int64]:
    """As `group_of_key`, of many keys (string array without nulls)."""
    groups: npt.NDArray[np.int64] = np.abs(java_hashes(keys).view(np.int32).astype(np.int64)) % count
    return groups


def stats_key(column: str, partition_path: str, file_name: str | None = None) -> str:
    """The key of statistics.

    Args:
        column: name of the column.
        partition_path: "" in a table without partitions.
        file_name: of a base file or log file; None: the statistics are of the partition path.
    """
    prefix = _hashed(column) + _hashed(key_of(partition_path))
    if file_name is None:
        return prefix
    return prefix + b64encode(md5(file_name.encode(), usedforsecurity=False).digest()).decode()


@lru_cache(maxsize=_MOST_GROUPS)
def _hashed(text: str) -> str:
    return b64encode(hash_of_text(text).to_bytes(8, "big")).decode()
