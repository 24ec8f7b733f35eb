"""Files of a table on any file system that fsspec knows.

==========  ===========================================================================
backend     create if absent
==========  ===========================================================================
S3          ``If-None-Match: *`` through ``pipe_file(mode="create")``
GCS, Azure  ``pipe_file(mode="create")``, conditional on the server
memory      ``pipe_file(mode="create")``
==========  ===========================================================================
"""

import errno
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import fsspec
import pyarrow as pa
from fsspec.asyn import AsyncFileSystem

from table import clock
from table.errors import StorageError
from table.s3_copy import MIN_PART_BYTES, S3CopyUpload, read_blocks
from table.storage import ByteRange, FileInfo, OutputFile, Storage, failed, join, joined_ranges

_CONFLICT_RETRIES = 5
_S3 = ("s3", "s3a")


@dataclass(frozen=True)
class FsspecStorage(Storage):
    """Files of a table on any other file system that fsspec knows.

    Args:
        base_uri: the address as the user wrote it (``s3a://bucket/table``).
        protocol: fsspec's name of the backend (``s3``).
        root: the address without its scheme.
        options: what fsspec's constructor gets; keys and secrets among them, so no text of this object shows them.
    """

    base_uri: str
    protocol: str
    root: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)

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
            raise failed("read", path, error) from error

    def list_dir(self, path: str) -> list[FileInfo]:  # noqa: D102
        fs, full = self._fs, self._full(path)
        try:
            fs.invalidate_cache(full)
            entries = fs.ls(full, detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise failed("list", path, error) from error
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

    def create_exclusive(self, path: str, data: bytes, *, durable: bool = False) -> bool:  # noqa: ARG002, D102
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
                    raise failed("create", path, error) from error
                clock.sleep_s(0.1)
            else:
                return True
        raise StorageError(f"could not create {path!r}: the store kept answering that requests collide")

    def put(self, path: str, data: bytes) -> None:  # noqa: D102
        try:
            self._fs.pipe_file(self._full(path), data)
        except OSError as error:
            raise failed("write", path, error) from error

    def delete(self, path: str) -> bool:  # noqa: D102
        try:
            self._fs.rm_file(self._full(path))
        except FileNotFoundError:
            return False
        except OSError as error:
            raise failed("delete", path, error) from error
        return True

    def delete_many(self, paths: Sequence[str], pool: Executor) -> frozenset[str]:  # noqa: D102
        fs = self._fs
        if paths and isinstance(fs, AsyncFileSystem):  # object stores have a request for many
            try:
                fs.rm([self._full(path) for path in paths])
            except OSError:
                pass  # one of them was gone, or refused: one by one tells which
            else:
                return frozenset()
        return super().delete_many(paths, pool)

    def delete_dir(self, path: str) -> None:  # noqa: D102
        try:
            self._fs.invalidate_cache()
            self._fs.rm(self._full(path), recursive=True)
        except FileNotFoundError:
            return
        except OSError as error:
            raise failed("delete the folder", path, error) from error

    def make_dir(self, path: str) -> None:
        """Object stores have no folders."""

    def open_input(self, path: str) -> pa.NativeFile:  # noqa: D102
        try:
            return pa.PythonFile(self._fs.open(self._full(path), "rb"), mode="r")
        except FileNotFoundError:
            raise
        except OSError as error:
            raise failed("open", path, error) from error

    def open_output(self, path: str) -> OutputFile:  # noqa: D102
        try:
            return self._fs.open(self._full(path), "wb")  # type: ignore[no-any-return]
        except OSError as error:
            raise failed("create", path, error) from error

    def open_copy(self, source: str, ranges: Sequence[ByteRange], path: str) -> OutputFile:  # noqa: D102
        fs = self._fs
        pieces = joined_ranges(ranges)
        try:
            if self.protocol in _S3 and sum(piece.length for piece in pieces) >= MIN_PART_BYTES:
                return S3CopyUpload(fs, self._full(source), pieces, self._full(path))
            sink: OutputFile = fs.open(self._full(path), "wb")
            for piece in pieces:
                for block in read_blocks(fs, self._full(source), piece):
                    sink.write(block)
        except OSError as error:
            raise failed("copy", source, error) from error
        return sink

    def sync(self, path: str) -> None:
        """An object is durable once it is there."""


def _modified_ms(entry: Mapping[str, Any]) -> int:
    for key in ("LastModified", "mtime", "last_modified", "updated", "created"):
        value = entry.get(key)
        if isinstance(value, (int, float)):
            return int(value * 1000)
        if isinstance(value, datetime):
            return int(value.timestamp() * 1000)
    return 0
