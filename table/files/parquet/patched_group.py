"""A row group in which some columns are encoded again and the others are copied, byte by byte.

An update changes few columns of a row group: never its key, often not much else. The chunks that it
leaves alone need not be encoded again.
"""

from collections.abc import Sequence

import pyarrow as pa

from table.errors import CorruptFileError
from table.files.base.stored_file import StoredBaseFile
from table.files.parquet.row_group_writer import RowGroupWriter
from table.files.parquet.row_groups import (
    chunk_extent,
    chunk_path,
    chunks_of,
    distinct_extents,
    lone_chunk,
    rows_of,
    with_chunks,
)
from table.files.parquet.thrift_compact import Struct
from table.options.groups import BaseFileSettings
from table.storage.interface import ByteRange, OutputFile, joined_ranges


def write_patched_group(
    sink: OutputFile, stored: StoredBaseFile, group: Struct, rows: pa.Table, settings: BaseFileSettings, skipped: str
) -> tuple[Struct, int]:
    """Writes a row group of another file at the end of an open one.

    Args:
        sink: the open file.
        stored: the other file, of the same schema.
        group: the row group (Thrift's RowGroup), as its file describes it.
        rows: the columns that change, with all rows of the row group.
        settings: how the file is written.
        skipped: a top-level column, not the first, that is not written: its chunk stays described where it was, for
            the caller to exchange (`row_groups.with_chunk`).

    Returns:
        The row group as it is in the open file, and how many of its bytes were copied.

    Raises:
        CorruptFileError, StorageError: when the other file's bytes are not there, cannot be read, or are not of
            as many rows.
    """
    encoded: dict[tuple[bytes, ...], Struct] = {}
    if rows.num_columns:
        writer = RowGroupWriter(sink, rows.schema, settings)
        writer.write(rows)
        [written] = writer.finish()[0]
        if rows_of(written) != rows_of(group):
            raise CorruptFileError(f"{rows_of(written)} rows in the place of {rows_of(group)}")
        encoded = {chunk_path(chunk): chunk for chunk in chunks_of(written)}
    copied = [chunk for chunk in chunks_of(group) if chunk_path(chunk) not in {*encoded, (skipped.encode(),)}]
    places = _new_places(list(map(chunk_extent, copied)), sink.tell())
    moved = {chunk_path(chunk): lone_chunk(chunk, places[sum(chunk_extent(chunk))]) for chunk in copied}
    # the skipped one stays described where it was
    chunks = [{**moved, **encoded}.get(chunk_path(chunk), chunk) for chunk in chunks_of(group)]
    ranges = [ByteRange(*extent) for extent in distinct_extents(map(chunk_extent, copied))]
    for start, length in joined_ranges(ranges):
        for piece in stored.read_bytes(start, length):
            sink.write(piece)
    return with_chunks(group, chunks), sum(length for _, length in ranges)


def _new_places(extents: Sequence[tuple[int, int]], at: int) -> dict[int, int]:
    """By the end of each chunk: how far it moves when they are copied in file order, shared bytes once.

    Args:
        extents: where each begins, and how many bytes it has.
        at: where the first one goes.
    """
    places = {}
    for start, length in distinct_extents(extents):
        places[start + length] = at - start
        at += length
    return places
