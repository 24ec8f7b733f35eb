"""Strings hashed a column at a time: the Murmur hashes of Hudi's bloom filters (HashFunction, MurmurHash; pure)."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_M = np.uint32(0x5BD1E995)
_CHUNK = 16_384  # keys hashed together: their words stay in the processor's cache
# up to so many keys are hashed one by one: thirty rounds of numpy's calls take as long for one key as for a thousand
_FEW = 12
_MASK = 0xFFFFFFFF
SCREEN_ROUNDS = 4

Bits = npt.NDArray[np.uint8]


def hash_rounds(keys: pa.Array, rounds: int) -> Iterator[tuple[npt.NDArray[np.int64], list[npt.NDArray[np.uint32]]]]:
    """Hashes keys, chunk by chunk.

    Args:
        keys: string array without nulls.
        rounds: number of chained hashes per key.

    Yields:
        Positions of a chunk's keys in `keys`, and for each round the absolute value of their hash.
    """
    for positions, block in same_length_blocks(keys):
        yield positions, _hash_few(block, rounds) if len(block) <= _FEW else _hash_block(block, rounds)


def same_length_blocks(keys: pa.Array) -> Iterator[tuple[npt.NDArray[np.int64], Bits]]:
    """Strings of equal length side by side, some thousand at a time.

    Args:
        keys: string array without nulls.

    Yields:
        Positions in `keys`, and the bytes of these keys, a row each.
    """
    data, offsets = _buffers(keys)
    lengths = np.diff(offsets)
    for length in np.unique(lengths):
        positions = np.flatnonzero(lengths == length)
        for start in range(0, len(positions), _CHUNK):
            chunk = positions[start : start + _CHUNK]
            yield chunk, _block(data, offsets[chunk], int(length))


def _block(data: Bits, starts: npt.NDArray[np.int64], length: int) -> Bits:
    """The bytes of strings of equal length, a row each."""
    count = len(starts)
    if starts[-1] - starts[0] == length * (count - 1):  # contiguous, as the keys are where all have one length
        return data[starts[0] : starts[0] + length * count].reshape(count, length)
    gathered: Bits = data[starts[:, None] + np.arange(length)]
    return gathered


def screen_hashes(keys: pa.Array, rounds: int = SCREEN_ROUNDS) -> npt.NDArray[np.uint32]:
    """The first few hashes of each key, a row each: most keys that a filter does not hold fail one of them."""
    hashes = np.zeros((rounds, len(keys)), np.uint32)
    for positions, found in hash_rounds(keys, rounds):
        for number, values in enumerate(found):
            hashes[number, positions] = values
    return hashes


def hash_keys(keys: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """A number for each record key (string), the same for equal keys; null counts as "".

    It is not the bucket hash, so rows split by this number are not split along buckets.
    """
    filled = pc.fill_null(keys, "").combine_chunks()
    if isinstance(filled, pa.ChunkedArray):
        filled = pa.concat_arrays(filled.chunks)
    numbers: npt.NDArray[np.int64] = screen_hashes(filled, 1)[0].astype(np.int64)
    return numbers


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
    hashes = np.empty((rounds, count), np.uint32)
    h, shifted = np.zeros(count, np.uint32), np.empty(count, np.uint32)
    for number in range(rounds):
        h ^= np.uint32(length)  # seeded with the previous hash
        for word in words:
            h *= _M
            h ^= word
        if tail is not None:
            h ^= tail
            h *= _M
        h ^= np.right_shift(h, np.uint32(13), out=shifted)
        h *= _M
        h ^= np.right_shift(h, np.uint32(15), out=shifted)
        hashes[number] = h
    # |v| of the signed value; numpy leaves the least value as it is, which reads as 2^31 unsigned: correct
    signed = hashes.view(np.int32)
    np.abs(signed, out=signed)
    return list(hashes)


def _hash_few(block: Bits, rounds: int) -> list[npt.NDArray[np.uint32]]:
    """As `_hash_block`, key by key."""
    found = [_hash_key(key.tobytes(), rounds) for key in block]
    return list(np.array(found, np.uint32).reshape(len(found), rounds).T.copy())


def _hash_key(key: bytes, rounds: int) -> list[int]:
    length, multiplier = len(key), int(_M)
    whole = length & ~3
    words = []
    for at in range(0, whole, 4):
        word = int.from_bytes(key[at : at + 4], "little") * multiplier & _MASK
        words.append((word ^ word >> 24) * multiplier & _MASK)
    tail = 0
    for place, byte in enumerate(reversed(key[whole:])):
        tail ^= (byte - 256 if byte > 127 else byte) << 8 * place
    tail &= _MASK
    h, hashes = 0, []
    for _ in range(rounds):
        h ^= length  # seeded with the previous hash
        for word in words:
            h = h * multiplier & _MASK ^ word
        if length > whole:
            h = (h ^ tail) * multiplier & _MASK
        h ^= h >> 13
        h = h * multiplier & _MASK
        h ^= h >> 15
        hashes.append(h if h <= 1 << 31 else (1 << 32) - h)  # |v| of the signed value
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
