"""Reads a record index: the file group of each key (SparkMetadataTableRecordLevelIndex).

An index may be newer than the snapshot of its reader. So the index is seen first, and the table's timeline is listed
second. What that timeline has not completed is left out. It never lies in a base file of the index: a compaction merges
only what the table has completed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from table.config.metadata_indexes import RECORD_INDEX
from table.config.table_config import TableConfig, load_table_config
from table.errors import UnsupportedTableError
from table.metadata_table.file_lists import check_knows
from table.metadata_table.find_keys import Memory, Remembered, find_keys
from table.metadata_table.groups import read_records
from table.metadata_table.index_definitions import check_is_global
from table.metadata_table.index_keys import groups_of_keys
from table.metadata_table.known_layers import Hits
from table.metadata_table.known_lists import KnownLists
from table.metadata_table.location_codec import Location, decode_location
from table.metadata_table.lost_files import NamedFiles, check_whole
from table.metadata_table.metadata_table import (
    MetadataTable,
    check_compactions,
    count_groups,
    is_whole,
    slices_in,
    unfinished_times,
)
from table.metadata_table.records import Value
from table.storage.interface import FileInfo, Storage
from table.timeline.timeline import Timeline
from table.view.file_group import CommittedInstants, FileSlice, committed_instants

_Decoded = dict[tuple[Value, ...], Location | None]
"""Keys that came to a file group together have one value: each value is decoded once."""


NOWHERE = -1


@dataclass(frozen=True)
class Places:
    """Where keys are.

    Attributes:
        numbers: for each key the position of its location; `NOWHERE`: the index does not have it.
        locations: the locations, each once.
    """

    numbers: npt.NDArray[np.int64]
    locations: tuple[Location, ...]

    @property
    def unknown(self) -> npt.NDArray[np.int64]:
        """The positions of keys that the index does not have, ascending."""
        return np.flatnonzero(self.numbers == NOWHERE)

    def by_group(self) -> dict[tuple[str, str], npt.NDArray[np.int64]]:
        """Partition path and file id -> the positions of its keys, ascending."""
        groups: dict[tuple[str, str], int] = {}
        of_location = [groups.setdefault((one.partition_path, one.file_id), len(groups)) for one in self.locations]
        known = np.flatnonzero(self.numbers != NOWHERE)
        of_key = np.array(of_location, np.int64)[self.numbers[known]]
        order = np.argsort(of_key, kind="stable")
        ends = np.cumsum(np.bincount(of_key, minlength=len(groups)))
        parts = np.split(known[order], ends[:-1]) if groups else []
        return {group: part for group, part in zip(groups, parts, strict=True) if len(part)}


class _Known:
    """The locations that were met. Keys that came to a file group together have one value, which is decoded once."""

    def __init__(self) -> None:
        self.locations: list[Location] = []
        self._numbers: dict[Value, int] = {}

    def numbers_of(self, hits: Hits) -> npt.NDArray[np.int64]:
        """For each hit the position of its location in `locations`; `NOWHERE`: the key was deleted."""
        distinct, inverse = np.unique(hits.numbers, return_inverse=True)
        values = (hits.values[number] for number in distinct.tolist())
        numbers = [self._number_of(Value(value, hits.schema)) if value else NOWHERE for value in values]
        return np.array(numbers, np.int64)[inverse.reshape(-1)]

    def _number_of(self, value: Value) -> int:
        if value not in self._numbers:
            location = decode_location([value])
            assert location is not None  # the value is not empty
            self.locations.append(location)
            self._numbers[value] = len(self.locations) - 1
        return self._numbers[value]


@dataclass(frozen=True)
class RecordIndex:
    """The record index of a table as of a snapshot. Small: it is sent to workers.

    Attributes:
        own: the metadata table.
        committed: the delta commits that count.
        slices: number of a file group of the index -> its files.
        count: number of these file groups, by which the hash of a key finds its own.
    """

    own: MetadataTable
    committed: CommittedInstants
    slices: Mapping[int, FileSlice]
    count: int

    def find(self, keys: pa.Array, memory: Memory | None = None) -> Places:
        """Where keys are.

        Args:
            keys: record keys (string array without nulls).
            memory: remembers files of the index that were decoded; None: nothing does.

        Raises:
            UnsupportedTableError, CorruptFileError, StorageError, FileNotFoundError: the index cannot be read.
        """
        each, remembered = keys.dictionary_encode(), Remembered(memory, self.count)
        numbers, known = np.full(len(each.dictionary), NOWHERE), _Known()
        encoded = each.dictionary.cast(pa.binary())
        order = pc.array_sort_indices(encoded).to_numpy()
        groups = groups_of_keys(each.dictionary, self.count)[order]
        for number in np.unique(groups).tolist():
            if number not in self.slices:
                continue
            mine = order[groups == number]
            wanted = encoded.take(pa.array(mine))
            for hits in find_keys(self.own, self.slices[number], self.committed, wanted, remembered):
                numbers[mine[hits.keys]] = known.numbers_of(hits)
        return Places(numbers[each.indices.to_numpy()], tuple(known.locations))

    def locations(self, number: int) -> Iterator[tuple[str, Location]]:
        """The keys of a file group of the index, ascending, and where they are. Its files are read whole.

        Args:
            number: of the file group.

        Raises:
            UnsupportedTableError, CorruptFileError, StorageError, FileNotFoundError: as `find`.
        """
        known: _Decoded = {}
        for key, values in read_records(self.own, self.slices[number], self.committed).entries():
            location = _decode(values, known)
            if location is not None:
                yield key.decode(), location


def _decode(values: Sequence[Value], known: _Decoded) -> Location | None:
    layers = tuple(values)
    if layers not in known:
        known[layers] = decode_location(layers)
    return known[layers]


@dataclass(frozen=True)
class SeenRecordIndex:
    """A record index as it lay in the store at a moment.

    Attributes:
        own: the metadata table.
        timeline: its timeline, listed before the files.
        entries: the files of the index.
        named: the files that the instants of that timeline wrote.
    """

    own: MetadataTable
    timeline: Timeline
    entries: tuple[FileInfo, ...]
    named: tuple[NamedFiles, ...] = ()

    def as_of(self, timeline: Timeline) -> RecordIndex:
        """The index of the keys that a snapshot has (pure).

        Args:
            timeline: of the table, listed later than the index was seen.

        Raises:
            UnsupportedTableError: a write was completed in between, or by a writer that did not update the index; or
                the index has no files.
            CorruptFileError: a file of the index is gone.
        """
        check_knows(self.timeline, timeline.committed_times)
        check_compactions(self.timeline)
        undone = unfinished_times(self.timeline, timeline)
        now = committed_instants(self.timeline, {})
        committed = replace(now, times=now.times - undone, inflight=now.inflight | undone)
        entries = list(self.entries)
        slices = slices_in(RECORD_INDEX, entries, committed)
        by_number = {int(one.file_id.split("-")[-2]): one for one in slices}
        count = count_groups(entries)
        if sorted(by_number) != list(range(count)) or not all(map(is_whole, slices)):
            raise UnsupportedTableError("the record index has lost files")
        there = {entry.name for entry in entries if entry.size_bytes}
        for one in slices:
            check_whole(one, self.named, there)
        merged = max(one.base_instant_time for one in slices)
        if any(time < merged for time in undone):  # Hudi's compaction may have merged it
            raise UnsupportedTableError(f"the record index may hold what {min(undone)} has not completed")
        return RecordIndex(self.own, committed, by_number, count)


def see_record_index(storage: Storage, config: TableConfig, known: KnownLists) -> SeenRecordIndex:
    """Looks at the record index of a table, and proves that all its files were seen.

    A writer that drops an index deletes it from the table's properties first, and then its files. So the properties and
    the files are looked at again.

    Args:
        storage: of the table.
        config: the table's properties.
        known: what this process knows of the metadata table.

    Raises:
        UnsupportedTableError: the table has no record index with one record for each key, or it is being changed.
        CorruptFileError, StorageError, FileNotFoundError: the metadata table cannot be read.
    """
    own, timeline, seen = known.open(storage, config)
    entries = own.list_files(RECORD_INDEX)
    named = known.name_files(own, timeline)
    if seen is None:
        check_is_global(storage)
    now = load_table_config(storage)
    if now is None or RECORD_INDEX not in now.metadata_indexes or own.list_files(RECORD_INDEX) != entries:
        raise UnsupportedTableError("the record index is being changed")
    return SeenRecordIndex(own, timeline, tuple(entries), named)
