"""Positions of log records in the base file of their slice, for the headers of blocks (table versions 8 and 9).

Hudi's readers find the row that a record changes by its position, and compare no keys (LogReaderUtils,
PositionBasedFileGroupRecordBuffer). Where a block has none, they compare keys.
"""

import struct
from base64 import b64encode
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from table.files.log.framing import Header

Positions = npt.NDArray[np.int64]

_COOKIE_WITHOUT_RUNS = 12346
_MOST_IN_AN_ARRAY = 4096
_BITMAP_BYTES = 8192


@dataclass(frozen=True)
class RecordPositions:
    """Positions of the records of one block.

    Attributes:
        base_instant_time: instant of the base file.
        rows: for each record, the position of its row in that file; ascending, no position twice.
    """

    base_instant_time: str
    rows: Positions

    def part(self, chosen: "slice | npt.NDArray[np.bool_]") -> "RecordPositions":
        """Those of some of the records."""
        return RecordPositions(self.base_instant_time, self.rows[chosen])

    def header(self) -> dict[int, str]:
        """The two entries of a block's header."""
        return {
            Header.RECORD_POSITIONS: b64encode(encode_positions(self.rows)).decode(),
            Header.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS: self.base_instant_time,
        }


def encode_positions(rows: Positions) -> bytes:
    """A portable Roaring64NavigableMap: little endian, a 32-bit Roaring bitmap for each value of the higher 32 bits.

    Args:
        rows: ascending, no number twice.
    """
    higher, starts = np.unique(rows >> 32, return_index=True)
    bitmaps = [struct.pack("<q", len(higher))]
    for high, low in zip(higher.tolist(), np.split(rows & 0xFFFFFFFF, starts[1:]), strict=True):
        bitmaps += [struct.pack("<i", high), _encode_bitmap(low)]
    return b"".join(bitmaps)


def _encode_bitmap(rows: Positions) -> bytes:
    """A 32-bit Roaring bitmap without runs: the containers' keys and sizes, their places, the containers."""
    keys, starts = np.unique(rows >> 16, return_index=True)
    parts = np.split((rows & 0xFFFF).astype("<u2"), starts[1:])
    containers = [_encode_container(part) for part in parts]
    head = struct.pack("<ii", _COOKIE_WITHOUT_RUNS, len(keys))
    head += np.column_stack([keys, [len(part) - 1 for part in parts]]).astype("<u2").tobytes()
    first = len(head) + 4 * len(keys)
    places = first + np.cumsum([0, *map(len, containers[:-1])])
    return b"".join([head, places.astype("<u4").tobytes(), *containers])


def _encode_container(values: npt.NDArray[np.uint16]) -> bytes:
    if len(values) <= _MOST_IN_AN_ARRAY:
        return values.tobytes()
    bits = np.zeros(_BITMAP_BYTES * 8, np.uint8)
    bits[values] = 1
    return np.packbits(bits, bitorder="little").tobytes()
