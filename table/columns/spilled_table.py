"""Rows of any number as one table: those that do not fit into memory lie in a file on local disk, which is mapped."""

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress

import pyarrow as pa

from table.columns.lots import scratch_folder
from table.columns.memory_size import rows_bytes


def table_of(batches: Iterable[pa.RecordBatch], schema: pa.Schema, memory_bytes: int) -> pa.Table:
    """The rows as a table that any thread may read without Python.

    Args:
        batches: rows, as they come.
        schema: of the rows (Arrow).
        memory_bytes: most bytes (Arrow) held in memory. Above it, all rows go to a file on local disk, which is gone
            when the table is.

    Raises:
        OSError: the disk is full.
    """
    held: list[pa.RecordBatch] = []
    held_bytes = 0
    rest = iter(batches)
    for batch in rest:
        held.append(batch)
        held_bytes += rows_bytes(pa.Table.from_batches([batch]))
        if held_bytes > memory_bytes:
            return _mapped(_emptied(held, rest), schema)
    return pa.Table.from_batches(held, schema)


def _emptied(held: list[pa.RecordBatch], rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """All rows; those that were held are let go of as they are taken."""
    held.reverse()
    while held:
        yield held.pop()
    yield from rest


def _mapped(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    descriptor, path = tempfile.mkstemp(dir=scratch_folder())
    os.close(descriptor)
    try:
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        return pa.ipc.open_file(pa.memory_map(path)).read_all()
    finally:
        with suppress(OSError):
            os.unlink(path)
