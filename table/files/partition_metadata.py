"""``.hoodie_partition_metadata``: the file by which Java readers find a partition (HoodiePartitionMetadata)."""

from datetime import datetime, timezone

from table import clock
from table.storage.interface import Storage, join

PARTITION_METAFILE = ".hoodie_partition_metadata"


def format_partition_metadata(instant_time: str, partition_path: str, saved_ms: int) -> bytes:
    """Content of the file.

    Args:
        instant_time: instant that created the partition.
        partition_path: path of the partition; the file stores its depth.
        saved_ms: time in the date comment, in milliseconds since the epoch.
    """
    depth = partition_path.count("/") + 1 if partition_path else 0
    date = datetime.fromtimestamp(saved_ms / 1000, tz=timezone.utc).strftime("%a %b %d %H:%M:%S UTC %Y")
    return f"#partition metadata\n#{date}\ncommitTime={instant_time}\npartitionDepth={depth}\n".encode("ascii")


def create_partition_metadata(storage: Storage, partition_path: str, instant_time: str) -> bool:
    """Creates the file unless it exists. Returns whether this call created it."""
    data = format_partition_metadata(instant_time, partition_path, clock.now_ms())
    return storage.create_exclusive(join(partition_path, PARTITION_METAFILE), data)
