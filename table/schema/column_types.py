"""Arrow columns -> the types of Hive, and the schema as Spark's JSON (pure; HiveSchemaUtil, SparkSchemaUtils)."""

import json
from typing import Any

import pyarrow as pa

# checked in this order: name of a test in pyarrow.types, Hive's type, Spark's type
_PLAIN = (
    ("is_boolean", "boolean", "boolean"),
    ("is_int64", "bigint", "long"),
    ("is_integer", "int", "integer"),
    ("is_float32", "float", "float"),
    ("is_floating", "double", "double"),
    ("is_string", "string", "string"),
    ("is_large_string", "string", "string"),
    ("is_date", "date", "date"),
    ("is_time64", "bigint", "long"),
    ("is_time32", "int", "integer"),
)


def hive_type(kind: pa.DataType, *, timestamps: bool = False) -> str:
    """Hive's name of a column's type.

    Args:
        kind: Arrow type of the table's column.
        timestamps: whether Hive's type of instants is ``timestamp``
            (``hoodie.datasource.hive_sync.support_timestamp``); else it is ``bigint``, microseconds since 1970 as
            in the files.
    """
    found = _plain_type(kind, 1)
    if found is None and pa.types.is_timestamp(kind):
        found = "timestamp" if timestamps else "bigint"
    elif found is None and pa.types.is_struct(kind):
        inner = ",".join(f"{field.name}:{hive_type(field.type, timestamps=timestamps)}" for field in kind)
        found = f"struct<{inner}>"
    elif found is None and pa.types.is_map(kind):
        key, value = (hive_type(part, timestamps=timestamps) for part in (kind.key_type, kind.item_type))
        found = f"map<{key},{value}>"
    elif found is None and (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        found = f"array<{hive_type(kind.value_type, timestamps=timestamps)}>"
    return found or "binary"


def _plain_type(kind: pa.DataType, word: int) -> str | None:
    """Name of a type without parts: the item at `word` of its entry in `_PLAIN`; None for other types."""
    if pa.types.is_dictionary(kind):
        return _plain_type(kind.value_type, word)
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return next((row[word] for row in _PLAIN if getattr(pa.types, row[0])(kind)), None)


def spark_schema(schema: pa.Schema) -> str:
    """A schema as Spark's ``StructType.json``.

    Args:
        schema: columns in the order in which Spark shows them (Arrow); whether they may be null is kept.
    """
    return json.dumps(_struct(schema), separators=(",", ":"))


def _struct(fields: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": [_field(field) for field in fields]}


def _field(field: pa.Field) -> dict[str, Any]:
    return {"name": field.name, "type": _spark_type(field.type), "nullable": field.nullable, "metadata": {}}


def _spark_type(kind: pa.DataType) -> Any:
    found: Any = _plain_type(kind, 2)
    if found is None and pa.types.is_timestamp(kind):
        found = "timestamp" if kind.tz is not None else "timestamp_ntz"
    elif found is None and pa.types.is_struct(kind):
        found = _struct(kind)
    elif found is None and pa.types.is_map(kind):
        key, value = _spark_type(kind.key_type), _spark_type(kind.item_type)
        is_nullable = kind.item_field.nullable
        found = {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": is_nullable}
    elif found is None and (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        element = _spark_type(kind.value_type)
        found = {"type": "array", "elementType": element, "containsNull": kind.value_field.nullable}
    return found or "binary"
