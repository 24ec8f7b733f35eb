"""The five meta columns of rows on their way into a base file (HoodieWriteHandle, HoodieMergeHandle)."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from table.files.base.repeated_columns import constant_column, file_schema
from table.schema.avro_schema import RECORD_KEY, with_meta_columns


def stamp_new_rows(
    rows: pa.Table,
    schema: pa.Schema,
    instant_time: str,
    partition_path: str,
    file_name: str,
    numbered_from: tuple[int, int],
) -> pa.Table:
    """Puts the meta columns before new rows.

    Args:
        rows: table columns and ``_hoodie_record_key``.
        schema: table columns (Arrow).
        instant_time: the commit that writes them.
        partition_path: their partition.
        file_name: the base file they go into.
        numbered_from: the task (first part of the write token), and the number of the first row within it: they make
            the sequence number ``<instant>_<task>_<index>``.

    Returns:
        Rows in the order of a base file's columns.
    """
    count, (task, first_index) = len(rows), numbered_from
    numbers = pa.array(np.arange(first_index, first_index + count)).cast(pa.string())
    seqno = pc.binary_join_element_wise(f"{instant_time}_{task}", numbers, "_")
    columns: list[pa.Array | pa.ChunkedArray] = [
        constant_column(instant_time, count),
        seqno,
        rows.column(RECORD_KEY),
        constant_column(partition_path, count),
        constant_column(file_name, count),
    ]
    columns += [rows.column(field.name) for field in schema]
    return pa.Table.from_arrays(columns, schema=file_schema(with_meta_columns(schema)))
