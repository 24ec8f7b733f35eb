"""The rows of a slice with log files: base file and log records merged (HoodieFileGroupReader)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from table.columns.lots import SpilledLots
from table.columns.memory_size import rows_bytes
from table.config.merge_mode import mode_in_force
from table.config.table_config import TableConfig
from table.errors import UnsupportedTableError
from table.files.base.stored_file import StoredBaseFile
from table.files.bloom.key_hashes import hash_keys
from table.index.key_lookup import positions_of
from table.records.merge import MergeRules, combine_rows, delete_flags, merge_rows
from table.records.present_columns import PRESENT_COLUMN
from table.scan.log_records import FoundBlock, find_blocks, log_schema, read_records, removes_of, without_removed
from table.schema.avro_schema import DELETE_MARKER, RECORD_KEY
from table.storage.interface import Storage
from table.view.file_group import BaseFile, CommittedInstants, FileSlice

MEMORY_BYTES = 64 * 1024 * 1024
_LOTS = 32
_WORTH_COMBINING = 0.5  # of the memory: what is left of records that fill it, if most of them are superseded
MORE_ROWS = 2  # most log records per row of a piece of the base file: the cost of a lookup depends on both
_MERGED_ROWS = 16_384  # merged at a time: merging copies them twice


@dataclass(frozen=True)
class SliceReading:
    """How slices of a table are read: small and picklable.

    Attributes:
        schema: all columns of the table, meta columns first, everything nullable.
        columns: names of the columns wanted, in order.
        rules: how records with the same key are merged.
        committed: the instants that are visible.
        memory_bytes: most bytes of log records (Arrow) held in memory. More go to local disk.
    """

    schema: pa.Schema
    columns: tuple[str, ...]
    rules: MergeRules
    committed: CommittedInstants
    memory_bytes: int = MEMORY_BYTES

    @property
    def output(self) -> pa.Schema:
        """The columns wanted."""
        return pa.schema([self.schema.field(name) for name in self.columns])

    @property
    def merged(self) -> pa.Schema:
        """The columns wanted, and the columns that merging needs."""
        needed = [RECORD_KEY, *self.rules.ordering_fields]
        if DELETE_MARKER in self.schema.names:
            needed.append(DELETE_MARKER)
        return pa.schema([self.schema.field(name) for name in dict.fromkeys([*self.columns, *needed])])


@dataclass(frozen=True)
class LogRecords:
    """The records of a slice's log files, in the order of their blocks.

    Attributes:
        held: the first records, in memory, in pieces; with the columns of `log_schema`. Records that later ones among
            them supersede may be left out.
        rest: the other records, not yet read; None where all are in memory.
    """

    held: list[pa.Table]
    rest: Iterator[pa.Table] | None = None

    @property
    def are_held_whole(self) -> bool:
        """Whether all records are in memory, and each record has all columns."""
        return self.rest is None and all(PRESENT_COLUMN not in rows.column_names for rows in self.held)


def rules_of(config: TableConfig, schema: pa.Schema) -> MergeRules:
    """How records of a table are merged when they are read.

    Args:
        config: the table's properties.
        schema: its columns.

    Raises:
        UnsupportedTableError: the merge mode is not supported, or the table has no meta columns.
    """
    mode = mode_in_force(config.version, config.payload_class, config.extra)
    if mode is None:
        raise UnsupportedTableError(
            f"the table has hoodie.compaction.payload.class={config.payload_class}: how it merges the records of log "
            "files is not known here; let Hudi compact the table"
        )
    if not config.populate_meta_fields:
        raise UnsupportedTableError(
            "the table has hoodie.populate.meta.fields=false: records of log files are found by their meta columns"
        )
    fields = config.ordering_fields if {*config.ordering_fields} <= {*schema.names} else ()
    return MergeRules(mode, fields, orders_deletes=True)


def merge_slice(storage: Storage, file_slice: FileSlice, reading: SliceReading) -> Iterator[pa.Table]:
    """The rows of a slice as Hudi's snapshot query shows them.

    Args:
        file_slice: of `FileGroup.merged_slice`.
        reading: columns and rules.

    Returns:
        Rows in pieces: the rows of the base file in its order, then rows that are only in log files. If log records
        went to local disk, the order is different.

    Raises:
        CorruptFileError: a file or a block is damaged.
        UnsupportedTableError: a log file has a block that is not supported.
        StorageError: a file cannot be read.
    """
    yield from merge_records(storage, file_slice.base_file, load_records(storage, file_slice, reading), reading)


def load_records(storage: Storage, file_slice: FileSlice, reading: SliceReading) -> LogRecords | None:
    """Reads the records of a slice's log files into memory, up to `SliceReading.memory_bytes`.

    Args:
        file_slice: of `FileGroup.merged_slice`.
        reading: columns and rules.

    Returns:
        The records; None where no block is valid.

    Raises:
        CorruptFileError: a file or a block is damaged.
        UnsupportedTableError: a log file has a block that is not supported.
        StorageError: a file cannot be read.
    """
    blocks = find_blocks(storage, file_slice, reading.committed)
    if not blocks:
        return None
    _check_partial(blocks, reading.rules)
    records = read_records(storage, blocks, reading.merged, reading.rules.ordering_fields)
    # a record that fills another one's nulls, or lacks columns, is merged with all that came before it, in order
    may_combine = not reading.rules.fills and all(found.columns is None for found in blocks)
    held: list[pa.Table] = []
    held_bytes = 0
    for rows in records:
        held.append(rows)
        held_bytes += rows_bytes(rows)
        if held_bytes <= reading.memory_bytes:
            continue
        if may_combine:
            held = [newest_records(held, reading)]
            held_bytes = rows_bytes(held[0])
        if not may_combine or held_bytes > reading.memory_bytes * _WORTH_COMBINING:
            return LogRecords(held, records)
    return LogRecords(held)


def _check_partial(blocks: Iterable[FoundBlock], rules: MergeRules) -> None:
    """Refuses records without some columns, if the table does not define how to merge them.

    Raises:
        UnsupportedTableError: there are such records.
    """
    for found in blocks:
        if found.columns is None:
            continue
        name = f"{found.file.path} holds a block of partial updates (IS_PARTIAL)"
        if rules.fills:
            raise UnsupportedTableError(
                f"{name}, and the table's payload class fills nulls, too: Hudi does not merge the two"
            )
        lacking = [field for field in rules.ordering_fields if field not in found.columns] if rules.compares else []
        if lacking:
            raise UnsupportedTableError(
                f"{name} that lack the ordering field {lacking[0]!r}, by which the table orders records: "
                "Hudi does not merge them, either; update those rows as a whole"
            )


def merge_records(
    storage: Storage, base_file: BaseFile | None, records: LogRecords | None, reading: SliceReading
) -> Iterator[pa.Table]:
    """Merges base file and log records, as `merge_slice` returns them."""
    if records is None:
        yield from _base_rows(storage, base_file, reading.output)
        return
    base = _base_rows(storage, base_file, reading.merged)
    if records.rest is None:
        yield from _merge(base, records.held, reading)
    else:
        schema = records.held[0].schema
        yield from _merge_on_disk(base, _chained(records.held, records.rest), schema, reading)


def newest_records(held: list[pa.Table], reading: SliceReading) -> pa.Table:
    """The winning record of each key, deletes included. Records are in the order of their blocks. Empties the list."""
    if not held:
        return log_schema(reading.merged).empty_table()
    return combine_rows(without_removed(_joined(held)), reading.rules).combine_chunks()


def _base_rows(storage: Storage, file: BaseFile | None, schema: pa.Schema) -> Iterator[pa.Table]:
    if file is None:
        return
    with StoredBaseFile(storage, file.path, file.size_bytes) as stored:
        yield from stored.read_batches(schema, batch_rows=_MERGED_ROWS)


def _chained(held: list[pa.Table], rest: Iterator[pa.Table]) -> Iterator[pa.Table]:
    while held:
        yield held.pop(0)
    yield from rest


def _merge_on_disk(
    base: Iterable[pa.Table], records: Iterable[pa.Table], schema: pa.Schema, reading: SliceReading
) -> Iterator[pa.Table]:
    """Merges base file and log records in lots by key, one lot at a time."""
    with (
        SpilledLots(schema, _LOTS) as later,
        SpilledLots(reading.merged, _LOTS) as earlier,
    ):
        for spilled, pieces in ((later, records), (earlier, base)):
            for rows in pieces:
                spilled.add(rows, hash_keys(rows.column(RECORD_KEY)) % _LOTS)
        for number in range(_LOTS):
            yield from _merge(earlier.read(number), list(later.read(number)), reading)


def _merge(base: Iterable[pa.Table], records: list[pa.Table], reading: SliceReading) -> Iterator[pa.Table]:
    """Merges base rows with log records that are all in memory."""
    names = list(reading.columns)
    if not records:
        yield from (rows.select(names) for rows in base)
        return
    newest = newest_records(records, reading)
    removes = removes_of(newest)
    keys = pa.concat_arrays(newest.column(RECORD_KEY).chunks)
    matched = np.zeros(len(newest), np.bool_)
    for rows in in_pieces(base, len(newest) // MORE_ROWS):
        found = positions_of(rows.column(RECORD_KEY), keys)
        matched[found[found >= 0]] = True
        for at in range(0, len(rows), _MERGED_ROWS):
            piece, hits = rows.slice(at, _MERGED_ROWS), found[at : at + _MERGED_ROWS]
            yield merge_rows(piece, newest, hits, reading.rules, removes).rows.select(names)
    fresh = newest.filter(pa.array(~matched & ~delete_flags(newest, reading.rules)))
    if len(fresh):
        yield fresh.select(names)


def _joined(pieces: list[pa.Table]) -> pa.Table:
    """All rows in one chunk. Empties the list, so that at most one column is in memory twice."""
    schema, columns = pieces[0].schema, []
    for field in schema:
        chunks = [chunk for piece in pieces for chunk in piece.column(0).chunks]
        columns.append(pa.chunked_array(chunks, field.type).combine_chunks())
        chunks.clear()
        pieces[:] = [piece.remove_column(0) for piece in pieces]
    pieces.clear()
    return pa.Table.from_arrays(columns, schema=schema)


def in_pieces(batches: Iterable[pa.Table], least_rows: int) -> Iterator[pa.Table]:
    """Rows in pieces of at least `least_rows`, except the last piece."""
    held: list[pa.Table] = []
    for rows in batches:
        held.append(rows)
        if sum(map(len, held)) >= least_rows:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)
