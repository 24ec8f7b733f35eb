"""Row groups that Arrow has just written, cut out of its footer as bytes (pure; parquet.thrift of Parquet's project).

A file of few rows has as many descriptions of chunks as a large one. To decode and encode them takes longer than
Arrow takes for the rows. So they stay bytes, and only the offsets in them are changed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from table.errors import CorruptFileError
from table.files.parquet.field_ids import (
    CHUNK_META,
    CHUNK_OFFSET,
    COLUMNS,
    GROUP_OFFSET,
    ORDINAL,
    PAGE_OFFSETS,
)
from table.files.parquet.row_groups import RowGroup, chunk_extent, chunk_path, rows_of
from table.files.parquet.thrift_compact import (
    I16,
    I64,
    LIST,
    STOP,
    STRUCT,
    Field,
    Items,
    Struct,
    append_integer,
    decode_struct,
    encode_list_header,
    encode_struct,
    read_field_head,
    read_integer,
    read_list_header,
    skip_struct,
    skip_value,
)

_GROUPS = 4  # field id of FileMetaData
_NO_PLACE = bytes([CHUNK_OFFSET << 4 | I64, 0])  # how a chunk begins that has no second description


@dataclass(frozen=True)
class WrittenGroup:
    """A row group at the end of a file that is being written.

    Attributes:
        chunks: the description of each chunk, in the order of the columns.
        rest: the fields after the chunks.
        data_end: offset in the file after its last chunk.
    """

    chunks: tuple[bytes, ...]
    rest: Struct
    data_end: int

    @property
    def decoded(self) -> Struct:
        """The struct."""
        chunks = [decode_struct(chunk) for chunk in self.chunks]
        return {COLUMNS: Field(LIST, Items(STRUCT, chunks)), **self.rest}

    def with_struct(self, group: Struct) -> "WrittenGroup":
        """The same row group with a changed struct.

        Args:
            group: the struct; its chunks lie where they lay.
        """
        chunks = tuple(encode_struct(chunk) for chunk in group[COLUMNS].value.values)
        return replace(self, chunks=chunks, rest={field: held for field, held in group.items() if field != COLUMNS})

    def as_row_group(self, number: int, column: str) -> RowGroup:
        """The row group ready for a footer.

        Args:
            number: its number in the file.
            column: top-level column whose chunk may be exchanged.

        Raises:
            CorruptFileError: when the group has no such column.
        """
        at = self._find(column)
        header = bytes([COLUMNS << 4 | LIST]) + encode_list_header(STRUCT, len(self.chunks))
        rest = {**self.rest, ORDINAL: Field(I16, number)} if ORDINAL in self.rest else self.rest
        data_end = self.data_end
        if at == len(self.chunks) - 1:
            data_end = max(sum(chunk_extent(decode_struct(chunk))) for chunk in self.chunks[:at])
        return RowGroup(
            rows=rows_of(rest),
            before=header + b"".join(self.chunks[:at]),
            chunk=self.chunks[at],
            after=b"".join(self.chunks[at + 1 :]),
            totals=encode_struct(rest, COLUMNS),
            data_end=data_end,
        )

    def _find(self, column: str) -> int:
        name = column.encode()
        for at, chunk in enumerate(self.chunks):
            if name in chunk and chunk_path(decode_struct(chunk)) == (name,):
                return at
        raise CorruptFileError(f"a row group lacks the column {column!r}")


def cut_groups(footer: bytes, head: bytes, shifts: Sequence[int]) -> list[WrittenGroup]:
    """The row groups in the footer of Arrow's writer, with their offsets in the file.

    Args:
        footer: its Thrift bytes.
        head: its bytes before the number of rows, those of a file without rows of the same columns.
        shifts: bytes to add to the offsets of each row group.

    Raises:
        CorruptFileError: Arrow's writer writes other footers than this project knows.
    """
    if not footer.startswith(head):
        raise CorruptFileError("Arrow's writer describes the same columns in two ways")
    _, _, at = read_field_head(footer, len(head), 0)
    _, at = read_integer(footer, at)  # the number of rows
    kind, number, at = read_field_head(footer, at, _GROUPS - 1)
    _, count, at = read_list_header(footer, at)
    if (kind, number, count) != (LIST, _GROUPS, len(shifts)):
        raise CorruptFileError(f"Arrow's writer describes {count} row groups, and has written {len(shifts)}")
    groups = []
    for by in shifts:
        _, _, at = read_field_head(footer, at, 0)
        _, columns, at = read_list_header(footer, at)
        chunks = []
        for _ in range(columns):
            start, at = at, skip_struct(footer, at)
            chunks.append(_moved_chunk(footer[start:at], by))
        start, at = at, skip_struct(footer, at)
        rest = decode_struct(footer[start:at], COLUMNS)
        if GROUP_OFFSET in rest:
            rest[GROUP_OFFSET] = Field(I64, rest[GROUP_OFFSET].value + by)
        # Arrow writes the chunks in the order of the columns
        groups.append(WrittenGroup(tuple(chunks), rest, sum(chunk_extent(decode_struct(chunks[-1])))))
    return groups


def _moved_chunk(chunk: bytes, by: int) -> bytes:
    """As `row_groups.moved_chunk`, of bytes."""
    if not by and chunk.startswith(_NO_PLACE):
        return chunk
    out = bytearray()
    done = at = number = 0
    while number != CHUNK_META:
        kind, number, at = read_field_head(chunk, at, number)
        if number == CHUNK_OFFSET:
            out += chunk[done:at]
            append_integer(out, 0)
            done = at = read_integer(chunk, at)[1]
        elif number != CHUNK_META:
            at = skip_value(chunk, at, kind)
    number = 0
    while number < PAGE_OFFSETS[-1]:
        kind, number, at = read_field_head(chunk, at, number)
        if kind == STOP:
            break
        if number in PAGE_OFFSETS:
            out += chunk[done:at]
            offset, at = read_integer(chunk, at)
            append_integer(out, offset + by)
            done = at
        else:
            at = skip_value(chunk, at, kind)
    return bytes(out + chunk[done:])
