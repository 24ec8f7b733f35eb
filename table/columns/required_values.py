"""Columns, and parts of nested columns, that a schema allows no null in; and the rows that have one there (pure)."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_ELEMENT, _VALUE = "element", "value"


def required_columns(schema: pa.Schema) -> tuple[str, ...]:
    """What must not be null: a column by its name, a part of a nested one by its path.

    Args:
        schema: the table's columns (Arrow).

    Returns:
        Names; ``column.field`` for a field of a struct, ``column.element`` for the elements of a list and
        ``column.value`` for the values of a map.
    """
    return tuple(_required(schema, ""))


def _required(fields: Iterable[pa.Field], inside: str) -> Iterable[str]:
    for field in fields:
        if not field.nullable:
            yield inside + field.name
        yield from _required(_parts_of(field.type), f"{inside}{field.name}.")


def _parts_of(kind: pa.DataType) -> list[pa.Field]:
    if pa.types.is_struct(kind):
        return list(kind)
    if pa.types.is_list(kind):
        return [kind.value_field.with_name(_ELEMENT)]
    return [kind.item_field.with_name(_VALUE)] if pa.types.is_map(kind) else []


def find_nulls(rows: pa.Table, name: str) -> npt.NDArray[np.bool_]:
    """Which rows have a null where `required_columns` says that none is allowed.

    Args:
        rows: any columns.
        name: as `required_columns` gives it. A struct, list or map that is null has no part that is null.
    """
    if name in rows.column_names:
        flags: npt.NDArray[np.bool_] = pc.is_null(rows.column(name)).to_numpy()
        return flags
    column = next((one for one in rows.column_names if name.startswith(f"{one}.")), None)
    if column is None:
        return np.zeros(len(rows), np.bool_)
    return _holes(rows.column(column).combine_chunks(), name[len(column) + 1 :])


def _flags(found: pa.BooleanArray) -> npt.NDArray[np.bool_]:
    flags: npt.NDArray[np.bool_] = found.to_numpy(zero_copy_only=False)
    return flags


def _holes(values: pa.Array, path: str) -> npt.NDArray[np.bool_]:
    """Which values have a null at the end of the path; an empty path is the value itself."""
    if not path:
        return _flags(pc.is_null(values))
    kind, there = values.type, _flags(pc.is_valid(values))
    if pa.types.is_struct(kind):
        field = next(one.name for one in kind if path == one.name or path.startswith(f"{one.name}."))
        return _holes(pc.struct_field(values, [field]), path[len(field) + 1 :]) & there
    offsets = values.offsets.to_numpy()
    inner = values.items if pa.types.is_map(kind) else values.values
    part = inner.slice(offsets[0], offsets[-1] - offsets[0])
    found = np.zeros(len(values), np.bool_)
    owners = np.repeat(np.arange(len(values)), np.diff(offsets))
    found[owners[_holes(part, path[len(_VALUE if pa.types.is_map(kind) else _ELEMENT) + 1 :])]] = True
    return found & there
