"""Spark's schema -> Arrow's: what a DataFrame's rows are when they reach a worker (pure)."""

import re
from typing import TYPE_CHECKING

import pyarrow as pa

from table.errors import SchemaMismatchError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_TYPES = {
    "boolean": pa.bool_(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
}
_DECIMAL = re.compile(r"^decimal\((\d+),\s*(-?\d+)\)$")


def to_arrow_schema(schema: "StructType") -> pa.Schema:
    """Arrow columns of a DataFrame.

    Args:
        schema: ``df.schema``.

    Returns:
        Timestamps in UTC with microseconds.

    Raises:
        SchemaMismatchError: names the column whose type cannot be stored yet, and its type.
    """
    columns = []
    for field in schema.jsonValue()["fields"]:
        kind = field["type"]
        decimal = _DECIMAL.match(kind) if isinstance(kind, str) else None
        if decimal:
            arrow: pa.DataType = pa.decimal128(int(decimal[1]), int(decimal[2]))
        elif isinstance(kind, str) and kind in _TYPES:
            arrow = _TYPES[kind]
        else:
            shown = kind if isinstance(kind, str) else kind.get("type")
            raise SchemaMismatchError(
                f"the column {field['name']!r} has the Spark type {shown}, which cannot be stored yet: cast it to one "
                "of boolean, int, bigint, float, double, decimal, date, timestamp, string, binary"
            )
        columns.append(pa.field(field["name"], arrow, field["nullable"]))
    return pa.schema(columns)
