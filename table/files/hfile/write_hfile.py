"""Writes HFiles: sorted keys with their values, one index level (pure; HFileWriterImpl of hudi-io)."""

import gzip
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from table.files.hfile.blocks import DATA, FILE_INFO, HEADER, HEADER_BYTES, ROOT_INDEX, Codec
from table.files.hfile.pieces import bytes_of
from table.files.hfile.read_hfile import MAJOR_VERSION, PROTOBUF_MAGIC, SCHEMA_KEY, TRAILER_BYTES, TRAILER_MAGIC

_CHECKSUM_BYTES = 4
_BYTES_PER_CHECKSUM = 16384
# Hudi's reader leaves out entries that begin in the last 4 bytes per 16 KiB of a block: here none does
_BLOCK_BYTES = 1 << 16
_NO_FAMILY_LATEST_PUT = b"\x00" + b"\x7f" + b"\xff" * 7 + b"\x04"
_NO_MVCC = b"\x00"
_PAIRS_AT_ONCE = 65_536
_KEY_FRAME = 2 + len(_NO_FAMILY_LATEST_PUT)  # what a key has besides its row
_COMPARATOR = b"org.apache.hudi.io.storage.HoodieHBaseKVComparator"


@dataclass(frozen=True)
class HFileEntries:
    """The entries of an HFile, ascending by key.

    Attributes:
        keys: binary array without nulls.
        values: binary array without nulls, a value for each key.
    """

    keys: pa.Array
    values: pa.Array

    @staticmethod
    def of(entries: Iterable[tuple[bytes, bytes]]) -> "HFileEntries":
        """Keys with values."""
        pairs = list(entries)
        keys, values = [key for key, _ in pairs], [value for _, value in pairs]
        return HFileEntries(pa.array(keys, pa.binary()), pa.array(values, pa.binary()))

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        return zip(self.keys.to_pylist(), self.values.to_pylist(), strict=True)


NO_ENTRIES = HFileEntries.of(())


def encode_hfile(
    entries: HFileEntries | Iterable[tuple[bytes, bytes]], schema: str, *, is_base_file: bool = False
) -> bytes:
    """The bytes of an HFile. The same entries give the same bytes.

    Args:
        entries: keys with values; keys ascend by their bytes, and none occurs twice.
        schema: Avro schema of the values, which Hudi's reader requires.
        is_base_file: whether the file info names the first and the last key, as Hudi's base files do.

    Raises:
        ValueError: the keys do not ascend.
    """
    blocks = _DataBlocks()
    for piece in _pieces(entries):
        blocks.add(piece)
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


def _pieces(entries: HFileEntries | Iterable[tuple[bytes, bytes]]) -> Iterator[HFileEntries]:
    """Entries as columns; of an iterator so many at a time that memory does not grow with the file."""
    if isinstance(entries, HFileEntries):
        yield entries
        return
    remaining = iter(entries)
    while pairs := list(islice(remaining, _PAIRS_AT_ONCE)):
        yield HFileEntries.of(pairs)


def _framed(entries: HFileEntries) -> pa.Array:
    """Each entry as a block has it (binary array). Entries of the same lengths begin alike."""
    rows, values = (
        pc.binary_length(column).to_numpy(zero_copy_only=False) for column in (entries.keys, entries.values)
    )
    lengths, of_entry = np.unique(rows.astype(np.int64) << 32 | values, return_inverse=True)
    heads = [_head(length >> 32, length & 0xFFFFFFFF) for length in lengths.tolist()]
    head = pa.array(heads, pa.binary()).take(pa.array(of_entry.reshape(-1)))
    middle, end = (pa.scalar(part, pa.binary()) for part in (_NO_FAMILY_LATEST_PUT, _NO_MVCC))
    framed: pa.Array = pc.binary_join_element_wise(
        head, entries.keys, middle, entries.values, end, pa.scalar(b"", pa.binary())
    )
    return framed


def _head(row: int, value: int) -> bytes:
    """The lengths before a row and a value of so many bytes."""
    return struct.pack(">iiH", _KEY_FRAME + row, value, row)


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

    def add(self, added: HFileEntries) -> None:
        """Adds entries after those that are there.

        Raises:
            ValueError: the keys do not ascend.
        """
        keys, count = added.keys, len(added)
        if not count:
            return
        self._check_ascending(keys)
        if not self.entries:
            self._least = keys[0].as_py()
        data, bounds = bytes_of(_framed(added))
        start = 0
        while start < count:
            # as many entries as fit into the block, and at least one into an empty one
            fits = int(np.searchsorted(bounds, bounds[start] + _BLOCK_BYTES - len(self._block), side="right")) - 1
            end = min(max(fits, start if self._block else start + 1), count)
            if not self._block:
                self._first = keys[start].as_py()
            self._block += data[bounds[start] : bounds[end]].tobytes()
            start = end
            if start < count:
                self.flush()
        self.entries, self._last = self.entries + count, keys[-1].as_py()
        self._key_bytes += count * _KEY_FRAME + pc.sum(pc.binary_length(keys)).as_py()
        self._value_bytes += pc.sum(pc.binary_length(added.values)).as_py()

    def _check_ascending(self, keys: pa.Array) -> None:
        if self.entries and keys[0].as_py() <= self._last:
            raise ValueError(f"the key {keys[0].as_py()!r} of an HFile comes after {self._last!r}")
        wrong = pc.index(pc.less(keys[:-1], keys[1:]), False).as_py() if len(keys) > 1 else -1
        if wrong >= 0:
            raise ValueError(f"the key {keys[wrong + 1].as_py()!r} of an HFile comes after {keys[wrong].as_py()!r}")

    def flush(self) -> None:
        """Ends the block that is being filled, if there is one."""
        if not self._block:
            return
        packed, first = encode_block(DATA, bytes(self._block)), _row(self._first)
        self.last_at = len(self.file)
        self.index += struct.pack(">qi", self.last_at, len(packed)) + encode_java_varint(len(first)) + first
        self.file += packed
        self.count, self.unpacked = self.count + 1, self.unpacked + len(self._block)
        self._block.clear()

    def info(self) -> dict[bytes, bytes]:
        """The entries of the file info about the keys."""
        count = max(self.entries, 1)
        return {
            b"KEY_VALUE_VERSION": struct.pack(">i", 1),
            b"MAX_MEMSTORE_TS_KEY": bytes(8),
            b"hfile.AVG_KEY_LEN": struct.pack(">i", self._key_bytes // count),
            b"hfile.AVG_VALUE_LEN": struct.pack(">i", self._value_bytes // count),
            b"hfile.CREATE_TIME_TS": bytes(8),
            b"hfile.LASTKEY": _row(self._last) + _NO_FAMILY_LATEST_PUT if self.entries else b"",
        }

    def key_range(self) -> dict[bytes, bytes]:
        """What a base file says of its keys besides."""
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
