"""A worker process's cache of base files between batches: ranges, filters and keys, within a memory limit.

A base file never changes, so an entry of the cache never becomes wrong.
"""

from collections import OrderedDict
from dataclasses import dataclass, replace

import pyarrow as pa

from table import threads
from table.files.base.hudi_footer import filter_of_footer, stored_bounds
from table.files.base.stored_file import StoredBaseFile
from table.files.base.summary import FileContents
from table.files.bloom.bloom_filter import AnyBloomFilter
from table.storage.interface import Storage

DEFAULT_MAX_ENTRIES = 100_000  # bound of a dynamic filter for keys to be added, which only its writer needs
_ENTRY_BYTES = 1_000


@dataclass(frozen=True)
class KnownFile:
    """The cache entry of one base file.

    Attributes:
        bounds: least and greatest record key, or None where the footer does not contain them.
        bloom: its bloom filter, or None.
        keys: all its record keys in the order of its rows, or None when they were not read, or were dropped.
    """

    bounds: tuple[str, str] | None
    bloom: AnyBloomFilter | None
    keys: pa.ChunkedArray | None = None

    @property
    def size_bytes(self) -> int:
        """The estimated memory of the entry."""
        keys = 0 if self.keys is None else self.keys.nbytes
        return _ENTRY_BYTES + keys + (0 if self.bloom is None else self.bloom.size_bytes)


class KeyCache:
    """The cached base files of a process, least recently used first.

    Args:
        limit_bytes: largest size of all entries together; 0: nothing is cached.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._files: OrderedDict[tuple[str, str], KnownFile] = OrderedDict()
        self._held_bytes = 0
        self._lock = threads.make_lock()  # tasks may be threads of one process

    def get(self, base_uri: str, path: str) -> KnownFile | None:
        """The entry of a file; None where there is none."""
        with self._lock:
            known = self._files.get((base_uri, path))
            if known is not None:
                self._files.move_to_end((base_uri, path))
            return known

    def put(self, base_uri: str, path: str, known: KnownFile) -> None:
        """Adds an entry, and drops the least recently used entries that exceed the limit."""
        with self._lock:
            self._put(base_uri, path, known)

    def _put(self, base_uri: str, path: str, known: KnownFile) -> None:
        self._forget((base_uri, path))
        if known.size_bytes > self.limit_bytes:
            return
        self._files[base_uri, path] = known
        self._held_bytes += known.size_bytes
        while self._held_bytes > self.limit_bytes:
            self._forget(next(iter(self._files)))

    def replace(self, base_uri: str, older: str | None, path: str, contents: FileContents) -> None:
        """Adds an entry for a file that was just written, in place of the entry of the older version."""
        known = self.get(base_uri, older) if older is not None else None
        after = known_after(contents, known)
        with self._lock:
            self._put(base_uri, path, after)
            if older is not None:
                self._forget((base_uri, older))

    def _forget(self, key: tuple[str, str]) -> None:
        known = self._files.pop(key, None)
        if known is not None:
            self._held_bytes -= known.size_bytes


_of_process = KeyCache(0)


def cache_of_process(limit_bytes: int) -> KeyCache:
    """The cache of this process, which all its sinks share. The greatest of the sinks' limits applies.

    Args:
        limit_bytes: limit of the calling sink; 0: the sink caches nothing.
    """
    if limit_bytes == 0:
        return KeyCache(0)
    _of_process.limit_bytes = max(_of_process.limit_bytes, limit_bytes)
    return _of_process


def known_after(contents: FileContents, older: KnownFile | None) -> KnownFile:
    """The cache entry of a file that was just written.

    Args:
        contents: what the writer of the file knows of it.
        older: the entry of the older version of the file; None where there is none.
    """
    chunks = list(contents.written)
    if contents.kept:
        if older is None or older.keys is None:
            return KnownFile(contents.bounds, contents.bloom)
        kept = [older.keys.slice(first, count) for first, count in contents.kept]
        chunks = [*(chunk for part in kept for chunk in part.chunks), *chunks]
    keys = pa.chunked_array(chunks, pa.string()).combine_chunks()
    return KnownFile(contents.bounds, contents.bloom, pa.chunked_array([keys], pa.string()))


class LookedIntoFile:
    """A base file that is searched for keys. It is opened once at most, and not at all if the cache suffices.

    A context manager.

    Args:
        size: bytes of the file; None where that is unknown.
    """

    def __init__(self, storage: Storage, path: str, cache: KeyCache, size: int | None = None) -> None:
        self._storage, self._path, self._cache, self._size = storage, path, cache, size
        self._stored: StoredBaseFile | None = None

    def __enter__(self) -> "LookedIntoFile":  # noqa: PYI034 typing.Self is younger than Python 3.10
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._stored is not None:
            self._stored.close()

    def _open(self) -> StoredBaseFile:
        if self._stored is None:
            self._stored = StoredBaseFile(self._storage, self._path, self._size)
        return self._stored

    def load_known(self) -> KnownFile:
        """Range and filter, from the footer unless they are cached."""
        known = self._cache.get(self._storage.base_uri, self._path)
        if known is None:
            footer = self._open().footer
            known = KnownFile(stored_bounds(footer), filter_of_footer(footer, DEFAULT_MAX_ENTRIES))
            self._cache.put(self._storage.base_uri, self._path, known)
        return known

    def load_keys(self, known: KnownFile) -> pa.ChunkedArray:
        """All record keys in the order of the rows (string), read from the file unless they are cached."""
        if known.keys is not None:
            return known.keys
        stored = self._open()
        keys = pa.chunked_array(stored.read_keys(range(len(stored.group_rows))), pa.string())
        self._cache.put(self._storage.base_uri, self._path, replace(known, keys=keys))
        return keys
