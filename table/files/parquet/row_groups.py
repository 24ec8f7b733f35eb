"""Row groups as they stand in Parquet footers: moved, patched, joined (pure; parquet.thrift of the format's project).

This module knows only the fields needed to place bytes elsewhere: where the chunks of a row group lie, and the few
totals above them. All other fields pass through unchanged.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from table.errors import CorruptFileError
from table.files.parquet.field_ids import (
    CHUNK_BYTES,
    CHUNK_META,
    CHUNK_OFFSET,
    COLUMNS,
    COMPRESSED,
    DATA_PAGE,
    DATA_PAGE_TYPES,
    DICTIONARY_PAGE,
    ENCODING_STATISTICS,
    GROUP_OFFSET,
    GROUP_ROWS,
    NUM_VALUES,
    ORDINAL,
    PAGE_ENCODING,
    PAGE_OFFSETS,
    PAGE_TYPE,
    PATH,
    PLACES,
    TOTAL_BYTES,
    TOTALS,
    UNCOMPRESSED,
)
from table.files.parquet.thrift_compact import (
    BINARY,
    I16,
    I32,
    I64,
    LIST,
    STRUCT,
    Field,
    Items,
    Struct,
    decode_struct,
    encode_list_header,
    encode_struct,
)


@dataclass(frozen=True)
class RowGroup:
    """A row group as it stands in a footer, cut where the chunk of one column may be exchanged.

    Attributes:
        rows: its rows.
        before: bytes of the struct up to that chunk.
        chunk: bytes of that chunk.
        after: bytes of the chunks after it.
        totals: bytes of the fields after the chunks, and the end of the struct.
        data_end: offset in the file after the last byte of its chunks, the exchangeable one left out.
    """

    rows: int
    before: bytes
    chunk: bytes
    after: bytes
    totals: bytes
    data_end: int

    @property
    def raw(self) -> bytes:
        """The bytes of the struct."""
        return self.before + self.chunk + self.after + self.totals

    @cached_property
    def decoded(self) -> Struct:
        """The struct, decoded once; callers must not change it.

        Raises:
            CorruptFileError: when the bytes are not one.
        """
        return decode_struct(self.raw)


@contextmanager
def fields_of_known_types() -> Iterator[None]:
    """Guards code that reads footer fields without checking their types.

    Raises:
        CorruptFileError: instead of the error that a field of a wrong type raises.
    """
    try:
        yield
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise CorruptFileError(f"the footer has fields of wrong types: {error!r}") from error


def field_value(fields: Struct, number: int) -> Any:
    """Value of a field.

    Raises:
        CorruptFileError: when the struct does not have it.
    """
    try:
        return fields[number].value
    except KeyError as error:
        raise CorruptFileError(f"the footer lacks the required field {number}") from error


def chunk_path(chunk: Struct) -> tuple[bytes, ...]:
    """Path of a chunk's column in the schema."""
    return tuple(field_value(field_value(chunk, CHUNK_META), PATH).values)


def chunk_extent(chunk: Struct) -> tuple[int, int]:
    """Start and length of a chunk, in bytes."""
    meta = field_value(chunk, CHUNK_META)
    start = min(int(meta[number].value) for number in (DATA_PAGE, DICTIONARY_PAGE) if number in meta)
    return start, int(field_value(meta, CHUNK_BYTES))


def has_small_dictionary(chunk: Struct, most_bytes: int) -> bool:
    """Whether all values of a chunk are in a small dictionary, according to its writer (``encoding_stats``).

    Args:
        chunk: the chunk.
        most_bytes: bound for the dictionary as it is stored, compressed.
    """
    meta = field_value(chunk, CHUNK_META)
    if DICTIONARY_PAGE not in meta or meta[DATA_PAGE].value - meta[DICTIONARY_PAGE].value > most_bytes:
        return False
    counts = meta[ENCODING_STATISTICS].value.values if ENCODING_STATISTICS in meta else []
    used = [field_value(one, PAGE_ENCODING) for one in counts if field_value(one, PAGE_TYPE) in DATA_PAGE_TYPES]
    return bool(used) and all(encoding in PLACES for encoding in used)


def chunks_of(group: Struct) -> list[Struct]:
    """The chunks of a row group."""
    found: list[Struct] = field_value(group, COLUMNS).values
    return found


def moved_group(group: Struct, by: int) -> Struct:
    """A row group with offsets moved to where its bytes really lie.

    Args:
        group: the row group.
        by: bytes to add to each offset.
    """
    columns = [moved_chunk(chunk, by) for chunk in chunks_of(group)]
    moved = {**group, COLUMNS: Field(LIST, Items(STRUCT, columns))}
    if GROUP_OFFSET in moved:
        moved[GROUP_OFFSET] = Field(I64, moved[GROUP_OFFSET].value + by)
    return moved


def moved_chunk(chunk: Struct, by: int) -> Struct:
    """A chunk with offsets moved by `by` bytes to where its bytes really lie.

    Only the footer describes the chunk. Arrow before version 18 also writes a description after the chunk: the offsets
    in that one are outdated, or it was not copied.
    """
    meta = dict(field_value(chunk, CHUNK_META))
    for number in PAGE_OFFSETS:
        if number in meta:
            meta[number] = Field(I64, meta[number].value + by)
    return {**chunk, CHUNK_OFFSET: Field(I64, 0), CHUNK_META: Field(STRUCT, meta)}


def resized_chunk(chunk: Struct, length: int, first_page_bytes: int) -> Struct:
    """The description of a chunk without compression whose headers take another number of bytes.

    Args:
        chunk: the description.
        length: bytes of the chunk.
        first_page_bytes: bytes of its first page with the header: after a dictionary stand the data pages.
    """
    meta, (start, before) = dict(field_value(chunk, CHUNK_META)), chunk_extent(chunk)
    meta[CHUNK_BYTES] = Field(I64, length)
    meta[UNCOMPRESSED] = Field(I64, int(field_value(meta, UNCOMPRESSED)) + length - before)
    if DICTIONARY_PAGE in meta:
        meta[DATA_PAGE] = Field(I64, start + first_page_bytes)
    return {**chunk, CHUNK_META: Field(STRUCT, meta)}


def rows_of(group: Struct) -> int:
    """Rows of a row group."""
    return int(field_value(group, GROUP_ROWS))


def with_chunks(group: Struct, chunks: Sequence[Struct]) -> Struct:
    """A row group with other chunks of the same columns, and its totals adjusted.

    Raises:
        CorruptFileError: when a chunk belongs to another column.
    """
    if list(map(chunk_path, chunks)) != list(map(chunk_path, chunks_of(group))):
        raise CorruptFileError("a chunk does not fit into the place of another")
    return with_columns(group, chunks)


def with_columns(group: Struct, chunks: Sequence[Struct]) -> Struct:
    """A row group with these chunks, whatever columns it had, and its totals adjusted.

    Bytes that two chunks share count once in the group's size in the file, because readers place the group by it. They
    count twice in its uncompressed size.
    """
    changed = {**group, COLUMNS: Field(LIST, Items(STRUCT, list(chunks)))}
    if TOTAL_BYTES in changed:
        held = sum(int(field_value(field_value(chunk, CHUNK_META), UNCOMPRESSED)) for chunk in chunks)
        changed[TOTAL_BYTES] = Field(I64, held)
    if COMPRESSED in changed:
        # chunks that share bytes share all their data pages
        stored: dict[tuple[int, int], int] = {}
        for chunk in chunks:
            start, length = chunk_extent(chunk)
            place = int(field_value(field_value(chunk, CHUNK_META), DATA_PAGE)), start + length
            stored[place] = max(length, stored.get(place, 0))
        changed[COMPRESSED] = Field(I64, sum(stored.values()))
    if GROUP_OFFSET in changed:
        changed[GROUP_OFFSET] = Field(I64, chunk_extent(chunks[0])[0])
    return changed


def distinct_extents(extents: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Start and length of chunks in file order, shared bytes once: a chunk may be the end of another one.

    Args:
        extents: start and length of each chunk.
    """
    longest: dict[int, int] = {}
    for start, length in extents:
        longest[start + length] = max(length, longest.get(start + length, 0))
    return [(end - length, length) for end, length in sorted(longest.items())]


def named_again(chunk: Struct, name: str, lead_bytes: int, lead_memory_bytes: int) -> Struct:
    """The description of a shared chunk for a second column, whose chunk has a dictionary page before the shared pages.

    Args:
        chunk: chunk of a column without a dictionary.
        name: name of the second column, a top-level one.
        lead_bytes: bytes of the dictionary page, its header included.
        lead_memory_bytes: bytes of the page without compression.
    """
    meta = dict(field_value(chunk, CHUNK_META))
    start, length = chunk_extent(chunk)
    meta[PATH] = Field(LIST, Items(BINARY, [name.encode()]))
    meta[DICTIONARY_PAGE] = Field(I64, start - lead_bytes)
    meta[CHUNK_BYTES] = Field(I64, length + lead_bytes)
    meta[UNCOMPRESSED] = Field(I64, int(field_value(meta, UNCOMPRESSED)) + lead_memory_bytes)
    if ENCODING_STATISTICS in meta:
        # PageEncodingStats (page type, encoding, count): without it readers could take all pages for dictionary-encoded
        lead: Struct = {1: Field(I32, 2), 2: Field(I32, 0), 3: Field(I32, 1)}
        meta[ENCODING_STATISTICS] = Field(LIST, Items(STRUCT, [lead, *meta[ENCODING_STATISTICS].value.values]))
    return {**moved_chunk(chunk, 0), CHUNK_META: Field(STRUCT, dict(sorted(meta.items())))}


def encode_group(group: Struct, number: int, column: str) -> RowGroup:
    """A row group ready for a footer.

    Args:
        group: the row group, with its offsets in the file.
        number: its number in the file.
        column: top-level column whose chunk may be exchanged.

    Raises:
        CorruptFileError: when the group has no such column.
    """
    chunks = chunks_of(group)
    paths = [chunk_path(chunk) for chunk in chunks]
    if (column.encode(),) not in paths:
        raise CorruptFileError(f"a row group lacks the column {column!r}")
    at = paths.index((column.encode(),))
    encoded = [encode_struct(chunk) for chunk in chunks]
    header = bytes([COLUMNS << 4 | LIST]) + encode_list_header(STRUCT, len(chunks))
    rest = {field: held for field, held in group.items() if field != COLUMNS}
    if ORDINAL in rest:
        rest[ORDINAL] = Field(I16, number)
    return RowGroup(
        rows=rows_of(group),
        before=header + b"".join(encoded[:at]),
        chunk=encoded[at],
        after=b"".join(encoded[at + 1 :]),
        totals=encode_struct(rest, COLUMNS),
        data_end=max(sum(chunk_extent(chunk)) for chunk in [*chunks[:at], *chunks[at + 1 :]]),
    )


def shifted_group(group: RowGroup, by: int, number: int, column: str) -> RowGroup:
    """A row group whose bytes were copied to another place.

    Args:
        group: the row group as it stood in the older footer.
        by: bytes to add to each offset.
        number: its number in the new file.
        column: top-level column whose chunk may be exchanged.
    """
    # not `group.decoded`: that would keep the descriptions of all row groups in memory while the file is read
    return encode_group(moved_group(decode_struct(group.raw), by), number, column) if by else group


def with_chunk(group: RowGroup, chunk: Struct) -> RowGroup:
    """A row group in which `chunk` takes the place of the exchangeable chunk, and the totals are adjusted.

    Raises:
        CorruptFileError: when the chunk belongs to another column, or has another number of values.
    """
    old_chunk = decode_struct(group.chunk)
    old, new = field_value(old_chunk, CHUNK_META), field_value(chunk, CHUNK_META)
    if chunk_path(chunk) != chunk_path(old_chunk) or field_value(old, NUM_VALUES) != field_value(new, NUM_VALUES):
        raise CorruptFileError("a chunk does not fit into the place of another")
    totals = decode_struct(group.totals, COLUMNS)
    for total, part in TOTALS:
        if total in totals:
            changed = totals[total].value - field_value(old, part) + field_value(new, part)
            totals[total] = Field(I64, changed)
    return replace(group, chunk=encode_struct(chunk), totals=encode_struct(totals, COLUMNS))
