"""The operations that a table needs from a store: read, list, create if absent, delete.

Paths are relative to the table.

`table.storage.local` and `table.storage.remote` implement it; `table.storage.opening` chooses one.
"""

import errno
import posixpath
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import pyarrow as pa
from pyarrow.fs import FileSystem

from table.errors import InvalidConfigError, StorageError
from table.storage.byte_ranges import ByteRange
from table.storage.folder_names import with_ending
from table.storage.versions import VersionedFiles
from table.version import SIGN

METAFOLDER = ".hoodie"
TEMPORARY_PREFIX = ".hudistream-"
OWN_FOLDER = f"{METAFOLDER}/.hudistream"  # files of this project alone; Hudi ignores the folder
OPEN_FOLDER = f"{OWN_FOLDER}/open"
READ_AT_ONCE_BYTES = 1024 * 1024  # object stores send a part of such a file no faster than all of it


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One entry of a folder: its name, size in bytes, modification time in milliseconds."""

    name: str
    size_bytes: int
    modified_ms: int
    is_dir: bool


@dataclass(frozen=True, slots=True)
class Stage:
    """The place where a file waits until it is published: no reader sees it there, and a fence can keep it there.

    Attributes:
        instant_time: time of the file's instant.
        ticket: the store's identifier of the waiting file, which the file's marker holds; "" if the store needs none.
    """

    instant_time: str
    ticket: str = ""


class OutputFile(Protocol):
    """The file object that Arrow writes to."""

    def write(self, data: Any, /) -> Any:
        """Appends bytes."""

    def tell(self) -> int:
        """Bytes written so far."""

    def close(self) -> None:
        """Writes the remaining bytes: the file is whole afterwards."""


def join(*parts: str) -> str:
    """Joins path parts, leaving out empty ones (the partition path of a non-partitioned table)."""
    return "/".join(part for part in parts if part)


@dataclass(frozen=True)
class Room:
    """How much may be written where a table lies.

    Attributes:
        free_bytes: bytes that are free for this user.
        not_writable: path of a folder in which this process may not write; "": in none of those asked for.
        is_read_only: whether the file system is mounted so that nobody may write.
    """

    free_bytes: int
    not_writable: str = ""
    is_read_only: bool = False


class Storage(VersionedFiles, ABC):
    """The files of one table. The object is small and picklable, because tasks receive it.

    Attributes:
        base_uri: the table's address as Hudi writes it into plans: an absolute path for local tables, otherwise an
            address with the scheme that the user gave.
        waits_for_disk: whether `sync` waits for a disk, so that it pays to call it in a thread.
    """

    base_uri: str
    waits_for_disk: ClassVar[bool] = False

    def below(self, name: str) -> "Storage":
        """The folder with this name in this one, as a table's own storage. The name is not parsed.

        Args:
            name: of one folder; ``#``, ``%`` and ``?`` stand for themselves.

        Raises:
            InvalidConfigError: it is not the name of one folder.
        """
        raise InvalidConfigError(f"{self.base_uri!r} holds no tables of their own: {name!r} cannot be opened below it")

    def look_for_room(self, folders: Sequence[str]) -> Room | None:  # noqa: ARG002
        """How much may be written, and whether these folders may be written in; None where the store does not say.

        Args:
            folders: relative to the table. The table's own folder is looked at, too.
        """
        return None

    def above(self) -> "tuple[Storage, str] | None":
        """The folder around this one, and this one's name in it; None at the root of a store."""
        return None

    def beside(self, ending: str) -> "Storage | None":
        """The folder beside this one, with this one's name and an ending; None at the root of a store."""
        found = self.above()
        return None if found is None else found[0].below(with_ending(found[1], ending))

    @abstractmethod
    def read(self, path: str) -> bytes:
        """The file's content.

        Raises:
            FileNotFoundError: when the file does not exist.
            StorageError: when the store fails.
        """

    @abstractmethod
    def list_dir(self, path: str) -> list[FileInfo]:
        """Entries of a folder, in no order; none if it does not exist. Files deleted meanwhile may be listed or not."""

    @property
    def lists_by_prefix(self) -> bool:
        """Whether `list_prefix` costs less than `list_dir` in a folder of many files."""
        return False

    def list_prefix(self, path: str, prefix: str) -> list[FileInfo]:
        """The files of a folder whose names begin with a text, in no order; as `list_dir`.

        Args:
            path: the folder.
            prefix: the text, not empty and without a slash.
        """
        return [entry for entry in self.list_dir(path) if entry.name.startswith(prefix) and not entry.is_dir]

    def list_names(self, path: str) -> list[str]:
        """Names of the files in a folder, in no order; none if the folder does not exist.

        In a folder of a few hundred files all names are of one moment, because no file is looked at by itself.
        """
        return [entry.name for entry in self.list_dir(path) if not entry.is_dir]

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Whether the path is a file or a folder."""

    @abstractmethod
    def create_exclusive(self, path: str, data: bytes, *, durable: bool = False) -> bool:
        """Creates the file unless it exists, whole or not at all.

        Args:
            path: the file; missing folders above it are created.
            data: content of the file.
            durable: flush file and folder to the disk before returning (local storage).

        Returns:
            True if this call created the file, False if the file existed.

        Raises:
            StorageError: when the store fails; whether the file exists is then not known.
        """

    @abstractmethod
    def put(self, path: str, data: bytes) -> None:
        """Creates or replaces the file."""

    def delete(self, path: str) -> bool:
        """Deletes one data file, by its name. `delete` and `delete_many` are the only ways to delete data files.

        Args:
            path: relative to the table.

        Returns:
            False if the file did not exist.

        Raises:
            InvalidConfigError: the path leads out of the table, or into ``.hoodie``; nothing is deleted.
            StorageError: when the store fails.
        """
        if not self._may_delete(path):
            raise InvalidConfigError(f"{path!r} is not a data file of the table {self.base_uri!r}: it is not deleted")
        return self._delete(path)

    def delete_metafile(self, path: str) -> bool:
        """Deletes one file below ``.hoodie``, by its name. Returns False if it did not exist.

        Raises:
            InvalidConfigError: the path does not lie below ``.hoodie``; nothing is deleted.
            StorageError: when the store fails.
        """
        return self._delete(self._check_metapath(path))

    def delete_metafolder(self, path: str) -> None:
        """Deletes the files in a folder below ``.hoodie``, each by its name, then the folders if they are empty.

        Raises:
            InvalidConfigError: the path does not lie below ``.hoodie``; nothing is deleted.
            StorageError: when the store fails.
        """
        self.delete_metafiles(path, self.list_tree(self._check_metapath(path)))

    def delete_metafiles(self, folder: str, names: Iterable[str]) -> None:
        """As `delete_metafolder`, of the files that an earlier listing named.

        Args:
            folder: below ``.hoodie``.
            names: relative to the folder, as `list_tree` gave them.
        """
        inside = self._check_metapath(folder)
        self._delete_all([join(inside, name) for name in names])
        self._remove_empty_tree(inside)

    def _check_metapath(self, path: str) -> str:
        """The path, if it lies below ``.hoodie``."""
        inside = check_inside(path, self.base_uri)
        if not inside.startswith(METAFOLDER + "/"):
            raise InvalidConfigError(f"{path!r} does not lie in {METAFOLDER} of {self.base_uri!r}: it is not deleted")
        return inside

    def _delete_all(self, paths: Sequence[str]) -> None:
        """Deletes files whose paths the caller has checked."""
        for path in paths:
            self._delete(path)

    def _remove_empty_tree(self, path: str) -> None:
        """Removes a folder and the folders below it, if they are empty."""
        for entry in self.list_dir(path):
            if entry.is_dir:
                self._remove_empty_tree(join(path, entry.name))
        self.remove_empty_dir(path)

    @abstractmethod
    def _delete(self, path: str) -> bool:
        """Deletes a file whose path was checked. Links are not followed. Returns False if there was no file."""

    @abstractmethod
    def remove_empty_dir(self, path: str) -> bool:
        """Removes a folder, by a call that fails if the folder is not empty. Returns whether the folder was removed."""

    def list_tree(self, path: str) -> dict[str, FileInfo]:
        """Every file below a folder: its path relative to the folder -> its listing entry.

        Takes one listing if the store can list whole trees.
        """
        found: dict[str, FileInfo] = {}
        self._walk(path, "", found)
        return found

    def _walk(self, folder: str, below: str, found: dict[str, FileInfo]) -> None:
        for entry in self.list_dir(join(folder, below)):
            name = join(below, entry.name)
            if entry.is_dir:
                self._walk(folder, name, found)
            else:
                found[name] = entry

    def delete_many(self, paths: Sequence[str], pool: Executor) -> frozenset[str]:
        """Deletes files, several at a time.

        Args:
            paths: the files; missing files count as deleted.
            pool: the threads that run the calls.

        Returns:
            The paths that could not be deleted.
        """
        return frozenset(path for path, done in zip(paths, pool.map(self._try_delete, paths), strict=True) if not done)

    def _may_delete(self, path: str) -> bool:
        """Whether `delete` would accept the path as a data file of the table."""
        try:
            inside = check_inside(path, self.base_uri)
        except InvalidConfigError:
            return False
        return inside != METAFOLDER and not inside.startswith(METAFOLDER + "/")

    def _try_delete(self, path: str) -> bool:
        try:
            self.delete(path)
        except (StorageError, InvalidConfigError):
            return False
        return True

    @abstractmethod
    def make_dir(self, path: str) -> None:
        """Creates a folder, if the backend has folders."""

    @abstractmethod
    def open_input(self, path: str, size: int | None = None) -> pa.NativeFile:
        """The file, open for random reads by Arrow. If `size` is given, an object store needs one request less.

        A file of at most `READ_AT_ONCE_BYTES` may then be read as a whole; its true length counts, not `size`.
        """

    def read_part(self, path: str, start: int, end: int) -> bytes:
        """The bytes of a file from `start` to before `end`, or to its end.

        Raises:
            FileNotFoundError: when the file does not exist.
            StorageError: when the store fails.
        """
        with self.open_input(path) as source:
            try:
                source.seek(start)
                return source.read(end - start)  # type: ignore[no-any-return]
            except OSError as error:
                raise failed("read", path, error) from error

    @property
    def native_filesystem(self) -> FileSystem | None:
        """Arrow's own file system of the table's folder, which reads without Python. None: Arrow has none for it."""
        return None

    @property
    def calls_at_once(self) -> int:
        """How many listings to send in parallel: it pays on an object store, where requests wait, and not on a disk."""
        return 1

    @property
    def time_granularity_ms(self) -> int:
        """Milliseconds by which the store's modification times can be inexact."""
        return 1000

    @property
    def has_fence(self) -> bool:
        """Whether no file of an instant can be published after `fence` and, in a store with tickets, `revoke`."""
        return False

    def open_staging(self, instant_time: str) -> None:
        """Opens an instant for its tasks. Tasks never call this: a late task would undo the fence.

        Raises:
            StorageError: when the store fails.
        """
        self.create_exclusive(join(OPEN_FOLDER, instant_time), SIGN)

    def is_open(self, instant_time: str) -> bool:
        """Whether an instant is open: a task's check (rule 4).

        A task checks this after it has created its marker. The process that ends an instant closes it before it lists
        the markers. So either that process sees the marker, or the task sees that the instant is closed. A closed
        instant is never opened again.
        """
        return self.exists(join(OPEN_FOLDER, instant_time))

    def fence(self, instant_time: str) -> None:
        """Closes an instant (rule 5). Afterwards none of its waiting files can be published. Can be repeated.

        In a store with tickets the caller must also call `revoke` for each announced file.

        Raises:
            StorageError: when the store fails.
        """
        self.delete_metafile(join(OPEN_FOLDER, instant_time))

    def staged_instants(self) -> list[str]:
        """Instants that are open, or whose closing was interrupted."""
        return sorted(entry.name for entry in self.list_dir(OPEN_FOLDER))

    def stage(self, instant_time: str, path: str) -> Stage:  # noqa: ARG002 for stores that know a file before it is written
        """Chooses the place where a file of an instant waits until `publish`.

        Raises:
            StorageError: when the store fails.
        """
        return Stage(instant_time)

    def revoke(self, path: str, ticket: str) -> None:
        """Prevents the waiting file with this ticket from being published.

        Raises:
            StorageError: when the store fails.
        """

    @abstractmethod
    def open_output(self, path: str, stage: Stage | None = None) -> OutputFile:
        """A new file, open for writing by Arrow.

        Args:
            path: relative to the table.
            stage: where the file waits: it exists after `close` and `publish`. None: it exists after `close`.
        """

    def publish(self, path: str, stage: Stage, output: OutputFile) -> None:
        """Moves a closed file to its path, as a whole.

        Raises:
            StorageError: the instant's fence is up, or the store fails.
        """

    def discard(self, path: str, stage: Stage | None, output: OutputFile) -> None:
        """Drops a file that must not be published or closed. No bytes are written when the object is freed."""

    @abstractmethod
    def open_copy(self, source: str, ranges: Sequence[ByteRange], path: str, stage: Stage | None = None) -> OutputFile:
        """A new file that begins with bytes of another file, open for writing after them.

        The store moves the bytes as little as it can: by reference, within the kernel, or within the object store.

        Args:
            source: the file that the bytes are copied from.
            ranges: the copied ranges, in the order of the new file.
            path: the new file.
            stage: as in `open_output`.

        Raises:
            StorageError: when the store fails, or a range ends beyond the end of the source.
        """

    @abstractmethod
    def sync(self, path: str) -> None:
        """Flushes a written file to the disk, if the backend writes to a disk of this machine."""

    def absolute(self, path: str) -> str:
        """The path as Hudi writes it into plans: an address below `base_uri`."""
        return join(self.base_uri, stay_inside(path, self.base_uri))

    def relative(self, path: str, partition_path: str | None = None) -> str:
        """A path from a plan, relative to the table.

        Plans hold absolute paths, with or without a scheme. If the table was moved or renamed since, the result is the
        file's name in the partition path that the plan has beside it. Without one, it is the longest tail of the path
        that begins below a folder with the table's name.

        Args:
            path: of a file.
            partition_path: of the file, where the plan says it.

        Raises:
            InvalidConfigError: when the path does not lie in this table.
        """
        ours, theirs = _without_scheme(self.base_uri), _without_scheme(path)
        if theirs.startswith(ours + "/"):
            return check_inside(theirs[len(ours) + 1 :], self.base_uri)
        if partition_path is not None:
            inside = join(partition_path, theirs.rpartition("/")[2])
            if theirs.endswith(f"/{inside}"):
                return check_inside(inside, self.base_uri)
        marker = "/" + ours.rsplit("/", 1)[-1] + "/"
        if marker in theirs:
            return check_inside(theirs.split(marker, 1)[1], self.base_uri)
        raise InvalidConfigError(f"the path {path!r} does not lie in the table {self.base_uri!r}")


def stay_inside(path: str, base_uri: str) -> str:
    """Checks a relative path, which may come from any record, before it is joined to the table's address.

    Raises:
        InvalidConfigError: the path leads out of the table; the message names both.
    """
    if path.startswith("/") or (".." in path and ".." in path.split("/")):
        raise InvalidConfigError(f"the path {path!r} does not lie in the table {base_uri!r}")
    return path


def check_inside(path: str, base_uri: str) -> str:
    """The unchanged path, if it lies inside the table once ``.`` and ``..`` are resolved.

    Raises:
        InvalidConfigError: the path does not, or is the table itself; the message names both.
    """
    normal = posixpath.normpath(path) if path else "."
    if normal in (".", "..") or normal.startswith(("../", "/")) or normal != path.rstrip("/"):
        raise InvalidConfigError(f"the path {path!r} does not lie in the table {base_uri!r}")
    return normal


def _without_scheme(path: str) -> str:
    return re.sub(r"^[a-zA-Z][a-zA-Z0-9+.-]*:(//(?=/)|(?=/)|//)", "", path).rstrip("/")


def failed(verb: str, path: str, error: Exception) -> StorageError:
    """The error for a failed call of the store."""
    hint = ""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        hint = "; `hudistream clean PATH --set hoodie.clean.commits.retained=1` frees space also on a full disk"
    return StorageError(f"could not {verb} {path!r}: {error}{hint}")
