"""A stored base file: opened once, its footer read once, its rows in pieces of bounded size."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from table.columns.conform import conform
from table.columns.take import take_rows
from table.errors import CorruptFileError
from table.files.base.repeated_columns import REPEATED_META_COLUMNS
from table.files.column_ranges import ColumnRange, ranges_of_file
from table.files.parquet.chunk_statistics import chunk_memory_bytes
from table.files.parquet.footer import MAGIC, TAIL_BYTES, Footer, decode_footer, find_footer
from table.files.parquet.page_checksums import has_checksum, is_broken_header, is_mismatch
from table.files.parquet.row_groups import (
    chunk_extent,
    chunk_path,
    chunks_of,
    fields_of_known_types,
    has_small_dictionary,
    rows_of,
)
from table.schema.avro_schema import RECORD_KEY
from table.storage.byte_ranges import ByteRange
from table.storage.interface import Storage, failed

READ_BATCH_ROWS = 65_536
_TAKEN_ROWS = 16_384  # rows of a piece where only some of its rows are wanted
_FIRST_READ_BYTES = 64 * 1024
_SMALL_DICTIONARY_BYTES = 256 * 1024  # compressed: some ten thousand values
_PIECE_BYTES = 4 * 1024 * 1024
_MOST_BATCH_BYTES = 256 * 1024 * 1024  # of rows whose values are large, as Parquet encodes them

Positions = npt.NDArray[np.int64]


def read_footer_bytes(storage: Storage, path: str, size: int | None = None) -> int:
    """Length of a base file's footer, from its last eight bytes.

    Args:
        path: relative to the table.
        size: bytes of the file, if known.

    Raises:
        CorruptFileError: when the file does not end as a Parquet file does.
    """
    with storage.open_input(path, size) as source:
        source.seek(max(0, source.size() - 8))
        tail = source.read(8)
    if len(tail) < 8 or tail[4:] != b"PAR1":
        raise CorruptFileError(f"{path} of {storage.base_uri!r} is not a Parquet file")
    return int.from_bytes(tail[:4], "little") + 8


def read_footer(source: pa.NativeFile) -> tuple[int, bytes]:
    """The size of a Parquet file, and its footer without length and magic: one read where the footer is small.

    Raises:
        CorruptFileError: when the file does not end as a Parquet file does.
    """
    size = int(source.size())
    tail = _read(source, max(0, size - _FIRST_READ_BYTES), min(size, _FIRST_READ_BYTES))
    start = find_footer(tail, size)
    if size - start > len(tail):
        return size, _read(source, start, size - TAIL_BYTES - start)  # a join of two reads is a copy
    return size, tail[len(tail) - (size - start) : -TAIL_BYTES]


def _read(source: pa.NativeFile, start: int, length: int) -> bytes:
    source.seek(start)
    data = bytes(source.read(length))
    if len(data) != length:
        raise CorruptFileError(f"it ends {length - len(data)} bytes early")
    return data


class StoredBaseFile:
    """A base file, open for reading; a context manager.

    Args:
        path: relative to the table.
        size: bytes of the file, if known: the store is then not asked.

    Raises:
        CorruptFileError: when the file is no Parquet file, or its footer is damaged.
        StorageError: the store fails, or somebody replaced the file while it was read.
    """

    def __init__(self, storage: Storage, path: str, size: int | None = None) -> None:
        self.path = path
        self._name = f"{path} of {storage.base_uri!r}"
        self._source = storage.open_input(path, size)
        try:
            self._raw = read_footer(self._source)[1]
            self.footer: Footer = decode_footer(self._raw)
        except CorruptFileError as error:
            self.close()
            raise CorruptFileError(f"{self._name} is not a whole Parquet file: {error}") from error
        except BaseException as error:
            self.close()
            if isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
                raise failed("read", self._name, error) from error
            raise
        self._metadata: pq.FileMetaData | None = None
        self._opened: dict[frozenset[str], pq.ParquetFile] = {}  # key: the columns that are read as dictionaries

    def __enter__(self) -> "StoredBaseFile":  # noqa: PYI034 typing.Self is younger than Python 3.10
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def read_held(self, ranges: Iterable[ByteRange]) -> list[bytes] | None:
        """Bytes of the file, if it is in memory as a whole: it is small, and the store gave it by one request."""
        if not isinstance(self._source, pa.BufferReader):
            return None
        return [_read(self._source, piece.start, piece.length) for piece in ranges]

    def ranges(self, columns: Sequence[str]) -> Mapping[str, ColumnRange] | None:
        """The ranges of columns; see `table.files.column_ranges.ranges_of_file`."""
        return ranges_of_file(self._file().metadata, columns)

    def close(self) -> None:
        """Closes the file."""
        self._source.close()

    def _file(self, dictionaries: Collection[str] = ()) -> pq.ParquetFile:
        wanted = frozenset((*REPEATED_META_COLUMNS, *dictionaries))
        if wanted not in self._opened:
            try:
                if self._metadata is None:
                    # Arrow gets the footer from memory, so it is not read from the store again
                    tail = len(self._raw).to_bytes(4, "little") + MAGIC
                    self._metadata = pq.read_metadata(pa.BufferReader(b"".join((MAGIC, self._raw, tail))))
                opened = pq.ParquetFile(
                    self._source,
                    metadata=self._metadata,
                    read_dictionary=sorted(wanted),
                    page_checksum_verification=True,
                )
                self._names = frozenset(opened.schema_arrow.names)
                self._opened[wanted] = opened
            # older Arrow raises KeyError for a missing column; ValueError: column names that are not text
            except (pa.ArrowException, OSError, KeyError, ValueError) as error:
                raise CorruptFileError(f"{self._name} is not a Parquet file of a Hudi table: {error}") from error
        return self._opened[wanted]

    @property
    def group_rows(self) -> list[int]:
        """Rows of each row group."""
        return self.footer.group_rows

    @property
    def row_bytes(self) -> int:
        """About how many bytes of memory (Arrow) a row takes, by the footer's description of the largest row group.

        Arrow is not used here, because a damaged footer can make Arrow end the process.

        Raises:
            CorruptFileError: when the footer does not have the figures.
        """
        try:
            with fields_of_known_types():
                largest = self.footer.largest_group
                if largest is None:
                    return 1  # every row was deleted
                taken = sum(chunk_memory_bytes(chunk, REPEATED_META_COLUMNS) for chunk in chunks_of(largest))
                return max(1, taken // max(1, rows_of(largest)))
        except CorruptFileError as error:
            raise CorruptFileError(f"{self._name} is not a whole Parquet file: {error}") from error

    def find_checksums(self) -> list[bool]:
        """Whether the first page of each column chunk carries a checksum, row group by row group.

        Raises:
            CorruptFileError, StorageError: when a chunk does not begin with a page, or cannot be read.
        """
        with fields_of_known_types():
            extents = [chunk_extent(chunk) for group in self.footer.groups or () for chunk in chunks_of(group.decoded)]
        found = []
        for start, length in extents:
            head = b"".join(self.read_bytes(start, min(length, _FIRST_READ_BYTES)))
            found.append(has_checksum(head))
        return found

    def columns_in_dictionaries(self, group: int) -> frozenset[str]:
        """The top-level columns of a sealed file's row group whose values are all in a small dictionary.

        Joining large dictionaries costs more than making their strings.

        Raises:
            CorruptFileError: when the footer does not have the figures.
        """
        assert self.footer.groups is not None
        with fields_of_known_types():
            found = [
                chunk_path(chunk)
                for chunk in chunks_of(self.footer.groups[group].decoded)
                if has_small_dictionary(chunk, _SMALL_DICTIONARY_BYTES)
            ]
            return frozenset(path[0].decode() for path in found if len(path) == 1)

    def read_batches(
        self, schema: pa.Schema, groups: Sequence[int] | None = None, batch_rows: int = READ_BATCH_ROWS
    ) -> Iterator[pa.Table]:
        """Rows, some ten thousand at a time.

        Args:
            schema: the wanted columns. Columns that the file does not have are null. Columns with a dictionary type are
                read as dictionaries.
            groups: numbers of the wanted row groups; None means all.
            batch_rows: most rows of a piece.

        Raises:
            CorruptFileError, StorageError: when the rows cannot be decoded or read.
        """
        dictionaries = [field.name for field in schema if pa.types.is_dictionary(field.type)]
        for rows in self.read_stored(schema.names, groups, batch_rows, dictionaries=dictionaries):
            with self._damage_named():
                conformed = conform(rows, schema)
            yield conformed

    @contextmanager
    def _damage_named(self) -> Iterator[None]:
        try:
            yield
        except pa.ArrowException as error:
            raise CorruptFileError(f"{self._name} cannot be decoded: {error}") from error

    def read_rows_at(self, schema: pa.Schema, group: int, positions: Positions) -> Iterator[pa.Table]:
        """Some rows of a row group, read on all cores; rows after the last wanted one are not decoded.

        Args:
            schema: the wanted columns; columns that the file does not have are null.
            group: number of the row group.
            positions: positions of the rows in the row group, ascending.

        Raises:
            CorruptFileError, StorageError: when the rows cannot be decoded or read.
        """
        at = 0
        for rows in self.read_stored(schema.names, [group], _TAKEN_ROWS, use_threads=True):
            first, last = np.searchsorted(positions, [at, at + len(rows)])
            if first < last:
                with self._damage_named():
                    taken = conform(take_rows(rows, positions[first:last] - at), schema)
                yield taken
            at += len(rows)
            if last == len(positions):
                return

    def read_stored(
        self,
        names: Sequence[str],
        groups: Sequence[int] | None = None,
        batch_rows: int = READ_BATCH_ROWS,
        *,
        use_threads: bool = False,
        dictionaries: Collection[str] = (),
    ) -> Iterator[pa.Table]:
        """Rows with the types that the file has, some ten thousand at a time.

        Args:
            names: the wanted columns; columns that the file does not have are left out.
            groups: numbers of the wanted row groups; None means all.
            batch_rows: most rows of a piece; there are fewer where rows are large.
            use_threads: decode columns on all cores.
            dictionaries: top-level columns of text to read as dictionaries, besides the repeated meta columns.

        Raises:
            CorruptFileError, StorageError: when the rows cannot be decoded or read.
        """
        file = self._file(dictionaries)
        columns = [name for name in names if name in self._names]
        try:
            most = min(batch_rows, _rows_within(file.metadata, _MOST_BATCH_BYTES))
            for batch in file.iter_batches(most, row_groups=groups, columns=columns, use_threads=use_threads):
                yield pa.Table.from_batches([batch])
        except pa.ArrowException as error:
            raise CorruptFileError(f"{self._name} cannot be decoded: {error}") from error
        except OSError as error:  # from the store, or from a decompressor
            if is_mismatch(error):
                raise CorruptFileError(f"{self._name} has a page that differs from its checksum") from error
            if is_broken_header(error):
                raise CorruptFileError(f"{self._name} has a page with a damaged header") from error
            raise failed("read", self.path, error) from error

    def read_bytes(self, start: int, length: int) -> Iterator[bytes]:
        """Raw bytes of the file, some millions at a time.

        Raises:
            CorruptFileError, StorageError: when the bytes are not there, or cannot be read.
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


def _rows_within(metadata: pq.FileMetaData, most_bytes: int) -> int:
    """How many rows of the row group with the largest ones take so many bytes; at least one."""
    sizes = [
        metadata.row_group(number).total_byte_size // max(1, metadata.row_group(number).num_rows)
        for number in range(metadata.num_row_groups)
    ]
    return max(1, most_bytes // max(1, max(sizes, default=1)))
