"""What an independent reader must find in a footer that we joined from parts (pure)."""

import pyarrow.parquet as pq

from table.files.parquet_footer import MAGIC


def find_problem(metadata: pq.FileMetaData, rows: int, data_end: int) -> str | None:
    """What is wrong with a footer, or None: its rows are all rows, its chunks lie apart from each other in the data.

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
    end_before = len(MAGIC)
    for start, length in sorted(map(_extent, chunks)):
        if start < end_before or length < 0:
            return f"a chunk at {start} begins before {end_before}"
        end_before = start + length
    return f"a chunk ends at {end_before}, the data at {data_end}" if end_before > data_end else None


def _extent(chunk: pq.ColumnChunkMetaData) -> tuple[int, int]:
    start = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
    return min(start, chunk.data_page_offset), chunk.total_compressed_size
