"""Files of a table on any file system that fsspec knows.

==========  ===============================================================  =====================================
backend     create if absent                                                 fence against late tasks
==========  ===============================================================  =====================================
S3          ``If-None-Match: *`` through ``pipe_file(mode="create")``        every data file is a multipart upload,
                                                                             which is aborted
GCS, Azure  ``pipe_file(mode="create")``, conditional on the server          none: tasks look, archival looks again
memory      ``pipe_file(mode="create")``                                     none
==========  ===============================================================  =====================================
"""

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa
from fsspec.spec import AbstractBufferedFile

from table import clock
from table.errors import HudiError, InvalidConfigError, StorageError
from table.storage.backend import Answered, backend_token, open_anew, open_backend, sent_key
from table.storage.byte_ranges import ByteRange, joined_ranges
from table.storage.creation import create_if_absent
from table.storage.entries import info_of_entry
from table.storage.folder_names import address_below, check_one_name, check_uncut
from table.storage.interface import (
    OWN_FOLDER,
    READ_AT_ONCE_BYTES,
    FileInfo,
    OutputFile,
    Stage,
    Storage,
    join,
    stay_inside,
)
from table.storage.reach import are_expired, code_of, is_unmet, reach_of, why_refused
from table.storage.s3_copy import (
    DELETED_AT_ONCE,
    MIN_PART_BYTES,
    S3Upload,
    abort_upload,
    begin_upload,
    delete_objects,
    read_blocks,
)
from table.storage.s3_listing import is_directory_bucket, list_entries, read_object
from table.storage.s3_versions import get_version, put_version
from table.storage.versions import REQUEST_TIMEOUT_S, VersionedFile
from table.version import SIGN

_LISTINGS_AT_ONCE = 16
_S3 = ("s3", "s3a")
_CREATES = ("create", "write")
_PROVEN: set[tuple[str, str]] = set()  # backend and bucket where a second creation of a file was seen to fail


Answer = TypeVar("Answer")


@dataclass(frozen=True)
class FsspecStorage(Storage):
    """Files of a table on a file system that fsspec opens.

    Args:
        base_uri: the address as the user wrote it (``s3a://bucket/table``).
        protocol: fsspec's name of the backend (``s3``).
        root: the address without its scheme.
        options: arguments of fsspec's constructor. They may hold keys and secrets, so this object's text omits them.
    """

    base_uri: str
    protocol: str
    root: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def _fs(self) -> Any:
        return open_backend(self.protocol, self.options)

    def below(self, name: str) -> "FsspecStorage":  # noqa: D102
        check_uncut(check_one_name(name), self.protocol)
        return replace(self, base_uri=address_below(self.base_uri, name), root=f"{self.root}/{name}")

    def above(self) -> "tuple[FsspecStorage, str] | None":  # noqa: D102
        (folder, _, name), address = self.root.rpartition("/"), self.base_uri.rpartition("/")[0]
        return (replace(self, base_uri=address, root=folder), name) if folder.strip("/") else None

    def _full(self, path: str) -> str:
        return join(self.root, check_uncut(stay_inside(path, self.base_uri), self.protocol))

    @property
    def _is_s3(self) -> bool:
        return self.protocol in _S3

    def _ask(self, verb: str, path: str, call: Callable[[Any, str], Answer]) -> Answer:
        """Calls the backend, and turns each of its errors into one of hudistream: not all of them are OSErrors.

        If the store says that the credentials have expired, the backend is opened anew, and the call is repeated once:
        a request that was refused has done nothing.

        Args:
            verb: what is done, for messages.
            path: relative to the table.
            call: gets the backend and the path's address there.

        Raises:
            FileNotFoundError, FileExistsError: unchanged, because they are answers; but a file that is created misses
                nothing but its bucket.
            StorageError: for every other error; it names the bucket, the endpoint and the identity that was sent.
        """
        fs, full = self._fs, self._full(path)
        try:
            try:
                return call(self._answered(fs), full)
            except Exception as error:
                if not are_expired(error):
                    raise
                fs = open_anew(self.protocol, self.options, fs)
                return call(self._answered(fs), full)
        except (FileExistsError, HudiError):
            raise
        except Exception as error:
            is_answer = isinstance(error, FileNotFoundError) and code_of(error) != "NoSuchBucket"
            if is_answer and verb not in _CREATES:
                raise
            raise self._failed(verb, path, error, fs) from error

    def _answered(self, fs: Any) -> Any:
        return Answered(fs) if self._is_s3 else fs

    def _failed(self, verb: str, path: str, error: Exception, fs: Any) -> StorageError:
        reach = reach_of(self.protocol, self.root, self.options, os.environ, sent_key(fs))
        reason = " ".join(str(error).split()) or type(error).__name__
        why = why_refused(error) if reach else None
        return StorageError(
            f"could not {verb} {path!r}{f' in {reach}' if reach else ''}: {f'{why} ({reason})' if why else reason}"
        )

    def read(self, path: str) -> bytes:  # noqa: D102
        return self._ask("read", path, read_object if self._is_s3 else lambda fs, full: bytes(fs.cat_file(full)))

    def list_dir(self, path: str) -> list[FileInfo]:  # noqa: D102
        return self._list(path)

    @property
    def lists_by_prefix(self) -> bool:  # noqa: D102
        return self._is_s3 and not is_directory_bucket(self.root.strip("/").partition("/")[0])

    def list_prefix(self, path: str, prefix: str) -> list[FileInfo]:  # noqa: D102
        return [found for found in self._list(path, prefix) if found.name.startswith(prefix) and not found.is_dir]

    def _list(self, path: str, prefix: str = "") -> list[FileInfo]:
        """Entries of a folder; where the store can, only those whose names begin with the prefix."""
        full = self._full(path)
        prefix = prefix if self.lists_by_prefix else ""
        try:
            if self._is_s3:
                entries = self._ask("list", path, partial(list_entries, prefix=prefix))
            else:
                entries = self._ask("list", path, lambda fs, full: fs.ls(full, detail=True))
        except (FileNotFoundError, NotADirectoryError):
            return []
        found = []
        for entry in entries:
            name = entry["name"].rstrip("/")
            if name == full.rstrip("/") or name.lstrip("/") == full.strip("/"):
                continue  # the folder's placeholder object
            found.append(info_of_entry(name.rsplit("/", 1)[-1], entry))
        return found

    def list_tree(self, path: str) -> dict[str, FileInfo]:  # noqa: D102
        full = self._full(path)
        try:
            if self._is_s3:
                listed = self._ask("list", path, partial(list_entries, deep=True))
                entries = {entry["name"]: entry for entry in listed}
            else:
                entries = self._ask("list", path, lambda fs, full: fs.find(full, detail=True))
        except FileNotFoundError:
            return {}
        start = full.strip("/") + "/"
        found = {}
        for name, entry in entries.items():
            below = name.lstrip("/").removeprefix(start)
            if below and not below.endswith("/") and name.strip("/") != full.strip("/"):
                found[below] = info_of_entry(below.rsplit("/", 1)[-1], entry)
        return found

    def exists(self, path: str) -> bool:  # noqa: D102
        return self._ask("look for", path, lambda fs, full: bool(fs.exists(full)))

    def create_exclusive(self, path: str, data: bytes, *, durable: bool = False) -> bool:  # noqa: ARG002, D102
        self._prove_exclusive()
        return create_if_absent(self._ask, path, data, keeps_marks=self._is_s3)

    def _prove_exclusive(self) -> None:
        """Refuses a store that overwrites files, before the first file is created: all commits rely on creation.

        The store is tried, once per process and bucket: it must refuse to create a file a second time. A client knows
        the condition, and a store that speaks S3 may still ignore it. Tasks rely on the process that planned them.

        Raises:
            InvalidConfigError: names the store.
            StorageError: the store fails.
        """
        if self._place not in _PROVEN:
            self._try_twice(join(OWN_FOLDER, f"probe-{clock.fresh_uuid()}"))
            _PROVEN.add(self._place)

    @property
    def _place(self) -> tuple[str, str]:
        return backend_token(self.protocol, self.options), self.root.strip("/").partition("/")[0]

    def __reduce__(self) -> tuple[Any, ...]:
        given = (self.base_uri, self.protocol, self.root, self.options)
        return _sent_along, (*given, self._place in _PROVEN)

    def _try_twice(self, path: str) -> None:
        is_exclusive = False
        try:
            for _ in range(2):
                self._ask("create", path, lambda fs, full: fs.pipe_file(full, SIGN, mode="create"))
        except FileExistsError:
            is_exclusive = True
        except StorageError as error:
            is_exclusive = is_unmet(error)
            if not is_exclusive and not isinstance(
                error.__cause__, TypeError
            ):  # the backend does not know the argument
                raise
        finally:
            with suppress(Exception):
                self._fs.rm_file(self._full(path))
        if not is_exclusive:
            raise InvalidConfigError(
                f"the store of {self.base_uri!r} cannot create a file only if it is absent: of two creations the "
                f"second overwrote the first, or the fsspec backend of {self.protocol!r} knows no condition; install a "
                "backend of 2024.12 or later, and for S3 use a store that honours If-None-Match"
            )

    def put(self, path: str, data: bytes) -> None:  # noqa: D102
        self._ask("write", path, lambda fs, full: fs.pipe_file(full, data))

    @property
    def has_versions(self) -> bool:  # noqa: D102
        return self._is_s3

    def read_versioned(self, path: str, timeout_s: float = REQUEST_TIMEOUT_S) -> VersionedFile | None:  # noqa: D102
        if not self._is_s3:
            return super().read_versioned(path, timeout_s)
        return self._ask("read", path, lambda fs, full: get_version(fs, full, timeout_s))

    def replace_if(  # noqa: D102
        self, path: str, data: bytes, version: str | None, timeout_s: float = REQUEST_TIMEOUT_S
    ) -> str | None:
        if not self._is_s3:
            return super().replace_if(path, data, version, timeout_s)
        return self._ask("replace", path, lambda fs, full: put_version(fs, full, data, version, timeout_s))

    def _delete(self, path: str) -> bool:
        try:
            self._ask("delete", path, lambda fs, full: fs.rm_file(full))
        except FileNotFoundError:
            return False
        return True

    def delete_many(self, paths: Sequence[str], pool: Executor) -> frozenset[str]:  # noqa: D102
        if not self._is_s3:
            return super().delete_many(paths, pool)
        checked = [path for path in paths if self._may_delete(path)]
        failed_ones = self._delete_objects(checked)
        return frozenset(path for path in paths if path not in checked or path in failed_ones)

    def _delete_all(self, paths: Sequence[str]) -> None:
        if not self._is_s3:
            super()._delete_all(paths)
        elif paths:
            missed = self._delete_objects(paths)
            if missed:
                more = f" and {len(missed) - 1} more" if len(missed) > 1 else ""
                first = min(missed)
                raise StorageError(f"could not delete {first!r}{more}: {missed[first]}")

    def _delete_objects(self, paths: Sequence[str]) -> dict[str, str]:
        """Deletes objects whose paths the caller has checked. Returns those that may remain, each with the reason."""
        missed: dict[str, str] = {}
        for at in range(0, len(paths), DELETED_AT_ONCE):
            some = {self._full(path): path for path in paths[at : at + DELETED_AT_ONCE]}
            try:
                refused = self._ask("delete", paths[at], partial(delete_objects, paths=tuple(some)))
                missed.update((some[full], reason) for full, reason in refused.items())
            except (StorageError, FileNotFoundError) as error:
                missed.update(dict.fromkeys(some.values(), str(error)))
        return missed

    def remove_empty_dir(self, path: str) -> bool:
        """Removes an empty folder of the memory file system; object stores have no folders."""
        try:
            if self.protocol == "memory" and not self._fs.ls(self._full(path)):
                self._fs.rmdir(self._full(path))
        except OSError:
            return False
        return True

    def _remove_empty_tree(self, path: str) -> None:
        if self.protocol == "memory":
            super()._remove_empty_tree(path)

    def make_dir(self, path: str) -> None:
        """Does nothing: object stores have no folders."""

    def open_input(self, path: str, size: int | None = None) -> pa.NativeFile:  # noqa: D102
        if not (self._is_s3 and size):
            return self._ask("open", path, lambda fs, full: pa.PythonFile(fs.open(full, "rb"), mode="r"))
        if size <= READ_AT_ONCE_BYTES:
            return pa.BufferReader(self._ask("open", path, read_object))
        full = self._full(path)
        source = self._ask("open", path, lambda fs, full: fs.open(full, "rb", size=size))
        source.details = {"name": full, "size": size, "type": "file"}  # otherwise the first read requests them
        return pa.PythonFile(source, mode="r")

    def read_part(self, path: str, start: int, end: int) -> bytes:  # noqa: D102
        return self._ask("read", path, lambda fs, full: bytes(fs.cat_file(full, start=start, end=end)))

    @property
    def calls_at_once(self) -> int:  # noqa: D102
        return _LISTINGS_AT_ONCE if self._is_s3 or self.protocol in ("gs", "gcs", "abfs", "az") else 1

    @property
    def has_fence(self) -> bool:  # noqa: D102
        return self._is_s3

    def stage(self, instant_time: str, path: str) -> Stage:  # noqa: D102
        if not self._is_s3:
            return Stage(instant_time)
        return Stage(instant_time, self._ask("begin", path, begin_upload))

    def revoke(self, path: str, ticket: str) -> None:  # noqa: D102
        if ticket:
            self._ask("abort the upload of", path, lambda fs, full: abort_upload(fs, full, ticket))

    def open_output(self, path: str, stage: Stage | None = None) -> OutputFile:  # noqa: D102
        if stage is not None and stage.ticket:
            return S3Upload(self._ask, path, stage.ticket)
        return self._ask("create", path, lambda fs, full: fs.open(full, "wb"))  # type: ignore[no-any-return]

    def open_copy(  # noqa: D102
        self, source: str, ranges: Sequence[ByteRange], path: str, stage: Stage | None = None
    ) -> OutputFile:
        pieces = joined_ranges(ranges)
        sink = self.open_output(path, stage)
        try:
            self._copy_pieces(source, pieces, sink)
        except BaseException as error:
            with suppress(StorageError):
                self.discard(path, stage, sink)
            if isinstance(error, HudiError) or not isinstance(error, Exception):
                raise
            raise self._failed("copy", source, error, self._fs) from error
        return sink

    def _copy_pieces(self, source: str, pieces: Sequence[ByteRange], sink: OutputFile) -> None:
        if isinstance(sink, S3Upload) and sum(piece.length for piece in pieces) >= MIN_PART_BYTES:
            sink.copy_from(source, pieces)
            return
        for piece in pieces:
            for block in read_blocks(self._ask, source, piece):
                sink.write(block)

    def publish(self, path: str, stage: Stage, output: OutputFile) -> None:  # noqa: ARG002, D102
        if isinstance(output, S3Upload):
            output.complete()

    def discard(self, path: str, stage: Stage | None, output: OutputFile) -> None:  # noqa: ARG002, D102
        try:
            if isinstance(output, S3Upload):
                output.abort()
            elif isinstance(output, AbstractBufferedFile):
                output.closed = True  # otherwise the garbage collector uploads its bytes, in any thread
                output.discard()
        except Exception as error:
            raise self._failed("abort the upload of", path, error, self._fs) from error

    def sync(self, path: str) -> None:
        """Does nothing: an object is durable once it exists."""


def _sent_along(
    base_uri: str,
    protocol: str,
    root: str,
    options: Mapping[str, Any],
    is_proven: bool,  # noqa: FBT001 as __reduce__ gives it
) -> FsspecStorage:
    storage = FsspecStorage(base_uri, protocol, root, options)
    if is_proven:
        _PROVEN.add(storage._place)  # noqa: SLF001 its own
    return storage
