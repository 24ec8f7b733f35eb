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

import pyarrow as pa

from table.errors import CorruptFileError, UnsupportedTableError
from table.files.hfile.read_hfile import HFile
from table.files.log.delete_block import read_deletes
from table.files.log.framing import BlockType, Header, LogBlock, Verdict, scan_blocks
from table.metadata_table.metadata_table import MetadataTable
from table.metadata_table.records import Value
from table.view.file_group import CommittedInstants, FileSlice

EMPTY_DELETE_BLOCK = b"\x00\x00\x00\x03\x00\x00\x00\x01\x00"  # Hudi begins each file group with one

_BLOCKS_AT_ONCE = 256  # 16 MB of a block's usual size

Layer = HFile | frozenset[bytes]
"""Records that come to a slice together, or the keys of those that go."""


@dataclass(frozen=True)
class SliceRecords:
    """The records of a file slice.

    Attributes:
        layers: of the base file and of the blocks of log files, oldest first.
        times: instants of the blocks of log files.
    """

    layers: tuple[Layer, ...]
    times: frozenset[str] = frozenset()

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
    times: set[str] = set()
    for log in found.log_files:
        for block in valid_blocks(own.storage.read(log.path), log.path, committed)[0]:
            layers.append(layer_of(block, log.path))
            times.add(block.header.get(Header.INSTANT_TIME, ""))
    return SliceRecords(tuple(layers), frozenset(times))


def layer_of(block: LogBlock, path: str) -> Layer:
    """The records of a block, or the keys of those that it deletes.

    Args:
        block: of `valid_blocks`.
        path: of its file, for errors.

    Raises:
        CorruptFileError: the block is damaged.
    """
    if block.type is BlockType.HFILE_DATA:
        return HFile(block.content)
    keys: Sequence[str] = read_deletes(block, pa.schema([]), path).keys.to_pylist()
    return frozenset(key.encode() for key in keys)


def valid_blocks(data: bytes, path: str, committed: CommittedInstants) -> tuple[list[LogBlock], bool]:
    """The blocks of a log file that count, oldest first, and whether others may count later.

    Args:
        data: the whole file.
        path: of the file, for errors.
        committed: the delta commits that count.

    Raises:
        CorruptFileError: a part of the file is no whole block.
        UnsupportedTableError: it has blocks of a type that a metadata table does not have.
    """
    valid: list[LogBlock] = []
    waits = False
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
        else:
            waits = True
    return valid, waits
