"""Parquet footers as values: read, joined, sealed (pure; parquet.thrift of the format's project).

A footer that this project writes ends with an entry of its own, the *seal*. The seal holds a checksum of the footer,
so that a flipped bit cannot travel from one version of a file to the next. It also holds the place of each row group
in the footer, so that the next version copies their descriptions as bytes, without decoding thousands of fields.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow.parquet as pq

from table.errors import CorruptFileError
from table.files.parquet.row_groups import RowGroup, field_value, fields_of_known_types, rows_of
from table.files.parquet.thrift_compact import (
    BINARY,
    I64,
    LIST,
    MAX_VARINT_BYTES,
    STOP,
    STRUCT,
    Field,
    Items,
    Struct,
    append_struct,
    decode_struct,
    encode_list_header,
    encode_struct,
)

MAGIC = b"PAR1"
ENCRYPTED_MAGIC = b"PARE"
TAIL_BYTES = 8  # length of the footer, magic

SEAL_KEY = b"hudistream.footer"
# says that no chunk lacks bounds because of long values, and that a finite upper bound of floats means "no NaN": the
# next version need not look for such chunks. Files of earlier versions say "complete": NaN may lie outside of bounds.
BOUNDS_KEY, BOUNDS_COMPLETE = "hudistream.bounds", "complete, NaN"
_DIGITS = 8
_NUMBERS_A_GROUP = 6

# field ids of FileMetaData
_NUM_ROWS, _ROW_GROUPS, _KEY_VALUE, _CREATED_BY = 3, 4, 5, 6
_SCHEMA = 2


def find_footer(tail: bytes, file_size: int) -> int:
    """Where the Thrift bytes of the footer begin, according to the last bytes of a file.

    Raises:
        CorruptFileError: when the bytes are not the end of an unencrypted Parquet file.
    """
    if tail[-4:] == ENCRYPTED_MAGIC:
        raise CorruptFileError("the footer is encrypted")
    if len(tail) < TAIL_BYTES or tail[-4:] != MAGIC:
        raise CorruptFileError("it does not end as a Parquet file does")
    length = int.from_bytes(tail[-8:-4], "little")
    start = file_size - TAIL_BYTES - length
    if start < len(MAGIC):
        raise CorruptFileError(f"its footer would be longer ({length} bytes) than the file")
    return start


@dataclass(frozen=True)
class Footer:
    """A footer.

    Attributes:
        decoded: the FileMetaData struct; of a sealed footer only the fields after the row groups.
        groups: row groups of a sealed footer; None for a footer of another writer.
        codec: codec of a sealed file's chunks, as its writer's settings named it.
        head: bytes of a sealed footer before the row groups. They are decoded on demand, because a search for keys in
            many files needs only the filters, which stand after the row groups.
    """

    decoded: Struct
    groups: tuple[RowGroup, ...] | None = None
    codec: str = ""
    head: bytes = b""

    @cached_property
    def fields(self) -> Struct:
        """The FileMetaData struct; without row groups where the footer is sealed.

        Raises:
            CorruptFileError: when the bytes are not one.
        """
        return decode_struct(self.head + bytes([STOP])) | self.decoded if self.head else self.decoded

    @cached_property
    def before_rows(self) -> bytes:
        """The bytes before the number of rows: version and schema tree."""
        return encode_struct({number: field for number, field in self.fields.items() if number < _NUM_ROWS})[:-1]

    @property
    def schema(self) -> Items:
        """The schema tree, flattened as in Parquet."""
        tree: Items = field_value(self.fields, _SCHEMA)
        return tree

    @property
    def created_by(self) -> bytes:
        """Writer and version; empty if the footer names none."""
        return bytes(self.fields[_CREATED_BY].value) if _CREATED_BY in self.fields else b""

    @property
    def num_rows(self) -> int:
        """Rows of the file."""
        return int(field_value(self.fields, _NUM_ROWS))

    @property
    def row_groups(self) -> list[Struct]:
        """Row groups of a footer that is not sealed."""
        groups: list[Struct] = field_value(self.fields, _ROW_GROUPS).values
        return groups

    @property
    def is_sealed(self) -> bool:
        """Whether this project wrote the footer and its checksum shows that it is unchanged."""
        return self.groups is not None

    @property
    def has_all_bounds(self) -> bool:
        """Whether the footer says that all chunks have the bounds of this version. Files of older versions do not."""
        return self.is_sealed and self.key_values.get(BOUNDS_KEY) == BOUNDS_COMPLETE

    @cached_property
    def key_values(self) -> dict[str, str]:
        """Key-value metadata."""
        found = {}
        for name, value in self.entries.items():
            try:
                found[name] = str(value, "utf-8")
            except UnicodeDecodeError:
                continue  # an entry of another writer that is not text
        return found

    @cached_property
    def entries(self) -> dict[str, bytes | memoryview]:
        """Key-value metadata, values not decoded: a bloom filter may be some megabytes."""
        entries = self.decoded[_KEY_VALUE].value.values if _KEY_VALUE in self.decoded else []
        found = {}
        for entry in entries:
            try:
                found[str(entry[1].value, "utf-8")] = entry[2].value
            except (KeyError, UnicodeDecodeError):
                continue  # an entry of another writer that is not text
        return found

    @property
    def group_rows(self) -> list[int]:
        """Rows of each row group."""
        if self.groups is not None:
            return [group.rows for group in self.groups]
        return [rows_of(group) for group in self.row_groups]

    @property
    def largest_group(self) -> Struct | None:
        """The row group with the most rows; None in a file without row groups.

        Raises:
            CorruptFileError: when its bytes are not a row group.
        """
        rows = self.group_rows
        if not rows:
            return None
        at = rows.index(max(rows))
        return self.row_groups[at] if self.groups is None else self.groups[at].decoded


def decode_footer(raw: bytes) -> Footer:
    """A footer from its Thrift bytes.

    Raises:
        CorruptFileError: when the bytes are not a footer, or a sealed footer was changed after it was written.
    """
    seal = _find_seal(raw)
    sealed = _decode_sealed(raw, seal) if seal is not None else None
    if sealed is not None:
        return sealed
    footer = Footer(decode_struct(raw))
    with fields_of_known_types():
        rows = footer.group_rows
        agree = footer.num_rows == sum(rows) and min(rows, default=0) >= 0 and footer.key_values is not None
    if not agree:
        raise CorruptFileError("the rows of its row groups are not the rows of the file")
    return footer


def _decode_sealed(raw: bytes, seal: tuple[int, int]) -> Footer | None:
    at, end = seal
    text = raw[at + _DIGITS : end].split()
    if not text or text[0] != b"%d" % len(raw):
        return None  # the seal belongs to another footer: another writer copied the entries of a sealed file
    if raw[at : at + _DIGITS] != _checksum(raw, at):
        raise CorruptFileError("its footer was changed after it was written: the checksum does not match")
    with fields_of_known_types():
        return _unsealed(raw, [part.decode() for part in text[1:]])


def _unsealed(raw: bytes, seal: Sequence[str]) -> Footer:
    codec, start, *numbers = seal
    position = list_start = int(start)
    groups = []
    for number in range(0, len(numbers), _NUMBERS_A_GROUP):
        rows, before, chunk, after, totals, data_end = map(int, numbers[number : number + _NUMBERS_A_GROUP])
        at_chunk, at_after = position + before, position + before + chunk
        at_totals, group_end = at_after + after, at_after + after + totals
        parts = (raw[position:at_chunk], raw[at_chunk:at_after], raw[at_after:at_totals], raw[at_totals:group_end])
        groups.append(RowGroup(rows, *parts, data_end))
        position = group_end
    # before the row groups: one byte of field header, and the header of their list
    head_end = list_start - len(encode_list_header(STRUCT, len(groups))) - 1
    # a view, not a copy: the filter of a large file is some megabytes
    rest = decode_struct(memoryview(raw)[position:], _ROW_GROUPS)
    return Footer(rest, tuple(groups), codec, raw[:head_end])


def why_not_continued(footer: Footer, schema: Items, created_by: bytes, codec: str) -> str | None:
    """Why a file's row groups cannot be copied into a new file, or None if they can.

    A sealed footer says that this project wrote the file and nothing changed it: not encrypted, no page indexes,
    every chunk in its place.

    Args:
        footer: footer of the file.
        schema: the schema tree that the writer makes now.
        created_by: the writer's present signature.
        codec: the configured codec.
    """
    if not footer.is_sealed:
        return "other writer"
    if footer.created_by != created_by:
        return "other version of the writer"
    if footer.schema != schema:
        return "other schema"
    return None if footer.codec == codec else "other codec"


def join_footer(groups: Sequence[RowGroup], like: Footer, key_values: Mapping[str, str], codec: str) -> bytearray:
    """The end of a file: the sealed footer of a file made of these row groups.

    Args:
        groups: row groups in file order, with their bounds added.
        like: a footer of the writer: schema, version and signature are taken from it.
        key_values: key-value metadata.
        codec: codec of all chunks.

    Returns:
        Thrift bytes, their length, the magic.
    """
    rows: Struct = {_NUM_ROWS: Field(I64, sum(group.rows for group in groups))}
    # fields 1 to 3 come before, so the header of field 4 is one byte
    before_groups = like.before_rows + encode_struct(rows, _SCHEMA)[:-1]
    opening = before_groups + bytes([1 << 4 | LIST]) + encode_list_header(STRUCT, len(groups))
    seal = [codec, str(len(opening))]
    for group in groups:
        lengths = map(len, (group.before, group.chunk, group.after, group.totals))
        seal += map(str, (group.rows, *lengths, group.data_end))
    blank = b"0" * _DIGITS + b" " * (_DIGITS + 2) + " ".join(seal).encode()
    texts = {**key_values, BOUNDS_KEY: BOUNDS_COMPLETE}
    entries = [*((key.encode(), value.encode()) for key, value in texts.items()), (SEAL_KEY, blank)]
    pairs: list[Struct] = [{1: Field(BINARY, key), 2: Field(BINARY, value)} for key, value in entries]
    tail = {number: field for number, field in like.fields.items() if number > _ROW_GROUPS}
    tail[_KEY_VALUE] = Field(LIST, Items(STRUCT, pairs))
    raw = bytearray().join((opening, *(group.raw for group in groups)))
    append_struct(raw, dict(sorted(tail.items())), _ROW_GROUPS)
    found = _find_seal(raw)
    assert found is not None
    at = found[0]
    length = b"%d" % len(raw)
    raw[at + _DIGITS + 1 : at + _DIGITS + 1 + len(length)] = length
    raw[at : at + _DIGITS] = _checksum(raw, at)
    raw += len(raw).to_bytes(4, "little") + MAGIC
    return raw


def says_all_bounds(metadata: pq.FileMetaData) -> bool:
    """As `Footer.has_all_bounds`, of a footer that Arrow has read.

    Whoever writes the rows again with Arrow copies the entries, too. So the length in the seal has to be the footer's.
    """
    entries = metadata.metadata or {}
    length = entries.get(SEAL_KEY, b"")[_DIGITS + 1 :].split(b" ", maxsplit=1)[0]
    return bool(
        entries.get(BOUNDS_KEY.encode()) == BOUNDS_COMPLETE.encode() and length == b"%d" % metadata.serialized_size
    )


def _find_seal(raw: bytes | bytearray) -> tuple[int, int] | None:
    """Where the text of the seal begins and ends; None if there is no seal."""
    at = raw.rfind(SEAL_KEY)
    if at < 0:
        return None
    # the key is followed by the header of field 2, the length of its text (a varint), the text
    length = shift = 0
    first = at + len(SEAL_KEY) + 1
    for position in range(first, min(first + MAX_VARINT_BYTES, len(raw))):
        byte = raw[position]
        length |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            start = position + 1
            return (start, start + length) if length >= _DIGITS and start + length <= len(raw) else None
    return None


def _checksum(raw: bytes | bytearray, at: int) -> bytes:
    """Checksum of all bytes except its own eight hexadecimal digits."""
    with memoryview(raw) as view:
        return b"%08x" % zlib.crc32(view[at + _DIGITS :], zlib.crc32(view[:at]))
