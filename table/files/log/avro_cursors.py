"""Cursors into many Avro records: read numbers, lengths and bytes of all records together (pure).

Lengths are checked against the end of their record before they are used: damaged bytes cannot make the decoder
allocate more memory than the bytes themselves have.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_PADDING = 16
_MORE = np.uint8(0x80)  # the bit of a byte of a number that another one follows
# the numbers of one byte, zigzag
_SMALL = np.array([byte >> 1 ^ -(byte & 1) for byte in range(0x80)], np.int64)

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Cursors:
    """The next byte to read in each record, and the end of each record.

    Args:
        data: all bytes, with padding after them (`padded`).
        at: for each record its next byte; reading a field advances it.
        ends: for each record the byte after its last one.
    """

    def __init__(self, data: Bytes, at: Longs, ends: Longs) -> None:
        self.data, self.at, self.ends = data, at, ends

    def __len__(self) -> int:
        return len(self.at)

    def skip(self, lengths: Longs | int) -> None:
        """Moves each cursor on by its length.

        Raises:
            ValueError: a cursor would pass the end of its record.
        """
        self.at = self.at + lengths
        if np.count_nonzero(self.at > self.ends):  # counting is quicker than any() for few records
            raise ValueError("a field ends behind its record")

    def skip_byte(self, byte: int) -> bool:
        """Moves each cursor on by one byte, if every record has this byte there. Returns False if one has not."""
        if np.count_nonzero(self.data.take(self.at) != byte):
            return False
        self.skip(1)
        return True

    def longs(self) -> Longs:
        """Reads a zigzag number of each record.

        Raises:
            ValueError: a number is longer than ten bytes, or ends beyond its record.
        """
        byte = self.data.take(self.at)
        if not np.count_nonzero(byte >= _MORE):
            self.skip(1)
            return np.asarray(_SMALL.take(byte), np.int64)
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
        """Reads a length of each record, and checks that it fits into the record."""
        found = self.longs()
        if np.count_nonzero(found < 0) or np.count_nonzero(found > self.ends - self.at):
            raise ValueError("a length is greater than the record")
        return found

    def fixed(self, size: int) -> Bytes:
        """Reads `size` bytes of each record, a row each."""
        start = self.at
        self.skip(size)
        return np.asarray(self.data[start[:, None] + np.arange(size)], np.uint8)

    def part(self, rows: Any) -> "Cursors":
        """The cursors of some of the records."""
        return Cursors(self.data, self.at[rows], self.ends[rows])


def gathered(data: Bytes, starts: Longs, lengths: Longs) -> pa.Array:
    """The bytes of a value of each record (binary array).

    Args:
        data: all bytes.
        starts: first byte of each value; ascending, as the records are.
        lengths: of the values.

    Raises:
        ValueError: the values have more than 2 GiB.
    """
    count = len(starts)
    if not count:
        return pa.array([], pa.binary())
    # one array whose elements are, by turns, a value and the bytes up to the next value: Arrow then takes the values
    first = int(starts[0])
    edges = np.empty(2 * count, np.int64)
    edges[::2], edges[1::2] = starts - first, starts + lengths - first
    if edges[-1] >= 2**31:
        raise ValueError("the values of a column have more than 2 GiB")
    buffers = [None, pa.py_buffer(edges.astype(np.int32)), pa.py_buffer(data[first : first + int(edges[-1])])]
    by_turns = pa.Array.from_buffers(pa.binary(), 2 * count - 1, buffers)
    return by_turns.take(pa.array(np.arange(0, 2 * count, 2)))


def padded(content: memoryview) -> Bytes:
    """A copy with padding after it: a decoder may read some bytes beyond the last record."""
    return np.frombuffer(b"".join((content, bytes(_PADDING))), np.uint8)
