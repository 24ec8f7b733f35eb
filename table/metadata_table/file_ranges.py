"""Reads the ranges of columns from files: of those that another process wrote, or for new statistics."""

from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO

import pyarrow as pa

from table import threads
from table.errors import CorruptFileError, UnsupportedTableError
from table.files.base.stored_file import StoredBaseFile
from table.files.column_ranges import Ranges, ranges_of_rows
from table.files.log.data_blocks import read_rows
from table.files.log.framing import BlockType, Verdict, scan_blocks
from table.files.names import parse_base_file
from table.metadata_table.statistics import RangesByFile
from table.storage.interface import Storage, join

_ROWS = frozenset({BlockType.AVRO_DATA, BlockType.PARQUET_DATA, BlockType.HFILE_DATA, BlockType.CDC_DATA})


def read_ranges(storage: Storage, files: Mapping[str, Mapping[str, int]], columns: Sequence[str]) -> RangesByFile:
    """The ranges of files: of base files from their footers, of log files from their rows.

    Args:
        storage: of the table.
        files: partition path -> names with sizes in bytes.
        columns: names of columns; one that a base file does not have gets no range there.

    Raises:
        UnsupportedTableError: a file is damaged or gone, has a form that is not known here, or a footer without bounds.
        StorageError: the store fails.
    """
    every = [(path, name, size) for path, sizes in files.items() for name, size in sizes.items()]

    def ranges_of(file: tuple[str, str, int]) -> Ranges:
        path, name, size = file
        try:
            if parse_base_file(name) is not None:
                return _of_base_file(storage, join(path, name), size, columns)
            return _of_log_file(storage, join(path, name), columns)
        except (CorruptFileError, FileNotFoundError) as error:
            raise UnsupportedTableError(str(error)) from error

    found: dict[str, dict[str, Ranges]] = {}
    if every:
        with threads.make_pool(storage.calls_at_once, "hudistream-ranges") as pool:
            for (path, name, _), ranges in zip(every, pool.map(ranges_of, every), strict=True):
                found.setdefault(path, {})[name] = ranges
    return found


def _of_base_file(storage: Storage, path: str, size: int, columns: Sequence[str]) -> Ranges:
    with StoredBaseFile(storage, path, size) as stored:
        ranges = stored.ranges(columns)
    if ranges is None:
        raise UnsupportedTableError(f"the footer of {path} lacks bounds")
    return ranges


def _of_log_file(storage: Storage, path: str, columns: Sequence[str]) -> Ranges:
    ranges = ranges_of_rows(_rows_of_log(storage, path, columns), columns)
    unbounded = [name for name in columns if name not in ranges]
    if unbounded:
        raise UnsupportedTableError(f"the column {unbounded[0]!r} of {path} has values that cannot be bounded")
    return ranges


def _rows_of_log(storage: Storage, path: str, columns: Sequence[str]) -> Iterator[pa.Table]:
    """All rows of a log file, also those that a command of the file takes back: bounds may be wider than needed."""
    for place in scan_blocks(BytesIO(storage.read(path))):
        block = place.block
        if place.verdict is not Verdict.WHOLE or block is None:
            raise UnsupportedTableError(f"{path} is damaged at byte {place.start}: {place.reason}")
        if block.type in _ROWS:
            yield from read_rows(block, columns, path)
