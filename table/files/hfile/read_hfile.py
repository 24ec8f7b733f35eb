"""Reads an HFile, written by Hudi or by HBase (pure; HFileReaderImpl of hudi-io).

The index may have several levels, as HBase writes it for large files.
"""

import struct
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from itertools import pairwise
from typing import Any, TypeVar, cast

from table.errors import CorruptFileError
from table.files.hfile.blocks import (
    DATA,
    FILE_INFO,
    INNER_INDEX,
    LEAF_INDEX,
    ROOT_INDEX,
    Codec,
    FileBytes,
    decode_block,
    decode_fields,
    decode_java_varint,
    decode_varint,
)

TRAILER_BYTES = 4096
TRAILER_MAGIC = b'TRABLK"$'
MAJOR_VERSION = 3
PROTOBUF_MAGIC = b"PBUF"
SCHEMA_KEY = b"schema"
_INFO_AT, _INDEX_AT, _BLOCKS, _ENTRIES, _LEVELS, _CODEC = 1, 2, 5, 7, 8, 12
_DEEPEST_INDEX = 8
_LONGEST_KEY = 32_767
_LENGTHS = struct.Struct(">ii")
# least byte of UTF-8 by which Java, which orders by UTF-16, may order a key otherwise than HBase does
_ORDERED_APART = 0xEE


_Function = TypeVar("_Function", bound=Callable[..., Any])


def _told_as_damage(function: _Function) -> _Function:
    """Wrong bytes show themselves in several errors of Python; callers meet one."""

    @wraps(function)
    def decode(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except (struct.error, IndexError, ValueError, TypeError, KeyError) as error:
            raise CorruptFileError(f"an HFile is damaged: {error}") from error

    return cast("_Function", decode)


class HFile:
    """An HFile, of which the trailer and the index are in memory.

    Args:
        file: the whole file. It is sliced for each block that is asked for.

    Attributes:
        info: the file info.
        entry_count: entries, as the trailer says.

    Raises:
        CorruptFileError: the file is damaged, or of a version or codec that Hudi does not write.
    """

    info: Mapping[bytes, bytes]
    entry_count: int

    def __init__(self, file: FileBytes) -> None:
        self._file = memoryview(file) if isinstance(file, bytes) else file
        # the block of the last search, and how far the search came in it
        self._block, self._found_in, self._place, self._sought = b"", -1, 0, b""
        self._open()

    @_told_as_damage
    def _open(self) -> None:
        trailer = bytes(self._file[max(0, len(self._file) - TRAILER_BYTES) : len(self._file)])
        if len(trailer) < TRAILER_BYTES or not trailer.startswith(TRAILER_MAGIC) or trailer[-1] != MAJOR_VERSION:
            raise ValueError(f"its last bytes are no trailer of version {MAJOR_VERSION}")
        length, at = decode_varint(trailer, len(TRAILER_MAGIC))
        fields = {number: value for number, value in decode_fields(trailer[at : at + length]) if isinstance(value, int)}
        self._codec = Codec(fields[_CODEC])
        self.entry_count = fields.get(_ENTRIES, 0)
        self.info = _decode_info(self._section(fields[_INFO_AT], FILE_INFO))
        self._keys: list[bytes] = []  # the first key of each data block
        self._offsets: list[int] = []
        self._sizes: list[int] = []
        if fields.get(_BLOCKS, 0):
            try:
                self._add_root(self._section(fields[_INDEX_AT], ROOT_INDEX), fields[_BLOCKS], fields.get(_LEVELS, 1))
            except (CorruptFileError, ValueError, KeyError, struct.error):
                if self.entry_count:  # a file without entries need not have an index
                    raise

    def _section(self, offset: int, magic: bytes) -> bytes:
        block = decode_block(self._file, offset, self._codec)
        if block.magic != magic:
            raise ValueError(f"the block at byte {offset} begins with {block.magic!r}, and should with {magic!r}")
        return block.data

    def _add_root(self, root: bytes, count: int, levels: int) -> None:
        if levels > _DEEPEST_INDEX:
            raise ValueError(f"an index of {levels} levels")
        at = 0
        for _ in range(count):
            offset, size = struct.unpack_from(">qi", root, at)
            length, at = decode_java_varint(root, at + 12)
            self._add((offset, size), root[at : at + length], levels)
            at += length

    def _add(self, place: tuple[int, int], key: bytes, levels: int) -> None:
        """Adds a data block by offset and size, or the blocks below one block of an inner level."""
        if levels <= 1:
            self._keys.append(_key_of(key))
            self._offsets.append(place[0])
            self._sizes.append(place[1])
            return
        block = decode_block(self._file, place[0], self._codec)
        if block.magic not in (LEAF_INDEX, INNER_INDEX):
            raise ValueError(f"the block at byte {place[0]} is no index")
        (count,) = struct.unpack_from(">i", block.data)
        places = struct.unpack_from(f">{count + 1}i", block.data, 4)
        start = 4 + 4 * (count + 1)
        for at, end in pairwise(places):
            below = struct.unpack_from(">qi", block.data, start + at)
            self._add(below, block.data[start + at + 12 : start + end], levels - 1)

    @property
    def schema(self) -> str:
        """Avro schema of the values.

        Raises:
            CorruptFileError: the file has none.
        """
        if SCHEMA_KEY not in self.info:
            raise CorruptFileError("an HFile has no schema in its file info")
        # what remembers the records of many files has their schema once: it takes more memory than some records
        return sys.intern(self.info[SCHEMA_KEY].decode(errors="replace"))

    @property
    def key_bytes(self) -> int:
        """Bytes of all keys, each with its frame, by the file info; about ten are of the frame."""
        average = self.info.get(b"hfile.AVG_KEY_LEN", b"")
        return self.entry_count * (int.from_bytes(average, "big") if average else _LONGEST_KEY)

    def entries(self) -> Iterator[tuple[bytes, bytes]]:
        """Keys with values, ascending; one block at a time is unpacked.

        Raises:
            CorruptFileError: a block is damaged, or the file has fewer or more entries than its trailer says.
        """
        found = 0
        for offset in self._offsets:
            block = self._read(offset)
            found += len(block)
            yield from block
        if found != self.entry_count:
            raise CorruptFileError(f"an HFile has {found} entries, and its trailer says {self.entry_count}")

    @property
    def places(self) -> list[tuple[int, int]]:
        """Offset and size in bytes, as the index says, of each data block."""
        return list(zip(self._offsets, self._sizes, strict=True))

    def places_of(self, keys: Sequence[bytes]) -> list[tuple[int, int]]:
        """Offset and size in bytes, as the index says, of the blocks that may have one of several keys.

        Args:
            keys: ascending.
        """
        bounds = [*(bisect_left(keys, first) for first in self._keys), len(keys)]
        return [place for place, (start, end) in zip(self.places, pairwise(bounds), strict=True) if start < end]

    def find(self, key: bytes) -> bytes | None:
        """The value of a key, or None; unpacks one block.

        If keys are asked for in their order, each block is unpacked and walked through once.

        Raises:
            CorruptFileError: the block is damaged.
        """
        at = bisect_right(self._keys, key) - 1
        if at < 0:
            return None
        if max(key, default=0) >= _ORDERED_APART:
            return dict(self._read(self._offsets[at])).get(key)
        if at != self._found_in:
            self._block, self._found_in, self._place = self.block_data(self._offsets[at]), at, 0
        elif key < self._sought:
            self._place = 0
        self._sought = key
        value, self._place = _find_behind(self._block, self._place, key)
        return value

    @_told_as_damage
    def block_data(self, offset: int) -> bytes:
        """The unpacked data of a block, as `table.files.hfile.walk_blocks` takes it.

        Args:
            offset: of `places`.

        Raises:
            CorruptFileError: the block is damaged.
        """
        block = decode_block(self._file, offset, self._codec)
        if block.magic != DATA:
            raise ValueError(f"the block at byte {offset} holds no entries")
        return block.data

    @_told_as_damage
    def _read(self, offset: int) -> list[tuple[bytes, bytes]]:
        data, at, entries = self.block_data(offset), 0, []
        size, lengths = len(data), _LENGTHS.unpack_from
        while at < size:  # an index has as many entries as the table has rows: no call that can be spared
            key_length, value_length = lengths(data, at)
            start = at + 8 + key_length
            end, key_end = start + value_length, at + 10 + (data[at + 8] << 8 | data[at + 9])
            if value_length < 0 or end >= size or key_end > start:
                raise ValueError(f"an entry of {key_length} and {value_length} bytes at byte {at} of a block")
            entries.append((data[at + 10 : key_end], data[start:end]))
            at = end + 1 if data[end] <= 127 else decode_java_varint(data, end)[1]
        return entries


@_told_as_damage
def _find_behind(data: bytes, at: int, key: bytes) -> tuple[bytes | None, int]:
    """Walks through entries, which ascend, up to a key.

    Args:
        data: of a block.
        at: where an entry begins that is not after the key.
        key: the key.

    Returns:
        Its value, or None; and where the walk ended.
    """
    while at < len(data):
        start, end = _place_of_value(data, at)
        length = data[at + 8] << 8 | data[at + 9]
        if at + 10 + length > start:
            raise ValueError(f"a key of {length} bytes at byte {at} of a block")
        found = data[at + 10 : at + 10 + length]
        if found >= key:
            return (data[start:end] if found == key else None), at
        at = end + 1 if data[end] <= 127 else decode_java_varint(data, end)[1]
    return None, at


def _place_of_value(data: bytes, at: int) -> tuple[int, int]:
    """Where the value of an entry begins, and where it ends."""
    key_length, value_length = _LENGTHS.unpack_from(data, at)
    start = at + 8 + key_length
    if key_length < 2 or value_length < 0 or start + value_length > len(data):
        raise ValueError(f"an entry of {key_length} and {value_length} bytes at byte {at} of a block")
    return start, start + value_length


def _key_of(framed: bytes) -> bytes:
    (length,) = struct.unpack_from(">H", framed)
    if length + 2 > len(framed):
        raise ValueError(f"a key of {length} bytes in {len(framed)}")
    return framed[2 : 2 + length]


def _decode_info(data: bytes) -> dict[bytes, bytes]:
    if not data.startswith(PROTOBUF_MAGIC):
        raise ValueError("the file info is no protobuf")
    length, at = decode_varint(data, len(PROTOBUF_MAGIC))
    info = {}
    for number, pair in decode_fields(data[at : at + length]):
        if number == 1 and isinstance(pair, bytes):
            entry = dict(decode_fields(pair))
            key, value = entry.get(1, b""), entry.get(2, b"")
            if isinstance(key, bytes) and isinstance(value, bytes):
                info[key] = value
    return info
