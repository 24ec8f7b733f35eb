"""Reads the ranges of columns from the footers of base files, where the process that wrote them has not told them."""

from collections.abc import Mapping, Sequence

from table import threads
from table.errors import CorruptFileError, UnsupportedTableError
from table.files.base.stored_file import StoredBaseFile
from table.files.column_ranges import Ranges
from table.files.names import parse_base_file
from table.metadata_table.statistics import RangesByFile
from table.storage.interface import Storage, join


def read_ranges(storage: Storage, files: Mapping[str, Mapping[str, int]], columns: Sequence[str]) -> RangesByFile:
    """The ranges of base files.

    Args:
        storage: of the table.
        files: partition path -> names with sizes in bytes.
        columns: names of columns; one that a file lacks gets no range there.

    Raises:
        UnsupportedTableError: a file is a log file, is damaged or gone, or has a footer without bounds.
        StorageError: the store fails.
    """
    every = [(path, name, size) for path, sizes in files.items() for name, size in sizes.items()]
    logs = [join(path, name) for path, name, _ in every if parse_base_file(name) is None]
    if logs:
        raise UnsupportedTableError(f"only the writer of the log file {logs[0]} knew the ranges of its columns")

    def ranges_of(file: tuple[str, str, int]) -> Ranges:
        path, name, size = file
        try:
            with StoredBaseFile(storage, join(path, name), size) as stored:
                ranges = stored.ranges(columns)
        except (CorruptFileError, FileNotFoundError) as error:
            raise UnsupportedTableError(str(error)) from error
        if ranges is None:
            raise UnsupportedTableError(f"the footer of {join(path, name)} lacks bounds")
        return ranges

    found: dict[str, dict[str, Ranges]] = {}
    if every:
        with threads.make_pool(storage.calls_at_once, "hudistream-footers") as pool:
            for (path, name, _), ranges in zip(every, pool.map(ranges_of, every), strict=True):
                found.setdefault(path, {})[name] = ranges
    return found
