"""Removing the folders of partitions in which nothing is left (rule 2 of docs/concepts/safety.md).

A folder is removed only while no write is pending and none can begin: by the writer itself between two batches, or
under the table's lease. A cleaner beside a batch never removes one: the batch may have just found the folder there.
"""

from collections.abc import Iterable

from table.files.partition_metadata import PARTITION_METAFILE
from table.hudi_table import HudiTable
from table.log import get_logger
from table.storage.interface import join
from table.timeline.metadata.places import partition_of

log = get_logger("hudistream.partitions")


def remove_emptied_partitions(table: HudiTable, paths: Iterable[str]) -> tuple[str, ...]:
    """Removes what is left of partitions: the metadata file, and folders that are empty then.

    Args:
        table: the table; the caller holds its lease, and no write is pending.
        paths: partition paths that a clean has emptied. A partition that holds files again stays; so does the table's
            root.

    Returns:
        Partition paths that are no partitions any more. Children of a partition keep its folder.
    """
    storage, removed = table.storage, []
    there = table.store_listing  # a file that no commit names keeps a folder, too
    for path in sorted(filter(_is_place, set(paths)), key=len, reverse=True):
        entries = there.list_files(path) if path else []
        names = {entry.name for entry in entries if not entry.is_dir}
        if PARTITION_METAFILE not in names or names - {PARTITION_METAFILE, f".{PARTITION_METAFILE}.crc"}:
            continue
        storage.delete(join(path, PARTITION_METAFILE))
        folder = path
        while folder and storage.remove_empty_dir(folder):
            folder = folder.rpartition("/")[0]
        removed.append(path)
        log.debug("partition_removed", table=storage.base_uri, partition_path=path)
    return tuple(removed)


def _is_place(path: str) -> bool:
    """Whether a partition path of a plan lies in the table; a path outside of it is no emptied partition."""
    try:
        return bool(partition_of(path))
    except ValueError:
        return False
