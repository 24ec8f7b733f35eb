"""Records of the metadata table, and how those of the partition ``files`` add up (pure; HoodieMetadataPayload).

A record of ``files`` lists the partition paths of the table, or the files of one partition path. A later record adds to
the earlier ones of its key, and takes away what it marks as deleted.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

ALL_PARTITIONS = "__all_partitions__"
NO_PARTITION_PATH = "."  # the partition path of a table without partitions


class RecordType(IntEnum):
    """What a record is about (MetadataPartitionType.recordType)."""

    ALL_PARTITIONS = 1
    FILES = 2
    COLUMN_STATS = 3
    RECORD_INDEX = 5
    PARTITION_STATS = 6


_SizesByName = Mapping[str, tuple[int, bool]]


@dataclass(frozen=True, slots=True)
class ListRecord:
    """One record: names with their sizes in bytes, and whether they are deleted."""

    entries: _SizesByName


@dataclass(frozen=True, slots=True)
class Value:
    """What a layer of a slice says of a key.

    Attributes:
        data: Avro without a header; None: the record is deleted.
        schema: the writer's Avro schema.
    """

    data: bytes | None
    schema: str


def combine(records: Iterable[ListRecord]) -> dict[str, int]:
    """The names that are left, with their sizes (HoodieTableMetadataUtil.combineFileSystemMetadata).

    Args:
        records: of one key, oldest first.
    """
    sizes: dict[str, int] = {}
    for record in records:
        for name, (size, is_deleted) in record.entries.items():
            if is_deleted:
                sizes.pop(name, None)
            else:
                sizes[name] = max(size, sizes.get(name, 0))
    return sizes


def key_of(partition_path: str) -> str:
    """The key of the record that lists a partition path's files."""
    return partition_path or NO_PARTITION_PATH


def partition_path_of(name: str) -> str:
    """The partition path that a name in the list of all partitions stands for."""
    return "" if name == NO_PARTITION_PATH else name
