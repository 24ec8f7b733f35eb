"""A base file that is there already: opened once, its footer read once, its rows in pieces of bounded size."""

from collections.abc import Iterator, Sequence
from types import TracebackType

import pyarrow as pa
import pyarrow.parquet as pq

from table.errors import CorruptFileError
from table.files.base_file import READ_BATCH_ROWS, REPEATED_META_COLUMNS, conform
from table.files.parquet_footer import MAGIC, TAIL_BYTES, Footer, decode_footer, find_footer
from table.files.row_groups import chunks_of, has_inexact_bound
from table.files.thrift_compact import Struct, decode_struct
from table.schema import RECORD_KEY
from table.storage import Storage, failed

_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 8, "FLOAT": 4, "DOUBLE": 8, "FIXED_LEN_BYTE_ARRAY": 16}
_FIRST_READ_BYTES = 64 * 1024
_PIECE_BYTES = 4 * 1024 * 1024


def read_tail(source: pa.NativeFile) -> tuple[int, bytes]:
    """The size of a Parquet file, and its footer with length and magic: one read where the footer is small.

    Raises:
        CorruptFileError: when the file does not end as a Parquet file does.
    """
    size = int(source.size())
    tail = _read(source, max(0, size - _FIRST_READ_BYTES), min(size, _FIRST_READ_BYTES))
    start = find_footer(tail, size)
    missing = size - start - len(tail)
    if missing > 0:
        tail = _read(source, start, missing) + tail
    return size, tail[len(tail) - (size - start) :]


def _read(source: pa.NativeFile, start: int, length: int) -> bytes:
    source.seek(start)
    data = bytes(source.read(length))
    if len(data) != length:
        raise CorruptFileError(f"it ends {length - len(data)} bytes early")
    return data


def chunk_bytes(chunk: pq.ColumnChunkMetaData, *, has_bounds: bool = True) -> int:
    """About how many bytes of memory (Arrow) the values of a column chunk take: a dictionary hides their width.

    Args:
        chunk: the chunk.
        has_bounds: whether its bounds are values of it; a few long ones that were cut say nothing of the others.
    """
    count, stored = int(chunk.num_values), int(chunk.total_uncompressed_size)
    if chunk.physical_type in _WIDTHS:
        return _WIDTHS[chunk.physical_type] * count
    bounds = chunk.statistics
    if chunk.path_in_schema in REPEATED_META_COLUMNS or bounds is None or not (has_bounds and bounds.has_min_max):
        return max(stored, 4 * count)
    return max(stored, (4 + (len(bounds.min) + len(bounds.max)) // 2) * count)


class StoredBaseFile:
    """A base file, open for reading; a context manager.

    Args:
        storage: the table's.
        path: relative to the table.

    Raises:
        CorruptFileError: when the file is no Parquet file, or its footer is damaged.
    """

    def __init__(self, storage: Storage, path: str) -> None:
        self.path = path
        self._name = f"{path} of {storage.base_uri!r}"
        self._source = storage.open_input(path)
        try:
            self._tail = read_tail(self._source)[1]
            self.footer: Footer = decode_footer(self._tail[:-TAIL_BYTES])
        except CorruptFileError as error:
            self.close()
            raise CorruptFileError(f"{self._name} is not a whole Parquet file: {error}") from error
        except BaseException:
            self.close()
            raise
        self._opened: pq.ParquetFile | None = None

    def __enter__(self) -> "StoredBaseFile":  # noqa: PYI034 typing.Self is younger than Python 3.10
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the file."""
        self._source.close()

    def _file(self) -> pq.ParquetFile:
        if self._opened is None:
            try:
                # Arrow gets the footer that is in memory: it is not read a second time
                metadata = pq.read_metadata(pa.BufferReader(MAGIC + self._tail))
                self._opened = pq.ParquetFile(
                    self._source, metadata=metadata, read_dictionary=list(REPEATED_META_COLUMNS)
                )
            except (pa.ArrowException, OSError, KeyError) as error:  # KeyError: older Arrow's for a missing column
                raise CorruptFileError(f"{self._name} is not a Parquet file of a Hudi table: {error}") from error
        return self._opened

    @property
    def group_rows(self) -> list[int]:
        """Rows of each row group."""
        if self.footer.groups is not None:
            return [group.rows for group in self.footer.groups]
        metadata = self._file().metadata
        return [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]

    @property
    def row_bytes(self) -> int:
        """About how many bytes of memory (Arrow) a row takes, by what the footer says of the largest row group."""
        metadata = self._file().metadata
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        if not groups:
            return 1  # every row was deleted
        number = max(range(len(groups)), key=lambda number: groups[number].num_rows)
        largest = groups[number]
        exact = [not has_inexact_bound(chunk) for chunk in chunks_of(self._described(number))]
        held = (chunk_bytes(largest.column(at), has_bounds=is_exact) for at, is_exact in enumerate(exact))
        return int(max(1, sum(held) // max(1, largest.num_rows)))

    def _described(self, number: int) -> Struct:
        groups = self.footer.groups
        return self.footer.row_groups[number] if groups is None else decode_struct(groups[number].raw)

    def read_batches(self, schema: pa.Schema, groups: Sequence[int] | None = None) -> Iterator[pa.Table]:
        """Rows, some ten thousand at a time.

        Args:
            schema: the columns wanted; ones that the file lacks come as nulls.
            groups: numbers of the row groups wanted; None means all.

        Raises:
            CorruptFileError, StorageError: when they cannot be decoded or read.
        """
        file = self._file()
        present = set(file.schema_arrow.names)
        columns = [name for name in schema.names if name in present]
        try:
            for batch in file.iter_batches(READ_BATCH_ROWS, row_groups=groups, columns=columns, use_threads=False):
                yield conform(pa.Table.from_batches([batch]), schema)
        except pa.ArrowException as error:
            raise CorruptFileError(f"{self._name} cannot be decoded: {error}") from error
        except OSError as error:  # the store's, or a decompressor's
            raise failed("read", self.path, error) from error

    def read_bytes(self, start: int, length: int) -> Iterator[bytes]:
        """Bytes of the file as they are, some millions at a time.

        Raises:
            CorruptFileError, StorageError: when they are not there, or cannot be read.
        """
        try:
            for at in range(start, start + length, _PIECE_BYTES):
                yield _read(self._source, at, min(_PIECE_BYTES, start + length - at))
        except CorruptFileError as error:
            raise CorruptFileError(f"{self._name} cannot be copied: {error}") from error
        except OSError as error:
            raise failed("read", self.path, error) from error

    def read_keys(self, groups: Sequence[int]) -> list[pa.Array]:
        """Record keys of row groups (string arrays)."""
        schema = pa.schema([pa.field(RECORD_KEY, pa.string())])
        return [chunk for rows in self.read_batches(schema, groups) for chunk in rows.column(0).chunks]
