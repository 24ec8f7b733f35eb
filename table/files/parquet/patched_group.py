"""A row group in which some columns are written anew and the others are copied, byte for byte.

An update changes few columns of a row group: never its key, often not much else. The chunks that it
leaves alone need not be encoded again.
"""

import pyarrow as pa

from table.errors import CorruptFileError
from table.files.base.stored_file import StoredBaseFile
from table.files.parquet.row_group_writer import RowGroupWriter
from table.files.parquet.row_groups import chunk_extent, chunk_path, chunks_of, lone_chunk, rows_of, with_chunks
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
    chunks: list[Struct] = []
    ranges: list[ByteRange] = []
    end = sink.tell()
    for chunk in chunks_of(group):
        path = chunk_path(chunk)
        if path in encoded:
            chunks.append(encoded[path])
        elif path == (skipped.encode(),):
            chunks.append(chunk)
        else:
            start, length = chunk_extent(chunk)
            chunks.append(lone_chunk(chunk, end - start))
            ranges.append(ByteRange(start, length))
            end += length
    for start, length in joined_ranges(ranges):
        for piece in stored.read_bytes(start, length):
            sink.write(piece)
    return with_chunks(group, chunks), sum(length for _, length in ranges)
