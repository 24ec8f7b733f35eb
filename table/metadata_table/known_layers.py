"""Decoded records of the metadata table, as columns: to be searched, merged, and remembered."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from table.errors import CorruptFileError
from table.files.hfile.pieces import Pieces, Positions, Sought, pieces_of
from table.files.hfile.read_hfile import HFile
from table.files.hfile.walk_blocks import walk_blocks
from table.files.log.framing import Header
from table.metadata_table.groups import layer_of, valid_blocks
from table.view.file_group import CommittedInstants

_BLOCKS_AT_ONCE = 256  # 16 MB of a block's usual size
_ENTRY_BYTES = 1_000  # what Python and Arrow need for a layer beside its bytes, as measured; and for an entry
_DELETE = b""  # the value of a record that goes


@dataclass(frozen=True)
class Hits:
    """What a layer says of keys.

    Attributes:
        keys: positions of the keys.
        numbers: for each of them the position of its value in `values`.
        values: each once; an empty one is a delete.
        schema: Avro schema of the values.
    """

    keys: Positions
    numbers: Positions
    values: Sequence[bytes]
    schema: str


@dataclass(frozen=True)
class KnownLayer:
    """Records that came to a slice together, or the keys of records that went.

    Attributes:
        keys: length in bytes -> the position of each key's value in `values`, and the keys (fixed size binary).
        values: each once; an empty one is a delete.
        schema: Avro schema of the values.
    """

    keys: Mapping[int, tuple[npt.NDArray[np.int32], pa.Array]]
    values: tuple[bytes, ...]
    schema: str

    @property
    def size_bytes(self) -> int:
        """The memory that it takes."""
        columns = sum(int(numbers.nbytes + keys.nbytes) for numbers, keys in self.keys.values())
        return columns + sum(map(len, self.values)) + _ENTRY_BYTES

    def known(self) -> "KnownLayer":
        """The layer itself, as of `OpenLayer`."""
        return self

    def match(self, sought: Sought) -> Hits:
        """What the layer says of keys."""
        found, values = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for length in self.keys.keys() & {*sought.lengths}:
            numbers, keys = self.keys[length]
            hits, of_keys = sought.match_array(keys)
            found.append(of_keys)
            values.append(numbers[hits].astype(np.int64))
        return Hits(np.concatenate(found), np.concatenate(values), self.values, self.schema)


@dataclass(frozen=True)
class OpenLayer:
    """As `KnownLayer`, with values that have no numbers yet: to number them takes as long as to find a few keys.

    Attributes:
        keys: of the records.
        values: of the records.
        schema: Avro schema of the values.
    """

    keys: Pieces
    values: Pieces
    schema: str

    def match(self, sought: Sought) -> Hits:
        """What the layer says of keys."""
        hits, keys = sought.match(self.keys)
        numbers, values = _numbered(self.values.take(hits))
        return Hits(keys, numbers.astype(np.int64), values, self.schema)

    def known(self) -> KnownLayer:
        """With a number for each different value.

        Raises:
            CorruptFileError: a key is empty.
        """
        if not self.keys.lengths.all():
            raise CorruptFileError("an HFile of the metadata table has an empty key")
        numbers, values = _numbered(self.values)
        keys = {array.type.byte_width: (numbers[at], array) for at, array in self.keys.by_length()}
        return KnownLayer(keys, values, self.schema)


def _numbered(pieces: Pieces) -> tuple[npt.NDArray[np.int32], tuple[bytes, ...]]:
    """For each piece the position of its bytes among the different ones, and these."""
    values: dict[bytes, int] = {_DELETE: 0}
    numbers = np.zeros(len(pieces), np.int32)
    for at, of_length in pieces.by_length():
        each = of_length.dictionary_encode()
        codes = [values.setdefault(value, len(values)) for value in each.dictionary.to_pylist()]
        numbers[at] = np.array(codes, np.int32)[each.indices.to_numpy()]
    return numbers, tuple(values)


@dataclass(frozen=True)
class KnownRecords:
    """The decoded records of a file.

    Attributes:
        layers: of its blocks, oldest first; None: they were dropped for want of memory.
        times: instants of the blocks of a log file.
    """

    layers: tuple[KnownLayer, ...] | None
    times: frozenset[str] = frozenset()

    @property
    def size_bytes(self) -> int:
        """The memory that they take."""
        return _ENTRY_BYTES + sum(layer.size_bytes for layer in self.layers or ())

    @property
    def forms(self) -> Iterator["KnownRecords"]:
        """The entry as a whole: a part is of no use."""
        yield self

    @property
    def has_filter(self) -> bool:
        """Whether it takes memory that it can do without."""
        return self.layers is not None

    @property
    def bare(self) -> "KnownRecords":
        """What is left where the memory is needed."""
        return replace(self, layers=None)


def layers_of_file(hfile: HFile, places: Sequence[tuple[int, int]]) -> Iterator[OpenLayer]:
    """The records of data blocks, some hundred blocks at a time.

    Args:
        hfile: the file.
        places: of its blocks.

    Raises:
        CorruptFileError: a block is damaged, or all blocks have fewer or more entries than the file says.
    """
    found = 0
    for begin in range(0, len(places), _BLOCKS_AT_ONCE):
        blocks = [hfile.block_data(start) for start, _ in places[begin : begin + _BLOCKS_AT_ONCE]]
        entries = walk_blocks(blocks)
        found += len(entries.keys)
        yield OpenLayer(entries.keys, entries.values, hfile.schema)
    if len(places) == len(hfile.places) and found != hfile.entry_count:
        raise CorruptFileError(f"an HFile has {found} entries, and its trailer says {hfile.entry_count}")


@dataclass(frozen=True)
class OpenLog:
    """A log file.

    Attributes:
        layers: of its blocks that count, oldest first.
        times: instants of these blocks.
        is_whole: whether no other block of the file can count later.
    """

    layers: tuple[OpenLayer | KnownLayer, ...]
    times: frozenset[str]
    is_whole: bool


def open_log(data: bytes, path: str, committed: CommittedInstants) -> OpenLog:
    """The records of the blocks of a log file that count.

    Args:
        data: the whole file.
        path: of the file, for errors.
        committed: the delta commits that count.

    Raises:
        CorruptFileError: a block is damaged.
        UnsupportedTableError: a block has a form that is not known here.
    """
    layers: list[OpenLayer | KnownLayer] = []
    valid, waits = valid_blocks(data, path, committed)
    for block in valid:
        decoded = layer_of(block, path)
        if isinstance(decoded, HFile):
            layers += layers_of_file(decoded, decoded.places)
        else:
            gone = pieces_of(pa.array(sorted(decoded), pa.binary()))
            keys = {keys.type.byte_width: (np.zeros(len(at), np.int32), keys) for at, keys in gone.by_length()}
            layers.append(KnownLayer(keys, (_DELETE,), ""))
    times = frozenset(block.header.get(Header.INSTANT_TIME, "") for block in valid)
    return OpenLog(tuple(layers), times, not waits)


@dataclass(frozen=True)
class Merged:
    """The records that are left of layers, ascending by key.

    Attributes:
        keys: binary array.
        numbers: for each of them the position of its value in `values`.
        values: with the schema of each.
    """

    keys: pa.Array
    numbers: Positions
    values: Sequence[tuple[bytes, str]]


def merge_layers(layers: Iterable[KnownLayer]) -> Merged:
    """The newest record of each key, where it was not deleted.

    Args:
        layers: oldest first.
    """
    values: dict[tuple[bytes, str], int] = {}
    keys, numbers = [pa.array([], pa.binary())], [np.zeros(0, np.int64)]
    for layer in layers:
        # a delete has a number like any value, and goes at the end
        codes = [values.setdefault((value, layer.schema if value else ""), len(values)) for value in layer.values]
        for of_keys, array in layer.keys.values():
            keys.append(array.cast(pa.binary()))
            numbers.append(np.array(codes, np.int64)[of_keys])
    every, told_of = pa.concat_arrays(keys), np.concatenate(numbers)
    order = pc.array_sort_indices(every).to_numpy()  # stable: of equal keys the newest stands last
    every, told_of = every.take(pa.array(order)), told_of[order]
    stays = told_of != values.get((_DELETE, ""), -1)
    if len(every) > 1:
        stays[:-1] &= pc.not_equal(every[:-1], every[1:]).to_numpy(zero_copy_only=False)
    return Merged(every.filter(pa.array(stays)), told_of[stays], tuple(values))
