"""The files of a table as the store itself lists them (FileSystemBackedTableMetadata)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from table import threads
from table.files.partition_metadata import PARTITION_METAFILE
from table.storage.interface import METAFOLDER, FileInfo, Storage, join
from table.view.listing import Narrow


@dataclass(frozen=True)
class StorageListing:
    """The store's own listing. Small and picklable: it is sent to workers."""

    storage: Storage

    def list_partition_paths(self) -> list[str]:  # noqa: D102 as `Listing`
        return sorted(path for path, _ in self.walk())

    def list_files(self, partition_path: str) -> Sequence[FileInfo]:  # noqa: D102
        return self.storage.list_dir(partition_path)

    def walk(self, narrow: Narrow | None = None) -> Iterator[tuple[str, Sequence[FileInfo]]]:
        """As `Listing.walk`, level by level."""
        for folder, entries in walk_folders(self.storage, narrow):
            if any(entry.name == PARTITION_METAFILE for entry in entries):
                yield folder, entries


def walk_folders(storage: Storage, narrow: Narrow | None = None) -> Iterator[tuple[str, Sequence[FileInfo]]]:
    """Every folder of a table but ``.hoodie``, with its entries, level by level; each is listed once.

    If a listing is a request, several folders are listed at a time.

    Args:
        narrow: as of `Listing.walk`.

    Raises:
        StorageError: the store fails.
    """
    if storage.calls_at_once == 1:
        yield from _walk_levels(storage, map, narrow)
        return
    with threads.make_pool(storage.calls_at_once, "hudistream-list") as pool:
        yield from _walk_levels(storage, pool.map, narrow)


def _walk_levels(
    storage: Storage, each: Callable[..., Iterable[Any]], narrow: Narrow | None
) -> Iterator[tuple[str, Sequence[FileInfo]]]:
    level = [""]
    while level:
        below: list[str] = []
        for folder, entries in zip(level, each(storage.list_dir, level), strict=True):
            yield folder, entries
            below += [join(folder, e.name) for e in entries if e.is_dir and (folder or e.name != METAFOLDER)]
        level = below if narrow is None or not below else list(narrow(below))
