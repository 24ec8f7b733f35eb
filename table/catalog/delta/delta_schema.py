"""The columns of a table as a Delta log spells them (pure; Delta protocol, "Schema Serialization Format")."""

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from table.errors import UnsupportedTableError

_PLAIN = {
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.bool_(): "boolean",
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
}
_FORBIDDEN = " ,;{}()\n\t="  # in names, unless the table maps its columns


def encode_schema(schema: pa.Schema) -> str:
    """``schemaString`` of a table.

    Args:
        schema: the columns (Arrow), meta columns included.

    Raises:
        UnsupportedTableError: Delta has no such type, or no such name.
    """
    return json.dumps(_struct(schema, ""))


def changed_types(before: str, after: str) -> list[str]:
    """The columns whose type differs between two ``schemaString``, in words. New and dropped columns do not count."""
    return list(_changed(json.loads(before), json.loads(after), ""))


def _changed(before: Any, after: Any, place: str) -> Iterator[str]:
    if not (isinstance(before, dict) and isinstance(after, dict) and before["type"] == after["type"]):
        if before != after:
            yield f"{place or 'the row'} was {_in_words(before)}, is {_in_words(after)}"
    elif before["type"] == "struct":
        known = {field["name"]: field["type"] for field in before["fields"]}
        for field in after["fields"]:
            if field["name"] in known:
                path = f"{place}.{field['name']}" if place else field["name"]
                yield from _changed(known[field["name"]], field["type"], path)
    else:
        for part in ("elementType", "keyType", "valueType"):
            if part in after:
                yield from _changed(before[part], after[part], f"{place}.{part.removesuffix('Type')}")


def _in_words(kind: Any) -> str:
    return kind["type"] if isinstance(kind, dict) else str(kind)


def _struct(fields: Any, place: str) -> dict[str, Any]:
    return {"type": "struct", "fields": [_field(field, place) for field in fields]}


def _field(field: pa.Field, place: str) -> dict[str, Any]:
    name = f"{place}{field.name}"
    if any(letter in _FORBIDDEN for letter in field.name):
        raise UnsupportedTableError(f"a Delta log cannot name the column {name!r}: leave out {_FORBIDDEN!r}")
    # nullable, whatever the newest schema says: older files may lack the column
    return {"name": field.name, "type": _type(field.type, name), "nullable": True, "metadata": {}}


def _type(kind: pa.DataType, name: str) -> Any:
    if kind in _PLAIN:
        return _PLAIN[kind]
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return "timestamp"
    if pa.types.is_decimal128(kind) and kind.scale >= 0:
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_struct(kind):
        return _struct([kind.field(number) for number in range(kind.num_fields)], f"{name}.")
    if pa.types.is_list(kind):
        return {"type": "array", "elementType": _type(kind.value_type, f"{name}.element"), "containsNull": True}
    if pa.types.is_map(kind):
        key, value = _type(kind.key_type, f"{name}.key"), _type(kind.item_type, f"{name}.value")
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    raise UnsupportedTableError(
        f"a Delta log has no type for the column {name!r} ({kind}): cast it before it is written"
    )
