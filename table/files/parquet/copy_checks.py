"""Checks whether parts of an older file can be copied, and whether the new file is whole."""

import pyarrow as pa
import pyarrow.parquet as pq

from table.files.base.repeated_columns import file_schema
from table.files.base.stored_file import StoredBaseFile
from table.files.parquet.footer import MAGIC, why_not_continued
from table.files.parquet.row_group_writer import empty_footer
from table.options.groups import BaseFileSettings
from table.schema.avro_schema import RECORD_KEY


def why_encoded_anew(stored: StoredBaseFile, schema: pa.Schema, settings: BaseFileSettings) -> str | None:
    """Why row groups of a file cannot be copied into a file with these columns, or None if they can.

    Args:
        stored: the file.
        schema: meta columns and table columns (Arrow).
        settings: how the next version is to be written.
    """
    like = empty_footer(file_schema(schema), settings)
    return why_not_continued(stored.footer, like.schema, like.created_by, settings.codec)


def find_problem(metadata: pq.FileMetaData, rows: int, data_end: int) -> str | None:
    """The fault in a footer, or None: rows and bytes must add up, and chunks must not overlap in the data.

    Args:
        metadata: the footer as Arrow understands it.
        rows: rows that were written.
        data_end: where the data ends and the footer begins.
    """
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    found = sum(group.num_rows for group in groups)
    if (found, metadata.num_rows) != (rows, rows):
        return f"{found} rows instead of {rows}"
    chunks = [[group.column(number) for number in range(group.num_columns)] for group in groups]
    total = sum(group.total_byte_size for group in groups)
    parts = sum(chunk.total_uncompressed_size for of_group in chunks for chunk in of_group)
    if total != parts:
        return f"chunks of {parts} bytes in row groups of {total}"
    end_before = len(MAGIC)
    for start, length in sorted(extent for of_group in chunks for extent in _extents(of_group)):
        if start < end_before or length < 0:
            return f"a chunk at {start} begins before {end_before}"
        end_before = start + length
    return f"a chunk ends at {end_before}, the data at {data_end}" if end_before > data_end else None


def _extents(chunks: list[pq.ColumnChunkMetaData]) -> list[tuple[int, int]]:
    """Where the chunks of a row group lie, without the chunk whose pages the record key shares: they may overlap."""
    extents = [_extent(chunk) for chunk in chunks]
    if len({start + length for start, length in extents}) == len(extents):
        return extents  # no two chunks end at the same place, so none is shared
    key = next((chunk for chunk in chunks if chunk.path_in_schema == RECORD_KEY), None)
    pages = _pages(key) if key is not None else None
    shared = [chunk for chunk in chunks if chunk is not key and _pages(chunk) == pages][:1]
    return [_extent(chunk) for chunk in chunks if chunk not in shared]


def _pages(chunk: pq.ColumnChunkMetaData) -> tuple[int, int, int, str, str]:
    """Where the data pages of a chunk begin and end, and the fields that say how to read them."""
    return chunk.data_page_offset, sum(_extent(chunk)), chunk.num_values, chunk.physical_type, chunk.compression


def _extent(chunk: pq.ColumnChunkMetaData) -> tuple[int, int]:
    start = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
    return min(start, chunk.data_page_offset), chunk.total_compressed_size
