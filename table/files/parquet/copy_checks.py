"""Whether a file can be made by copying parts of an older one, and whether what came of it is whole."""

import pyarrow as pa
import pyarrow.parquet as pq

from table.files.base.repeated_columns import file_schema
from table.files.base.stored_file import StoredBaseFile
from table.files.parquet.footer import MAGIC, why_not_continued
from table.files.parquet.row_group_writer import empty_footer
from table.options.groups import BaseFileSettings


def why_encoded_anew(stored: StoredBaseFile, schema: pa.Schema, settings: BaseFileSettings) -> str | None:
    """Why no row group of a file can be copied into one with these columns, or None when they can be.

    Args:
        stored: the file.
        schema: meta columns and table columns (Arrow).
        settings: how the next version is to be written.
    """
    like = empty_footer(file_schema(schema), settings)
    return why_not_continued(stored.footer, like.schema, like.created_by, settings.codec)


def find_problem(metadata: pq.FileMetaData, rows: int, data_end: int) -> str | None:
    """What is wrong with a footer, or None: rows and bytes add up, its chunks lie apart from each other in the data.

    Args:
        metadata: the footer as Arrow understands it.
        rows: rows that were written.
        data_end: where the data ends and the footer begins.
    """
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    found = sum(group.num_rows for group in groups)
    if (found, metadata.num_rows) != (rows, rows):
        return f"{found} rows instead of {rows}"
    chunks = [group.column(number) for group in groups for number in range(group.num_columns)]
    total, parts = (
        sum(group.total_byte_size for group in groups),
        sum(chunk.total_uncompressed_size for chunk in chunks),
    )
    if total != parts:
        return f"chunks of {parts} bytes in row groups of {total}"
    end_before = len(MAGIC)
    for start, length in sorted(map(_extent, chunks)):
        if start < end_before or length < 0:
            return f"a chunk at {start} begins before {end_before}"
        end_before = start + length
    return f"a chunk ends at {end_before}, the data at {data_end}" if end_before > data_end else None


def _extent(chunk: pq.ColumnChunkMetaData) -> tuple[int, int]:
    start = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
    return min(start, chunk.data_page_offset), chunk.total_compressed_size
