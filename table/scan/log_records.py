"""Reads the records of a slice's log files, from the blocks that are valid (AbstractHoodieLogRecordScanner)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from table.columns.conform import conform
from table.errors import CorruptFileError, UnsupportedTableError
from table.files.log.data_blocks import RECORD_BLOCKS, read_rows
from table.files.log.delete_block import Deletes, read_deletes
from table.files.log.framing import BlockType, Header, LogBlock, ScannedBlock, Verdict, read_block, scan_blocks
from table.records.merge import REMOVES_COLUMN, Positions
from table.records.present_columns import PRESENT_COLUMN, present_column, present_type
from table.scan.gone_log import was_not_needed
from table.schema.avro_schema import DELETE_MARKER, RECORD_KEY, from_avro
from table.storage.interface import Storage
from table.view.file_group import CommittedInstants, FileSlice, LogFile

_SMALL_BYTES = 256 * 1024  # of a log file that is read at once
_KEPT_BYTES = 16 * 1024 * 1024  # of such files of one slice
_ROLLBACK = "0"  # HoodieCommandBlockTypeEnum.ROLLBACK_BLOCK


@dataclass(frozen=True, slots=True)
class FoundBlock:
    """A valid block.

    Attributes:
        file: the log file.
        place: its place in the file; without content.
        data: the whole file, if it is small: it need not be opened a second time.
    """

    file: LogFile
    place: ScannedBlock
    data: bytes | None = None

    @property
    def shell(self) -> LogBlock:
        """The block without its content."""
        assert self.place.block is not None
        return self.place.block

    @property
    def columns(self) -> frozenset[str] | None:
        """The columns of its records, if some are missing (IS_PARTIAL); None if they have all."""
        if self.shell.header.get(Header.IS_PARTIAL, "").lower() != "true":
            return None
        try:
            return frozenset(from_avro(self.shell.header.get(Header.SCHEMA, "")).names)
        except CorruptFileError as error:
            raise CorruptFileError(f"{self.file.path}: a block of partial updates: {error}") from error


def find_blocks(storage: Storage, file_slice: FileSlice, committed: CommittedInstants) -> list[FoundBlock]:
    """The valid data and delete blocks of a slice, oldest first. Reads only their headers.

    A block is valid if its instant is completed and no instant of that time is inflight. A rollback block revokes the
    earlier blocks of its target. Blocks of a log compaction replace the blocks of the instants that they name. Damage
    outside of a block's frame is skipped, as in Hudi. Positions of records in a base file, which blocks of table
    version 8 and later may contain, are not used: records are found by their keys.

    Raises:
        CorruptFileError: a file does not begin with a block, or a block is damaged within its frame: skipping that
            could lose rows. Or a file is shorter than its listing says.
        UnsupportedTableError: a command block is of an unknown type.
        StorageError: a file cannot be read.
    """
    found: list[FoundBlock] = []
    latest = max(committed.times, default="")
    room = _KEPT_BYTES
    for file in file_slice.log_files:
        places, data = _list_places(storage, file, committed, keeps=file.size_bytes <= min(room, _SMALL_BYTES))
        room -= len(data or b"")
        for place in places:
            block = _whole_block(place, file)
            if block is None:
                continue
            time = block.header.get(Header.INSTANT_TIME, "")
            if block.type is BlockType.COMMAND:
                found = _rolled_back(found, block, file)
            elif block.type in RECORD_BLOCKS and time <= latest and committed.includes_block(time):
                found.append(FoundBlock(file, place, data))
    return in_places_of_compacted(found)


def _list_places(
    storage: Storage, file: LogFile, committed: CommittedInstants, *, keeps: bool
) -> tuple[list[ScannedBlock], bytes | None]:
    """The places of a file, and the file if it is to be kept; none if it was deleted and no visible write wrote it."""
    try:
        # a file can have grown since it was listed: what was appended is of writes that the timeline does not show
        data = storage.read(file.path)[: file.size_bytes] if keeps else None
        with open_log(storage, file, data) as stream:
            places = list(scan_blocks(stream, with_content=False))
        if data is not None or any(place.block is None for place in places):
            _check_size(storage, file, data)
        return places, data
    except FileNotFoundError:
        if was_not_needed(storage, file, committed):
            return [], None
        raise


def _check_size(storage: Storage, file: LogFile, data: bytes | None) -> None:
    """Refuses a file that is shorter than its listing says: the lists of a metadata table do not see that it was cut.

    Raises:
        CorruptFileError: names both sizes.
    """
    if data is not None:
        found = len(data)
    else:
        with storage.open_input(file.path) as stream:
            found = stream.size()
    if found < file.size_bytes:
        raise CorruptFileError(f"{file.path} has {found:,} bytes, and its listing says {file.size_bytes:,}: it was cut")


def open_log(storage: Storage, file: LogFile, data: bytes | None) -> pa.NativeFile:
    """A log file, from memory if its bytes are at hand."""
    return pa.BufferReader(data) if data is not None else storage.open_input(file.path, file.size_bytes)


def in_places_of_compacted(found: list[FoundBlock]) -> list[FoundBlock]:
    """Puts each block of a log compaction in the place of the newest block that it replaces. The others are left out.

    The order is that of BaseHoodieLogRecordReader. A log compaction may replace blocks of an earlier log compaction.
    """
    by_time: dict[str, list[FoundBlock]] = {}
    for block in found:
        by_time.setdefault(block.shell.header.get(Header.INSTANT_TIME, ""), []).append(block)
    stands_for: dict[str, str] = {}
    newest_first: dict[str, None] = {}
    for time in reversed(by_time):
        compacted = by_time[time][0].shell.header.get(Header.COMPACTED_BLOCK_TIMES)
        if compacted is None:
            newest_first[stands_for.get(time, time)] = None
        else:
            stands_for.update(dict.fromkeys(compacted.split(","), stands_for.get(time, time)))
    if not stands_for:
        return found
    return [block for time in reversed(newest_first) for block in by_time[time]]


def _whole_block(place: ScannedBlock, file: LogFile) -> LogBlock | None:
    if place.verdict is not Verdict.WHOLE and (place.is_framed or not place.begins):
        raise CorruptFileError(f"{file.path}: the block at byte {place.start} is damaged: {place.reason}")
    return place.block


def _rolled_back(found: list[FoundBlock], block: LogBlock, file: LogFile) -> list[FoundBlock]:
    command = block.header.get(Header.COMMAND_BLOCK_TYPE)
    if command != _ROLLBACK:
        raise UnsupportedTableError(f"{file.path} holds a block with the command {command!r}, which is not known")
    target = block.header.get(Header.TARGET_INSTANT_TIME)
    return [earlier for earlier in found if earlier.shell.header.get(Header.INSTANT_TIME) != target]


def log_schema(schema: pa.Schema, *, partial: bool = False) -> pa.Schema:
    """Columns of log records: the columns wanted, a delete flag, and a flag for deletes that ignore the ordering value.

    Args:
        schema: the columns wanted.
        partial: whether records may be without some columns. If so, a last column names the columns that each record
            has.
    """
    extra = [pa.field(REMOVES_COLUMN, pa.bool_())]
    if DELETE_MARKER not in schema.names:
        extra.insert(0, pa.field(DELETE_MARKER, pa.bool_()))
    if partial:
        extra.append(pa.field(PRESENT_COLUMN, present_type(len(schema) + len(extra) + 1)))
    return pa.schema([*schema, *extra])


def read_records(
    storage: Storage, blocks: list[FoundBlock], schema: pa.Schema, ordering_fields: Sequence[str]
) -> Iterator[pa.Table]:
    """The records of blocks in their order, with the columns of `log_schema`. One block is in memory at a time.

    Args:
        blocks: as found.
        schema: the columns wanted, record key and ordering fields among them.
        ordering_fields: the table's.

    Raises:
        CorruptFileError: a block is damaged.
        UnsupportedTableError: a block has a format that is not supported.
        StorageError: a file cannot be read.
    """
    partial = any(found.columns is not None for found in blocks)
    whole, wanted = log_schema(schema), log_schema(schema, partial=partial)
    ordering = pa.schema([schema.field(name) for name in ordering_fields])
    for found in blocks:
        with open_log(storage, found.file, found.data) as stream:
            block = read_block(stream, found.place)
        if block.type is BlockType.DELETE:
            deletes = _delete_rows(read_deletes(block, ordering, found.file.path), whole)
            yield _with_present(deletes, wanted, None)
            continue
        present = None if found.columns is None else found.columns | {*wanted.names[len(schema) :]}
        for rows in read_rows(block, whole.names, found.file.path):
            yield _with_present(_checked(rows, whole, found.file.path), wanted, present)


def _with_present(rows: pa.Table, wanted: pa.Schema, columns: frozenset[str] | None) -> pa.Table:
    if PRESENT_COLUMN not in wanted.names:
        return rows
    return rows.append_column(wanted.field(PRESENT_COLUMN), present_column(wanted.names, columns, len(rows)))


def _checked(rows: pa.Table, wanted: pa.Schema, name: str) -> pa.Table:
    try:
        conformed = conform(rows, wanted, never_null=(REMOVES_COLUMN,))
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise CorruptFileError(f"{name}: a block has columns of other types than the table: {error}") from error
    if conformed.column(RECORD_KEY).null_count:
        raise CorruptFileError(f"{name}: a block has a record without a record key")
    return conformed


def _delete_rows(deletes: Deletes, wanted: pa.Schema) -> pa.Table:
    known = {RECORD_KEY: deletes.keys, DELETE_MARKER: pa.array(np.ones(len(deletes.keys), np.bool_))}
    known[REMOVES_COLUMN] = pa.array(deletes.removes)
    known |= {name: deletes.order.column(name) for name in deletes.order.column_names if name != RECORD_KEY}
    return conform(pa.table(known), wanted)


def removes_of(rows: pa.Table) -> npt.NDArray[np.bool_]:
    """Which log records delete their key whatever the ordering value."""
    flags: npt.NDArray[np.bool_] = rows.column(REMOVES_COLUMN).fill_null(False).to_numpy()
    return flags


def without_removed(rows: pa.Table) -> pa.Table:
    """Drops log records that a later delete of their key removes whatever the ordering value."""
    removes = removes_of(rows)
    if not removes.any():
        return rows
    keys = rows.column(RECORD_KEY).combine_chunks().dictionary_encode()
    if isinstance(keys, pa.ChunkedArray):
        keys = keys.combine_chunks()
    groups: Positions = keys.indices.to_numpy().astype(np.int64)
    last = np.full(len(keys.dictionary), -1, np.int64)
    at = np.flatnonzero(removes)
    last[groups[at]] = at  # positions ascend: the last one stays
    return rows.filter(pa.array(np.arange(len(rows)) >= last[groups]))
