"""Gives rows exactly the columns of a schema (pure)."""

from collections.abc import Collection

import pyarrow as pa

from table.columns.cast import cast_column


def conform(rows: pa.Table, schema: pa.Schema, never_null: Collection[str] = ()) -> pa.Table:
    """The rows with exactly the columns of the schema: missing columns are null, others are cast.

    Args:
        rows: rows with any columns.
        schema: the wanted columns.
        never_null: names of columns that must not be null. A missing boolean column among them is false: the only such
            column that a batch may be without is ``_hoodie_is_deleted``.
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
