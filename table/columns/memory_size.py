"""Estimates the memory that rows take (pure)."""

import pyarrow as pa


def rows_bytes(rows: pa.Table) -> int:
    """About how many bytes of memory these rows take, without the rest of a table that they were sliced from.

    Arrow's own ``nbytes`` crashes on some sliced nested columns that Spark sends (pyarrow 26).
    """
    if not any(pa.types.is_nested(kind) for kind in rows.schema.types):
        return int(rows.nbytes)
    return sum(_chunk_bytes(chunk) for column in rows.columns for chunk in column.chunks)


def _chunk_bytes(chunk: pa.Array) -> int:
    if not pa.types.is_nested(chunk.type):
        return int(chunk.nbytes)
    if pa.types.is_struct(chunk.type):
        # each field is that of the slice already
        return sum(_chunk_bytes(chunk.field(number)) for number in range(chunk.type.num_fields))
    offsets = chunk.buffers()[1]
    whole = max(len(chunk), offsets.size // 4 - 1) if offsets is not None else len(chunk)
    return int(chunk.get_total_buffer_size() * len(chunk) / max(1, whole))
