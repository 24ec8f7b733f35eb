"""The record keys that a write adds to a file group, and those that it deletes from it (pure)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Flags = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class KeyChanges:
    """Record keys (string arrays without nulls).

    Attributes:
        added: keys that the earlier version of the file group did not hold.
        deleted: keys that it held.
    """

    added: tuple[pa.Array, ...] = ()
    deleted: tuple[pa.Array, ...] = ()

    @property
    def size_bytes(self) -> int:
        """Bytes of their text."""
        arrays = (keys for keys in (*self.added, *self.deleted) if len(keys))
        return sum(pc.sum(pc.binary_length(keys)).as_py() for keys in arrays)


class KeyFates:
    """What becomes of the keys of incoming records, given row by row of the file group that they change.

    Args:
        keys: of the records (string array without nulls), no key twice.
    """

    def __init__(self, keys: pa.Array) -> None:
        self._keys = keys
        self._was_there, self._stays = np.zeros(len(keys), np.bool_), np.zeros(len(keys), np.bool_)

    def note(self, found: Positions, gone: Positions) -> None:
        """Notes stored rows.

        Args:
            found: for each stored row the position of its key, or -1.
            gone: positions of the stored rows that the records delete.
        """
        unmatched = np.ones(len(found), np.bool_)
        unmatched[gone] = False
        self._was_there[found[found >= 0]] = True
        self._stays[found[unmatched & (found >= 0)]] = True

    def find_new(self, deletes: Flags) -> Flags:
        """The records that add their key.

        Args:
            deletes: which records delete their key.
        """
        return ~deletes & ~self._was_there

    def changes(self, deletes: Flags) -> KeyChanges:
        """The keys that the file group gets and loses. A key of which another row stays is not lost.

        Args:
            deletes: which records delete their key.
        """
        gone = self._was_there & ~self._stays
        return KeyChanges(*((self._keys.filter(pa.array(keys)),) for keys in (self.find_new(deletes), gone)))


def encode_keys(changes: KeyChanges | None) -> Mapping[str, Sequence[str]] | None:
    """JSON values."""
    if changes is None:
        return None
    parts = {"added": changes.added, "deleted": changes.deleted}
    return {name: [key for keys in arrays for key in keys.to_pylist()] for name, arrays in parts.items()}


def decode_keys(parts: Mapping[str, Sequence[str]] | None) -> KeyChanges | None:
    """The inverse of `encode_keys`."""
    if parts is None:
        return None
    return KeyChanges(*((pa.array(parts[name], pa.string()),) for name in ("added", "deleted")))
