"""The record keys that a write adds to a file group, and those that it deletes from it (pure)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc


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
