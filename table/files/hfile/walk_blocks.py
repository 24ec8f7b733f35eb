"""The entries of many blocks at once: where their keys and values stand (pure; HFileDataBlock of hudi-io).

An entry says how long it is, so a block is walked from one entry to the next. Here blocks are walked side by side: one
step of numpy goes on by an entry in each.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from table.errors import CorruptFileError
from table.files.hfile.blocks import decode_java_varint
from table.files.hfile.pieces import Bytes, Pieces, Positions

_FRAME = 8  # the lengths of key and value, before them
_ROW_LENGTH = 2  # before the row within the key
_FEW_BLOCKS = 24  # a step of numpy takes as long as one of Python in so many blocks
_STEPS_A_LOOK = 32  # steps before it is asked whether any block has entries left


@dataclass(frozen=True)
class Entries:
    """The entries of some blocks, in the order of the blocks.

    Attributes:
        keys: of each entry.
        values: of each entry; an empty one is a delete.
    """

    keys: Pieces
    values: Pieces


def walk_blocks(blocks: Sequence[bytes]) -> Entries:
    """Finds the entries of blocks.

    Args:
        blocks: unpacked data of data blocks.

    Raises:
        CorruptFileError: a block is damaged.
    """
    data = np.frombuffer(b"".join([*blocks, bytes(_FRAME)]), np.uint8)
    sizes = np.array([len(block) for block in blocks], np.int64)
    ends = np.cumsum(sizes)
    starts = ends - sizes
    together = len(blocks) >= _FEW_BLOCKS
    at = _walked_together(data, starts, ends) if together else list(map(_walked, blocks, starts.tolist()))
    entries = _entries(data, at, ends)
    if entries is None:  # a long count at the end of an entry, which Hudi does not write, or damage
        at = list(map(_walked, blocks, starts.tolist()))
        entries = _entries(data, at, ends, strictly=False)
    assert entries is not None
    return Entries(*entries)


def _walked_together(data: Bytes, starts: Positions, ends: Positions) -> list[Positions]:
    """Where entries begin, for each block. A block that is damaged ends early, or with an entry that does not fit."""
    words = np.ndarray((len(data) - _FRAME + 1,), np.uint64, data, strides=(1,))
    steps, at = [starts], starts
    while True:
        both = words[at].byteswap()
        size = (both >> np.uint64(32)) + (both & np.uint64(0xFFFFFFFF)) + np.uint64(_FRAME + 1)
        at = np.minimum(at + size.view(np.int64), ends)
        steps.append(at)
        if len(steps) % _STEPS_A_LOOK == 0 and (at == ends).all():
            break
    walked = np.stack(steps, axis=1)
    return [line[line < end] for line, end in zip(walked, ends.tolist(), strict=True)]


def _walked(block: bytes, start: int) -> Positions:
    """As `_walked_together`, of one block.

    Raises:
        CorruptFileError: the block is damaged.
    """
    at, size, found = 0, len(block), []
    while at < size:
        found.append(at)
        key, value = int.from_bytes(block[at : at + 4], "big"), int.from_bytes(block[at + 4 : at + 8], "big")
        end = at + _FRAME + key + value
        if end >= size:
            break  # the entry does not fit, which `_entries` says
        try:
            at = end + 1 if block[end] <= 127 else decode_java_varint(block, end)[1]
        except (ValueError, IndexError) as error:
            raise CorruptFileError(f"an HFile is damaged: {error} at byte {end} of a block") from error
    return np.array(found, np.int64) + start


def _entries(
    data: Bytes, found: Sequence[Positions], ends: Positions, *, strictly: bool = True
) -> tuple[Pieces, Pieces] | None:
    """Keys and values of the entries that begin there; None where one does not fit.

    Args:
        data: of all blocks.
        found: where entries begin, for each block.
        ends: where each block ends.
        strictly: whether the count after an entry has one byte. Else a damaged entry is an error.

    Raises:
        CorruptFileError: an entry is damaged.
    """
    at = np.concatenate([np.zeros(0, np.int64), *found])
    limits = np.repeat(ends, [len(of_block) for of_block in found])
    lengths = np.ndarray((len(data) - 3,), ">u4", data, strides=(1,))
    keys, values = lengths[at].astype(np.int64), lengths[at + 4].astype(np.int64)
    start = at + _FRAME + keys
    last = start + values  # the count, which ends the entry
    rows = np.ndarray((len(data) - 1,), ">u2", data, strides=(1,))[at + _FRAME].astype(np.int64)
    fit = (last < limits) & (_ROW_LENGTH + rows <= keys)
    if strictly:
        fit[fit] &= data[last[fit]] <= 127
    if not fit.all():
        if strictly:
            return None
        raise CorruptFileError(f"an HFile is damaged: an entry at byte {at[~fit][0]} of its blocks does not fit")
    return Pieces(data, at + _FRAME + _ROW_LENGTH, rows), Pieces(data, start, values)
