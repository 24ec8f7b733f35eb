"""The table's schema after a batch whose columns differ from the table's (pure; AvroSchemaEvolutionUtils).

There are three modes:

- ``strict``: the batch has the table's columns, neither more nor fewer, of the same types.
- ``add``: new columns are added, at any depth, and types widened; columns that the batch does not have are refused.
- ``reconcile``: as ``add``, but columns that the batch does not have are null.

In every mode a batch may be without the boolean column ``_hoodie_is_deleted``. Such a batch deletes no rows. In every
mode columns of nulls without a type of their own are taken where the table knows the type, and columns of milliseconds
take microseconds.

A column is also taken whose type is not the table's, if the table's type may hold all its values: floats for integers,
and decimals and integers for decimals. Which values fit is seen where the rows are cast (`table.columns.cast`).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from table.columns.cast import EXACT, is_coarser
from table.errors import SchemaMismatchError
from table.schema.avro_schema import (
    DELETE_MARKER,
    META_PREFIX,
    NO_ROWS,
    check_batch_columns,
    find_untyped,
    relaxed,
    relaxed_type,
    typed,
    untyped_problem,
)
from table.schema.column_types import hive_type

STRICT, ADD, RECONCILE = "strict", "add", "reconcile"
SCHEMA_MODES = (STRICT, ADD, RECONCILE)

# type of a table's column -> types of a batch's column to which it is widened
_WIDENED_BY: dict[pa.DataType, tuple[pa.DataType, ...]] = {
    pa.int32(): (pa.int64(), pa.float32(), pa.float64(), pa.string()),
    pa.int64(): (pa.float32(), pa.float64(), pa.string()),
    pa.float32(): (pa.float64(), pa.string()),
    pa.float64(): (pa.string(),),
}


def merged_type(table: pa.DataType, batch: pa.DataType, *, integers_to_floats: bool = False) -> pa.DataType | None:
    """The type of a column that has different flat types in table and batch; None if the types cannot be merged.

    The batch's values are cast to the table's type. A column of numbers is also widened to the batch's type, an integer
    one to floats only if `integers_to_floats`.
    """
    if pa.types.is_null(batch) or _may_fit(table, batch, integers_to_floats=integers_to_floats):
        return table
    if batch in _WIDENED_BY.get(table, ()):
        return batch
    if table in _WIDENED_BY.get(batch, ()) or (pa.types.is_binary(table) and pa.types.is_string(batch)):
        return table
    if pa.types.is_string(table) and (pa.types.is_decimal128(batch) or pa.types.is_date32(batch)):
        return table
    return None


def _may_fit(table: pa.DataType, batch: pa.DataType, *, integers_to_floats: bool) -> bool:
    """Whether the table's type holds some values of a type that is not narrower, or has another scale."""
    if pa.types.is_integer(table):
        return batch in EXACT and not integers_to_floats
    if pa.types.is_decimal(table):
        return bool(pa.types.is_decimal(batch) or pa.types.is_integer(batch))
    return is_coarser(batch, table)


def widened_columns(
    before: pa.Schema | None, after: pa.Schema, names: Sequence[str]
) -> list[tuple[pa.Field, pa.Field]]:
    """Those of some columns that have another type in a later schema of the table, as before and after.

    Args:
        before: the table's columns; None where it has none yet.
        after: the columns of a commit to come.
        names: the columns that are compared.
    """
    both = {*after.names}.intersection(before.names if before is not None else ())
    known = [name for name in names if name in both]
    pairs = [(before.field(name), after.field(name)) for name in known if before is not None]
    return [(old, new) for old, new in pairs if not old.type.equals(new.type)]


def coarser_columns(batch: pa.Schema, table: pa.Schema) -> list[str]:
    """The columns in which microseconds of a batch become milliseconds of the table; nested ones by their path."""
    names = {*table.names}
    pairs = [(field, table.field(field.name)) for field in batch if field.name in names]
    return [path for ours, theirs in pairs for path in _coarser(ours.type, theirs.type, ours.name)]


def _coarser(batch: pa.DataType, table: pa.DataType, path: str) -> list[str]:
    if is_coarser(batch, table):
        return [path]
    if pa.types.is_struct(batch) and pa.types.is_struct(table):
        inner = [(field, table.field(field.name)) for field in batch if table.get_field_index(field.name) >= 0]
        return [found for ours, theirs in inner for found in _coarser(ours.type, theirs.type, f"{path}.{ours.name}")]
    if pa.types.is_list(batch) and pa.types.is_list(table):
        return _coarser(batch.value_type, table.value_type, f"{path}.element")
    both = pa.types.is_map(batch) and pa.types.is_map(table)
    return _coarser(batch.item_type, table.item_type, f"{path}.value") if both else []


def rounds(before: pa.DataType, after: pa.DataType) -> bool:
    """Whether different numbers can become equal where a column is widened: floats do not hold all integers."""
    is_exact = pa.types.is_int32(before) and pa.types.is_float64(after)
    return pa.types.is_integer(before) and pa.types.is_floating(after) and not is_exact


@dataclass
class _Differences:
    """The differences that the mode does not allow, one text for each column."""

    fills: bool
    adds: bool
    numbers_to_text: bool
    integers_to_floats: bool
    key_fields: Sequence[str]
    has_rows: bool
    found: list[str] = field(default_factory=list)

    def note_missing(self, column: pa.Field, full: str) -> None:
        """Notes a column that the batch does not have."""
        if not column.nullable:
            self.found.append(f"column {full!r} is missing and must not be null: select it")
        elif full in self.key_fields:
            self.found.append(f"column {full!r} is missing and is of the record key: select it")
        elif not self.fills:
            ways = "select it, or set hudistream.schema.mode=reconcile, which fills it with nulls"
            self.found.append(f"column {full!r} is missing: {ways}")


def evolve_schema(  # noqa: PLR0913 one parameter per rule; all but the first three by name
    batch: pa.Schema,
    table: pa.Schema | None,
    mode: str = ADD,
    *,
    fill_missing: bool = False,
    key_fields: Sequence[str] = (),
    ordering_fields: Sequence[str] = (),
    numbers_to_text: bool = False,
    integers_to_floats: bool = False,
) -> pa.Schema:
    """The schema of a commit that writes this batch.

    Args:
        batch: the batch's columns. If the metadata has `NO_ROWS`, new columns without a type of their own are left out.
        table: the table's columns without meta columns; None if no rows were written yet.
        mode: one of `SCHEMA_MODES`.
        fill_missing: whether columns that the batch does not have are null, whatever the mode.
        key_fields: columns of the record key. Their values are never null.
        ordering_fields: columns that order records of one key. Their numbers never become text.
        numbers_to_text: whether a column of numbers becomes text for good if the batch has text there.
        integers_to_floats: whether a column of integers becomes floats for good if the batch has floats there.

    Returns:
        The table's columns in their order, some of them widened, then the new columns. For a new table, the batch's
        columns, all nullable: the nullability of a stream's columns changes from batch to batch.

    Raises:
        SchemaMismatchError: lists every column that is new, missing or of another type, and says how to
            resolve it.
    """
    check_batch_columns(batch)
    _check_new_names(batch, frozenset(table.names if table is not None else ()))
    if table is None:
        untyped = [found for field in batch for found in find_untyped(field.type, field.name)]
        if untyped and _has_rows(batch):
            raise SchemaMismatchError("; ".join(map(untyped_problem, untyped)))
        return relaxed(typed(batch))  # without rows nothing is committed
    for name in ordering_fields:
        _check_order_stays(batch, table, name)
    fills, adds = fill_missing or mode == RECONCILE, mode != STRICT
    differences = _Differences(fills, adds, numbers_to_text, integers_to_floats, key_fields, _has_rows(batch))
    columns = _merged(list(table), list(batch), "", differences)
    if differences.found:
        raise SchemaMismatchError(
            f"the columns of batch and table differ (hudistream.schema.mode={mode}): {'; '.join(differences.found)}"
        )
    return pa.schema(columns)


def _check_new_names(batch: pa.Schema, known: Collection[str]) -> None:
    """Refuses new columns that other engines would read otherwise, or that look like a delete marker and are none."""
    for column in batch:
        if column.name in known or not column.name.lower().startswith(META_PREFIX):
            continue
        if column.name != DELETE_MARKER:
            raise SchemaMismatchError(
                f"the batch has the column {column.name!r}: names that begin with {META_PREFIX}, in any case, are "
                f"Hudi's own, except {DELETE_MARKER}; rename it"
            )
        if not (pa.types.is_boolean(column.type) or pa.types.is_null(column.type)):
            raise SchemaMismatchError(
                f"the column {DELETE_MARKER!r} is {column.type}, and must be boolean: a record in which it is true "
                "deletes the row of its key, and other values would delete nothing; cast it to boolean before the sink"
            )


def _has_rows(batch: pa.Schema) -> bool:
    return not NO_ROWS.items() <= (batch.metadata or {}).items()


def _check_order_stays(batch: pa.Schema, table: pa.Schema, name: str) -> None:
    """Refuses to widen an ordering field to text: text orders records differently from numbers."""
    if name not in batch.names or name not in table.names:
        return
    ours, theirs = batch.field(name).type, table.field(name).type
    numbers = [kind for kind in (ours, theirs) if pa.types.is_decimal(kind) or kind in _WIDENED_BY]
    if numbers and (pa.types.is_string(ours) or pa.types.is_string(theirs)):
        raise SchemaMismatchError(
            f"column {name!r} is {ours}, the table has {theirs}, and it orders records of a key "
            f"(hoodie.datasource.write.precombine.field): as numbers 9 is less than 10, as text '10' is less than '9'; "
            f"cast it to {theirs} before the sink"
        )


def _merged(table: list[pa.Field], batch: list[pa.Field], inside: str, differences: _Differences) -> list[pa.Field]:
    ours = {column.name: column for column in batch}
    names = {column.name for column in table}
    merged = []
    for column in table:
        full = inside + column.name
        if column.name in ours:
            arrow = _merged_type(column.type, ours[column.name].type, full, differences)
            merged.append(pa.field(column.name, arrow, column.nullable))
            continue
        if full == DELETE_MARKER and pa.types.is_boolean(column.type):
            merged.append(column)  # without the column the batch deletes no rows
            continue
        differences.note_missing(column, full)
        merged.append(column)
    lowered = {name.lower(): name for name in names}
    for name, column in ours.items():
        if name not in names:
            if name.lower() in lowered:
                same = lowered[name.lower()]
                problem = f"column {inside + name!r} differs from the table's {same!r} in case alone: rename it"
                differences.found.append(problem)
            elif not differences.adds:
                ways = "leave it out, or set hudistream.schema.mode=add"
                differences.found.append(f"column {inside + name!r} is new: {ways}")
            untyped = find_untyped(column.type, inside + name)
            if untyped and not differences.has_rows:
                continue
            differences.found += map(untyped_problem, untyped)
            merged.append(pa.field(name, relaxed_type(column.type)))
    return merged


def _merged_type(table: pa.DataType, batch: pa.DataType, full: str, differences: _Differences) -> pa.DataType:
    is_same = relaxed_type(table).equals(relaxed_type(batch))
    if is_same or pa.types.is_null(batch) or is_coarser(batch, table):
        return table
    if pa.types.is_struct(table) and pa.types.is_struct(batch):
        return pa.struct(_merged(list(table), list(batch), full + ".", differences))
    if pa.types.is_list(table) and pa.types.is_list(batch):
        element = _merged_type(table.value_type, batch.value_type, full + ".element", differences)
        return pa.list_(pa.field("element", element, table.value_field.nullable))
    if pa.types.is_map(table) and pa.types.is_map(batch) and table.key_type == batch.key_type:
        value = _merged_type(table.item_type, batch.item_type, full + ".value", differences)
        return pa.map_(table.key_type, pa.field("value", value, table.item_field.nullable))
    merged = merged_type(table, batch, integers_to_floats=differences.integers_to_floats)
    turns_to_text = merged is not None and pa.types.is_string(merged) and table in _WIDENED_BY
    if merged is not None and differences.adds and (differences.numbers_to_text or not turns_to_text):
        return merged
    ways = _ways_to_the_type(table, batch, full, merged, turns_to_text=turns_to_text)
    differences.found.append(f"column {full!r} is {batch}, the table has {table}: {ways}")
    return table


def _ways_to_the_type(
    table: pa.DataType, batch: pa.DataType, full: str, merged: pa.DataType | None, *, turns_to_text: bool
) -> str:
    """What a user can do about a column of another type; `merged` is the type that other modes make of both."""
    rename = "give the column another name"
    if pa.types.is_nested(table):
        return f"make it {hive_type(table, timestamps=True)} before the sink, or {rename}"
    if pa.types.is_nested(batch):
        return f"select one value of it AS {full}, or {rename}"
    cast = f"cast it with CAST({full} AS {hive_type(table, timestamps=True).upper()})"
    if turns_to_text:
        lasting = "set hudistream.schema.numbers.to.text=true, which makes the table's column text for good"
        return f"{cast}, where text that is no number fails or becomes null, or {lasting}"
    if merged is None:
        return f"{cast}, or {rename}"
    does = "widens the column" if merged == batch else "takes values that the column holds"
    return f"{cast}, or set hudistream.schema.mode=add, which {does}"
