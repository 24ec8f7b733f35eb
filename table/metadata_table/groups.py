"""File groups of the metadata table: which files they have, and the records of a slice (HoodieMetadataLogRecordReader).

Each index is a partition path of the metadata table, with one file group or several. A base file is an HFile. The
blocks of log files have the same form, or name the keys of deleted records.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from io import BytesIO
from itertools import groupby
from operator import itemgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from table import threads
from table.errors import CorruptFileError, UnsupportedTableError
from table.files.hfile.pieces import Pieces, Positions, Sought
from table.files.hfile.read_hfile import HFile
from table.files.hfile.walk_blocks import walk_blocks
from table.files.log.delete_block import read_deletes
from table.files.log.framing import BlockType, Header, LogBlock, Verdict, scan_blocks
from table.metadata_table.metadata_table import MetadataTable
from table.metadata_table.records import Value
from table.metadata_table.stored_bytes import StoredBytes, windows
from table.view.file_group import CommittedInstants, DataFile, FileSlice

EMPTY_DELETE_BLOCK = b"\x00\x00\x00\x03\x00\x00\x00\x01\x00"  # Hudi begins each file group with one

_BLOCKS_AT_ONCE = 256  # 16 MB of a block's usual size

Layer = HFile | frozenset[bytes]
"""Records that come to a slice together, or the keys of those that go."""


@dataclass(frozen=True)
class SliceRecords:
    """The records of a file slice.

    Attributes:
        layers: of the base file and of the blocks of log files, oldest first.
    """

    layers: tuple[Layer, ...]

    def find(self, key: bytes) -> list[Value]:
        """What the layers say of a key, oldest first."""
        found = []
        for layer in self.layers:
            if isinstance(layer, HFile):
                data = layer.find(key)
                if data is not None:
                    found.append(Value(data or None, layer.schema))
            elif key in layer:
                found.append(Value(None, ""))
        return found

    def entries(self) -> Iterator[tuple[bytes, list[Value]]]:
        """Keys, ascending, each with what the layers say of it, oldest first. Blocks are unpacked one by one.

        Raises:
            CorruptFileError: a block is damaged.
        """
        parts = [_entries_of(layer, number) for number, layer in enumerate(self.layers)]
        for key, found in groupby(merge(*parts, key=itemgetter(0, 1)), key=itemgetter(0)):
            yield key, [value for _, _, value in found]


@dataclass(frozen=True)
class Hits:
    """What one layer says of keys.

    Attributes:
        keys: their positions.
        values: a value for each; an empty one, and None for all, is a delete.
        schema: Avro schema of the values.
    """

    keys: Positions
    values: Pieces | None = None
    schema: str = ""


@dataclass(frozen=True)
class StoredRecords:
    """The records of a file slice whose base file stays in the store: for a few keys of many.

    Attributes:
        base: the base file, and its bytes; None where there are only log files.
        logs: the layers of the log files, oldest first.
    """

    base: tuple[HFile, StoredBytes] | None
    logs: tuple[Layer, ...]

    def find_each(self, keys: pa.Array) -> Iterator[Hits]:
        """What the layers say of keys, the oldest layer first. The blocks that may have one are read side by side.

        Args:
            keys: binary array without nulls, ascending, none twice.

        Raises:
            CorruptFileError: a block is damaged.
            FileNotFoundError: the base file was deleted meanwhile.
            StorageError: the store fails.
        """
        sought, listed = Sought(keys), keys.to_pylist()
        if self.base is not None:
            hfile, stored = self.base
            places, at = hfile.places_of(listed), 0
            for count, parts in windows((start, start + size) for start, size in places):
                stored.load(parts)
                chosen = [(hfile, start) for start, _ in places[at : at + count]]
                at += count
                yield from _hits_in(sought, chosen)
        for is_data, layers in groupby(self.logs, key=lambda layer: isinstance(layer, HFile)):
            if is_data:
                files = [layer for layer in layers if isinstance(layer, HFile)]
                yield from _hits_in(sought, [(file, start) for file in files for start, _ in file.places_of(listed)])
            else:
                for layer in layers:
                    assert isinstance(layer, frozenset)
                    gone = pa.array(list(layer), pa.binary())
                    yield Hits(np.flatnonzero(pc.is_in(keys, value_set=gone).to_numpy(zero_copy_only=False)))


def _hits_in(sought: Sought, blocks: Sequence[tuple[HFile, int]]) -> Iterator[Hits]:
    """Those of blocks, given by file and offset; the blocks of a file stand one after the other."""
    for begin in range(0, len(blocks), _BLOCKS_AT_ONCE):
        some = blocks[begin : begin + _BLOCKS_AT_ONCE]
        entries = walk_blocks([file.block_data(offset) for file, offset in some])
        found, keys = sought.match(entries.keys)
        at = block = 0
        for file, of_file in groupby(file for file, _ in some):
            block += len(list(of_file))
            end = int(np.searchsorted(found, entries.ends[block - 1]))
            yield Hits(keys[at:end], entries.values.take(found[at:end]), file.schema)
            at = end


def _entries_of(layer: Layer, number: int) -> Iterator[tuple[bytes, int, Value]]:
    if isinstance(layer, HFile):
        schema = layer.schema
        for key, data in layer.entries():
            yield key, number, Value(data or None, schema)  # an empty value is a delete
    else:
        yield from ((key, number, Value(None, "")) for key in sorted(layer))


def read_records(own: MetadataTable, found: FileSlice, committed: CommittedInstants) -> SliceRecords:
    """Reads the files of a slice.

    Args:
        own: the metadata table.
        found: the slice.
        committed: instants of the metadata table's own timeline.

    Raises:
        UnsupportedTableError: a file has a form that is not known here.
        CorruptFileError: a file is damaged.
        FileNotFoundError: a file was deleted meanwhile.
    """
    layers: list[Layer] = [HFile(own.storage.read(found.base_file.path))] if found.base_file else []
    for log in found.log_files:
        layers += _layers_of(own.storage.read(log.path), log.path, committed)
    return SliceRecords(tuple(layers))


def open_records(own: MetadataTable, found: FileSlice, committed: CommittedInstants) -> StoredRecords:
    """Opens the files of a slice, side by side. Log files are read whole.

    Args:
        own: the metadata table.
        found: the slice.
        committed: the delta commits that count.

    Raises:
        UnsupportedTableError, CorruptFileError, FileNotFoundError, StorageError: as `read_records`.
    """
    base, files = found.base_file, found.files

    def fetch(file: DataFile) -> StoredBytes | bytes:
        return StoredBytes(own.storage, file.path, file.size_bytes) if file is base else own.storage.read(file.path)

    if len(files) > 1 and own.storage.calls_at_once > 1:
        with threads.make_pool(own.storage.calls_at_once, "hudistream-index") as pool:
            contents = list(pool.map(fetch, files))
    else:
        contents = list(map(fetch, files))
    stored = contents.pop(0) if base is not None else None
    layers: list[Layer] = []
    for log, data in zip(found.log_files, contents, strict=True):
        assert isinstance(data, bytes)
        layers += _layers_of(data, log.path, committed)
    return StoredRecords((HFile(stored), stored) if isinstance(stored, StoredBytes) else None, tuple(layers))


def _layers_of(data: bytes, path: str, committed: CommittedInstants) -> Iterator[Layer]:
    for block in _valid_blocks(data, path, committed):
        yield _layer_of(block, path)


def _layer_of(block: LogBlock, path: str) -> Layer:
    if block.type is BlockType.HFILE_DATA:
        return HFile(block.content)
    keys: Sequence[str] = read_deletes(block, pa.schema([]), path).keys.to_pylist()
    return frozenset(key.encode() for key in keys)


def _valid_blocks(data: bytes, path: str, committed: CommittedInstants) -> list[LogBlock]:
    """The blocks of a log file that count, oldest first.

    Raises:
        CorruptFileError: a part of the file is no whole block.
        UnsupportedTableError: it has blocks of a type that a metadata table does not have.
    """
    valid: list[LogBlock] = []
    for place in scan_blocks(BytesIO(data)):
        block = place.block
        if place.verdict is not Verdict.WHOLE or block is None:
            raise CorruptFileError(f"{path} of the metadata table is damaged at byte {place.start}: {place.reason}")
        time = block.header.get(Header.INSTANT_TIME, "")
        if block.type is BlockType.COMMAND:
            target = block.header.get(Header.TARGET_INSTANT_TIME, "")
            valid = [one for one in valid if one.header.get(Header.INSTANT_TIME, "") != target]
        elif block.type is BlockType.DELETE and bytes(block.content) == EMPTY_DELETE_BLOCK:
            continue
        elif block.type not in (BlockType.HFILE_DATA, BlockType.DELETE) or Header.COMPACTED_BLOCK_TIMES in block.header:
            raise UnsupportedTableError(f"{path} of the metadata table has a block of type {block.type.name}")
        elif committed.includes_block(time):
            valid.append(block)
    return valid
