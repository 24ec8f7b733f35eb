"""The five meta columns of rows that are written to a base file (HoodieWriteHandle, HoodieMergeHandle)."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from table.files.base.repeated_columns import constant_column, file_schema
from table.schema.avro_schema import META_COLUMNS, RECORD_KEY, with_meta_columns


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
        instant_time: instant time of the commit.
        partition_path: partition path of the rows.
        file_name: name of the base file that the rows are written to.
        numbered_from: number of the task (first part of the write token), and number of the first row within the task,
            for the sequence numbers ``<instant>_<task>_<index>``.

    Returns:
        The rows with the columns in the order of a base file.
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


def without_meta_values(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Puts null meta columns before new rows: the table does not populate them.

    Args:
        rows: table columns.
        schema: table columns (Arrow).
    """
    filled = file_schema(with_meta_columns(schema))
    columns = [pa.nulls(len(rows), filled.field(name).type) for name in META_COLUMNS]
    return pa.Table.from_arrays([*columns, *(rows.column(field.name) for field in schema)], schema=filled)
