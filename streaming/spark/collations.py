"""Texts without collations: Spark 4 compares collated columns by other rules than those of keys and paths."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from table.keys.sql_text import quote_name

_BINARY = "UTF8_BINARY"


def without_collations(rows: DataFrame, schema: StructType) -> DataFrame:
    """The same rows, in which texts are equal if their bytes are.

    Args:
        rows: the batch.
        schema: its columns; Spark Connect asks its server for them each time.
    """
    plain = {field.name: _plain(field.dataType) for field in schema}
    if not any(plain.values()):
        return rows
    columns = [(F.col(quote_name(name)), name, kind) for name, kind in plain.items()]
    return rows.select(*(column if kind is None else column.cast(kind).alias(name) for column, name, kind in columns))


def _plain(kind: DataType) -> DataType | None:
    """The type without collations; None: it has none."""
    if isinstance(kind, StringType):
        return StringType() if getattr(kind, "collation", _BINARY) != _BINARY else None
    if isinstance(kind, ArrayType):
        element = _plain(kind.elementType)
        return element and ArrayType(element, kind.containsNull)
    if isinstance(kind, MapType):
        key, value = _plain(kind.keyType), _plain(kind.valueType)
        is_plain = key is None and value is None
        return None if is_plain else MapType(key or kind.keyType, value or kind.valueType, kind.valueContainsNull)
    if isinstance(kind, StructType) and any(_plain(field.dataType) for field in kind):
        return StructType([StructField(one.name, _plain(one.dataType) or one.dataType, one.nullable) for one in kind])
    return None
