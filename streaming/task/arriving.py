"""Casts the rows of a batch to the table's types, and names the row whose value does not fit (pure).

The driver agreed to the types of the columns (`table.schema.evolution`). Which values fit is seen here, where the rows
are at hand: without a second look at them, and before anything of the batch is visible.
"""

import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streaming.plan.task_plan import TaskPlan
from table.columns.cast import EXACT, cast_column
from table.columns.conform import conform
from table.errors import InvalidRecordError
from table.schema.avro_schema import RECORD_KEY

_LONGEST_SHOWN = 60  # characters of a value


def conform_arriving(rows: pa.Table, schema: pa.Schema, plan: TaskPlan) -> pa.Table:
    """The rows with exactly the columns of a schema, as `conform`.

    Args:
        rows: with the batch's columns and ``_hoodie_record_key``.
        schema: the wanted columns.
        plan: of the task.

    Raises:
        InvalidRecordError: a value does not fit. The message names column, record key and value, and the way out.
    """
    try:
        return conform(rows, schema, plan.context.required)
    except pa.ArrowInvalid as error:
        problem = _find_problem(rows, schema)
        if problem is None:
            raise
        raise InvalidRecordError(problem) from error


def _find_problem(rows: pa.Table, schema: pa.Schema) -> str | None:
    if RECORD_KEY not in rows.column_names:
        return None
    for field in schema:
        at = rows.schema.get_field_index(field.name)
        if at >= 0 and not _fits(rows.column(at), field.type):
            row = _first_unfit(rows.column(at), field.type)
            key = rows.column(RECORD_KEY)[row].as_py()
            value = rows.column(at).slice(row, 1).combine_chunks()
            path, part, wanted = _narrowed_down(_as_array(value), field.type, field.name)
            return _problem(path, part, wanted, key)
    return None


def _fits(column: pa.ChunkedArray, arrow: pa.DataType) -> bool:
    try:
        return cast_column(column, arrow) is not None
    except pa.ArrowInvalid:
        return False


def _first_unfit(column: pa.ChunkedArray, arrow: pa.DataType) -> int:
    """The first row that cannot be cast, where one cannot."""
    low, high = 0, len(column)
    while high - low > 1:
        middle = (low + high) // 2
        if _fits(column.slice(low, middle - low), arrow):
            low = middle
        else:
            high = middle
    return low


def _as_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if isinstance(column, pa.ChunkedArray) else column


def _narrowed_down(value: pa.Array, wanted: pa.DataType, path: str) -> tuple[str, pa.Array, pa.DataType]:
    """The flat value that does not fit, within one value of a column: its path, the value, and the wanted type."""
    for part, kind, name in _parts_of(value, wanted):
        column = pa.chunked_array([part])
        if not _fits(column, kind):
            return _narrowed_down(part.slice(_first_unfit(column, kind), 1), kind, f"{path}.{name}")
    return path, value, wanted


def _parts_of(value: pa.Array, wanted: pa.DataType) -> list[tuple[pa.Array, pa.DataType, str]]:
    if pa.types.is_struct(wanted):
        held = [field for field in wanted if value.type.get_field_index(field.name) >= 0]
        return [(pc.struct_field(value, field.name), field.type, field.name) for field in held]
    if pa.types.is_list(wanted):
        return [(value.flatten(), wanted.value_type, "element")]
    if pa.types.is_map(wanted):
        start, end = value.offsets[0].as_py(), value.offsets[1].as_py()
        return [(value.items.slice(start, end - start), wanted.item_type, "value")]
    return []


def _problem(path: str, value: pa.Array, wanted: pa.DataType, key: str | None) -> str:
    """The sentence about a value that does not fit."""
    kind, found = value.type, value[0].as_py()
    row = f"the row with the key {key!r} has {_shown(found)}"
    why, way = f"which {wanted} does not hold", "round it, or cast the column before the sink"
    if kind in EXACT and pa.types.is_integer(wanted):
        why, way = _why_no_integer(found, kind, wanted)
    elif pa.types.is_decimal(wanted):
        way = "round it before the sink, or give the table a new column: decimals of a table do not grow"
    return (
        f"the column {path!r} is {kind}, the table has {wanted}: {row}, {why}; {way}; nothing of the batch is visible"
    )


def _why_no_integer(value: float, kind: pa.DataType, wanted: pa.DataType) -> tuple[str, str]:
    way = (
        "give the column as integers (a missing one as null; in pandas as 'Int64'), or set "
        f"hudistream.schema.integers.to.floats=true, which makes the table's column {kind} for good"
    )
    if math.isnan(value):
        return "which is no number", way
    if abs(value) > EXACT[kind]:
        return f"and beyond {EXACT[kind]} a {kind} does not stand for one whole number alone", way
    if value != math.floor(value):
        return "which is no whole number", f"round it; {way}"
    return f"which {wanted} does not hold", "cast the column to int64 (in pandas 'Int64'), which widens the table's"


def _shown(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
