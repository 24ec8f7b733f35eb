"""A worker process's cache of base files between batches: ranges, filters and keys, within a memory limit.

A base file never changes, so an entry of the cache never becomes wrong. Files of a record index are remembered, too.
"""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from table import threads
from table.files.base.hudi_footer import filter_of_footer, stored_bounds
from table.files.base.stored_file import StoredBaseFile
from table.files.base.summary import FileContents
from table.files.bloom.bloom_filter import AnyBloomFilter
from table.index.virtual_keys import VirtualKeys
from table.metadata_table.known_layers import KnownRecords
from table.storage.interface import Storage

DEFAULT_MAX_ENTRIES = 100_000  # bound of a dynamic filter for keys to be added, which only its writer needs
_ENTRY_BYTES = 500  # path, bounds, and what Python needs for an entry
_IDLE_TURNS = 100  # batches of other tables after which the entries of a table are dropped


@dataclass(frozen=True)
class KnownFile:
    """The cache entry of one base file.

    Attributes:
        bounds: least and greatest record key, or None where the footer does not contain them.
        bloom: its bloom filter, or None.
        keys: all its record keys in the order of its rows, or None when they were not read, or were dropped.
        has_filter: whether `bloom` is what the footer says; False: it was dropped.
    """

    bounds: tuple[str, str] | None
    bloom: AnyBloomFilter | None
    keys: pa.ChunkedArray | None = None
    has_filter: bool = True

    @property
    def size_bytes(self) -> int:
        """The estimated memory of the entry."""
        keys = 0 if self.keys is None else self.keys.nbytes
        return _ENTRY_BYTES + keys + (0 if self.bloom is None else self.bloom.size_bytes)

    @property
    def forms(self) -> Iterator["KnownFile"]:
        """The entry, then what remains where there is no room: without its keys, and without its filter."""
        yield self
        if self.keys is not None:
            yield replace(self, keys=None)
        if self.bloom is not None:
            yield self.bare

    @property
    def bare(self) -> "KnownFile":
        """The bounds alone."""
        return KnownFile(self.bounds, None, has_filter=False)


_Entry = KnownFile | KnownRecords


class ProcessCaches:
    """The caches of a process, one for each table.

    Together they hold no more than the greatest limit of a table. A table that finds no room takes some from the table
    that holds most, as long as that one has more than an equal share.

    Args:
        lock: makes the caches safe for tasks that are threads of one process.
    """

    def __init__(self, lock: AbstractContextManager[Any] | None = None) -> None:
        self.lock = threads.make_lock() if lock is None else lock
        self._caches: dict[str, KeyCache] = {}
        self._turn = 0

    def of_table(self, base_uri: str, limit_bytes: int, instant_time: str) -> "KeyCache":
        """The cache of a table, in the turn of an instant."""
        with self.lock:
            cache = self._caches.setdefault(base_uri, KeyCache(limit_bytes, self))
            cache.limit_bytes = limit_bytes
            if cache.begin(instant_time):
                self._turn += 1
                cache.last_turn = self._turn
            for uri in [uri for uri, other in self._caches.items() if self._turn - other.last_turn > _IDLE_TURNS]:
                del self._caches[uri]
            return cache

    def make_room(self, wanting: "KeyCache", size: int) -> bool:
        """Drops entries until `size` bytes more fit. Returns whether they do. The caller holds the lock."""
        caches = [*{wanting, *self._caches.values()}]
        limit = max(cache.limit_bytes for cache in caches)
        while sum(cache.held_bytes for cache in caches) + size > limit:
            if any(cache.drop_unused() for cache in (wanting, *caches)):
                continue
            richest = max(caches, key=lambda cache: cache.held_bytes)
            if richest is wanting or richest.held_bytes <= limit / len(caches):
                return False
            richest.drop_oldest()
        return True


class KeyCache:
    """The cached base files of one table in a process, least recently used first.

    Entries that the last two batches did not use make room for others. Where all are in use, a new file gets none: of
    the files that every batch walks through, as many stay as fit. If the oldest went instead, each would go just before
    its next use. The bounds of a file are small. They find room before filters do.

    Args:
        limit_bytes: largest size of all entries together; 0: nothing is cached.
        process: the caches of the process; None: this one stands alone.
    """

    def __init__(self, limit_bytes: int, process: ProcessCaches | None = None) -> None:
        self.limit_bytes, self.held_bytes, self.last_turn = limit_bytes, 0, 0
        self._process = process
        self._files: OrderedDict[str, tuple[_Entry, int]] = OrderedDict()  # and the turn of its last use
        self._lock = threads.make_lock() if process is None else process.lock
        self._turn, self._instant_time = 0, ""

    def begin(self, instant_time: str) -> bool:
        """Notes the instant of the batch. Returns whether it is another one."""
        is_next = instant_time != self._instant_time
        self._turn, self._instant_time = self._turn + is_next, instant_time
        return is_next

    def get(self, path: str) -> KnownFile | None:
        """The entry of a base file; None where there is none."""
        with self._lock:
            known = self._used(path)
        return known if isinstance(known, KnownFile) else None

    def put(self, path: str, known: KnownFile) -> None:
        """Adds an entry, or as much of it as there is room for."""
        with self._lock:
            self._put(path, known)

    def get_records(self, name: str) -> KnownRecords | None:
        """The entry of a file of a record index, by path and size; None where there is none."""
        with self._lock:
            known = self._used(name)
        return known if isinstance(known, KnownRecords) else None

    def put_records(self, name: str, known: KnownRecords) -> None:
        """Adds an entry of a file of a record index, if there is room for it."""
        with self._lock:
            self._put(name, known)

    def replace(self, older: str | None, path: str, contents: FileContents) -> None:
        """Adds an entry for a file that was just written, in place of the entry of the older version."""
        known = self.get(older) if older is not None else None
        after = known_after(contents, known)
        with self._lock:
            if older is not None:
                self._forget(older)
            self._put(path, after)

    def drop_unused(self) -> bool:
        """Drops the oldest entry if the last two batches did not use it. Returns whether it did."""
        path, (_, turn) = next(iter(self._files.items()), ("", (None, self._turn)))
        if turn >= self._turn - 1:
            return False
        self._forget(path)
        return True

    def drop_oldest(self) -> None:
        """Drops the entry that was not used for the longest time."""
        self._forget(next(iter(self._files)))

    def _used(self, path: str) -> _Entry | None:
        known, _ = self._files.pop(path, (None, 0))
        if known is not None:
            self._files[path] = known, self._turn
        return known

    def _put(self, path: str, known: _Entry) -> None:
        before = self._used(path)
        for form in known.forms:
            more = form.size_bytes - (0 if before is None else before.size_bytes)
            if self._make_room(more, path) or (
                not form.has_filter and self._strip_one() and self._make_room(more, path)
            ):
                self._files[path] = form, self._turn
                self.held_bytes += more
                return

    def _make_room(self, size: int, path: str) -> bool:
        while size > 0 and self.held_bytes + size > self.limit_bytes:
            if next(iter(self._files), path) == path or not self.drop_unused():
                return False
        return size <= 0 or self._process is None or self._process.make_room(self, size)

    def _strip_one(self) -> bool:
        """Drops filter and keys of the oldest entry that has them, so that bounds of many files find room."""
        for path, (known, turn) in self._files.items():
            if known.has_filter and known.size_bytes > 2 * _ENTRY_BYTES:
                self.held_bytes += known.bare.size_bytes - known.size_bytes
                self._files[path] = known.bare, turn
                return True
        return False

    def _forget(self, path: str) -> None:
        known, _ = self._files.pop(path, (None, 0))
        if known is not None:
            self.held_bytes -= known.size_bytes


_of_process = ProcessCaches()


def cache_of_table(base_uri: str, limit_bytes: int, instant_time: str) -> KeyCache:
    """The cache of a table in this process, which lives on between batches.

    Args:
        base_uri: the table's.
        limit_bytes: limit of the calling sink; 0: nothing is cached.
        instant_time: of the batch.
    """
    return _of_process.of_table(base_uri, limit_bytes, instant_time) if limit_bytes else KeyCache(0)


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
        virtual: how keys are made where the file does not hold them.
    """

    def __init__(
        self,
        storage: Storage,
        path: str,
        cache: KeyCache,
        size: int | None = None,
        virtual: VirtualKeys | None = None,
    ) -> None:
        self._virtual = virtual
        self._storage, self._path, self._cache, self._size = storage, path, cache, size
        self._stored: StoredBaseFile | None = None
        self._known: KnownFile | None = None

    def __enter__(self) -> "LookedIntoFile":  # noqa: PYI034 typing.Self is younger than Python 3.10
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._stored is not None:
            self._stored.close()

    def _open(self) -> StoredBaseFile:
        if self._stored is None:
            self._stored = StoredBaseFile(self._storage, self._path, self._size)
        return self._stored

    def load_bounds(self) -> tuple[str, str] | None:
        """Least and greatest record key, from the footer unless they are cached."""
        known = self._cache.get(self._path)
        return self.load_known().bounds if known is None else known.bounds

    def load_known(self) -> KnownFile:
        """Range and filter, from the footer unless they are cached."""
        known = self._known or self._cache.get(self._path)
        if known is None or not known.has_filter:
            footer = self._open().footer
            known = KnownFile(stored_bounds(footer), filter_of_footer(footer, DEFAULT_MAX_ENTRIES))
            self._cache.put(self._path, known)
        self._known = known
        return known

    def load_keys(self, known: KnownFile) -> pa.ChunkedArray:
        """All record keys in the order of the rows (string), read from the file unless they are cached."""
        if known.keys is not None:
            return known.keys
        stored = self._open()
        read = stored.read_keys if self._virtual is None else partial(self._virtual.read, stored)
        keys = pa.chunked_array(read(range(len(stored.group_rows))), pa.string())
        self._cache.put(self._path, replace(known, keys=keys))
        return keys
