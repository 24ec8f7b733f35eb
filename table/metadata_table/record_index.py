"""What a commit adds to a record index: the file group of each record key (pure; HoodieTableMetadataUtil).

The index is global: a key has one record. Its value is the same for all keys that a commit adds to one file group.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from table.config.metadata_indexes import RECORD_INDEX
from table.errors import UnsupportedTableError
from table.files.hfile.write_hfile import HFileEntries
from table.files.key_changes import KeyChanges
from table.metadata_table.index_keys import groups_of_keys
from table.metadata_table.location_codec import encode_location
from table.metadata_table.statistics import GroupRecords

MOST_KEYS = 1_000_000
_MOST_KEY_BYTES = 32_767  # Hudi's readers take the length for a signed number

KeysByGroup = Mapping[tuple[str, str], KeyChanges]
"""Partition path and file id -> its keys."""
_Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class NewLocations:
    """The records of a commit.

    Attributes:
        values: a value for each file group of the table.
        added: keys that get a record.
        places: for each of these keys the position of its value.
        deleted: keys whose records go.
    """

    values: tuple[bytes, ...]
    added: pa.Array
    places: _Positions
    deleted: pa.Array

    def __len__(self) -> int:
        return len(self.added) + len(self.deleted)

    def by_group(self, count: int) -> dict[tuple[str, int], GroupRecords]:
        """The records of each file group of the index that gets any.

        Args:
            count: number of its file groups.
        """
        added, gone = groups_of_keys(self.added, count), groups_of_keys(self.deleted, count)
        values = pa.array(self.values, pa.binary())
        made = {}
        for number in np.unique(np.concatenate([added, gone])).tolist():
            mine = np.flatnonzero(added == number)
            keys = self.added.take(pa.array(mine)).cast(pa.binary())
            order = pc.array_sort_indices(keys).to_numpy()  # equal keys stay in their order, and the last one counts
            keys = keys.take(pa.array(order))
            if len(keys) > 1:
                last = np.append(pc.not_equal(keys[:-1], keys[1:]).to_numpy(zero_copy_only=False), [True])
                keys, order = keys.filter(pa.array(last)), order[last]
            located = values.take(pa.array(self.places[mine[order]]))
            lost = self.deleted.filter(pa.array(gone == number))
            entries = HFileEntries(keys, located)
            made[RECORD_INDEX, number] = GroupRecords(entries, lost.take(pc.array_sort_indices(lost)))
        return made


def new_locations(changes: KeysByGroup | None, version: int, made_ms: int) -> NewLocations:
    """The records of a commit. A key that one file group loses and another one gets has moved, and keeps a record.

    Args:
        changes: the keys of each file group; None: they are not known.
        version: of the metadata table.
        made_ms: request time of the commit, in milliseconds since 1970.

    Raises:
        UnsupportedTableError: the keys are not known, or more than `MOST_KEYS` were added or deleted.
    """
    if changes is None:
        raise UnsupportedTableError("the keys that the commit adds and deletes are not known to this process")
    count = sum(len(keys) for change in changes.values() for keys in (*change.added, *change.deleted))
    if count > MOST_KEYS:
        raise UnsupportedTableError(f"the commit adds and deletes {count} keys, which are more than {MOST_KEYS}")
    for change in changes.values():
        for keys in change.added:
            longest = pc.max(pc.binary_length(keys)).as_py() or 0
            if longest > _MOST_KEY_BYTES:
                raise UnsupportedTableError(f"a key has {longest} bytes, and an HFile holds keys of {_MOST_KEY_BYTES}")
    places = [np.full(sum(map(len, change.added)), at) for at, change in enumerate(changes.values())]
    added = _joined([keys for change in changes.values() for keys in change.added])
    deleted = _joined([keys for change in changes.values() for keys in change.deleted])
    return NewLocations(
        tuple(encode_location(*group, made_ms, version) for group in changes),
        added,
        np.concatenate([np.zeros(0, np.int64), *places]),
        deleted.filter(pc.invert(pc.is_in(deleted, added))).unique(),
    )


def _joined(arrays: Sequence[pa.Array]) -> pa.Array:
    return pa.concat_arrays([pa.array([], pa.string()), *arrays])
