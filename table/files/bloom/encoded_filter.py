"""A bloom filter as the text of a footer; its bits are read and set in the text, without decoding it.

The filter of a large file is some megabytes, and a few new keys set a few thousand bits of it. Each
character of base64 holds six bits, so only the characters of the new bits change; the others are copied.
"""

import base64
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from table.errors import CorruptFileError
from table.files.bloom.bloom_filter import HEADER_BYTES, BloomFilter, decode_header, decode_simple, remainder
from table.files.bloom.key_hashes import Bits, hash_rounds

_DIGITS = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)
_VALUES = np.zeros(256, np.uint8)
_VALUES[_DIGITS] = np.arange(64)
_HEADER_DIGITS = 20  # the header, and two bytes more

Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class EncodedFilter(BloomFilter):
    """A SIMPLE filter, not decoded.

    Attributes:
        bitmap: here the characters of its base64 text, header included.
    """

    def added(self, keys: pa.Array) -> BloomFilter:
        """A copy of this filter with these keys added (string array without nulls)."""
        if not self.is_sparse(keys):
            return decode_simple(self.encode()).added(keys)
        places = [_place(remainder(v, self.bits)) for _, rounds in hash_rounds(keys, self.hashes) for v in rounds]
        if not places:
            return self
        at, bit = (np.concatenate(parts) for parts in zip(*places, strict=True))
        text = self.bitmap.copy()
        # a character may be named twice: numpy evaluates the right side first, so it gets the same value twice
        text[at] = _VALUES[text[at]]
        np.bitwise_or.at(text, at, bit)
        text[at] = _DIGITS[text[at]]
        return replace(self, bitmap=text)

    def holds(self, index: Places) -> npt.NDArray[np.bool_]:
        """Whether these bits are set."""
        at, bit = _place(index)
        found: npt.NDArray[np.bool_] = _VALUES[self.bitmap[at]] & bit != 0
        return found

    def first_bytes(self, count: int) -> Bits:
        """The beginning of its bitmap."""
        digits = self.bitmap[: -(-(HEADER_BYTES + count) // 3) * 4]
        return np.frombuffer(base64.b64decode(digits.data), np.uint8)[HEADER_BYTES : HEADER_BYTES + count]

    def encode(self) -> str:
        """The filter as base64 text for the footer's ``org.apache.hudi.bloomfilter``."""
        return str(self.bitmap.data, "ascii")


def _place(index: Places) -> tuple[Places, npt.NDArray[np.uint8]]:
    """For each bit of a filter, the number of the base64 character that holds it, and the value of the bit there."""
    # within a byte the filter counts bits from the least significant one, base64 from the most significant one
    stream = (index ^ 7) + 8 * HEADER_BYTES
    at = stream // 6
    return at, (np.int64(32) >> (stream - 6 * at)).astype(np.uint8)


def view_filter(text: bytes | memoryview) -> EncodedFilter:
    """A SIMPLE filter over its base64 text. The caller has made sure that the text is base64.

    Raises:
        CorruptFileError: when header and length do not belong to a filter.
    """
    hashes, bits = decode_header(base64.b64decode(text[:_HEADER_DIGITS]), 0)
    wanted = -(-(HEADER_BYTES + -(-bits // 8)) // 3) * 4
    if len(text) != wanted:
        raise CorruptFileError(f"a bloom filter of {bits} bits has {len(text)} digits, not {wanted}")
    return EncodedFilter(hashes, bits, np.frombuffer(text, np.uint8))
