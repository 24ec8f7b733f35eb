"""A folder below ``.hoodie`` as a table's own storage: Hudi's metadata table is a table within the table."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from table.storage.byte_ranges import ByteRange
from table.storage.interface import FileInfo, OutputFile, Stage, Storage, join
from table.storage.versions import REQUEST_TIMEOUT_S, VersionedFile


@dataclass(frozen=True)
class Subfolder(Storage):
    """The files below one folder of another storage.

    It has no fence of its own. A process that writes there has the table alone, or writes the same bytes as any other.

    Args:
        outer: storage of the table.
        folder: below ``.hoodie``, relative to the table.
    """

    outer: Storage
    folder: str

    @property
    def base_uri(self) -> str:  # type: ignore[override]  # noqa: D102
        return self.outer.absolute(self.folder)

    def _place(self, path: str) -> str:
        return join(self.folder, path)

    def read(self, path: str) -> bytes:  # noqa: D102
        return self.outer.read(self._place(path))

    def list_dir(self, path: str) -> list[FileInfo]:  # noqa: D102
        return self.outer.list_dir(self._place(path))

    @property
    def lists_by_prefix(self) -> bool:  # noqa: D102
        return self.outer.lists_by_prefix

    def list_prefix(self, path: str, prefix: str) -> list[FileInfo]:  # noqa: D102
        return self.outer.list_prefix(self._place(path), prefix)

    def list_names(self, path: str) -> list[str]:  # noqa: D102
        return self.outer.list_names(self._place(path))

    def list_tree(self, path: str) -> dict[str, FileInfo]:  # noqa: D102
        return self.outer.list_tree(self._place(path))

    def exists(self, path: str) -> bool:  # noqa: D102
        return self.outer.exists(self._place(path))

    def create_exclusive(self, path: str, data: bytes, *, durable: bool = False) -> bool:  # noqa: D102
        return self.outer.create_exclusive(self._place(path), data, durable=durable)

    def put(self, path: str, data: bytes) -> None:  # noqa: D102
        self.outer.put(self._place(path), data)

    def _delete(self, path: str) -> bool:
        return self.outer.delete_metafile(self._place(path))

    def remove_empty_dir(self, path: str) -> bool:  # noqa: D102
        return self.outer.remove_empty_dir(self._place(path))

    def make_dir(self, path: str) -> None:  # noqa: D102
        self.outer.make_dir(self._place(path))

    @property
    def calls_at_once(self) -> int:  # noqa: D102
        return self.outer.calls_at_once

    @property
    def time_granularity_ms(self) -> int:  # noqa: D102
        return self.outer.time_granularity_ms

    @property
    def has_versions(self) -> bool:  # noqa: D102
        return self.outer.has_versions

    @property
    def keeps_conditions(self) -> bool:  # noqa: D102
        return self.outer.keeps_conditions

    def read_versioned(self, path: str, timeout_s: float = REQUEST_TIMEOUT_S) -> VersionedFile | None:  # noqa: D102
        return self.outer.read_versioned(self._place(path), timeout_s)

    def replace_if(  # noqa: D102
        self, path: str, data: bytes, version: str | None, timeout_s: float = REQUEST_TIMEOUT_S
    ) -> str | None:
        return self.outer.replace_if(self._place(path), data, version, timeout_s)

    def open_input(self, path: str, size: int | None = None) -> pa.NativeFile:  # noqa: D102
        return self.outer.open_input(self._place(path), size)

    def read_part(self, path: str, start: int, end: int) -> bytes:  # noqa: D102
        return self.outer.read_part(self._place(path), start, end)

    def open_output(self, path: str, stage: Stage | None = None) -> OutputFile:  # noqa: ARG002, D102
        return self.outer.open_output(self._place(path))

    def open_copy(  # noqa: D102
        self,
        source: str,
        ranges: Sequence[ByteRange],
        path: str,
        stage: Stage | None = None,  # noqa: ARG002
    ) -> OutputFile:
        return self.outer.open_copy(self._place(source), ranges, self._place(path))

    def sync(self, path: str) -> None:  # noqa: D102
        self.outer.sync(self._place(path))
