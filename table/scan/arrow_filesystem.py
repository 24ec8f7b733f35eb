"""A table's storage as a read-only Arrow file system, for datasets that live longer than the call that made them."""

import io
from typing import Any, NoReturn

import pyarrow as pa
from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileSystemHandler, FileType, PyFileSystem

from table.storage.interface import Storage


def arrow_path(path: str) -> str:
    """A path of a table's storage as pyarrow takes it: a leading ``~`` means the home directory to it (pure)."""
    return f"./{path}" if path.startswith("~") else path


def arrow_filesystem(storage: Storage) -> FileSystem:
    """The file system; paths are relative to the table. Where Arrow has its own for the store, it runs no Python."""
    native = storage.native_filesystem
    return PyFileSystem(_Handler(storage)) if native is None else native


class _Handler(FileSystemHandler):  # type: ignore[misc] # pyarrow has no types
    def __init__(self, storage: Storage) -> None:
        super().__init__()
        self._storage = storage

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Handler) and other._storage.base_uri == self._storage.base_uri

    def __hash__(self) -> int:
        return hash(self._storage.base_uri)

    def get_type_name(self) -> str:
        return "hudistream"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> list[FileInfo]:
        return [FileInfo(path, FileType.File if self._storage.exists(path) else FileType.NotFound) for path in paths]

    def get_file_info_selector(self, selector: FileSelector) -> NoReturn:
        _refuse(selector.base_dir)

    def open_input_file(self, path: str) -> pa.NativeFile:
        return self._storage.open_input(path.removeprefix("./"))

    open_input_stream = open_input_file

    def _refuse_path(self, path: str, *_: Any) -> NoReturn:
        _refuse(path)

    create_dir = delete_dir = delete_dir_contents = delete_file = move = copy_file = _refuse_path
    open_output_stream = open_append_stream = _refuse_path

    def delete_root_dir_contents(self) -> NoReturn:
        _refuse("/")


def _refuse(path: str) -> NoReturn:
    raise io.UnsupportedOperation(f"{path}: a scan reads the files that a plan names, and changes none")
