"""Compares the record index of the metadata table with the keys of rows: Hudi's upserts trust it."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pyarrow as pa

from table.config.metadata_indexes import RECORD_INDEX
from table.errors import CorruptFileError, StorageError, UnsupportedTableError
from table.hudi_table import HudiTable
from table.metadata_table.file_lists import Failures
from table.metadata_table.index_keys import groups_of_keys
from table.metadata_table.location_codec import Location
from table.metadata_table.metadata_table import METADATA_FOLDER
from table.metadata_table.read_record_index import Places, RecordIndex, see_record_index
from table.scan.read_slice import SliceContext
from table.scan.slice_keys import read_slice_keys
from table.services.check.file_lists import ADVICE
from table.services.check.finding import Finding, Kind, Repair, Severity
from table.timeline.timeline import Timeline
from table.view.file_group import DataFile, FileSlice

Group = tuple[str, str]  # partition path, file id
_MOST_BYTES = 64 << 20  # of a file group of the index whose entries are read where files are sampled
_MOST_WRONG = 10_000  # keys that are looked for: a damaged index may be wrong about all


def check_record_index(
    context: SliceContext,
    timeline: Timeline,
    files: Iterable[DataFile],
    load_slices: Callable[[], Iterable[FileSlice]],
    *,
    is_sampled: bool,
) -> list[Finding]:
    """Finds keys that the index does not have, or has in a file group that is gone or does not hold them.

    If a table has a key twice, the index names one of its places.

    Args:
        context: of the newest snapshot.
        timeline: its timeline, as the files were listed.
        files: files of the newest snapshot: the keys of their file groups are compared.
        load_slices: lists the slices that readers merge.
        is_sampled: whether `files` are only some, so that only a part of the index is read: one of its file groups, of
            at most 64 MiB.

    Raises:
        StorageError: the store fails.
    """
    table = context.table
    if RECORD_INDEX not in table.config.metadata_indexes:
        return []
    chosen = tuple(dict.fromkeys((file.partition_path, file.file_id) for file in files))
    try:
        index = see_record_index(table.storage, table.config, table.known_lists).as_of(timeline)
        slices = {(one.partition_path, one.file_id): one for one in load_slices()}
        numbers = _choose(index) if is_sampled else tuple(sorted(index.slices))
        wrong = dict(islice(_Comparison(context, index, slices, numbers).find_wrong(chosen), _MOST_WRONG))
    except Failures as error:
        if _has_changed(table, timeline):
            return []
        text = f"the record index of the metadata table cannot be read: {error}"
        return [Finding(Kind.METADATA_TABLE, Severity.WARNING, METADATA_FOLDER, text, Repair.POSSIBLE, advice=ADVICE)]
    if not wrong or _has_changed(table, timeline):
        return []
    key, why = next(iter(wrong.items()))
    count = f"{len(wrong)} keys" if len(wrong) < _MOST_WRONG else "many keys"
    text = (
        f"the record index of the metadata table is wrong about {count}, among them {key!r}, {why}: Hudi "
        "writes such a key twice, takes it for known where no row has it, or fails"
    )
    return [Finding(Kind.METADATA_TABLE, Severity.ERROR, METADATA_FOLDER, text, Repair.POSSIBLE, advice=ADVICE)]


def _has_changed(table: HudiTable, timeline: Timeline) -> bool:
    """Whether something was written meanwhile: the index may be of a newer snapshot than the files."""
    return table.load_timeline().files != timeline.files


def _choose(index: RecordIndex) -> tuple[int, ...]:
    """The first file group of an index that is not too large to be read."""
    sizes = {number: sum(file.size_bytes for file in one.files) for number, one in sorted(index.slices.items())}
    return tuple(number for number, size in sizes.items() if size <= _MOST_BYTES)[:1]


@dataclass(frozen=True)
class _Comparison:
    """An index beside the slices of one snapshot. What is found is a key, and what is wrong about it.

    Attributes:
        numbers: the file groups of the index whose entries are read.
    """

    context: SliceContext
    index: RecordIndex
    slices: Mapping[Group, FileSlice]
    numbers: tuple[int, ...]

    def find_wrong(self, chosen: Iterable[Group]) -> Iterator[tuple[str, str]]:
        """Looks at the keys of some file groups, and at the entries of the index."""
        rightly: dict[Group, int] = {}  # file group -> keys that the index rightly has there
        for group in chosen:
            keys = self._read_keys(group)
            if keys is not None:
                places = self.index.find(keys)
                yield from self._find_lost(group, keys, places)
                here = keys.take(pa.array(places.by_group().get(group, ()), pa.int64())).unique()
                rightly[group] = int(np.isin(groups_of_keys(here, self.index.count), self.numbers).sum())
        yield from self._find_left_over(rightly)

    def _find_lost(self, group: Group, keys: pa.Array, places: Places) -> Iterator[tuple[str, str]]:
        yield from ((key, "which is missing there") for key in keys.take(pa.array(places.unknown)).to_pylist())
        elsewhere = {place: keys.take(pa.array(at)) for place, at in places.by_group().items() if place != group}
        for place, keys_there in elsewhere.items():
            held = self._key_set(place)
            yield from (
                (key, f"which is in {_name(group)}, and not in {_name(place)}")
                for key in keys_there.to_pylist()
                if key not in held
            )

    def _find_left_over(self, rightly: Mapping[Group, int]) -> Iterator[tuple[str, str]]:
        counts: Counter[Group] = Counter()
        for key, group in self._entries():
            counts[group] += 1
            if group not in self.slices:
                yield key, f"which it has in {_name(group)}, and that file group is gone"
        for group, count in rightly.items():
            if counts[group] > count:
                held, why = self._key_set(group), f"which it has in {_name(group)}, where no row has it"
                yield from ((key, why) for key, at in self._entries() if at == group and key not in held)

    def _entries(self) -> Iterator[tuple[str, Group]]:
        for number in self.numbers:
            yield from ((key, _group_of(location)) for key, location in self.index.locations(number))

    def _key_set(self, group: Group) -> set[str]:
        keys = self._read_keys(group)
        return set() if keys is None else set(keys.to_pylist())

    def _read_keys(self, group: Group) -> pa.Array | None:
        """The keys of a slice; None where there is none, or it cannot be read, which the check of contents says."""
        try:
            return read_slice_keys(self.context, self.slices[group]) if group in self.slices else None
        except (CorruptFileError, UnsupportedTableError, FileNotFoundError, StorageError):
            return None


def _group_of(location: Location) -> Group:
    return location.partition_path, location.file_id


def _name(group: Group) -> str:
    return "/".join(part for part in group if part)
