"""XXH64: names the lock of a table after its address, and the keys of statistics after columns (pure; HashID).

The algorithm is that of the specification of xxHash.
"""

import struct

_MASK = 0xFFFFFFFFFFFFFFFF
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_HUDI_SEED = 0xFFFFFFFFDABADABA  # 0xdabadaba, a negative int of Java


def hash_of_address(base_path: str) -> str:
    """The hash of a table's address as Hudi spells it in the names of locks (HashID.generateXXHashAsString).

    Args:
        base_path: address as the writers' options give it; ``s3a:`` counts as ``s3:``.

    Returns:
        16 hexadecimal digits in upper case.
    """
    text = "s3" + base_path[3:] if base_path[:6].lower() == "s3a://" else base_path
    return f"{hash_of_text(text):016X}"


def hash_of_text(text: str) -> int:
    """The hash of a text with Hudi's seed, 64 bits."""
    return xxh64(text.encode(), _HUDI_SEED)


def xxh64(data: bytes, seed: int = 0) -> int:
    """The XXH64 hash of some bytes.

    Args:
        data: the bytes.
        seed: number of 64 bits.
    """
    done = 0
    if len(data) >= 32:
        lanes = [seed + _P1 + _P2, seed + _P2, seed, seed - _P1]
        done = len(data) // 32 * 32
        for words in struct.iter_unpack("<4Q", data[:done]):
            lanes = [_round(lane & _MASK, word) for lane, word in zip(lanes, words, strict=True)]
        total = sum(_rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            total = ((total ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        total = (seed + _P5) & _MASK
    total = _finish(total + len(data) & _MASK, data[done:])
    total = (total ^ total >> 33) * _P2 & _MASK
    total = (total ^ total >> 29) * _P3 & _MASK
    return total ^ total >> 32


def _finish(total: int, rest: bytes) -> int:
    """Mixes in the bytes after the last whole stripe."""
    at = 0
    while len(rest) - at >= 8:
        (word,) = struct.unpack_from("<Q", rest, at)
        total = (_rotate(total ^ _round(0, word), 27) * _P1 + _P4) & _MASK
        at += 8
    if len(rest) - at >= 4:
        (half,) = struct.unpack_from("<I", rest, at)
        total = (_rotate(total ^ half * _P1 & _MASK, 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in rest[at:]:
        total = _rotate(total ^ byte * _P5 & _MASK, 11) * _P1 & _MASK
    return total


def _round(lane: int, word: int) -> int:
    return _rotate((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> 64 - bits) & _MASK
