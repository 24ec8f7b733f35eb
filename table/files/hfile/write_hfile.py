"""Writes HFiles: sorted keys with their values, one index level (pure; HFileWriterImpl of hudi-io)."""

import gzip
import struct
from collections.abc import Iterable, Mapping

from table.files.hfile.blocks import DATA, FILE_INFO, HEADER, HEADER_BYTES, ROOT_INDEX, Codec
from table.files.hfile.read_hfile import MAJOR_VERSION, PROTOBUF_MAGIC, SCHEMA_KEY, TRAILER_BYTES, TRAILER_MAGIC

_CHECKSUM_BYTES = 4
_BYTES_PER_CHECKSUM = 16384
# Hudi's reader leaves out entries that begin in the last 4 bytes per 16 KiB of a block: here none does
_BLOCK_BYTES = 1 << 16
_NO_FAMILY_LATEST_PUT = b"\x00" + b"\x7f" + b"\xff" * 7 + b"\x04"
_NO_MVCC = b"\x00"
_COMPARATOR = b"org.apache.hudi.io.storage.HoodieHBaseKVComparator"


def encode_hfile(entries: Iterable[tuple[bytes, bytes]], schema: str, *, is_base_file: bool = False) -> bytes:
    """The bytes of an HFile. The same entries give the same bytes.

    Args:
        entries: keys with values; keys ascend by their bytes, and none occurs twice.
        schema: Avro schema of the values, which Hudi's reader requires.
        is_base_file: whether the file info names the first and the last key, as Hudi's base files do.

    Raises:
        ValueError: the keys do not ascend.
    """
    blocks = _DataBlocks()
    for key, value in entries:
        blocks.add(key, value)
    blocks.flush()
    file, index_at = blocks.file, len(blocks.file)
    file += encode_block(ROOT_INDEX, bytes(blocks.index)) + encode_block(ROOT_INDEX, b"")
    info_at = len(file)
    info = {**blocks.info(), SCHEMA_KEY: schema.encode(), **(blocks.key_range() if is_base_file else {})}
    file += encode_block(FILE_INFO, _encode_info(info))
    trailer = (
        (1, info_at),
        (2, index_at),
        (3, len(blocks.index)),
        (4, blocks.unpacked),
        (5, blocks.count),
        (6, 0),
        (7, blocks.entries),
        (8, 1),
        (9, 0),
        (10, blocks.last_at),
        (11, _COMPARATOR),
        (12, Codec.GZIP),
    )
    return bytes(file) + _encode_trailer(b"".join(encode_field(number, value) for number, value in trailer))


class _DataBlocks:
    """The data blocks of a file, and their index.

    Attributes:
        file: the blocks.
        index: content of the root index.
        count: blocks.
        entries: keys.
        unpacked: bytes of the blocks' data.
        last_at: place of the last block.
    """

    def __init__(self) -> None:
        self.file, self.index = bytearray(), bytearray()
        self.count = self.entries = self.unpacked = self.last_at = 0
        self._block = bytearray()
        self._first = self._last = self._least = b""
        self._key_bytes = self._value_bytes = 0

    def add(self, key: bytes, value: bytes) -> None:
        """Adds an entry.

        Raises:
            ValueError: its key is not greater than the last one.
        """
        if self.entries and key <= self._last:
            raise ValueError(f"the key {key!r} of an HFile comes after {self._last!r}")
        framed = _row(key) + _NO_FAMILY_LATEST_PUT
        entry = struct.pack(">ii", len(framed), len(value)) + framed + value + _NO_MVCC
        if self._block and len(self._block) + len(entry) > _BLOCK_BYTES:
            self.flush()
        if not self._block:
            self._first = key
        if not self.entries:
            self._least = key
        self._block += entry
        self.entries, self._last = self.entries + 1, key
        self._key_bytes, self._value_bytes = self._key_bytes + len(framed), self._value_bytes + len(value)

    def flush(self) -> None:
        """Ends the block that is being filled, if there is one."""
        if not self._block:
            return
        packed, key = encode_block(DATA, bytes(self._block)), _row(self._first)
        self.last_at = len(self.file)
        self.index += struct.pack(">qi", self.last_at, len(packed)) + encode_java_varint(len(key)) + key
        self.file += packed
        self.count, self.unpacked = self.count + 1, self.unpacked + len(self._block)
        self._block.clear()

    def info(self) -> dict[bytes, bytes]:
        """The entries of the file info that tell of the keys."""
        entries = max(self.entries, 1)
        return {
            b"KEY_VALUE_VERSION": struct.pack(">i", 1),
            b"MAX_MEMSTORE_TS_KEY": bytes(8),
            b"hfile.AVG_KEY_LEN": struct.pack(">i", self._key_bytes // entries),
            b"hfile.AVG_VALUE_LEN": struct.pack(">i", self._value_bytes // entries),
            b"hfile.CREATE_TIME_TS": bytes(8),
            b"hfile.LASTKEY": _row(self._last) + _NO_FAMILY_LATEST_PUT if self.entries else b"",
        }

    def key_range(self) -> dict[bytes, bytes]:
        """What a base file tells of its keys besides."""
        return {b"minRecordKey": self._least, b"maxRecordKey": self._last, b"bloomFilterTypeCode": b"DYNAMIC_V0"}


def _row(key: bytes) -> bytes:
    return struct.pack(">H", len(key)) + key


def _encode_info(info: Mapping[bytes, bytes]) -> bytes:
    pairs = (encode_field(1, encode_field(1, key) + encode_field(2, info[key])) for key in sorted(info))
    message = b"".join(pairs)
    return PROTOBUF_MAGIC + encode_varint(len(message)) + message


def _encode_trailer(message: bytes) -> bytes:
    head = TRAILER_MAGIC + encode_varint(len(message)) + message
    return head + bytes(TRAILER_BYTES - len(head) - 4) + struct.pack(">i", MAJOR_VERSION)


def encode_block(magic: bytes, data: bytes) -> bytes:
    """A block with gzip-compressed data. The bytes depend on the data alone, so that two processes write the same."""
    packed = gzip.compress(data, compresslevel=6, mtime=0)
    on_disk = HEADER_BYTES + len(packed)
    room = -(-on_disk // _BYTES_PER_CHECKSUM) * _CHECKSUM_BYTES
    header = HEADER.pack(magic, len(packed) + room, len(data), -1, 0, _BYTES_PER_CHECKSUM, on_disk)
    return header + packed + bytes(room)


def encode_varint(number: int) -> bytes:
    """A number of protobuf: seven bits a byte, the lowest first."""
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def encode_field(number: int, value: int | bytes) -> bytes:
    """A field of a protobuf message: a number, or bytes with their length."""
    if isinstance(value, int):
        return encode_varint(number << 3) + encode_varint(value)
    return encode_varint(number << 3 | 2) + encode_varint(len(value)) + value


def encode_java_varint(number: int) -> bytes:
    """A count as Hadoop's WritableUtils.writeVLong: one byte up to 127, else a byte that says how many follow."""
    if number <= 127:
        return bytes((number,))
    digits = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return bytes((256 - 112 - len(digits),)) + digits
