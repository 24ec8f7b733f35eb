"""Where each of many Avro records is read next: numbers, lengths and bytes of all of them together (pure).

Lengths are checked against the end of their record before anything is made of them: what damaged bytes say cannot ask
for more memory than the bytes have.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

_PADDING = 16
_LONG_VALUE = 128  # bytes, on average

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Cursors:
    """Where each record is read next, and where it ends.

    Args:
        data: all bytes, with some to spare behind them.
        at: for each record its next byte; moved on as fields are read.
        ends: for each record the byte behind its last one.
    """

    def __init__(self, data: Bytes, at: Longs, ends: Longs) -> None:
        self.data, self.at, self.ends = data, at, ends

    def __len__(self) -> int:
        return len(self.at)

    def skip(self, lengths: Longs | int) -> None:
        """Moves on.

        Raises:
            ValueError: beyond the end of a record.
        """
        self.at = self.at + lengths
        if (self.at > self.ends).any():
            raise ValueError("a field ends behind its record")

    def longs(self) -> Longs:
        """A zigzag number of each record.

        Raises:
            ValueError: one is longer than ten bytes, or ends behind its record.
        """
        byte = self.data[self.at]
        value = (byte & np.uint8(0x7F)).astype(np.uint64)
        lengths = np.ones(len(self), np.int64)
        more = np.flatnonzero(byte >= 0x80)
        for shift in range(7, 70, 7):
            if not len(more):
                break
            byte = self.data[self.at[more] + lengths[more]]
            value[more] |= (byte & np.uint8(0x7F)).astype(np.uint64) << np.uint64(shift)
            lengths[more] += 1
            more = more[byte >= 0x80]
        if len(more):
            raise ValueError("a number has more than ten bytes")
        self.skip(lengths)
        signed = (value >> np.uint64(1)).view(np.int64) ^ -(value & np.uint64(1)).view(np.int64)
        return np.asarray(signed, np.int64)

    def lengths(self) -> Longs:
        """A length of each record, which fits into it."""
        found = self.longs()
        if (found < 0).any() or (found > self.ends - self.at).any():
            raise ValueError("a length is greater than the record")
        return found

    def fixed(self, size: int) -> Bytes:
        """As many bytes of each record, a row each."""
        start = self.at
        self.skip(size)
        return np.asarray(self.data[start[:, None] + np.arange(size)], np.uint8)

    def part(self, rows: Any) -> "Cursors":
        """Those of some of the records."""
        return Cursors(self.data, self.at[rows], self.ends[rows])


def gathered(data: Bytes, starts: Longs, lengths: Longs, offsets: Longs) -> Bytes:
    """The bytes of all values one behind the other. Long ones are copied one by one."""
    if offsets[-1] < _LONG_VALUE * len(lengths):
        return np.asarray(data[np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])], np.uint8)
    view = data.data
    pieces = [view[start:end] for start, end in zip(starts.tolist(), (starts + lengths).tolist(), strict=True)]
    return np.frombuffer(b"".join(pieces), np.uint8)


def padded(content: bytes) -> Bytes:
    """Bytes with as many to spare behind them as a decoder may look at."""
    return np.frombuffer(content + bytes(_PADDING), np.uint8)
