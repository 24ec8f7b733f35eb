"""Hudi's bloom filters, bit for bit, a column of keys at a time (SimpleBloomFilter, InternalBloomFilter).

The hash is Hadoop's MurmurHash, in which tail bytes are sign-extended; the k-th hash is seeded with
the one before it. All that depends on the key alone is computed once, so that each of the k rounds
costs two operations for four bytes of key.
"""

import base64
import binascii
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from table.errors import CorruptFileError

SIMPLE, DYNAMIC_V0 = "SIMPLE", "DYNAMIC_V0"

_M = np.uint32(0x5BD1E995)
_CHUNK = 16_384  # keys hashed together: their words stay in the processor's cache
_HEADER = 13
_MAX_BITS = 2**31 - 1

Bits = npt.NDArray[np.uint8]


def filter_bits(entries: int, fpp: float) -> int:
    """Size of a filter in bits for that many keys at that false positive rate (BloomFilterUtils)."""
    return min(_MAX_BITS, math.ceil(entries * (-math.log(fpp) / (math.log(2) * math.log(2)))))


def hash_count(entries: int, bits: int) -> int:
    """Number of hash functions (BloomFilterUtils.getNumHashes)."""
    return math.ceil(math.log(2) * bits / entries)


def hash_rounds(keys: pa.Array, rounds: int) -> Iterator[tuple[npt.NDArray[np.int64], list[npt.NDArray[np.uint32]]]]:
    """Hashes keys, chunk by chunk.

    Args:
        keys: string array without nulls.
        rounds: how many chained hashes a key.

    Yields:
        Positions of a chunk's keys in `keys`, and for each round the absolute value of their hash.
    """
    data, offsets = _buffers(keys)
    lengths = np.diff(offsets)
    for length in np.unique(lengths):
        positions = np.flatnonzero(lengths == length)
        for start in range(0, len(positions), _CHUNK):
            chunk = positions[start : start + _CHUNK]
            block = data[offsets[chunk][:, None] + np.arange(length)] if length else np.zeros((len(chunk), 0), np.uint8)
            yield chunk, _hash_block(block, rounds)


def _buffers(keys: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    if keys.null_count:
        raise ValueError("record keys cannot be null")
    if not pa.types.is_string(keys.type):
        keys = keys.cast(pa.string())
    _, offset_buffer, data_buffer = keys.buffers()
    if len(keys) == 0:
        return np.zeros(0, np.uint8), np.zeros(1, np.int64)
    offsets = np.frombuffer(offset_buffer, np.int32)[keys.offset : keys.offset + len(keys) + 1].astype(np.int64)
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.zeros(0, np.uint8)
    return data, offsets


def _hash_block(block: Bits, rounds: int) -> list[npt.NDArray[np.uint32]]:
    count, length = block.shape
    whole = length & ~3
    words = np.ascontiguousarray(block[:, :whole]).view("<u4").T.copy() if whole else np.zeros((0, count), np.uint32)
    words *= _M
    words ^= words >> np.uint32(24)
    words *= _M
    tail = _tail(block, length, whole) if length > whole else None
    seed = np.zeros(count, np.uint32)
    hashes = []
    for _ in range(rounds):
        h = seed ^ np.uint32(length)
        for word in words:
            h *= _M
            h ^= word
        if tail is not None:
            h ^= tail
            h *= _M
        h ^= h >> np.uint32(13)
        h *= _M
        h ^= h >> np.uint32(15)
        signed = h.view(np.int32)
        # |v| of the signed value; the wrap-around of the least one gives 2^31, as it should
        hashes.append(np.where(signed < 0, np.uint32(0) - h, h).astype(np.uint32, copy=False))
        seed = h
    return hashes


def _tail(block: Bits, length: int, whole: int) -> npt.NDArray[np.uint32]:
    signed = block.view(np.int8).astype(np.int32)
    left = length - whole
    tail = signed[:, length - 1]
    if left >= 2:
        tail = tail ^ (signed[:, length - 2] << 8)
    if left >= 3:
        tail = tail ^ (signed[:, length - 3] << 16)
    return tail.astype(np.int32).view(np.uint32)


@dataclass(frozen=True)
class BloomFilter:
    """A SIMPLE filter: one row of bits.

    Attributes:
        hashes: rounds a key.
        bits: number of bits.
        bitmap: ``ceil(bits / 8)`` bytes, bit i at byte i >> 3, mask 1 << (i & 7).
    """

    hashes: int
    bits: int
    bitmap: Bits

    def added(self, keys: pa.Array) -> "BloomFilter":
        """This filter and those keys (string array without nulls)."""
        flags = np.unpackbits(self.bitmap, bitorder="little")
        for _, rounds in hash_rounds(keys, self.hashes):
            for values in rounds:
                flags[_remainder(values, self.bits)] = 1
        return BloomFilter(self.hashes, self.bits, np.packbits(flags, bitorder="little"))

    def may_contain(self, keys: pa.Array) -> npt.NDArray[np.bool_]:
        """For each key False when it was surely never added."""
        found = np.ones(len(keys), np.bool_)
        for positions, rounds in hash_rounds(keys, self.hashes):
            hit = np.ones(len(positions), np.bool_)
            for values in rounds:
                index = _remainder(values, self.bits)
                hit &= (self.bitmap[index >> 3] >> (index & 7).astype(np.uint8)) & 1 == 1
            found[positions] = hit
        return found

    def encode(self) -> str:
        """Base64 as it stands in the footer's ``org.apache.hudi.bloomfilter``."""
        return base64.b64encode(_encode_row(self)).decode("ascii")


def _remainder(values: npt.NDArray[np.uint32], bits: int) -> npt.NDArray[np.int64]:
    # numpy divides by a scalar with SIMD, but takes remainders one by one
    divisor = np.uint32(bits)
    return (values - values // divisor * divisor).astype(np.int64)


def build_filter(keys: pa.Array, entries: int, fpp: float) -> BloomFilter:
    """A SIMPLE filter with those keys.

    Args:
        keys: string array without nulls.
        entries: for how many keys to size it (at least 1).
        fpp: false positive rate at that number of keys.
    """
    entries = max(1, entries)
    bits = filter_bits(entries, fpp)
    return empty_filter(hash_count(entries, bits), bits).added(keys)


def empty_filter(hashes: int, bits: int) -> BloomFilter:
    """A SIMPLE filter without keys."""
    return BloomFilter(hashes, bits, np.zeros((bits + 7) // 8, np.uint8))


def filter_entries(bloom: BloomFilter) -> int:
    """For about how many keys the filter was sized: the inverse of `hash_count`."""
    return max(1, round(math.log(2) * bloom.bits / bloom.hashes))


def _encode_row(bloom: BloomFilter) -> bytes:
    header = (-1).to_bytes(4, "big", signed=True) + bloom.hashes.to_bytes(4, "big") + b"\x01"
    return header + bloom.bits.to_bytes(4, "big") + bloom.bitmap.tobytes()


def decode_simple(text: str) -> BloomFilter:
    """The filter of a footer without a type code.

    Raises:
        CorruptFileError: when the text is no such filter.
    """
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise CorruptFileError(f"a bloom filter is not base64: {error}") from error
    if len(data) < _HEADER or data[:4] != b"\xff\xff\xff\xff" or data[8] != 1:
        raise CorruptFileError("a bloom filter has a header that is not Hudi's")
    hashes, bits = int.from_bytes(data[4:8], "big"), int.from_bytes(data[9:13], "big")
    if not 1 <= bits <= _MAX_BITS or len(data) != _HEADER + (bits + 7) // 8 or not 1 <= hashes <= 1024:
        raise CorruptFileError(f"a bloom filter of {bits} bits has {len(data) - _HEADER} bytes")
    return BloomFilter(hashes, bits, np.frombuffer(data, np.uint8, offset=_HEADER).copy())
