"""Java's hash of strings, a column at a time (String.hashCode; pure)."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from table.files.bloom.key_hashes import same_length_blocks

Hashes = npt.NDArray[np.uint32]


def java_hashes(texts: pa.Array) -> Hashes:
    """The hash of each text, its 32 bits taken as a number without sign.

    Args:
        texts: string array without nulls.
    """
    hashes = np.zeros(len(texts), np.uint32)
    for positions, block in same_length_blocks(texts):
        h = np.zeros(len(positions), np.uint32)
        for column in block.T:
            h = h * np.uint32(31) + column
        hashes[positions] = h
    wide = pc.not_equal(pc.utf8_length(texts), pc.binary_length(texts))
    for position in np.flatnonzero(wide.to_numpy(zero_copy_only=False)).tolist():
        hashes[position] = java_hash(texts[position].as_py())
    return hashes


def java_hash(text: str) -> int:
    """The hash of one text."""
    units = text.encode("utf-16-be", "surrogatepass")
    h = 0
    for at in range(0, len(units), 2):
        h = (h * 31 + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    return h
