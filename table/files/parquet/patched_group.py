"""A row group in which some columns are encoded again and the others are copied, byte by byte.

An update changes few columns of a row group, and never the key. The chunks of unchanged columns need not
be encoded again.
"""

from collections.abc import Iterable, Sequence

import pyarrow as pa

from table.errors import CorruptFileError
from table.files.base.stored_file import StoredBaseFile
from table.files.parquet.page_checksums import ChunkProof
from table.files.parquet.row_group_writer import RowGroupWriter
from table.files.parquet.row_groups import (
    chunk_extent,
    chunk_path,
    chunks_of,
    distinct_extents,
    moved_chunk,
    rows_of,
    with_chunks,
)
from table.files.parquet.thrift_compact import Struct
from table.options.groups import BaseFileSettings
from table.storage.byte_ranges import ByteRange, joined_ranges
from table.storage.interface import OutputFile

GAP_BYTES = 1024  # longest gap that one read covers: before version 18 Arrow writes descriptions between chunks


def write_patched_group(
    sink: OutputFile, stored: StoredBaseFile, group: Struct, rows: pa.Table, settings: BaseFileSettings, skipped: str
) -> tuple[Struct, int]:
    """Writes a row group of another file at the end of an open one.

    Args:
        sink: the open file.
        stored: the other file, of the same schema.
        group: the row group (Thrift's RowGroup), as its file describes it.
        rows: the changed columns, with all rows of the row group.
        settings: how the file is written.
        skipped: a top-level column, not the first, that is not written. The description of its chunk keeps the old
            place until the caller exchanges the chunk (`row_groups.with_chunk`).

    Returns:
        The row group as it stands in the open file, and the number of copied bytes.

    Raises:
        CorruptFileError, StorageError: when the other file's bytes are not there or cannot be read, a copied page
            differs from its checksum, or the numbers of rows differ.
    """
    encoded: dict[tuple[bytes, ...], Struct] = {}
    if rows.num_columns:
        writer = RowGroupWriter(sink, rows.schema, settings)
        writer.write(rows)
        written = writer.finish()[0][0].decoded
        if rows_of(written) != rows_of(group):
            raise CorruptFileError(f"{rows_of(written)} rows in the place of {rows_of(group)}")
        encoded = {chunk_path(chunk): chunk for chunk in chunks_of(written)}
    copied = [chunk for chunk in chunks_of(group) if chunk_path(chunk) not in {*encoded, (skipped.encode(),)}]
    places = _new_places(list(map(chunk_extent, copied)), sink.tell())
    moved = {chunk_path(chunk): moved_chunk(chunk, places[sum(chunk_extent(chunk))]) for chunk in copied}
    # the description of the skipped chunk keeps its old place
    chunks = [{**moved, **encoded}.get(chunk_path(chunk), chunk) for chunk in chunks_of(group)]
    ranges = [ByteRange(*extent) for extent in distinct_extents(map(chunk_extent, copied))]
    for near in near_ranges(joined_ranges(ranges)):
        _copy(stored, near, sink)
    return with_chunks(group, chunks), sum(length for _, length in ranges)


def near_ranges(ranges: Iterable[ByteRange]) -> list[list[ByteRange]]:
    """Groups ranges, in file order, that one read covers because the gaps between them are small."""
    near: list[list[ByteRange]] = []
    end = 0
    for piece in ranges:
        if near and piece.start - end <= GAP_BYTES:
            near[-1].append(piece)
        else:
            near.append([piece])
        end = piece.start + piece.length
    return near


def _copy(stored: StoredBaseFile, ranges: Sequence[ByteRange], sink: OutputFile) -> None:
    """Copies the ranges of one read, without the gaps between them. Pages are compared with their checksums."""
    at, proofs = ranges[0].start, [ChunkProof(stored.path, piece.length) for piece in ranges]
    for piece in stored.read_bytes(at, ranges[-1].start + ranges[-1].length - at):
        for (start, length), proof in zip(ranges, proofs, strict=True):
            wanted = memoryview(piece)[max(0, start - at) : max(0, start + length - at)]
            if len(wanted):
                proof.take(wanted)
                sink.write(wanted)
        at += len(piece)


def _new_places(extents: Sequence[tuple[int, int]], at: int) -> dict[int, int]:
    """End of a chunk -> how far it moves when the chunks are copied in file order, shared bytes once.

    Args:
        extents: start and length of each chunk.
        at: new start of the first chunk.
    """
    places = {}
    for start, length in distinct_extents(extents):
        places[start + length] = at - start
        at += length
    return places
