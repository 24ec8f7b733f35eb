"""Row groups of an older file with which a new one begins: as they are, or with some columns changed."""

from contextlib import suppress

import pyarrow as pa

from table.errors import StorageError
from table.files.base.stored_file import StoredBaseFile
from table.files.parquet.copied_bounds import group_with_bounds
from table.files.parquet.footer import MAGIC
from table.files.parquet.name_chunk import encode_name_chunk
from table.files.parquet.page_checksums import ChunkProof
from table.files.parquet.patched_group import write_patched_group
from table.files.parquet.row_groups import (
    RowGroup,
    chunk_extent,
    chunks_of,
    distinct_extents,
    encode_group,
    shifted_group,
    with_chunk,
)
from table.files.publication import discard
from table.options.groups import BaseFileSettings
from table.schema.avro_schema import FILE_NAME
from table.storage.byte_ranges import ByteRange
from table.storage.interface import OutputFile, Stage, Storage


class CopiedGroups:
    """The row groups of an older file that a new file holds.

    Args:
        stored: the older file.
        schema: of the new file's rows in memory.
        settings: of the new file.

    Attributes:
        size_bytes: bytes that were copied.
        is_copied_by_store: whether the store copied them. Otherwise all bytes went through this process.
    """

    def __init__(self, stored: StoredBaseFile, schema: pa.Schema, settings: BaseFileSettings) -> None:
        self._stored, self._schema, self._settings = stored, schema, settings
        self._numbers: list[int] = []
        self._groups: list[RowGroup] = []
        self.size_bytes = 0
        self.is_copied_by_store = True

    def __len__(self) -> int:
        """Number of row groups."""
        return len(self._groups)

    def open(self, storage: Storage, path: str, stage: Stage | None, numbers: list[int]) -> OutputFile:
        """Opens the new file with row groups of the older one as they are.

        Args:
            path: of the new file, relative to the table.
            stage: where it waits until it is published.
            numbers: of the older file's row groups, ascending.

        Raises:
            CorruptFileError: a page in memory differs from its checksum. Pages that the store copies are not looked at.
            StorageError: the store fails, or has copied another number of bytes.
        """
        ranges = self._plan(numbers)
        held = self._stored.read_held(ranges)
        for number, place, piece in zip(numbers, ranges[1:], (held or ())[1:], strict=False):  # behind the magic
            self._prove(number, place.start, piece)
        if held is None:
            sink = storage.open_copy(self._stored.path, ranges, path, stage)
        else:
            self.is_copied_by_store = False
            sink = storage.open_output(path, stage)
        try:
            for piece in held or ():
                sink.write(piece)
            self._check_size(sink.tell())
        except BaseException:
            with suppress(OSError, StorageError):
                discard(storage, path, stage, sink)
            raise
        return sink

    def _prove(self, number: int, start: int, piece: bytes) -> None:
        """Compares pages with their checksums.

        Args:
            number: of the row group.
            start: where the piece stands in the older file.
            piece: its bytes without the chunk of the file name, if that stands after all row groups.
        """
        groups, end = self._stored.footer.groups or (), start + len(piece)
        for at, length in distinct_extents(map(chunk_extent, chunks_of(groups[number].decoded))):
            if start <= at and at + length <= end:
                ChunkProof(self._stored.path, length).take(memoryview(piece)[at - start : at - start + length])

    def _check_size(self, found: int) -> None:
        if found != self.size_bytes:
            raise StorageError(f"{found} bytes of {self._stored.path} were copied, not {self.size_bytes}")

    def _plan(self, numbers: list[int]) -> list[ByteRange]:
        groups, ranges, end = self._stored.footer.groups or (), [ByteRange(0, len(MAGIC))], len(MAGIC)
        for at, number in enumerate(numbers):
            start = groups[number - 1].data_end if number else len(MAGIC)  # row groups are contiguous
            older = group_with_bounds(self._stored, number, self._schema)
            self._groups.append(shifted_group(older, end - start, at, FILE_NAME))
            ranges.append(ByteRange(start, groups[number].data_end - start))
            end += ranges[-1].length
        self._numbers.extend(numbers)
        self.size_bytes = end
        return ranges

    def patch(self, sink: OutputFile, number: int, rows: pa.Table) -> None:
        """Adds a row group of the older file with some columns changed.

        Args:
            sink: the new file, with the row groups so far.
            number: of the row group.
            rows: the changed columns, with all rows of the row group.

        Raises:
            CorruptFileError, StorageError: when the other columns cannot be copied.
        """
        older = group_with_bounds(self._stored, number, self._schema).decoded
        patched, copied_bytes = write_patched_group(sink, self._stored, older, rows, self._settings, FILE_NAME)
        self._groups.append(encode_group(patched, len(self._groups), FILE_NAME))
        self._numbers.append(number)
        self.size_bytes += copied_bytes

    def renamed(self, sink: OutputFile, file_name: str | None) -> list[RowGroup]:
        """Writes new file-name chunks, and returns the row groups with them.

        The chunks stand after all row groups, so that the next version can cut them off.

        Args:
            sink: the new file.
            file_name: its name; None: rows do not name their file, and the chunks stay.
        """
        if file_name is None:
            return self._groups
        renamed, column = [], self._schema.field(FILE_NAME)
        for group in self._groups:
            data, chunk = encode_name_chunk(file_name, group.rows, sink.tell(), column, self._settings)
            sink.write(data)
            renamed.append(with_chunk(group, chunk))
        return renamed

    def read_keys(self) -> list[pa.Array]:
        """Record keys of the row groups (string arrays)."""
        return self._stored.read_keys(self._numbers) if self._numbers else []

    @property
    def row_ranges(self) -> tuple[tuple[int, int], ...]:
        """Ranges of the older file's rows that the new file begins with: (first row, number of rows)."""
        counts = self._stored.group_rows
        return tuple((sum(counts[:number]), counts[number]) for number in self._numbers)
