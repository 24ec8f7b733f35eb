"""The rows of one table: which columns of a routed batch are its own (pure)."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from table.errors import InvalidConfigError, InvalidRecordError, SchemaMismatchError
from table.schema.avro_schema import DELETE_MARKER, relaxed_type


@dataclass(frozen=True)
class Columns:
    """How the rows of a routed batch become those of one table. Small, and sent to workers.

    Attributes:
        schema: the columns of the table's rows (Arrow).
        unfolded: the struct or JSON column whose fields are columns of the table; None: there is none.
    """

    schema: pa.Schema
    unfolded: str | None = None

    def take(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The table's own rows.

        Args:
            batches: rows of the routed batch.

        Raises:
            InvalidRecordError: a JSON text cannot be read as the table's columns.
        """
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            if self.unfolded is not None:
                rows = _unfold(rows, self.unfolded, self.schema)
            yield from rows.select(self.schema.names).cast(self.schema).combine_chunks().to_batches()


def choose_columns(
    arriving: pa.Schema, unfolded: str | None, given: pa.Schema | None, filled: frozenset[str], kept: frozenset[str]
) -> Columns:
    """The columns of one table.

    Args:
        arriving: the columns of the routed batch.
        unfolded: its struct or JSON column whose fields become columns.
        given: the columns that the caller names for this table, to which the marker of deletes is added; None: those
            that it has already, and those in which the batch has a value.
        filled: columns in which the batch has a value for this table.
        kept: columns that the table has, and those of its key and order.

    Raises:
        InvalidConfigError: the unfolded column is missing, or is text and the table's columns were not given.
        SchemaMismatchError: a column that was given is not in the batch.
    """
    available = _fields_of(arriving, unfolded, given)
    if given is None:
        chosen = [field for name, field in available.items() if name in filled or name in kept]
        return Columns(pa.schema(chosen), unfolded)
    missing = [name for name in given.names if name not in available]
    if missing:
        raise SchemaMismatchError(
            f"schemas names the columns {', '.join(missing)}, and the batch has {', '.join(available)}"
        )
    if DELETE_MARKER in available and DELETE_MARKER not in given.names:
        given = given.append(available[DELETE_MARKER])  # without it, a delete would be written as a row
    return Columns(given, unfolded)


def _fields_of(arriving: pa.Schema, unfolded: str | None, given: pa.Schema | None) -> dict[str, pa.Field]:
    arriving = pa.schema([field.with_type(relaxed_type(field.type)) for field in arriving])
    if unfolded is None:
        return {field.name: field for field in arriving}
    if unfolded not in arriving.names:
        raise InvalidConfigError(f"unfold={unfolded!r}: the batch has the columns {', '.join(arriving.names)}")
    kind = arriving.field(unfolded).type
    outside = {field.name: field for field in arriving if field.name != unfolded}
    if pa.types.is_struct(kind):
        return {**outside, **{field.name: field for field in kind}}  # null where the struct is null
    if given is None:
        raise InvalidConfigError(
            f"unfold={unfolded!r} is a column of type {kind}: name the columns of each table in schemas, or give a "
            "struct"
        )
    return {**outside, **{field.name: field for field in given if field.name not in outside}}


def _unfold(rows: pa.Table, unfolded: str, schema: pa.Schema) -> pa.Table:
    column, outside = rows.column(unfolded), rows.drop_columns([unfolded])
    if pa.types.is_struct(column.type):
        fields = [(field.name, _field(column, index)) for index, field in enumerate(column.type)]
    else:
        wanted = pa.schema([field for field in schema if field.name not in outside.column_names])
        parsed = _parse(column, wanted)
        fields = [(name, parsed.column(name)) for name in wanted.names]
    for name, values in fields:
        if name in outside.column_names:
            outside = outside.drop_columns([name])
        outside = outside.append_column(name, values)
    return outside


def _field(column: pa.ChunkedArray, index: int) -> pa.ChunkedArray:
    return pc.struct_field(column, [index])


def _parse(texts: pa.ChunkedArray, wanted: pa.Schema) -> pa.Table:
    """The columns in JSON texts, one object a row. A text that is null, blank or ``null`` is a row of nulls.

    Arrow's own reader is not used: it ends the process at a text ``null`` (26.0), and takes two objects in one text.
    """
    try:
        objects = [_object(text) for text in texts.to_pylist()]
        return pa.Table.from_arrays(
            [_column([found.get(field.name) for found in objects], field) for field in wanted], schema=wanted
        )
    except (ValueError, TypeError, OverflowError, RecursionError, pa.ArrowException) as error:
        raise InvalidRecordError(f"a JSON text cannot be read as the table's columns: {error}") from error


def _object(text: str | None) -> dict[str, Any]:
    found = json.loads(text, parse_float=_Number) if text is not None and text.strip() else None
    if found is not None and not isinstance(found, dict):
        raise ValueError(f"it is a {type(found).__name__}, and no object")
    return found or {}


class _Number(float):
    """A number of JSON, with the text that it had: a decimal may need more digits than a float has."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text


def _whole(value: Any) -> int | None:
    """A value as it is, if it is a whole number: Arrow would cut 1.5 to 1."""
    if value is not None and type(value) is not int:
        raise ValueError(f"{value!r} is no whole number")
    return value


def _column(values: list[Any], field: pa.Field) -> pa.Array:
    """JSON has no times and no decimals: times come as ISO text, decimals as text or numbers."""
    kind = field.type
    try:
        if pa.types.is_temporal(kind) or pa.types.is_decimal(kind):
            texts = pa.array([None if value is None else str(value) for value in values], pa.string())
            return texts.cast(kind)
        return pa.array(map(_whole, values) if pa.types.is_integer(kind) else values, kind)
    except (ValueError, TypeError, OverflowError, pa.ArrowException) as error:
        raise ValueError(f"{field.name} as {kind}: {error}") from error
