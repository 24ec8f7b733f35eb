"""What a table needs of a store: read, list, create if absent, delete. Paths are relative to the table.

`table.local_storage` and `table.fsspec_storage` implement it; `table.open_storage` chooses one.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from table.errors import InvalidConfigError, StorageError

METAFOLDER = ".hoodie"
TEMPORARY_PREFIX = ".hudistream-"


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One entry of a folder: its name, size in bytes, modification time in milliseconds."""

    name: str
    size_bytes: int
    modified_ms: int
    is_dir: bool


class OutputFile(Protocol):
    """What Arrow writes a file through."""

    def write(self, data: Any, /) -> Any:
        """Appends bytes."""

    def tell(self) -> int:
        """Bytes written so far."""

    def close(self) -> None:
        """Makes the file whole."""


def join(*parts: str) -> str:
    """Joins path parts, leaving out empty ones (the partition path of a non-partitioned table)."""
    return "/".join(part for part in parts if part)


class ByteRange(NamedTuple):
    """A piece of a file.

    Attributes:
        start: offset of its first byte.
        length: how many.
    """

    start: int
    length: int


def joined_ranges(ranges: Iterable[ByteRange]) -> list[ByteRange]:
    """The same bytes in the same order, neighbours made one."""
    joined: list[ByteRange] = []
    for piece in ranges:
        if joined and joined[-1].start + joined[-1].length == piece.start:
            joined[-1] = ByteRange(joined[-1].start, joined[-1].length + piece.length)
        elif piece.length:
            joined.append(piece)
    return joined


class Storage(ABC):
    """Files of one table. Small and picklable: it goes to the workers.

    Attributes:
        base_uri: the table's address as Hudi writes it into plans: an absolute path for local
            tables, the user's own scheme elsewhere.
    """

    base_uri: str

    @abstractmethod
    def read(self, path: str) -> bytes:
        """The file's content.

        Raises:
            FileNotFoundError: when it is not there.
            StorageError: when the store fails.
        """

    @abstractmethod
    def list_dir(self, path: str) -> list[FileInfo]:
        """Entries of a folder, in no order; none where there is no such folder."""

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Whether there is a file or folder."""

    @abstractmethod
    def create_exclusive(self, path: str, data: bytes, *, durable: bool = False) -> bool:
        """Creates the file unless one is there, whole or not at all.

        Args:
            path: the file; folders above it are made.
            data: its content.
            durable: flush file and folder to the disk before returning (local storage).

        Returns:
            True when this call created it, False when it was there already.

        Raises:
            StorageError: when the store fails; whether the file exists is then not known.
        """

    @abstractmethod
    def put(self, path: str, data: bytes) -> None:
        """Creates or replaces the file."""

    @abstractmethod
    def delete(self, path: str) -> bool:
        """Deletes a file. Returns False where there was none."""

    def delete_many(self, paths: Sequence[str], pool: Executor) -> frozenset[str]:
        """Deletes files, several at a time.

        Args:
            paths: the files; those that are gone already count as deleted.
            pool: what runs the calls.

        Returns:
            Those that could not be deleted.
        """
        return frozenset(path for path, done in zip(paths, pool.map(self._try_delete, paths), strict=True) if not done)

    def _try_delete(self, path: str) -> bool:
        try:
            self.delete(path)
        except StorageError:
            return False
        return True

    @abstractmethod
    def delete_dir(self, path: str) -> None:
        """Deletes a folder and all below it; nothing happens where there is none."""

    @abstractmethod
    def make_dir(self, path: str) -> None:
        """Makes a folder, where the backend has folders."""

    @abstractmethod
    def open_input(self, path: str) -> pa.NativeFile:
        """The file, open for random reads by Arrow."""

    @abstractmethod
    def open_output(self, path: str) -> OutputFile:
        """A new file, open for writing by Arrow; it exists whole once closed."""

    @abstractmethod
    def open_copy(self, source: str, ranges: Sequence[ByteRange], path: str) -> OutputFile:
        """A new file that begins with bytes of another one, open for writing behind them.

        The bytes travel as little as the store allows: by reference, within the kernel, within the
        object store.

        Args:
            source: the file they are taken from.
            ranges: which ones, one range behind the other.
            path: the new file; it exists whole once closed.

        Raises:
            StorageError: when the store fails, or the source is shorter.
        """

    @abstractmethod
    def sync(self, path: str) -> None:
        """Flushes a written file to the disk, where the backend has one of ours."""

    def absolute(self, path: str) -> str:
        """The path as Hudi writes it into plans: below `base_uri`."""
        return join(self.base_uri, path)

    def relative(self, path: str) -> str:
        """A path from a plan, relative to the table.

        Plans hold absolute paths, with or without a scheme; a table that was moved is found by
        the longest tail that begins below a folder of the table's own name.

        Raises:
            InvalidConfigError: when the path does not lie in this table.
        """
        ours, theirs = _without_scheme(self.base_uri), _without_scheme(path)
        if theirs.startswith(ours + "/"):
            return theirs[len(ours) + 1 :]
        marker = "/" + ours.rsplit("/", 1)[-1] + "/"
        if marker in theirs:
            return theirs.split(marker, 1)[1]
        raise InvalidConfigError(f"the path {path!r} does not lie in the table {self.base_uri!r}")


def _without_scheme(path: str) -> str:
    return re.sub(r"^[a-zA-Z][a-zA-Z0-9+.-]*:(//(?=/)|(?=/)|//)", "", path).rstrip("/")


def failed(verb: str, path: str, error: OSError) -> StorageError:
    """The error for a call that the store refused."""
    return StorageError(f"could not {verb} {path!r}: {error}")
