"""The live base files of partition paths in a plan: pickled compactly, unpacked path by path (pure).

Pickled one by one, fifty thousand files take seven megabytes and most of a second. As columns they take two megabytes,
and a worker makes objects only for the paths that it asks for.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from table.view.file_group import BaseFile, FileSlice, base_file_of


class LiveFiles:
    """Partition path -> its live base files. An empty path and an unknown path are different answers.

    Args:
        files: the files of each known path; an empty tuple means that the path has none.
        is_complete: whether a path that is not in `files` has no files.

    Attributes:
        is_complete: the same.
    """

    def __init__(self, files: Mapping[str, tuple[BaseFile, ...]] | None = None, *, is_complete: bool = False) -> None:
        self._files = dict(files or {})
        self.is_complete = is_complete
        self._packed: bytes | None = None

    def of(self, path: str) -> tuple[BaseFile, ...] | None:
        """The files of a path; None: not known, the path has to be listed."""
        return self._files.get(path, () if self.is_complete else None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def __reduce__(self) -> tuple[Callable[[bytes, bool], "LiveFiles"], tuple[bytes, bool]]:
        if self._packed is None:
            self._packed = _pack(self._files)  # Spark pickles a plan once per stage
        return _PackedFiles, (self._packed, self.is_complete)


class _PackedFiles(LiveFiles):
    """The unpickled form on a worker: columns, from which objects are made on demand."""

    def __init__(self, packed: bytes, is_complete: bool) -> None:  # noqa: FBT001 as __reduce__ gives it
        super().__init__(is_complete=is_complete)
        self._packed = packed
        columns = pa.ipc.open_stream(packed).read_all()
        self._rows = {path: row for row, path in enumerate(columns.column("path").to_pylist())}
        self._names, self._sizes = columns.column("names"), columns.column("sizes")

    def of(self, path: str) -> tuple[BaseFile, ...] | None:
        row = self._rows.get(path)
        if row is None:
            return super().of(path)
        pairs = zip(self._names[row].as_py(), self._sizes[row].as_py(), strict=True)
        return tuple(base_file_of(path, name, size) for name, size in pairs)

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def _pack(files: Mapping[str, tuple[BaseFile, ...]]) -> bytes:
    columns = pa.RecordBatch.from_arrays(
        [
            pa.array(list(files), pa.string()),
            pa.array([[file.name for file in of_path] for of_path in files.values()], pa.list_(pa.string())),
            pa.array([[file.size_bytes for file in of_path] for of_path in files.values()], pa.list_(pa.int64())),
        ],
        ["path", "names", "sizes"],
    )
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, columns.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(columns)
    packed: bytes = out.getvalue().to_pybytes()
    return packed


def base_files_of(slices: Iterable[FileSlice]) -> tuple[BaseFile, ...]:
    """The base files of file slices; a slice of log files alone has none."""
    return tuple(found.base_file for found in slices if found.base_file is not None)


def in_order(files: Iterable[BaseFile]) -> Sequence[BaseFile]:
    """The files of a partition path in order of file id."""
    return sorted(files, key=lambda file: file.file_id)
