"""Byte ranges of a file that are copied into another file (pure)."""

from collections.abc import Iterable
from typing import NamedTuple


class ByteRange(NamedTuple):
    """A range of bytes in a file.

    Attributes:
        start: offset of the first byte.
        length: number of bytes.
    """

    start: int
    length: int


def joined_ranges(ranges: Iterable[ByteRange]) -> list[ByteRange]:
    """The same bytes in the same order, with adjacent ranges joined."""
    joined: list[ByteRange] = []
    for piece in ranges:
        if joined and joined[-1].start + joined[-1].length == piece.start:
            joined[-1] = ByteRange(joined[-1].start, joined[-1].length + piece.length)
        elif piece.length:
            joined.append(piece)
    return joined
