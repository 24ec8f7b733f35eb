"""Table-rooted files over fsspec: read, list, create if absent, delete.

Paths are relative to the table, with ``/`` between parts and no leading one. `LocalStorage` goes
straight to the operating system, because the local fsspec implementation cannot create a file
atomically; everything else goes through fsspec.

==========  ===========================================================================
backend     create if absent
==========  ===========================================================================
local       temporary file, then ``os.link``: fails if the name exists, and no reader
            ever sees half a file; ``O_EXCL`` where the file system has no links
S3          ``If-None-Match: *`` through ``pipe_file(mode="create")``
GCS, Azure  ``pipe_file(mode="create")``, conditional on the server
memory      ``pipe_file(mode="create")``
==========  ===========================================================================
"""

import errno
import os
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

import fsspec
import pyarrow as pa

from table import clock
from table.errors import InvalidConfigError, StorageError

METAFOLDER = ".hoodie"
TEMPORARY_PREFIX = ".hudistream-"
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
_CONFLICT_RETRIES = 5


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


@dataclass(frozen=True)
class LocalStorage(Storage):
    """Files of a table on a local (or mounted) file system."""

    base_uri: str

    def _full(self, path: str) -> str:
        return os.path.join(self.base_uri, path) if path else self.base_uri

    def read(self, path: str) -> bytes:  # noqa: D102
        try:
            with open(self._full(path), "rb") as file:
                return file.read()
        except FileNotFoundError:
            raise
        except OSError as error:
            raise _failed("read", path, error) from error

    def list_dir(self, path: str) -> list[FileInfo]:  # noqa: D102
        found = []
        try:
            with os.scandir(self._full(path)) as entries:
                for entry in entries:
                    try:
                        stat = entry.stat()
                    except FileNotFoundError:
                        continue  # deleted while we listed
                    found.append(
                        FileInfo(entry.name, stat.st_size, stat.st_mtime_ns // 1_000_000, entry.is_dir())
                    )
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise _failed("list", path, error) from error
        return found

    def exists(self, path: str) -> bool:  # noqa: D102
        return os.path.exists(self._full(path))

    def create_exclusive(self, path: str, data: bytes, *, durable: bool = False) -> bool:  # noqa: D102
        full = self._full(path)
        try:
            os.makedirs(os.path.dirname(full), exist_ok=True)
            if not data and not durable:
                # an empty file has no half
                os.close(os.open(full, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
                return True
            return self._create_by_link(full, data, durable)
        except FileExistsError:
            return False
        except OSError as error:
            raise _failed("create", path, error) from error

    def _create_by_link(self, full: str, data: bytes, durable: bool) -> bool:
        # temporaries lie in .hoodie, whose listing finds (and sweeps) those of a dead process
        folder = os.path.join(self.base_uri, METAFOLDER)
        os.makedirs(folder, exist_ok=True)
        temporary = os.path.join(folder, TEMPORARY_PREFIX + clock.fresh_uuid())
        _write_file(temporary, data, durable)
        try:
            os.link(temporary, full)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            descriptor = os.open(full, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
            with open(descriptor, "wb") as file:
                file.write(data)
        finally:
            os.unlink(temporary)
        if durable:
            _sync_dir(os.path.dirname(full))
        return True

    def put(self, path: str, data: bytes) -> None:  # noqa: D102
        full = self._full(path)
        temporary = os.path.join(self.base_uri, METAFOLDER, TEMPORARY_PREFIX + clock.fresh_uuid())
        try:
            os.makedirs(os.path.dirname(full), exist_ok=True)
            _write_file(temporary, data, True)
            _delete_checksum_sibling(full)
            os.replace(temporary, full)
            _sync_dir(os.path.dirname(full))
        except OSError as error:
            raise _failed("write", path, error) from error

    def delete(self, path: str) -> bool:  # noqa: D102
        full = self._full(path)
        try:
            _delete_checksum_sibling(full)
            os.unlink(full)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _failed("delete", path, error) from error
        return True

    def delete_dir(self, path: str) -> None:  # noqa: D102
        try:
            shutil.rmtree(self._full(path))
        except FileNotFoundError:
            return
        except OSError as error:
            raise _failed("delete the folder", path, error) from error

    def make_dir(self, path: str) -> None:  # noqa: D102
        try:
            os.makedirs(self._full(path), exist_ok=True)
        except OSError as error:
            raise _failed("make the folder", path, error) from error

    def open_input(self, path: str) -> pa.NativeFile:  # noqa: D102
        try:
            return pa.OSFile(self._full(path), "rb")
        except FileNotFoundError:
            raise
        except OSError as error:
            raise _failed("open", path, error) from error

    def open_output(self, path: str) -> OutputFile:  # noqa: D102
        full = self._full(path)
        try:
            os.makedirs(os.path.dirname(full), exist_ok=True)
            return pa.OSFile(full, "wb")
        except OSError as error:
            raise _failed("create", path, error) from error

    def sync(self, path: str) -> None:  # noqa: D102
        try:
            descriptor = os.open(self._full(path), os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise _failed("flush", path, error) from error


@dataclass(frozen=True)
class FsspecStorage(Storage):
    """Files of a table on any other file system that fsspec knows.

    Args:
        base_uri: the address as the user wrote it (``s3a://bucket/table``).
        protocol: fsspec's name of the backend (``s3``).
        root: the address without its scheme.
        options: what fsspec's constructor gets.
    """

    base_uri: str
    protocol: str
    root: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def _fs(self) -> Any:
        return fsspec.filesystem(self.protocol, **self.options)  # fsspec keeps one instance a process

    def _full(self, path: str) -> str:
        return join(self.root, path)

    def read(self, path: str) -> bytes:  # noqa: D102
        try:
            return bytes(self._fs.cat_file(self._full(path)))
        except FileNotFoundError:
            raise
        except OSError as error:
            raise _failed("read", path, error) from error

    def list_dir(self, path: str) -> list[FileInfo]:  # noqa: D102
        fs, full = self._fs, self._full(path)
        try:
            fs.invalidate_cache(full)
            entries = fs.ls(full, detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise _failed("list", path, error) from error
        found = []
        for entry in entries:
            name = entry["name"].rstrip("/")
            if name == full.rstrip("/") or name.lstrip("/") == full.strip("/"):
                continue  # the folder's own placeholder object
            found.append(
                FileInfo(
                    name.rsplit("/", 1)[-1],
                    int(entry.get("size") or 0),
                    _modified_ms(entry),
                    entry["type"] == "directory",
                )
            )
        return found

    def exists(self, path: str) -> bool:  # noqa: D102
        fs = self._fs
        fs.invalidate_cache(self._full(path))
        return bool(fs.exists(self._full(path)))

    def create_exclusive(self, path: str, data: bytes, *, durable: bool = False) -> bool:  # noqa: D102
        for _ in range(_CONFLICT_RETRIES):
            try:
                self._fs.pipe_file(self._full(path), data, mode="create")
            except FileExistsError:
                return False
            except OSError as error:
                # s3fs gives EINVAL for "precondition failed", and 409 while two requests race
                if error.errno == errno.EINVAL or "PreconditionFailed" in str(error):
                    if self.exists(path):
                        return False
                elif "ConditionalRequestConflict" not in str(error):
                    raise _failed("create", path, error) from error
                clock.sleep_s(0.1)
            else:
                return True
        raise StorageError(f"could not create {path!r}: the store kept answering that requests collide")

    def put(self, path: str, data: bytes) -> None:  # noqa: D102
        try:
            self._fs.pipe_file(self._full(path), data)
        except OSError as error:
            raise _failed("write", path, error) from error

    def delete(self, path: str) -> bool:  # noqa: D102
        try:
            self._fs.rm_file(self._full(path))
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _failed("delete", path, error) from error
        return True

    def delete_dir(self, path: str) -> None:  # noqa: D102
        try:
            self._fs.invalidate_cache()
            self._fs.rm(self._full(path), recursive=True)
        except FileNotFoundError:
            return
        except OSError as error:
            raise _failed("delete the folder", path, error) from error

    def make_dir(self, path: str) -> None:
        """Object stores have no folders."""

    def open_input(self, path: str) -> pa.NativeFile:  # noqa: D102
        try:
            return pa.PythonFile(self._fs.open(self._full(path), "rb"), mode="r")
        except FileNotFoundError:
            raise
        except OSError as error:
            raise _failed("open", path, error) from error

    def open_output(self, path: str) -> OutputFile:  # noqa: D102
        try:
            return self._fs.open(self._full(path), "wb")  # type: ignore[no-any-return]
        except OSError as error:
            raise _failed("create", path, error) from error


_SCHEMES = {"s3a": "s3", "s3n": "s3", "wasb": "abfs", "wasbs": "abfs", "abfss": "abfs"}


def open_storage(path: str | os.PathLike[str], options: Mapping[str, Any] | None = None) -> Storage:
    """Storage for a table's address, as people write it.

    Args:
        path: ``/data/t``, ``data/t``, ``file:///data/t``, ``s3a://bucket/t``, ``gs://…``.
        options: given to fsspec's file system (keys, endpoints); not used for local paths.

    Raises:
        InvalidConfigError: when the path is empty or nothing can open its scheme.
    """
    text = os.fspath(path).strip()
    if not text:
        raise InvalidConfigError("the table's path is empty: give a folder or an address")
    scheme = urlsplit(text).scheme if re.match(r"^[a-zA-Z][a-zA-Z0-9+.-]+:", text) else ""
    if scheme in ("", "file"):
        local = unquote(urlsplit(text).path) if scheme else text
        return LocalStorage(os.path.abspath(local))
    protocol = _SCHEMES.get(scheme, scheme)
    try:
        fs = fsspec.filesystem(protocol, **(options or {}))
    except (ValueError, ImportError) as error:
        raise InvalidConfigError(
            f"nothing here can open {text!r}: {error}; install the fsspec backend of the scheme {scheme!r}"
        ) from error
    root = fs._strip_protocol(text.replace(f"{scheme}://", f"{protocol}://", 1)).rstrip("/")
    return FsspecStorage(text.rstrip("/"), protocol, root, dict(options or {}))


def _without_scheme(path: str) -> str:
    return re.sub(r"^[a-zA-Z][a-zA-Z0-9+.-]*:(//(?=/)|(?=/)|//)", "", path).rstrip("/")


def _failed(verb: str, path: str, error: OSError) -> StorageError:
    return StorageError(f"could not {verb} {path!r}: {error}")


def _modified_ms(entry: Mapping[str, Any]) -> int:
    for key in ("LastModified", "mtime", "last_modified", "updated", "created"):
        value = entry.get(key)
        if isinstance(value, (int, float)):
            return int(value * 1000)
        if hasattr(value, "timestamp"):
            return int(value.timestamp() * 1000)
    return 0


def _write_file(full: str, data: bytes, durable: bool) -> None:
    with open(full, "xb") as file:
        file.write(data)
        if durable:
            file.flush()
            os.fsync(file.fileno())


def _sync_dir(full: str) -> None:
    descriptor = os.open(full, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _delete_checksum_sibling(full: str) -> None:
    # Hadoop's local file system refuses a file whose .crc sibling belongs to older content
    folder, name = os.path.split(full)
    try:
        os.unlink(os.path.join(folder, f".{name}.crc"))
    except FileNotFoundError:
        return
