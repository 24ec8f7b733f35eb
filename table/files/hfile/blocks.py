"""The blocks of an HFile, and the two small encodings inside them (pure; HFileBlock, HFileTrailer of hudi-io).

::

    8  magic
    4  size on disk after the header: data and checksums
    4  size of the data before compression
    8  offset of the previous block of this kind; not read
    1  type of the checksums, 0: none
    4  bytes for each checksum
    4  size on disk of header and data
       data, a gzip stream of its own if the trailer says so
       4 bytes for each checksum

Integers are big-endian. Checksums are not verified: Hudi writes none since 1.1, but keeps their room.
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from table.errors import CorruptFileError

DATA = b"DATABLK*"
ROOT_INDEX = b"IDXROOT2"
LEAF_INDEX = b"IDXLEAF2"
INNER_INDEX = b"IDXINTE2"
FILE_INFO = b"FILEINF2"

HEADER = struct.Struct(">8siiqBii")
HEADER_BYTES = HEADER.size
_LARGEST_BLOCK = 1 << 30


class Codec(IntEnum):
    """Compression of all blocks, as the trailer says it (CompressionCodec). Hudi writes GZIP."""

    GZIP = 1
    NONE = 2


@dataclass(frozen=True, slots=True)
class Block:
    """A decoded block: its magic, its data, and its size on disk with header and checksums."""

    magic: bytes
    data: bytes
    size: int


class FileBytes(Protocol):
    """The bytes of a file, in memory or read when they are asked for."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice, /) -> bytes | memoryview: ...


def decode_block(file: FileBytes, offset: int, codec: Codec) -> Block:
    """The block at an offset.

    Args:
        file: the whole file.
        codec: the trailer's.

    Raises:
        CorruptFileError: no whole block begins there.
    """
    if not 0 <= offset <= len(file) - HEADER_BYTES:
        raise CorruptFileError(f"no block begins at byte {offset} of {len(file)}")
    magic, after_header, size, _, _, _, on_disk = HEADER.unpack(file[offset : offset + HEADER_BYTES])
    end = offset + HEADER_BYTES + after_header
    if not (HEADER_BYTES <= on_disk <= HEADER_BYTES + after_header and end <= len(file) and 0 <= size < _LARGEST_BLOCK):
        raise CorruptFileError(f"the block at byte {offset} says it has {after_header} bytes, {size} unpacked")
    packed = bytes(file[offset + HEADER_BYTES : offset + on_disk])
    data = packed if codec is Codec.NONE else _unpack(packed, size, offset)
    if len(data) != size:
        raise CorruptFileError(f"the block at byte {offset} has {len(data)} bytes unpacked, and says {size}")
    return Block(magic, data, HEADER_BYTES + after_header)


def _unpack(packed: bytes, size: int, offset: int) -> bytes:
    """Unpacks at most one byte more than the block says, so that a hostile file cannot fill the memory."""
    try:
        return zlib.decompressobj(wbits=31).decompress(packed, size + 1)
    except zlib.error as error:
        raise CorruptFileError(f"the block at byte {offset} cannot be unpacked: {error}") from error


def decode_varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of protobuf, and the place after it.

    Raises:
        IndexError: the data ends within the number.
        ValueError: it has more than 64 bits.
    """
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than 64 bits")


def decode_fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a protobuf message, in order.

    Raises:
        IndexError, ValueError: the message is damaged.
    """
    at = 0
    while at < len(data):
        tag, at = decode_varint(data, at)
        if tag & 7 == 0:
            value, at = decode_varint(data, at)
            yield tag >> 3, value
        elif tag & 7 == 2:
            length, at = decode_varint(data, at)
            if at + length > len(data):
                raise ValueError(f"a field of {length} bytes")
            yield tag >> 3, data[at : at + length]
            at += length
        else:
            raise ValueError(f"a field of wire type {tag & 7}")


def decode_java_varint(data: bytes, at: int) -> tuple[int, int]:
    """A count as Hadoop's WritableUtils.writeVLong writes it, and the place after it.

    One byte up to 127, else a byte that says how many follow.

    Raises:
        IndexError: the data ends within the number.
        ValueError: the number is negative.
    """
    first = data[at]
    if first <= 127:
        return first, at + 1
    length = 256 - 112 - first
    if not 1 <= length <= 8:
        raise ValueError("a negative number")
    if at + 1 + length > len(data):
        raise IndexError("the data ends within a number")
    return int.from_bytes(data[at + 1 : at + 1 + length], "big"), at + 1 + length
