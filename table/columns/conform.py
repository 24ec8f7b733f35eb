"""Rows with exactly the columns of a schema (pure)."""

import pyarrow as pa

from table.columns.cast import cast_column


def conform(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with exactly these columns: missing ones null, others cast."""
    columns = []
    for field in schema:
        index = rows.schema.get_field_index(field.name)
        if index < 0:
            columns.append(pa.nulls(len(rows), field.type))
        else:
            column = rows.column(index)
            columns.append(cast_column(column, field.type))
    return pa.Table.from_arrays(columns, schema=schema)
