"""Looks for keys in a file slice of the metadata table. Files that were decoded can be remembered for the next batch.

Files of the metadata table do not change, except for log files of timeline layout 1, which grow. So a file is
remembered by its path and size, and by the number of file groups that its index has. The first base files of an index
are not remembered: those of an index that was made anew have the same names. No later one is the file of two of them,
because the instants of a metadata table are those of the table's actions.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from table.files.hfile.pieces import Sought
from table.files.hfile.read_hfile import HFile
from table.metadata_table.known_layers import Hits, KnownLayer, KnownRecords, OpenLayer, layers_of_file, open_log
from table.metadata_table.metadata_table import MADE, METADATA_FOLDER, MetadataTable
from table.metadata_table.stored_bytes import Place, StoredBytes, windows
from table.storage.at_once import each_at_once
from table.storage.interface import join
from table.view.file_group import BaseFile, CommittedInstants, DataFile, FileSlice

Layer = OpenLayer | KnownLayer


class Memory(Protocol):
    """Where decoded files are remembered, within a limit of bytes."""

    limit_bytes: int

    def get_records(self, name: str) -> KnownRecords | None:
        """The entry of a file; None where there is none."""

    def put_records(self, name: str, known: KnownRecords) -> None:
        """Adds an entry, if there is room for it."""


@dataclass(frozen=True)
class Remembered:
    """Decoded files of an index.

    Attributes:
        memory: where they are; None: nothing is remembered.
        count: number of file groups of the index.
    """

    memory: Memory | None = None
    count: int = 0

    def recall(self, file: DataFile, committed: CommittedInstants) -> Iterable[Layer] | None:
        """The layers of a file, if it is remembered and all its blocks count."""
        known = self.memory.get_records(self._name_of(file)) if self.memory is not None else None
        if known is None or not all(map(committed.includes_block, known.times)):
            return None
        return known.layers

    def takes(self, base: BaseFile, hfile: HFile, places: Sequence[Place]) -> bool:
        """Whether a base file is to be decoded as a whole, and remembered: most of it is asked for, and there is room.

        Args:
            base: the file.
            hfile: the same.
            places: of the blocks that are asked for.
        """
        if self.memory is None or base.instant_time.startswith(MADE):
            return False
        return 2 * len(places) >= len(hfile.places) and 2 * hfile.key_bytes <= self.memory.limit_bytes

    def keep(self, file: DataFile, opened: Iterable[Layer], times: frozenset[str] = frozenset()) -> Iterable[Layer]:
        """Remembers the layers of a file, and returns them.

        Args:
            file: the file.
            opened: its layers.
            times: instants of its blocks.
        """
        if self.memory is None:
            return opened
        layers = tuple(layer.known() for layer in opened)
        self.memory.put_records(self._name_of(file), KnownRecords(layers, times))
        return layers

    def _name_of(self, file: DataFile) -> str:
        return f"{join(METADATA_FOLDER, file.path)}:{file.size_bytes}:{self.count}"


_NOTHING = Remembered()


def find_keys(
    own: MetadataTable,
    found: FileSlice,
    committed: CommittedInstants,
    keys: pa.Array,
    remembered: Remembered = _NOTHING,
) -> Iterator[Hits]:
    """What the files of a slice say of keys, oldest first.

    Of the base file those blocks are read that may have one of the keys, side by side. Where these are most of them,
    the whole file is read, and remembered.

    Args:
        own: the metadata table.
        found: the slice.
        committed: the delta commits that count.
        keys: binary array without nulls, ascending, none twice.
        remembered: decoded files of the index.

    Raises:
        UnsupportedTableError: a file has a form that is not known here.
        CorruptFileError: a file is damaged.
        FileNotFoundError: a file was deleted meanwhile.
        StorageError: the store fails.
    """
    sought, listed, base = Sought(keys), keys.to_pylist(), found.base_file
    known = {file: remembered.recall(file, committed) for file in found.files}
    missing = [file for file, layers in known.items() if layers is None]

    def fetch(file: DataFile) -> StoredBytes | bytes:
        return StoredBytes(own.storage, file.path, file.size_bytes) if file is base else own.storage.read(file.path)

    fetched = dict(zip(missing, each_at_once(own.storage, fetch, missing), strict=True))
    for file, recalled in known.items():
        content, layers = fetched.get(file), recalled
        if isinstance(content, StoredBytes) and isinstance(file, BaseFile):
            layers = _open_base(file, content, listed, remembered)
        elif isinstance(content, bytes):
            log = open_log(content, file.path, committed)
            layers = remembered.keep(file, log.layers, log.times) if log.is_whole else log.layers
        assert layers is not None
        yield from (layer.match(sought) for layer in layers)


def read_layers(own: MetadataTable, found: FileSlice, committed: CommittedInstants) -> Iterator[KnownLayer]:
    """The records of a slice, oldest first. Arguments and errors are those of `find_keys`."""
    if found.base_file is not None:
        base = HFile(own.storage.read(found.base_file.path))
        yield from (layer.known() for layer in layers_of_file(base, base.places))
    for log in found.log_files:
        opened = open_log(own.storage.read(log.path), log.path, committed)
        yield from (layer.known() for layer in opened.layers)


def _open_base(file: BaseFile, content: StoredBytes, keys: Sequence[bytes], remembered: Remembered) -> Iterable[Layer]:
    hfile = HFile(content)
    places = hfile.places_of(keys)
    if remembered.takes(file, hfile, places):
        return remembered.keep(file, _read_base(hfile, content, hfile.places))
    return _read_base(hfile, content, places)


def _read_base(hfile: HFile, stored: StoredBytes, places: Sequence[Place]) -> Iterator[OpenLayer]:
    at = 0
    for count, parts in windows((start, start + size) for start, size in places):
        stored.load(parts)
        yield from layers_of_file(hfile, places[at : at + count])
        at += count
