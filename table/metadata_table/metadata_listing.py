"""The files of a table as its metadata table lists them; the store is asked where that is not possible."""

from collections.abc import Iterable, Iterator, Sequence

from table.metadata_table.file_lists import Failures, FileLists, load_file_lists, tell_not_used
from table.storage.interface import FileInfo, Storage, join
from table.view.listing import Narrow
from table.view.store_listing import StorageListing


class MetadataListing:
    """The listing of a table with a metadata table (HoodieBackedTableMetadata).

    Readers use it. The lists are read at the first question about all partition paths, and kept. Pickled, it becomes
    the store's listing: a task asks for few folders. Entries from the lists have no modification time.

    Args:
        storage: of the table.
        known: times of the writes that the caller has seen completed.
    """

    def __init__(self, storage: Storage, known: Iterable[str]) -> None:
        self._store, self._known = StorageListing(storage), tuple(known)
        self._lists: FileLists | None = None
        self._paths: list[str] = []
        self._asks_store = False

    def __reduce__(self) -> tuple[type[StorageListing], tuple[Storage]]:
        return StorageListing, (self._store.storage,)

    def load(self) -> bool:
        """Reads the lists, if that was not done, and says whether they can be used."""
        return self._load() is not None

    def _load(self) -> FileLists | None:
        if self._lists is None and not self._asks_store:
            storage = self._store.storage
            try:
                self._lists = load_file_lists(storage, self._known)
                self._paths = self._lists.partition_paths()
            except Failures as error:
                self._ask_store(error)
        return self._lists

    def _ask_store(self, error: Exception) -> None:
        self._lists, self._asks_store = None, True
        tell_not_used("metadata_table_not_used", self._store.storage.base_uri, error)

    def list_partition_paths(self) -> list[str]:  # noqa: D102 as `Listing`
        return self._paths if self._load() is not None else self._store.list_partition_paths()

    def list_files(self, partition_path: str) -> Sequence[FileInfo]:  # noqa: D102
        if self._lists is not None:  # they are not read for one folder: the store answers that with one request
            try:
                sizes = self._lists.files(partition_path)
            except Failures as error:
                self._ask_store(error)
            else:
                return [FileInfo(name, size, 0, False) for name, size in sizes.items()]
        return self._store.list_files(partition_path)

    def walk(self, narrow: Narrow | None = None) -> Iterator[tuple[str, Sequence[FileInfo]]]:  # noqa: D102
        if self._load() is None:
            yield from self._store.walk(narrow)
            return
        for path in self._paths if narrow is None else narrow_paths(self._paths, narrow):
            yield path, self.list_files(path)


def narrow_paths(paths: Sequence[str], narrow: Narrow) -> list[str]:
    """The partition paths whose folders are left by `narrow` at each level (pure).

    Args:
        paths: all partition paths.
        narrow: as of `Listing.walk`: takes the folders of one level.
    """
    depth, narrowed = 1, list(paths)
    while any(path.count("/") >= depth - 1 and path for path in narrowed):
        folders = {_first_levels(path, depth) for path in narrowed if path and path.count("/") >= depth - 1}
        kept = set(narrow(sorted(folders)))
        narrowed = [
            path for path in narrowed if not path or path.count("/") < depth - 1 or _first_levels(path, depth) in kept
        ]
        depth += 1
    return narrowed


def _first_levels(path: str, depth: int) -> str:
    return join(*path.split("/")[:depth])
