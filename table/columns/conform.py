"""Rows with exactly the columns of a schema (pure)."""

from collections.abc import Collection

import pyarrow as pa

from table.columns.cast import cast_column


def conform(rows: pa.Table, schema: pa.Schema, never_null: Collection[str] = ()) -> pa.Table:
    """The rows with exactly these columns: missing ones null, others cast.

    Args:
        rows: any columns.
        schema: the columns wanted.
        never_null: names of columns that must not be null. A missing boolean among them is false: of such columns a
            batch may lack ``_hoodie_is_deleted``.
    """
    columns = []
    for field in schema:
        index = rows.schema.get_field_index(field.name)
        if index < 0:
            empty = pa.nulls(len(rows), field.type)
            is_false = field.name in never_null and pa.types.is_boolean(field.type)
            columns.append(empty.fill_null(False) if is_false else empty)
        else:
            column = rows.column(index)
            columns.append(cast_column(column, field.type))
    return pa.Table.from_arrays(columns, schema=schema)
