"""Parquet footers as values: read, checked, moved, joined, sealed (pure; parquet.thrift of the format's project).

Only what a top-up needs is known here: where the chunks of a row group lie, and the few totals above
them. Everything else of a footer passes through untouched.

A footer of ours carries a checksum of itself. A flipped bit in it can therefore not travel from one
version of a file to the next, nor be mistaken for a file of another writer.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from table.errors import CorruptFileError
from table.files.thrift_compact import (
    BINARY,
    I16,
    I64,
    LIST,
    STRUCT,
    Field,
    Items,
    Struct,
    decode_struct,
    encode_struct,
)

MAGIC = b"PAR1"
ENCRYPTED_MAGIC = b"PARE"
TAIL_BYTES = 8  # length of the footer, magic

CHECKSUM_KEY = "hudistream.footer.crc32"
_NO_CHECKSUM = "00000000"

# field ids: FileMetaData, RowGroup, ColumnChunk, ColumnMetaData
_VERSION, _SCHEMA, _NUM_ROWS, _ROW_GROUPS, _KEY_VALUE, _CREATED_BY, _COLUMN_ORDERS = 1, 2, 3, 4, 5, 6, 7
_ENCRYPTION, _SIGNING_KEY = 8, 9  # of the file, and of a chunk
_COLUMNS, _TOTAL_BYTES, _GROUP_ROWS, _GROUP_OFFSET, _COMPRESSED, _ORDINAL = 1, 2, 3, 5, 6, 7
_CHUNK_OFFSET, _CHUNK_META = 2, 3
_CHUNK_INDEXES = (4, 5, 6, 7)
_CHUNK_ENCRYPTION = (8, 9)
_PATH, _CODEC, _NUM_VALUES, _UNCOMPRESSED, _CHUNK_BYTES = 3, 4, 5, 6, 7
_DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE, _BLOOM_OFFSET = 9, 10, 11, 14
_PAGE_OFFSETS = (_DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE)

CODECS = {"none": 0, "snappy": 1, "gzip": 2, "zstd": 6, "lz4": 7}


@dataclass(frozen=True)
class FooterPlace:
    """Where a file's footer lies: offset and length of its Thrift bytes."""

    start: int
    length: int


def find_footer(tail: bytes, file_size: int) -> FooterPlace:
    """Where the footer is, by the last bytes of a file.

    Raises:
        CorruptFileError: when they are not the end of an unencrypted Parquet file.
    """
    if tail[-4:] == ENCRYPTED_MAGIC:
        raise CorruptFileError("the footer is encrypted")
    if len(tail) < TAIL_BYTES or tail[-4:] != MAGIC:
        raise CorruptFileError("it does not end as a Parquet file does")
    length = int.from_bytes(tail[-8:-4], "little")
    start = file_size - TAIL_BYTES - length
    if start < len(MAGIC):
        raise CorruptFileError(f"its footer would be longer ({length} bytes) than the file")
    return FooterPlace(start, length)


@dataclass(frozen=True)
class Footer:
    """A decoded footer.

    Attributes:
        fields: the FileMetaData struct.
        start: offset of the footer in its file: no chunk reaches beyond.
        length: its bytes.
        sealed: whether it carries its checksum, and it is right.
    """

    fields: Struct
    start: int
    length: int
    sealed: bool

    @property
    def schema(self) -> Items:
        """The schema tree, flattened as Parquet does."""
        tree: Items = _value(self.fields, _SCHEMA)
        return tree

    @property
    def created_by(self) -> bytes:
        """Writer and version, or nothing."""
        return bytes(self.fields[_CREATED_BY].value) if _CREATED_BY in self.fields else b""

    @property
    def num_rows(self) -> int:
        """Rows of the file."""
        return int(_value(self.fields, _NUM_ROWS))

    @property
    def row_groups(self) -> list[Struct]:
        """Row groups in file order."""
        groups: list[Struct] = _value(self.fields, _ROW_GROUPS).values
        return groups

    @property
    def group_rows(self) -> list[int]:
        """Rows of each row group."""
        return [_value(group, _GROUP_ROWS) for group in self.row_groups]

    @property
    def key_values(self) -> dict[str, str]:
        """Key-value metadata."""
        entries = self.fields[_KEY_VALUE].value.values if _KEY_VALUE in self.fields else []
        found = {}
        for entry in entries:
            try:
                found[entry[1].value.decode()] = entry[2].value.decode()
            except (KeyError, UnicodeDecodeError):
                continue  # another writer's, and no text
        return found


def decode_footer(raw: bytes, start: int) -> Footer:
    """A footer from its bytes.

    Raises:
        CorruptFileError: when they are no footer, or one of ours whose checksum does not match.
    """
    sealed = is_sealed(raw)
    footer = Footer(decode_struct(raw), start, len(raw), sealed)
    try:
        has_rows = footer.num_rows == sum(footer.group_rows)
    except (AttributeError, TypeError) as error:
        raise CorruptFileError("the footer has fields of wrong types") from error
    if not has_rows:
        raise CorruptFileError("the rows of its row groups are not the rows of the file")
    if _checksum_at(raw) is not None and not sealed:
        raise CorruptFileError("its footer was changed after it was written: the checksum does not match")
    return footer


def why_not_continued(footer: Footer, schema: Items, created_by: bytes, codec: str) -> str | None:
    """Why a file's row groups cannot be copied into one we write, or None when they can.

    Args:
        footer: of the file.
        schema: the schema tree that our writer makes now.
        created_by: how our writer signs now.
        codec: the codec configured.
    """
    if not footer.sealed or footer.created_by != created_by:
        return "other writer"
    if footer.schema != schema:
        return "other schema"
    chunks = [chunk for group in footer.row_groups for chunk in _value(group, _COLUMNS).values]
    numbers = footer.fields.keys() | {number for chunk in chunks for number in chunk if number in _CHUNK_ENCRYPTION}
    if numbers & {_ENCRYPTION, _SIGNING_KEY}:
        return "encrypted"
    metas = [_value(chunk, _CHUNK_META) for chunk in chunks]
    if any(_value(meta, _CODEC) != CODECS[codec] for meta in metas):
        return "other codec"
    if any(number in chunk for chunk in chunks for number in _CHUNK_INDEXES) or any(_BLOOM_OFFSET in m for m in metas):
        return "page indexes"
    problem = find_misplaced_chunk(footer.row_groups, footer.start)
    return f"damaged: {problem}" if problem else None


def _value(fields: Struct, number: int) -> Any:
    try:
        return fields[number].value
    except KeyError as error:
        raise CorruptFileError(f"the footer lacks the required field {number}") from error


def chunk_path(chunk: Struct) -> tuple[bytes, ...]:
    """Path of a chunk's column in the schema."""
    return tuple(_value(_value(chunk, _CHUNK_META), _PATH).values)


def chunk_extent(chunk: Struct) -> tuple[int, int]:
    """Offsets of a chunk's first byte and of the byte behind its last."""
    meta = _value(chunk, _CHUNK_META)
    start = min(meta[number].value for number in (_DATA_PAGE, _DICTIONARY_PAGE) if number in meta)
    return start, start + _value(meta, _CHUNK_BYTES)


def find_misplaced_chunk(groups: Sequence[Struct], data_end: int) -> str | None:
    """What is wrong with the places of the chunks, or None: they lie in the file and apart from each other.

    Args:
        groups: row groups.
        data_end: where the footer begins.
    """
    extents = sorted(chunk_extent(chunk) for group in groups for chunk in _value(group, _COLUMNS).values)
    end_before = len(MAGIC)
    for start, end in extents:
        if start < end_before or end < start:
            return f"a chunk at {start} begins before {end_before}"
        end_before = end
    if end_before > data_end:
        return f"a chunk ends at {end_before}, behind the data's end at {data_end}"
    return None


def end_of_groups(groups: Sequence[Struct], replaced: bytes) -> int:
    """Where the chunks of row groups end, those of a column that is to be replaced left out."""
    ends = [
        chunk_extent(chunk)[1]
        for group in groups
        for chunk in _value(group, _COLUMNS).values
        if chunk_path(chunk) != (replaced,)
    ]
    return max(ends, default=len(MAGIC))


def moved_group(group: Struct, by: int) -> Struct:
    """A row group whose bytes lie elsewhere than its writer thought.

    Args:
        group: the row group.
        by: bytes to add to each offset.
    """
    columns = [_moved_chunk(chunk, by) for chunk in _value(group, _COLUMNS).values]
    moved = {**group, _COLUMNS: Field(LIST, Items(STRUCT, columns))}
    if _GROUP_OFFSET in moved:
        moved[_GROUP_OFFSET] = Field(I64, moved[_GROUP_OFFSET].value + by)
    return moved


def _moved_chunk(chunk: Struct, by: int) -> Struct:
    meta = dict(_value(chunk, _CHUNK_META))
    for number in _PAGE_OFFSETS:
        if number in meta:
            meta[number] = Field(I64, meta[number].value + by)
    moved = {**chunk, _CHUNK_META: Field(STRUCT, meta)}
    # 0 where the chunk's metadata is in the footer alone, as it is with every writer of today
    if moved.get(_CHUNK_OFFSET, Field(I64, 0)).value:
        moved[_CHUNK_OFFSET] = Field(I64, moved[_CHUNK_OFFSET].value + by)
    return moved


def only_chunk(group: Struct) -> Struct:
    """The chunk of a row group that has one column."""
    (chunk,) = _value(group, _COLUMNS).values
    found: Struct = chunk
    return found


def with_chunk(group: Struct, chunk: Struct) -> Struct:
    """A row group in which a chunk takes the place of the one of the same column; totals follow.

    Raises:
        CorruptFileError: when the group has no such column, or the chunk another number of values.
    """
    columns = list(_value(group, _COLUMNS).values)
    path = chunk_path(chunk)
    at = next((number for number, held in enumerate(columns) if chunk_path(held) == path), None)
    if at is None:
        raise CorruptFileError(f"a row group lacks the column {b'.'.join(path).decode(errors='replace')}")
    old, new = _value(columns[at], _CHUNK_META), _value(chunk, _CHUNK_META)
    if _value(old, _NUM_VALUES) != _value(new, _NUM_VALUES):
        raise CorruptFileError("a row group's columns have different numbers of values")
    columns[at] = chunk
    replaced = {**group, _COLUMNS: Field(LIST, Items(STRUCT, columns))}
    for total, part in ((_TOTAL_BYTES, _UNCOMPRESSED), (_COMPRESSED, _CHUNK_BYTES)):
        if total in replaced:
            changed = replaced[total].value - _value(old, part) + _value(new, part)
            replaced[total] = Field(I64, changed)
    return replaced


def join_footer(groups: Sequence[Struct], like: Footer, key_values: Mapping[str, str]) -> bytes:
    """The sealed footer of a file made of these row groups.

    Args:
        groups: row groups in file order, their offsets those of the file.
        like: a footer of our writer: schema, version and signature are taken from it.
        key_values: key-value metadata.

    Returns:
        Thrift bytes, to be followed by their length and the magic.
    """
    numbered = [
        {**group, _ORDINAL: Field(I16, number)} if _ORDINAL in group else group for number, group in enumerate(groups)
    ]
    rows = sum(_value(group, _GROUP_ROWS) for group in groups)
    entries = [*key_values.items(), (CHECKSUM_KEY, _NO_CHECKSUM)]
    pairs: list[Struct] = [{1: Field(BINARY, k.encode()), 2: Field(BINARY, v.encode())} for k, v in entries]
    fields = {
        **like.fields,
        _NUM_ROWS: Field(I64, rows),
        _ROW_GROUPS: Field(LIST, Items(STRUCT, numbered)),
        _KEY_VALUE: Field(LIST, Items(STRUCT, pairs)),
    }
    return _seal(encode_struct(dict(sorted(fields.items()))))


def _checksum_at(raw: bytes) -> int | None:
    """Where the eight digits of the checksum stand."""
    at = raw.rfind(CHECKSUM_KEY.encode())
    # the key is followed by the header of field 2 and the length of its text
    digits = at + len(CHECKSUM_KEY) + 2
    return digits if at >= 0 and digits + len(_NO_CHECKSUM) <= len(raw) else None


def _checksum(raw: bytes, at: int) -> bytes:
    end = at + len(_NO_CHECKSUM)
    before = zlib.crc32(memoryview(raw)[:at])
    return b"%08x" % zlib.crc32(memoryview(raw)[end:], zlib.crc32(_NO_CHECKSUM.encode(), before))


def _seal(raw: bytes) -> bytes:
    at = _checksum_at(raw)
    assert at is not None
    return raw[:at] + _checksum(raw, at) + raw[at + len(_NO_CHECKSUM) :]


def is_sealed(raw: bytes) -> bool:
    """Whether a footer carries a checksum, and it is right."""
    at = _checksum_at(raw)
    return at is not None and raw[at : at + len(_NO_CHECKSUM)] == _checksum(raw, at)
