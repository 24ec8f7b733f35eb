"""The bytes of a file of the metadata table, of which only those parts are read that someone asks for."""

from collections.abc import Iterable, Iterator

from table import threads
from table.storage.interface import READ_AT_ONCE_BYTES, Storage

_TAIL_BYTES = 256 * 1024  # trailer and index of most files
_AHEAD_BYTES = 128 * 1024  # a block and more
_GAP_BYTES = 256 * 1024  # that cost no more than a second request
_WINDOW_BYTES = 8 * 1024 * 1024

Place = tuple[int, int]
"""The first byte of a part, and the byte behind it."""


class StoredBytes:
    """A file, sliced as bytes are. The end and the parts that were loaded last are in memory.

    Args:
        storage: where the file lies.
        path: of the file.
        size_bytes: its size.
    """

    def __init__(self, storage: Storage, path: str, size_bytes: int) -> None:
        self._storage, self._path, self._size = storage, path, size_bytes
        start = 0 if size_bytes <= READ_AT_ONCE_BYTES else size_bytes - _TAIL_BYTES
        self._tail = self._read((start, size_bytes))
        self._loaded: list[tuple[int, bytes]] = []

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice) -> bytes:
        """Some of its bytes, by positions that are not negative.

        Raises:
            FileNotFoundError: it was deleted meanwhile.
            StorageError: the store fails.
        """
        start, end, _ = part.indices(self._size)
        for at, data in (self._tail, *self._loaded):
            if at <= start and end <= at + len(data):
                return data[start - at : end - at]
        at, data = self._read((start, min(self._size, max(end, start + _AHEAD_BYTES))))
        self._loaded = [(at, data)]
        return data[: end - start]

    def load(self, places: Iterable[Place]) -> None:
        """Reads parts side by side, in place of those that were loaded before. What lies in the end is not read again.

        Raises:
            FileNotFoundError: the file was deleted meanwhile.
            StorageError: the store fails.
        """
        missing = [place for place in places if place[0] < self._tail[0]]
        if len(missing) > 1 and self._storage.calls_at_once > 1:
            with threads.make_pool(self._storage.calls_at_once, "hudistream-index") as pool:
                self._loaded = list(pool.map(self._read, missing))
        else:
            self._loaded = list(map(self._read, missing))

    def _read(self, place: Place) -> tuple[int, bytes]:
        return place[0], self._storage.read_part(self._path, *place)


def windows(places: Iterable[Place]) -> Iterator[tuple[int, list[Place]]]:
    """Joins parts that lie close together, and splits them into windows that fit into memory (pure).

    Args:
        places: in ascending order; one may repeat.

    Yields:
        How many of the given places the window covers, and the parts to read for them.
    """
    count, joined, total = 0, list[Place](), 0
    for start, end in places:
        is_near = bool(joined) and start - joined[-1][1] <= _GAP_BYTES
        grows = max(0, end - (joined[-1][1] if is_near else start))
        if joined and total + grows > _WINDOW_BYTES:
            yield count, joined
            count, joined, total, is_near, grows = 0, [], 0, False, end - start
        if is_near:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
        count, total = count + 1, total + grows
    if joined:
        yield count, joined
