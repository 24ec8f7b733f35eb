"""What a table needs of a store: read, list, create if absent, delete. Paths are relative to the table.

`table.storage.local` and `table.storage.remote` implement it; `table.storage.opening` chooses one.
"""

import posixpath
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import pyarrow as pa

from table.errors import InvalidConfigError, StorageError
from table.storage.byte_ranges import ByteRange
from table.storage.versions import VersionedFiles
from table.version import SIGN

METAFOLDER = ".hoodie"
TEMPORARY_PREFIX = ".hudistream-"
OWN_FOLDER = f"{METAFOLDER}/.hudistream"  # what is ours alone; Hudi passes over it
OPEN_FOLDER = f"{OWN_FOLDER}/open"
READ_AT_ONCE_BYTES = 1024 * 1024  # of such a file on an object store a piece costs as much time as the whole


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One entry of a folder: its name, size in bytes, modification time in milliseconds."""

    name: str
    size_bytes: int
    modified_ms: int
    is_dir: bool


@dataclass(frozen=True, slots=True)
class Stage:
    """Where a file waits until it is published: nobody sees it there, and an instant's fence keeps it there.

    Attributes:
        instant_time: instant that it belongs to.
        ticket: what the store knows the waiting file by; it stands in the file's marker. "" where it needs none.
    """

    instant_time: str
    ticket: str = ""


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


class Storage(VersionedFiles, ABC):
    """Files of one table. Small and picklable: it goes to the workers.

    Attributes:
        base_uri: the table's address as Hudi writes it into plans: an absolute path for local
            tables, the user's own scheme elsewhere.
        waits_for_disk: whether `sync` takes the time of a disk, so that it is worth a thread.
    """

    base_uri: str
    waits_for_disk: ClassVar[bool] = False

    @abstractmethod
    def read(self, path: str) -> bytes:
        """The file's content.

        Raises:
            FileNotFoundError: when it is not there.
            StorageError: when the store fails.
        """

    @abstractmethod
    def list_dir(self, path: str) -> list[FileInfo]:
        """Entries of a folder, in no order, if there is one; what is deleted meanwhile may be there or not."""

    def list_names(self, path: str) -> list[str]:
        """Names of the files in a folder, in no order; none where there is no such folder.

        Those of a folder of a few hundred files are of one moment: nothing is asked of each file.
        """
        return [entry.name for entry in self.list_dir(path) if not entry.is_dir]

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

    def delete(self, path: str) -> bool:
        """Deletes one data file, by its name. The only way by which data files are deleted.

        Args:
            path: relative to the table.

        Returns:
            False where there was none.

        Raises:
            InvalidConfigError: the path leads out of the table, or into ``.hoodie``; nothing is deleted.
            StorageError: when the store fails.
        """
        if not self._may_delete(path):
            raise InvalidConfigError(f"{path!r} is not a data file of the table {self.base_uri!r}: it is not deleted")
        return self._delete(path)

    def delete_metafile(self, path: str) -> bool:
        """Deletes one file below ``.hoodie``, by its name. Returns False where there was none.

        Raises:
            InvalidConfigError: the path leads elsewhere; nothing is deleted.
            StorageError: when the store fails.
        """
        return self._delete(self._check_metapath(path))

    def delete_metafolder(self, path: str) -> None:
        """Deletes what lies in a folder below ``.hoodie``, each file by its name, then the folders if they are empty.

        Raises:
            InvalidConfigError: the path leads elsewhere; nothing is deleted.
            StorageError: when the store fails.
        """
        inside = self._check_metapath(path)
        self._delete_all([join(inside, name) for name in self.list_tree(inside)])
        self._remove_empty_tree(inside)

    def _check_metapath(self, path: str) -> str:
        """The path, if it lies below ``.hoodie``."""
        inside = check_inside(path, self.base_uri)
        if not inside.startswith(METAFOLDER + "/"):
            raise InvalidConfigError(f"{path!r} does not lie in {METAFOLDER} of {self.base_uri!r}: it is not deleted")
        return inside

    def _delete_all(self, paths: Sequence[str]) -> None:
        """Deletes files whose paths were checked."""
        for path in paths:
            self._delete(path)

    def _remove_empty_tree(self, path: str) -> None:
        """Removes a folder and the folders in it, as far as they are empty."""
        for entry in self.list_dir(path):
            if entry.is_dir:
                self._remove_empty_tree(join(path, entry.name))
        self.remove_empty_dir(path)

    @abstractmethod
    def _delete(self, path: str) -> bool:
        """Deletes a file whose path was checked. Links are not followed. Returns False where there was none."""

    @abstractmethod
    def remove_empty_dir(self, path: str) -> bool:
        """Removes a folder by the call that fails when something lies in it. Returns whether it did."""

    def list_tree(self, path: str) -> dict[str, FileInfo]:
        """Every file below a folder: its path relative to the folder -> what is known of it.

        One listing where the store has listings of whole trees.
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
            paths: the files; those that do not exist count as deleted.
            pool: what runs the calls.

        Returns:
            Those that could not be deleted.
        """
        return frozenset(path for path, done in zip(paths, pool.map(self._try_delete, paths), strict=True) if not done)

    def _may_delete(self, path: str) -> bool:
        """Whether `delete` would take the path for a data file of the table."""
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
        """Makes a folder, where the backend has folders."""

    @abstractmethod
    def open_input(self, path: str, size: int | None = None) -> pa.NativeFile:
        """The file, open for random reads by Arrow. Its size, from a listing, spares object stores a request.

        A file of at most `READ_AT_ONCE_BYTES` may then be read as a whole: its own length counts, not the one given.
        """

    @property
    def calls_at_once(self) -> int:
        """How many listings are worth sending side by side: a request to an object store waits, a disk does not."""
        return 1

    @property
    def time_granularity_ms(self) -> int:
        """How exact the store's modification times are."""
        return 1000

    @property
    def has_fence(self) -> bool:
        """Whether no file of an instant can be published after `fence` and, where it has tickets, `revoke`."""
        return False

    def open_staging(self, instant_time: str) -> None:
        """Opens an instant for its tasks. Tasks never do: a late one would undo the fence.

        Raises:
            StorageError: when the store fails.
        """
        self.create_exclusive(join(OPEN_FOLDER, instant_time), SIGN)

    def is_open(self, instant_time: str) -> bool:
        """Whether an instant is open: the look of a task (rule 4).

        A task looks after its marker is there, and whoever ends an instant closes it before listing markers: either
        the one sees the marker, or the other sees that it is closed. It stays closed for ever.
        """
        return self.exists(join(OPEN_FOLDER, instant_time))

    def fence(self, instant_time: str) -> None:
        """Closes an instant (rule 5). From here on none of its waiting files can be published. Can be repeated.

        A store whose waiting files have tickets needs `revoke` for each that is announced, too.

        Raises:
            StorageError: when the store fails.
        """
        self.delete_metafile(join(OPEN_FOLDER, instant_time))

    def staged_instants(self) -> list[str]:
        """Instants that are open, or were left half closed."""
        return sorted(entry.name for entry in self.list_dir(OPEN_FOLDER))

    def stage(self, instant_time: str, path: str) -> Stage:  # noqa: ARG002 for stores that know a file before it is written
        """Where a file of an instant is to wait until `publish`.

        Raises:
            StorageError: when the store fails.
        """
        return Stage(instant_time)

    def revoke(self, path: str, ticket: str) -> None:
        """Keeps the one waiting file with this ticket from being published.

        Raises:
            StorageError: when the store fails.
        """

    @abstractmethod
    def open_output(self, path: str, stage: Stage | None = None) -> OutputFile:
        """A new file, open for writing by Arrow.

        Args:
            path: relative to the table.
            stage: where it waits; it is there after `close` and `publish`. None: it is there once closed.
        """

    def publish(self, path: str, stage: Stage, output: OutputFile) -> None:
        """Puts a closed file to its place, whole.

        Raises:
            StorageError: the instant's fence is up, or the store fails.
        """

    def discard(self, path: str, stage: Stage | None, output: OutputFile) -> None:
        """Lets go of a file that is not to be published, or not to be closed: nothing is written when it is freed."""

    @abstractmethod
    def open_copy(self, source: str, ranges: Sequence[ByteRange], path: str, stage: Stage | None = None) -> OutputFile:
        """A new file that begins with bytes of another one, open for writing behind them.

        The bytes travel as little as the store allows: by reference, within the kernel, within the
        object store.

        Args:
            source: the file they are taken from.
            ranges: which ones, one range behind the other.
            path: the new file.
            stage: as in `open_output`.

        Raises:
            StorageError: when the store fails, or the source is shorter.
        """

    @abstractmethod
    def sync(self, path: str) -> None:
        """Flushes a written file to the disk, where the backend has one of ours."""

    def absolute(self, path: str) -> str:
        """The path as Hudi writes it into plans: below `base_uri`."""
        return join(self.base_uri, stay_inside(path, self.base_uri))

    def relative(self, path: str) -> str:
        """A path from a plan, relative to the table.

        Plans hold absolute paths, with or without a scheme; a table that was moved is found by
        the longest tail that begins below a folder of the table's own name.

        Raises:
            InvalidConfigError: when the path does not lie in this table.
        """
        ours, theirs = _without_scheme(self.base_uri), _without_scheme(path)
        if theirs.startswith(ours + "/"):
            return check_inside(theirs[len(ours) + 1 :], self.base_uri)
        marker = "/" + ours.rsplit("/", 1)[-1] + "/"
        if marker in theirs:
            return check_inside(theirs.split(marker, 1)[1], self.base_uri)
        raise InvalidConfigError(f"the path {path!r} does not lie in the table {self.base_uri!r}")


def stay_inside(path: str, base_uri: str) -> str:
    """A path relative to the table, before it is joined to the table's address; it may have come from any record.

    Raises:
        InvalidConfigError: it leads out of the table; the message names both.
    """
    if path.startswith("/") or (".." in path and ".." in path.split("/")):
        raise InvalidConfigError(f"the path {path!r} does not lie in the table {base_uri!r}")
    return path


def check_inside(path: str, base_uri: str) -> str:
    """The path as it stands, if it lies inside of the table when ``.`` and ``..`` are worked out.

    Raises:
        InvalidConfigError: it does not, or it is the table itself; the message names both.
    """
    normal = posixpath.normpath(path) if path else "."
    if normal in (".", "..") or normal.startswith(("../", "/")) or normal != path.rstrip("/"):
        raise InvalidConfigError(f"the path {path!r} does not lie in the table {base_uri!r}")
    return normal


def _without_scheme(path: str) -> str:
    return re.sub(r"^[a-zA-Z][a-zA-Z0-9+.-]*:(//(?=/)|(?=/)|//)", "", path).rstrip("/")


def failed(verb: str, path: str, error: Exception) -> StorageError:
    """The error for a call that the store refused."""
    return StorageError(f"could not {verb} {path!r}: {error}")
