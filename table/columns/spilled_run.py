"""Grouped rows on local disk, in one file without a name, which is deleted when it is closed."""

from collections.abc import Hashable, Iterable, Iterator
from itertools import chain
from typing import Generic, TypeVar

import pyarrow as pa

from table import threads
from table.columns.lots import open_scratch_file

Group = TypeVar("Group", bound=Hashable)


class SpilledRun(Generic[Group]):
    """Groups of rows in one Arrow file. Several threads may read it.

    Args:
        groups: at least one group, with its rows. A group may come several times. All rows have the same schema.

    Raises:
        StorageError: the disk is full.
    """

    def __init__(self, groups: Iterable[tuple[Group, pa.Table]]) -> None:
        self._file = open_scratch_file()
        self._lock = threads.make_lock()
        self._batches: dict[Group, list[int]] = {}
        try:
            self._reader = self._written(groups)
        except BaseException:
            self._file.close()
            raise

    def _written(self, groups: Iterable[tuple[Group, pa.Table]]) -> pa.ipc.RecordBatchFileReader:
        rest = iter(groups)
        first = next(rest)
        number = 0
        with pa.ipc.new_file(pa.PythonFile(self._file, mode="w"), first[1].schema) as writer:
            for group, rows in chain((first,), rest):
                for batch in rows.to_batches():
                    writer.write_batch(batch)
                    self._batches.setdefault(group, []).append(number)
                    number += 1
        self._file.flush()
        return pa.ipc.open_file(pa.PythonFile(self._file, mode="r"))

    def __enter__(self) -> "SpilledRun[Group]":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Deletes the rows."""
        self._file.close()

    @property
    def groups(self) -> list[Group]:
        """The groups in this run, in order of arrival."""
        return list(self._batches)

    def read(self, group: Group) -> Iterator[pa.Table]:
        """Rows of a group, in order of arrival."""
        for number in self._batches.get(group, ()):
            with self._lock:
                batch = self._reader.get_batch(number)
            yield pa.Table.from_batches([batch])
