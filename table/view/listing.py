"""The partitions and data files of a table, as a protocol. The caller does not know the implementation.

The store answers (`store_listing`), or the metadata table (`table.metadata_table.metadata_listing`). A caller
that looks for files which no commit names (a rollback, a check) asks the store: `HudiTable.store_listing`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from table.storage.interface import FileInfo

Narrow = Callable[[Sequence[str]], Sequence[str]]


class Listing(Protocol):
    """The partitions of a table, and the files in them (HoodieTableMetadata)."""

    def list_partition_paths(self) -> list[str]:
        """Every partition of the table, sorted: the folders that hold a partition metadata file."""

    def list_files(self, partition_path: str) -> Sequence[FileInfo]:
        """Entries of a partition's folder, in no order; none where there is no such folder.

        Raises:
            StorageError: when the store fails.
        """

    def walk(self, narrow: Narrow | None = None) -> Iterator[tuple[str, Sequence[FileInfo]]]:
        """Every partition path with the entries of its folder, in no order. No folder is listed twice.

        Args:
            narrow: takes folders, and returns the folders to list; the other folders and the folders below them are
                not listed. None: all folders are listed.

        Raises:
            StorageError: when the store fails.
        """
