"""Rows that do not fit into memory, in lots on local disk."""

import os
import tempfile
from collections.abc import Iterator
from types import TracebackType
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers = npt.NDArray[np.int64]


def open_scratch_file() -> IO[bytes]:
    """A file on local disk without a name, which is deleted when it is closed.

    Raises:
        OSError: there is no place for it.
    """
    # Spark's executors say which disks are for this
    folder = (os.environ.get("SPARK_LOCAL_DIRS") or os.environ.get("LOCAL_DIRS") or "").split(",")[0]
    return tempfile.TemporaryFile(dir=folder if os.path.isdir(folder) else None)


class SpilledLots:
    """Rows on local disk by the number of their lot; within a lot they keep their order.

    The files have no names, and are deleted when they are closed.

    Args:
        schema: of the rows.
        count: how many lots there are.
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
        """Adds rows, each to the lot of its number.

        Raises:
            OSError: the disk is full.
        """
        if not len(rows):
            return
        order = np.argsort(numbers, kind="stable")
        found, starts = np.unique(numbers[order], return_index=True)
        ends = [*starts[1:], len(numbers)]
        ordered = rows.take(pa.array(order)).combine_chunks()
        for number, start, end in zip(found.tolist(), starts.tolist(), ends, strict=True):
            self._writer(number).write_table(ordered.slice(start, end - start))

    def read(self, number: int) -> Iterator[pa.Table]:
        """Rows of a lot, in pieces. Nothing can be added to it afterwards."""
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
