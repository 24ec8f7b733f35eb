"""Rows of a change feed -> rows to upsert, with a mark on those to delete (pure)."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from table.columns.same_values import same_rows
from table.errors import InvalidConfigError
from table.scan.feed.choices import BEFORE, CHANGE_COLUMNS, DELETED, OPERATION, UPDATED
from table.schema.avro_schema import DELETE_MARKER


def columns_to_upsert(names: Sequence[str], moved_by: Sequence[str]) -> list[str]:
    """The columns of a change feed's rows that are the table's.

    Args:
        names: columns of the rows.
        moved_by: columns whose change makes a delete of the row before.

    Raises:
        InvalidConfigError: the rows are none of a change feed, or do not have what `moved_by` needs.
    """
    if OPERATION not in names:
        raise InvalidConfigError(
            f"the rows have no column {OPERATION!r} (they have {', '.join(names)}): give the rows of a change feed, "
            "as HudiTable.changes(deletes=True) or the option deletes of the stream gives them"
        )
    if moved_by and BEFORE not in names:
        raise InvalidConfigError(
            f"moved_by={list(moved_by)!r} needs the rows before each change ({BEFORE}): ask for them with before=True"
        )
    columns = [name for name in names if name not in (*CHANGE_COLUMNS, DELETE_MARKER)]
    for name in moved_by:
        if name not in columns:
            raise InvalidConfigError(f"moved_by={list(moved_by)!r}: the rows have no column {name!r}")
    return columns


def upserts_of(rows: pa.Table, moved_by: Sequence[str]) -> pa.Table:
    """The rows of a change feed as rows to upsert.

    Args:
        rows: of a change feed.
        moved_by: columns whose change makes a delete of the row before.

    Raises:
        InvalidConfigError: as `columns_to_upsert`.
    """
    columns = columns_to_upsert(rows.column_names, moved_by)
    marks = pc.equal(rows.column(OPERATION), DELETED)
    marked = rows.select(columns).append_column(pa.field(DELETE_MARKER, pa.bool_()), marks)
    if not moved_by:
        return marked
    updates = rows.filter(pc.equal(rows.column(OPERATION), UPDATED))
    fields = [pc.struct_field(updates.column(BEFORE), name) for name in columns]
    old = pa.Table.from_arrays(fields, schema=updates.select(columns).schema)
    moved = ~same_rows(old.select(list(moved_by)), updates.select(list(moved_by)))
    gone = old.filter(pa.array(moved))
    dead = pa.array(np.ones(len(gone), np.bool_))
    return pa.concat_tables([gone.append_column(pa.field(DELETE_MARKER, pa.bool_()), dead), marked])
