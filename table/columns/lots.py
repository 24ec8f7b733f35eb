"""Keeps rows that do not fit into memory on local disk, divided into lots."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from types import TracebackType
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from table.columns.take import take_rows
from table.errors import StorageError

Numbers = npt.NDArray[np.int64]


class ScratchFile:
    """An unnamed file on local disk; closing it deletes it. An error of the disk names the folder, and the ways out."""

    def __init__(self) -> None:
        try:
            self._file: IO[bytes] = tempfile.TemporaryFile(dir=scratch_folder())  # noqa: SIM115 `close` closes it
        except OSError as error:
            raise _scratch_failure(error) from error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, data: Any) -> int:
        """As of files."""
        try:
            return self._file.write(data)
        except OSError as error:
            raise _scratch_failure(error) from error

    def flush(self) -> None:
        """As of files."""
        try:
            self._file.flush()
        except OSError as error:
            raise _scratch_failure(error) from error

    def close(self) -> None:
        """Deletes the file: what could not be written is not missed."""
        with suppress(OSError):
            self._file.close()


def _scratch_failure(error: OSError) -> StorageError:
    folder = scratch_folder() or tempfile.gettempdir()
    return StorageError(
        f"rows that do not fit into memory could not be kept in the folder {folder!r} for temporary files: {error}; "
        "make room there, let TMPDIR (on executors SPARK_LOCAL_DIRS) name a larger disk, or give tasks more memory "
        "(hudistream.task.memory.bytes)"
    )


def open_scratch_file() -> ScratchFile:
    """Opens an unnamed file on local disk; closing it deletes it.

    Raises:
        StorageError: the file cannot be created. Writing raises it, too: the disk is full.
    """
    return ScratchFile()


def scratch_folder() -> str | None:
    """The folder for temporary files on local disk; None: that of the system."""
    # Spark's executors name the disks for temporary files
    folder = (os.environ.get("SPARK_LOCAL_DIRS") or os.environ.get("LOCAL_DIRS") or "").split(",")[0]
    return folder if os.path.isdir(folder) else None


class SpilledLots:
    """Rows on local disk, one unnamed file for each lot; within a lot the rows keep their order.

    Closing a file deletes it.

    Args:
        schema: schema of the rows.
        count: number of lots.
    """

    def __init__(self, schema: pa.Schema, count: int) -> None:
        self._schema = schema
        self._files: list[Any] = [None] * count
        self._writers: list[Any] = [None] * count

    def __enter__(self) -> "SpilledLots":  # noqa: PYI034 typing.Self is younger than Python 3.10
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for file in self._files:
            if file is not None:
                file.close()

    def add(self, rows: pa.Table, numbers: Numbers) -> None:
        """Adds each row to the lot whose number stands in `numbers`.

        Raises:
            StorageError: the disk is full.
        """
        if not len(rows):
            return
        order = np.argsort(numbers, kind="stable")
        found, starts = np.unique(numbers[order], return_index=True)
        ends = [*starts[1:], len(numbers)]
        ordered = take_rows(rows, order).combine_chunks()
        for number, start, end in zip(found.tolist(), starts.tolist(), ends, strict=True):
            self._writer(number).write_table(ordered.slice(start, end - start))

    def read(self, number: int) -> Iterator[pa.Table]:
        """Rows of a lot, in pieces. No rows can be added to the lot afterwards."""
        if self._writers[number] is None:
            return
        self._writers[number].close()
        file = self._files[number]
        file.flush()
        file.seek(0)
        with pa.ipc.open_stream(pa.PythonFile(file, mode="r")) as reader:
            for batch in reader:
                yield pa.Table.from_batches([batch])

    def _writer(self, number: int) -> Any:
        if self._writers[number] is None:
            self._files[number] = file = open_scratch_file()
            self._writers[number] = pa.ipc.new_stream(pa.PythonFile(file, mode="w"), self._schema)
        return self._writers[number]
