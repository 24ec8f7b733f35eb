"""Splits the rows of a batch by table, in one pass: on the workers, into pieces.

A small piece goes to the driver with the result of its task. A large one goes into a file below the router's own
folder, which the writers of its table read.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.router.table_names import find_valid
from table import clock
from table.columns.conform import conform
from table.columns.text_bytes import made_readable
from table.errors import StorageError
from table.storage.interface import OutputFile, Storage, join

NAME_COLUMN = "_hudistream_table"
PIECE_SCHEMA = "name string, rows bigint, bytes bigint, filled string, file string, data binary"
STAGED_FOLDER = "staged"
_INLINE_BYTES = 1024 * 1024  # most bytes of rows in the result of a task


@dataclass(frozen=True)
class Piece:
    """Rows of one table from one task.

    Attributes:
        name: of the table; None: the rows name none that can be, and have what they name in `NAME_COLUMN`.
        rows: how many.
        size_bytes: in memory.
        filled: columns with a value; of a struct, its fields.
        file: where they are, relative to the router's folder; None: in `data`.
        data: the rows as an Arrow stream.
    """

    name: str | None
    rows: int
    size_bytes: int
    filled: frozenset[str]
    file: str | None
    data: bytes | None

    def open(self, storage: Storage) -> pa.RecordBatchReader:
        """The rows, as the batch brought them."""
        source = pa.BufferReader(self.data) if self.file is None else storage.open_input(self.file)
        return pa.ipc.open_stream(source)


@dataclass
class _Heap:
    """What a task holds of one table."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    size_bytes: int = 0
    held_bytes: int = 0
    filled: set[str] = field(default_factory=set)
    file: str | None = None
    output: OutputFile | None = None
    writer: Any = None


@dataclass(frozen=True)
class SplitRules:
    """How the rows of a batch are split.

    Attributes:
        unfolded: a struct column whose fields are looked at instead of itself; None: there is none.
        memory_bytes: most bytes of rows that a task holds.
        kept_ending: of names that no table may have; None: there is none.
    """

    unfolded: str | None
    memory_bytes: int
    kept_ending: str | None = None


class Splitter:
    """Splits the rows of one task.

    Args:
        storage: the router's folder.
        folder: below it, for this batch.
        schema: the columns of the batch, without the name of the table (Arrow).
        rules: how they are split.
    """

    def __init__(self, storage: Storage, folder: str, schema: pa.Schema, rules: SplitRules) -> None:
        self._storage, self._folder, self._schema, self._rules = storage, folder, schema, rules
        self._heaps: dict[str | None, _Heap] = {}
        self._held_bytes = 0

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yields a row of `PIECE_SCHEMA` for each table."""
        try:
            for batch in batches:
                self._add(batch)
            yield from self._results()
        except BaseException:
            self._abandon()
            raise

    def _results(self) -> Iterator[pa.RecordBatch]:
        inline = 0
        for name, heap in self._heaps.items():
            data = None
            if heap.output is None and inline + heap.held_bytes <= _INLINE_BYTES:
                inline += heap.held_bytes
                data = _encode(heap.batches, self._schema_of(name))
            else:
                self._flush(name, heap)
                heap.writer.close()
                assert heap.output is not None  # opened by the flush
                heap.output.close()
                heap.output = None
            filled = json.dumps(sorted(heap.filled))
            row = {
                "name": name,
                "rows": heap.rows,
                "bytes": heap.size_bytes,
                "filled": filled,
                "file": heap.file,
                "data": data,
            }
            kinds = (pa.string(), pa.int64(), pa.int64(), pa.string(), pa.string(), pa.binary())
            yield pa.RecordBatch.from_arrays(
                [pa.array([value], kind) for value, kind in zip(row.values(), kinds, strict=True)], names=list(row)
            )

    def _abandon(self) -> None:
        """Drops open files, so that an object store keeps no part of an upload."""
        for heap in self._heaps.values():
            if heap.file is not None and heap.output is not None:
                with suppress(StorageError):
                    self._storage.discard(heap.file, None, heap.output)

    def _add(self, batch: pa.RecordBatch) -> None:
        brought = batch.column(NAME_COLUMN)
        valid = find_valid(brought, self._rules.kept_ending)
        names = pc.if_else(valid, brought, pa.scalar(None, brought.type))
        rows = conform(pa.Table.from_batches([batch]), self._schema).combine_chunks()
        coded = names.dictionary_encode()
        codes = pc.fill_null(coded.indices, len(coded.dictionary)).to_numpy(zero_copy_only=False)
        order = np.argsort(codes, kind="stable")  # rows of one table stay in the order of their arrival
        bounds = np.flatnonzero(np.diff(codes[order])) + 1
        for found in np.split(order, bounds) if len(order) else ():
            code = int(codes[found[0]])
            name = coded.dictionary[code].as_py() if code < len(coded.dictionary) else None
            own = rows if len(found) == len(rows) else rows.take(pa.array(found))
            if name is None:
                named = pa.table({NAME_COLUMN: brought.take(pa.array(found))})
                own = own.append_column(NAME_COLUMN, made_readable(named).column(0).cast(pa.string()))
            self._hold(name, own)
        while self._held_bytes > self._rules.memory_bytes:
            self._flush(*max(self._heaps.items(), key=lambda item: item[1].held_bytes))

    def _schema_of(self, name: str | None) -> pa.Schema:
        """The columns of a piece: rows that name no table keep what they name."""
        return self._schema if name is not None else self._schema.append(pa.field(NAME_COLUMN, pa.string()))

    def _hold(self, name: str | None, rows: pa.Table) -> None:
        heap = self._heaps.setdefault(name, _Heap())
        size = rows.get_total_buffer_size()
        heap.batches += rows.to_batches()
        heap.rows += len(rows)
        heap.size_bytes += size
        heap.held_bytes += size
        heap.filled |= _filled(rows, self._rules.unfolded, heap.filled)
        self._held_bytes += size

    def _flush(self, name: str | None, heap: _Heap) -> None:
        if heap.output is None:
            heap.file = join(self._folder, f"{clock.fresh_uuid()}.arrow")
            heap.output = self._storage.open_output(heap.file)
            heap.writer = pa.ipc.new_stream(heap.output, self._schema_of(name))
        for batch in heap.batches:
            heap.writer.write_batch(batch)
        self._held_bytes -= heap.held_bytes
        heap.batches, heap.held_bytes = [], 0


def _filled(rows: pa.Table, unfolded: str | None, known: set[str]) -> set[str]:
    found = set()
    for name in rows.column_names:
        column = rows.column(name)
        if name == unfolded and pa.types.is_struct(column.type):
            inside = [(kid.name, pc.struct_field(column, [at])) for at, kid in enumerate(column.type)]
        else:
            inside = [(name, column)]
        found |= {each for each, values in inside if each not in known and values.null_count < len(values)}
    return found


def _encode(batches: list[pa.RecordBatch], schema: pa.Schema) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def decode_piece(row: Mapping[str, Any]) -> Piece:
    """A piece from a row of `PIECE_SCHEMA`."""
    data = None if row["data"] is None else bytes(row["data"])
    return Piece(row["name"], row["rows"], row["bytes"], frozenset(json.loads(row["filled"])), row["file"], data)
