"""Files of a table on a local (or mounted) file system, by calls of the operating system.

fsspec's local implementation cannot create a file atomically. This module writes a temporary file and links it to its
name: the link fails if the name exists, and no reader sees an incomplete file. On a file system without links the file
is renamed (`table.storage.local_creation`).
"""

import errno
import os
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

import pyarrow as pa
from pyarrow.fs import FileSystem, LocalFileSystem, SubTreeFileSystem

from table import clock
from table.errors import InvalidConfigError, StorageError
from table.storage.byte_ranges import ByteRange
from table.storage.folder_names import check_one_name
from table.storage.interface import (
    METAFOLDER,
    OWN_FOLDER,
    TEMPORARY_PREFIX,
    FileInfo,
    OutputFile,
    Room,
    Stage,
    Storage,
    failed,
    join,
    stay_inside,
)
from table.storage.local_copy import copy_into
from table.storage.local_creation import rename_new
from table.storage.local_surroundings import delete_checksum_sibling, find_mode, room_at
from table.storage.local_versions import guarded_exchange, read_version
from table.storage.versions import REQUEST_TIMEOUT_S, VersionedFile

STAGED_FOLDER = join(OWN_FOLDER, "staged")

_Made = TypeVar("_Made")
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


@dataclass(frozen=True)
class LocalStorage(Storage):
    """Files of a table on a local (or mounted) file system."""

    base_uri: str
    waits_for_disk = True

    def below(self, name: str) -> "LocalStorage":  # noqa: D102
        return replace(self, base_uri=os.path.join(self.base_uri, check_one_name(name)))

    def above(self) -> "tuple[LocalStorage, str] | None":  # noqa: D102
        folder, name = os.path.split(self.base_uri)
        return (replace(self, base_uri=folder), name) if name else None

    def look_for_room(self, folders: Sequence[str]) -> Room | None:  # noqa: D102
        return room_at(self.base_uri, [self._full(path) for path in folders])

    def _full(self, path: str) -> str:
        return os.path.join(self.base_uri, stay_inside(path, self.base_uri)) if path else self.base_uri

    def _unlinked(self, path: str) -> str:
        """As `_full`, for a path that the caller is about to create: no folder on it may be a symbolic link.

        Raises:
            InvalidConfigError: a folder below the table's own, or the file, is a symbolic link; nothing was created.
        """
        full = self.base_uri
        for part in path.split("/"):
            full = os.path.join(full, part)
            try:
                mode = os.lstat(full).st_mode
            except OSError:
                break  # neither this folder nor any below it exists
            if stat.S_ISLNK(mode):
                raise InvalidConfigError(
                    f"{full!r} is a symbolic link: nothing is written below it, since it may lead out of the table; "
                    "put a folder in its place (the folder of the whole table may be a link)"
                )
        return self._full(path)

    def read(self, path: str) -> bytes:  # noqa: D102
        try:
            with open(self._full(path), "rb") as file:
                return file.read()
        except FileNotFoundError:
            raise
        except NotADirectoryError as error:
            raise FileNotFoundError(path) from error
        except OSError as error:
            raise failed("read", path, error) from error

    def list_dir(self, path: str) -> list[FileInfo]:  # noqa: D102
        found = []
        try:
            with os.scandir(self._full(path)) as entries:
                for entry in entries:
                    try:
                        stat = entry.stat()
                    except FileNotFoundError:
                        continue  # deleted during the listing
                    found.append(FileInfo(entry.name, stat.st_size, stat.st_mtime_ns // 1_000_000, entry.is_dir()))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise failed("list", path, error) from error
        return found

    def list_names(self, path: str) -> list[str]:  # noqa: D102
        try:
            with os.scandir(self._full(path)) as entries:
                return [entry.name for entry in entries if not entry.is_dir()]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise failed("list", path, error) from error

    def exists(self, path: str) -> bool:  # noqa: D102
        return find_mode(self._full(path)) is not None

    def create_exclusive(self, path: str, data: bytes, *, durable: bool = False) -> bool:  # noqa: D102
        full = self._unlinked(path)
        try:
            if data or durable:
                return self._create_by_link(full, data, durable=durable)
            # an empty file is never incomplete
            _with_folder(full, lambda: os.close(os.open(full, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)))
        except FileExistsError:
            return False
        except OSError as error:
            raise failed("create", path, error) from error
        return True

    def _create_by_link(self, full: str, data: bytes, *, durable: bool) -> bool:
        # temporary files lie in .hoodie: its listing finds the files of a dead process, and deletes them
        temporary = os.path.join(self.base_uri, METAFOLDER, TEMPORARY_PREFIX + clock.fresh_uuid())
        _with_folder(temporary, lambda: _write_file(temporary, data, durable=durable))
        try:
            _with_folder(full, lambda: os.link(temporary, full))
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            _with_folder(full, lambda: rename_new(temporary, full))
        finally:
            with suppress(FileNotFoundError):  # it was renamed
                os.unlink(temporary)
        if durable:
            _flush(os.path.dirname(full))
        return True

    def put(self, path: str, data: bytes) -> None:  # noqa: D102
        full = self._unlinked(path)
        swept = os.path.join(self.base_uri, METAFOLDER)  # its listing finds the temporary files of a dead process
        folder = swept if os.path.isdir(swept) else os.path.dirname(full)
        temporary = os.path.join(folder, TEMPORARY_PREFIX + clock.fresh_uuid())
        try:
            os.makedirs(os.path.dirname(full), exist_ok=True)
            _write_file(temporary, data, durable=True)
            delete_checksum_sibling(full)
            os.replace(temporary, full)
            _flush(os.path.dirname(full))
        except OSError as error:
            raise failed("write", path, error) from error

    @property
    def has_versions(self) -> bool:  # noqa: D102
        return True

    @property
    def keeps_conditions(self) -> bool:  # noqa: D102
        return True

    def read_versioned(self, path: str, timeout_s: float = REQUEST_TIMEOUT_S) -> VersionedFile | None:  # noqa: ARG002, D102
        try:
            return read_version(self._full(path))
        except OSError as error:
            raise failed("read", path, error) from error

    def replace_if(  # noqa: D102
        self, path: str, data: bytes, version: str | None, timeout_s: float = REQUEST_TIMEOUT_S
    ) -> str | None:
        full = self._full(path)
        try:
            with guarded_exchange(full, timeout_s):
                found = read_version(full)
                if (found.version if found is not None else None) != version:
                    return None
                self.put(path, data)
                written = read_version(full)
        except OSError as error:
            raise failed("replace", path, error) from error
        if written is None or written.data != data:
            raise StorageError(f"could not replace {path!r}: it holds something else now")
        return written.version

    def _delete(self, path: str) -> bool:
        full = self._full(path)
        if not os.path.lexists(full):  # also below a link: such as a file whose publication was refused
            return False
        self._check_no_link(os.path.dirname(full), path)
        try:
            delete_checksum_sibling(full)
            os.unlink(full)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise failed("delete", path, error) from error
        return True

    def delete_metafolder(self, path: str) -> None:
        """As `Storage.delete_metafolder`, but checks each folder once, not once for each file in it."""
        inside = self._check_metapath(path)
        self._check_no_link(self._full(inside), path)
        try:
            self._empty_folder(inside)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise failed("delete", path, error) from error

    def _empty_folder(self, path: str) -> None:
        with os.scandir(self._full(path)) as found:
            entries = list(found)
        for entry in entries:
            inner = join(path, entry.name)
            with suppress(FileNotFoundError):  # deleted since the folder was listed
                if entry.is_dir(follow_symlinks=False):
                    self._empty_folder(inner)
                    continue
                if entry.is_symlink() and entry.is_dir():
                    self._check_no_link(entry.path, inner)
                os.unlink(entry.path)
        self.remove_empty_dir(path)

    def _check_no_link(self, folder: str, path: str) -> None:
        """Refuses a folder that a symbolic link leads to."""
        home = os.path.realpath(self.base_uri)
        if os.path.realpath(folder) != os.path.normpath(os.path.join(home, os.path.relpath(folder, self.base_uri))):
            raise InvalidConfigError(f"{path!r} of {self.base_uri!r} is below a symbolic link: it is not deleted")

    def remove_empty_dir(self, path: str) -> bool:  # noqa: D102
        try:
            os.rmdir(self._full(path))
        except OSError:  # it is not empty, or does not exist
            return False
        return True

    @property
    def time_granularity_ms(self) -> int:  # noqa: D102
        return 10

    @property
    def has_fence(self) -> bool:  # noqa: D102
        return True

    def _staged(self, path: str, stage: Stage) -> str:
        return self._unlinked(join(STAGED_FOLDER, stage.instant_time, path.rsplit("/", 1)[-1]))

    def open_staging(self, instant_time: str) -> None:  # noqa: D102
        self.make_dir(join(STAGED_FOLDER, instant_time))

    def is_open(self, instant_time: str) -> bool:  # noqa: D102
        return stat.S_ISDIR(find_mode(self._full(join(STAGED_FOLDER, instant_time))) or 0)

    def fence(self, instant_time: str) -> None:
        """Renames the instant's folder, so that no path leads into it. Then deletes the files in it."""
        folder = self._unlinked(join(STAGED_FOLDER, instant_time))
        try:
            os.rename(folder, f"{folder}.over-{clock.fresh_uuid()}")
        except FileNotFoundError:
            pass  # an earlier call renamed it
        except OSError as error:
            raise failed("fence", instant_time, error) from error
        for entry in self.list_dir(STAGED_FOLDER):
            if entry.name.startswith(f"{instant_time}.over-"):
                self.delete_metafolder(join(STAGED_FOLDER, entry.name))

    def staged_instants(self) -> list[str]:  # noqa: D102
        return sorted({entry.name.split(".", 1)[0] for entry in self.list_dir(STAGED_FOLDER)})

    def publish(self, path: str, stage: Stage, output: OutputFile) -> None:  # noqa: ARG002
        """Renames the file out of the instant's folder, which fails once the fence has moved that folder away."""
        full = self._unlinked(path)
        try:
            _with_folder(full, lambda: os.rename(self._staged(path, stage), full))
        except FileNotFoundError as error:
            raise StorageError(
                f"{path!r} was not published: instant {stage.instant_time} was ended while it was being written"
            ) from error
        except OSError as error:
            raise failed("publish", path, error) from error

    def discard(self, path: str, stage: Stage | None, output: OutputFile) -> None:  # noqa: ARG002, D102
        with suppress(OSError):
            os.unlink(self._full(path) if stage is None else self._staged(path, stage))

    def make_dir(self, path: str) -> None:  # noqa: D102
        try:
            os.makedirs(self._unlinked(path), exist_ok=True)
        except OSError as error:
            raise failed("make the folder", path, error) from error

    def open_input(self, path: str, size: int | None = None) -> pa.NativeFile:  # noqa: ARG002, D102
        try:
            return pa.OSFile(self._full(path), "rb")
        except FileNotFoundError:
            raise
        except OSError as error:
            raise failed("open", path, error) from error

    @property
    def native_filesystem(self) -> FileSystem:  # noqa: D102
        return SubTreeFileSystem(self.base_uri, LocalFileSystem())

    def open_output(self, path: str, stage: Stage | None = None) -> OutputFile:  # noqa: D102
        full = self._opened(path, stage)
        try:
            sink: OutputFile = pa.OSFile(full, "wb")
        except OSError as error:
            raise failed("create", path, error) from error
        return sink

    def _opened(self, path: str, stage: Stage | None) -> str:
        """The path of a new file. The folder of waiting files is never created here: a fence may have moved it away."""
        if stage is not None:
            return self._staged(path, stage)
        full = self._unlinked(path)
        try:
            os.makedirs(os.path.dirname(full), exist_ok=True)
        except OSError as error:
            raise failed("create", path, error) from error
        return full

    def open_copy(  # noqa: D102
        self, source: str, ranges: Sequence[ByteRange], path: str, stage: Stage | None = None
    ) -> OutputFile:
        full = self._opened(path, stage)
        try:
            sink = open(full, "wb")  # noqa: SIM115 the caller closes it
            try:
                return copy_into(sink, self._full(source), ranges, source)
            except BaseException:
                sink.close()
                raise
        except OSError as error:
            raise failed("copy", source, error) from error

    def sync(self, path: str) -> None:  # noqa: D102
        try:
            _flush(self._full(path))
        except OSError as error:
            raise failed("flush", path, error) from error


def _with_folder(full: str, act: Callable[[], _Made]) -> _Made:
    """Calls `act`, which needs the folder of a path. If it is missing, creates it and calls `act` again."""
    try:
        return act()
    except FileNotFoundError:
        os.makedirs(os.path.dirname(full), exist_ok=True)
        return act()


def _write_file(full: str, data: bytes, *, durable: bool) -> None:
    with open(full, "xb") as file:
        file.write(data)
        if durable:
            file.flush()
            os.fsync(file.fileno())


def _flush(full: str) -> None:
    descriptor = os.open(full, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
