"""Finds the rows that hold keys, by footers first, then by key columns (HoodieBloomIndex, HoodieSimpleIndex).

With BLOOM, a file is read beyond its footer only if a key lies in its range and its filter does not exclude the key.
SIMPLE reads the key column of every file. In both cases the stored keys decide the result: a cache or a filter can cost
time, but it never loses a row.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from table.failures import failing_at
from table.files.base.hudi_footer import has_high_characters
from table.files.bloom.bloom_filter import AnyBloomFilter
from table.files.bloom.key_hashes import SCREEN_ROUNDS, screen_hashes
from table.index.key_cache import KeyCache, LookedIntoFile
from table.index.virtual_keys import VirtualKeys
from table.storage.interface import Storage
from table.view.file_group import BaseFile

_ASKED_FIRST = 256  # keys: if many are updates, the first few show that a file must be read
_FEW_KEYS = 16_384  # keys: for so few, more hash rounds are computed at once, which suffice for most filters
_ROUNDS_OF_FEW = 12

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class FileHits:
    """Rows of one file that have one of the sought keys.

    Attributes:
        stored: positions of the rows in the file, ascending.
        sought: for each row, the position of its key in the array that the caller passed.
        logged: positions in that array of keys that the log files of the file group have, and this file does not.
    """

    file: BaseFile
    stored: Positions
    sought: Positions
    logged: Positions = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def every(self) -> Positions:
        """The positions of all keys that the file group has, ascending."""
        return np.union1d(self.sought, self.logged)

    def at(self, positions: Positions) -> "FileHits":
        """The same hits, with positions in a larger array from which the sought keys were taken.

        Args:
            positions: for each sought key, its position in the larger array.
        """
        return replace(self, sought=positions[self.sought], logged=positions[self.logged])


@dataclass(frozen=True, slots=True)
class LookupCounts:
    """Counts and times of a lookup.

    Attributes:
        keys: sought keys.
        files: files that could hold them.
        pruned_by_range: files that the key range excluded.
        pruned_by_filter: files that the bloom filter excluded.
        read: files whose keys were read, or taken from the cache.
        false_positives: files among these that hold none of the keys although the filter did not exclude them.
        indexed: keys that the record index placed, or did not have, so that no footer was asked.
        spent_ms: time of all tasks together.
        update_ms: time of all tasks together to add the new files to the cache of keys.
    """

    keys: int = 0
    files: int = 0
    pruned_by_range: int = 0
    pruned_by_filter: int = 0
    read: int = 0
    false_positives: int = 0
    indexed: int = 0
    spent_ms: float = field(default=0.0, compare=False)
    update_ms: float = field(default=0.0, compare=False)

    def __add__(self, other: "LookupCounts") -> "LookupCounts":
        return LookupCounts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(LookupCounts)))


def find_keys(
    storage: Storage,
    files: Iterable[BaseFile],
    keys: pa.Array,
    *,
    prune: bool,
    ranges: bool,
    cache: KeyCache,
    virtual: VirtualKeys | None = None,
) -> tuple[list[FileHits], LookupCounts]:
    """Looks for keys in files.

    Args:
        files: files that may hold the keys.
        keys: string array without nulls, no key twice.
        prune: whether bloom filters are checked first (BLOOM).
        ranges: whether key ranges are checked before the filters (``hoodie.bloom.index.prune.by.ranges``).
        cache: of the table in this process.
        virtual: how keys are made where the files do not hold them.

    Returns:
        The hits in the files with at least one of the keys, in the order given, and the counts of the lookup.

    Raises:
        HudiError: with the partition path and the file group that could not be read.
    """
    sought = SoughtKeys(keys)
    hits, counts = [], LookupCounts(keys=len(keys))
    for file in files:
        looked_into = LookedIntoFile(storage, file.path, cache, file.size_bytes, virtual)
        with failing_at(partition_path=file.partition_path, file_group=file.file_id), looked_into:
            found, cost = _look_into(looked_into, file, sought, prune=prune, ranges=ranges)
        counts += cost
        if len(found.stored):
            hits.append(found)
    return hits, counts


def _look_into(
    looked_into: LookedIntoFile, file: BaseFile, sought: "SoughtKeys", *, prune: bool, ranges: bool
) -> tuple[FileHits, LookupCounts]:
    nothing = FileHits(file, np.zeros(0, np.int64), np.zeros(0, np.int64))
    filtered = False
    if prune:
        low, high = sought.within(looked_into.load_bounds() if ranges else None)
        if low == high:
            return nothing, LookupCounts(files=1, pruned_by_range=1)
    known = looked_into.load_known()
    if prune:
        filtered = known.bloom is not None
        if known.bloom is not None and not sought.any_may_be_in(known.bloom, low, high):
            return nothing, LookupCounts(files=1, pruned_by_filter=1)
    found = positions_of(looked_into.load_keys(known), sought.keys)
    rows = np.flatnonzero(found >= 0)
    missed = filtered and not len(rows)
    return FileHits(file, rows, found[rows]), LookupCounts(files=1, read=1, false_positives=int(missed))


def positions_of(stored: pa.ChunkedArray, keys: pa.Array) -> Positions:
    """For each stored key its position in `keys`, or -1."""
    found: Positions = pc.fill_null(pc.index_in(stored, value_set=keys), -1).to_numpy().astype(np.int64)
    return found


class SoughtKeys:
    """Keys that are looked for in several files: sorted once, hashed once.

    Args:
        keys: string array without nulls.
    """

    def __init__(self, keys: pa.Array) -> None:
        self.keys = keys
        self._sorted: pa.Array | None = None
        self._screen: npt.NDArray[np.uint32] | None = None
        self._ordered_alike = not has_high_characters(keys)

    def within(self, bounds: tuple[str, str] | None) -> tuple[int, int]:
        """The part of the sorted keys that lies in a file's range; all keys where that cannot be decided.

        Java orders strings by UTF-16 units, Arrow by UTF-8 bytes. Both orders agree below U+E000.
        """
        if bounds is None or not self._ordered_alike or any(max(bound, default="") >= "\ue000" for bound in bounds):
            return 0, len(self.keys)
        ordered, numbers = self._order(), range(len(self.keys))
        low = bisect_left(numbers, bounds[0], key=lambda number: ordered[number].as_py())
        return low, bisect_right(numbers, bounds[1], lo=low, key=lambda number: ordered[number].as_py())

    def any_may_be_in(self, bloom: AnyBloomFilter, low: int, high: int) -> bool:
        """Whether a filter may contain one of the sorted keys from `low` to before `high`."""
        ordered = self._order().slice(low, high - low)
        asked = 0 if len(self.keys) <= _FEW_KEYS else min(_ASKED_FIRST, len(ordered))
        if asked and bloom.may_contain(ordered.slice(0, asked)).any():
            return True
        if asked == len(ordered):
            return False
        passed = np.flatnonzero(bloom.screen(self._screen_hashes()[:, low + asked : high])) + asked
        first, rest = passed[:_ASKED_FIRST], passed[_ASKED_FIRST:]
        return any(len(one) and bloom.may_contain(ordered.take(pa.array(one))).any() for one in (first, rest))

    def _screen_hashes(self) -> npt.NDArray[np.uint32]:
        if self._screen is None:
            rounds = _ROUNDS_OF_FEW if len(self.keys) <= _FEW_KEYS else SCREEN_ROUNDS
            self._screen = screen_hashes(self._order(), rounds)
        return self._screen

    def _order(self) -> pa.Array:
        if self._sorted is None:
            self._sorted = self.keys.take(pc.sort_indices(self.keys))
        return self._sorted
