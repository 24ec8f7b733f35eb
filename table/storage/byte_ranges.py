"""Pieces of a file that are copied into another one (pure)."""

from collections.abc import Iterable
from typing import NamedTuple


class ByteRange(NamedTuple):
    """A piece of a file.

    Attributes:
        start: offset of its first byte.
        length: how many.
    """

    start: int
    length: int


def joined_ranges(ranges: Iterable[ByteRange]) -> list[ByteRange]:
    """The same bytes in the same order, neighbours made one."""
    joined: list[ByteRange] = []
    for piece in ranges:
        if joined and joined[-1].start + joined[-1].length == piece.start:
            joined[-1] = ByteRange(joined[-1].start, joined[-1].length + piece.length)
        elif piece.length:
            joined.append(piece)
    return joined
