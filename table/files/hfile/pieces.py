"""Pieces of one array of bytes, such as keys in a block: compared and gathered many at once (pure)."""

from collections.abc import Collection, Container, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Bytes = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Pieces:
    """Pieces of one array of bytes.

    Attributes:
        data: the bytes (uint8), and eight more.
        starts: where each piece begins.
        lengths: how many bytes it has.
    """

    data: Bytes
    starts: Positions
    lengths: Positions

    def __len__(self) -> int:
        return len(self.starts)

    def take(self, positions: Positions) -> "Pieces":
        """Some of the pieces."""
        return Pieces(self.data, self.starts[positions], self.lengths[positions])

    def by_length(self, wanted: Container[int] | None = None) -> Iterator[tuple[Positions, pa.Array]]:
        """Pieces of equal length, with their positions.

        Args:
            wanted: lengths that count; None: all.

        Yields:
            Positions, ascending, and the pieces (fixed size binary). An empty piece is left out.
        """
        words = np.ndarray((len(self.data) - 7,), np.uint64, self.data, strides=(1,))
        for length in np.flatnonzero(np.bincount(self.lengths, minlength=1)).tolist():
            if length == 0 or (wanted is not None and length not in wanted):
                continue
            found = np.flatnonzero(self.lengths == length)
            # eight bytes at a time; the last eight end with the piece, or begin with it where it is shorter
            before = (length - 1) // 8 * 8
            at = np.append(np.arange(0, before, 8), max(0, length - 8))
            gathered = words[self.starts[found][:, None] + at].view(np.uint8)
            overlap = before + 8 - length if before else 0
            columns = np.append(np.arange(before), np.arange(before, length) + overlap)
            data = pa.py_buffer(np.ascontiguousarray(gathered[:, columns]))
            yield found, pa.FixedSizeBinaryArray.from_buffers(pa.binary(length), len(found), [None, data])


def pieces_of(texts: pa.Array) -> Pieces:
    """The values of a string array or binary array without nulls."""
    data, bounds = bytes_of(texts)
    held = data[bounds[0] : bounds[-1]]
    return Pieces(np.concatenate([held, np.zeros(8, np.uint8)]), bounds[:-1] - bounds[0], np.diff(bounds))


def bytes_of(texts: pa.Array) -> tuple[Bytes, Positions]:
    """The bytes of a string array or binary array without nulls, and where its values begin, and the last one ends."""
    _, offsets, data = texts.buffers()
    if not len(texts):
        return np.zeros(0, np.uint8), np.zeros(1, np.int64)
    bounds = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    return np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8), bounds


class Sought:
    """Keys that are looked for among many.

    Args:
        keys: binary array without nulls, none twice.
    """

    def __init__(self, keys: pa.Array) -> None:
        self._by_length = {array.type.byte_width: (at, array) for at, array in pieces_of(keys).by_length()}

    @property
    def lengths(self) -> Collection[int]:
        """Lengths of the keys, in bytes."""
        return self._by_length.keys()

    def match(self, pieces: Pieces) -> tuple[Positions, Positions]:
        """Which pieces are such keys.

        Returns:
            Positions of pieces, ascending, and for each the position of its key.
        """
        found, keys = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for at, array in pieces.by_length(self.lengths):
            hits, of_keys = self.match_array(array)
            found.append(at[hits])
            keys.append(of_keys)
        every = np.concatenate(found)
        order = np.argsort(every)
        return every[order], np.concatenate(keys)[order]

    def match_array(self, array: pa.Array) -> tuple[Positions, Positions]:
        """As `match`, of texts of one of `lengths` (fixed size binary)."""
        at, wanted = self._by_length[array.type.byte_width]
        matched = pc.fill_null(pc.index_in(array, value_set=wanted), -1).to_numpy()
        hits = np.flatnonzero(matched >= 0)
        return hits, at[matched[hits]]
