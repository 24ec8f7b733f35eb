"""Spark's schema -> Arrow's: the types of a DataFrame's rows on a worker (pure)."""

import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from table.errors import SchemaMismatchError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_TYPES = {
    "void": pa.null(),
    "boolean": pa.bool_(),
    # Avro has no smaller integers: Hudi stores these as int, and Spark reads them back as such
    "byte": pa.int32(),
    "short": pa.int32(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
}
_REFUSED = {"timestamp_ntz": "Hudi has no timestamp without zone that its Spark writers and readers know: cast it"}
_DECIMAL = re.compile(r"^decimal\((\d+),\s*(-?\d+)\)$")


def to_arrow_schema(schema: "StructType") -> pa.Schema:
    """Arrow columns of a DataFrame.

    Args:
        schema: ``df.schema``.

    Returns:
        Timestamps in UTC with microseconds; byte and short as int.

    Raises:
        SchemaMismatchError: names the column whose type cannot be stored, and its type.
    """
    return pa.schema([_arrow_field(field, "") for field in schema.jsonValue()["fields"]])


def _arrow_field(field: dict[str, Any], inside: str) -> pa.Field:
    name = f"{inside}.{field['name']}" if inside else field["name"]
    return _made_field(field["name"], _arrow_type(field["type"], name), nullable=field["nullable"])


def _made_field(name: str, arrow: pa.DataType, *, nullable: bool) -> pa.Field:
    return pa.field(name, arrow, nullable or pa.types.is_null(arrow))  # Arrow's null is always nullable


def _arrow_type(kind: Any, column: str) -> pa.DataType:
    if isinstance(kind, str):
        decimal = _DECIMAL.match(kind)
        if decimal:
            return pa.decimal128(int(decimal[1]), int(decimal[2]))
        if kind in _TYPES:
            return _TYPES[kind]
    elif kind["type"] == "struct":
        return pa.struct([_arrow_field(field, column) for field in kind["fields"]])
    elif kind["type"] == "array":
        element = _arrow_type(kind["elementType"], f"{column}.element")
        return pa.list_(_made_field("element", element, nullable=kind["containsNull"]))
    elif kind["type"] == "map" and kind["keyType"] == "string":
        value = _arrow_type(kind["valueType"], f"{column}.value")
        return pa.map_(pa.string(), _made_field("value", value, nullable=kind["valueContainsNull"]))
    if isinstance(kind, str) and kind in _REFUSED:
        raise SchemaMismatchError(f"the column {column!r} has the Spark type {kind}: {_REFUSED[kind]} to timestamp")
    shown = kind if isinstance(kind, str) else f"{kind['type']} with keys of type {kind.get('keyType', 'other')}"
    raise SchemaMismatchError(
        f"the column {column!r} has the Spark type {shown}, which cannot be stored: cast it to a type that "
        "docs/concepts/keys-and-types.md lists"
    )


def to_spark_ddl(schema: pa.Schema) -> str:
    """Spark's schema text of Arrow columns, everything nullable."""
    return ", ".join(f"`{field.name.replace('`', '``')}` {to_spark_type(field.type)}" for field in schema)


def to_spark_arrow(schema: pa.Schema) -> pa.Schema:
    """The Arrow types in which Spark takes columns from Python: times in microseconds, without metadata of fields."""
    return pa.schema([pa.field(field.name, _taken_type(field.type)) for field in schema])


def _taken_type(arrow: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(arrow):
        return pa.timestamp("us", "UTC" if arrow.tz else None)
    if pa.types.is_struct(arrow):
        return pa.struct([pa.field(field.name, _taken_type(field.type)) for field in arrow])
    if pa.types.is_list(arrow):
        return pa.list_(pa.field("element", _taken_type(arrow.value_type)))
    if pa.types.is_map(arrow):
        return pa.map_(pa.string(), _taken_type(arrow.item_type))
    return arrow


def to_spark_type(arrow: pa.DataType) -> str:
    """Spark's name of an Arrow type, everything in it nullable."""
    if pa.types.is_decimal(arrow):
        return f"DECIMAL({arrow.precision},{arrow.scale})"
    if pa.types.is_struct(arrow):
        inner = ", ".join(f"`{field.name.replace('`', '``')}`: {to_spark_type(field.type)}" for field in arrow)
        return f"STRUCT<{inner}>"
    if pa.types.is_list(arrow):
        return f"ARRAY<{to_spark_type(arrow.value_type)}>"
    if pa.types.is_map(arrow):
        return f"MAP<STRING, {to_spark_type(arrow.item_type)}>"
    if pa.types.is_timestamp(arrow):
        # what TIMESTAMP means is a setting of the session (spark.sql.timestampType)
        return "TIMESTAMP_LTZ" if arrow.tz else "TIMESTAMP_NTZ"
    return _SPARK_NAMES.get(arrow, "STRING")


_SPARK_NAMES = {
    pa.bool_(): "BOOLEAN",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.binary(): "BINARY",
    pa.date32(): "DATE",
}
