"""The values of partition columns that a partition path contains, and that readers show (pure)."""

from collections.abc import Mapping
from datetime import date
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from table.config.table_config import TableConfig
from table.keys.keygen import DEFAULT_PARTITION

PLAIN_KEYGENS = ("SIMPLE", "COMPLEX")
TEXT_KEYGENS = ("TIMESTAMP", "CUSTOM")


def folder_values(config: TableConfig, schema: pa.Schema, path: str) -> Mapping[str, Any]:
    """The values that readers show in partition columns: the values from which the path was made.

    If a global index keeps a row in its old path (``update.partition.path=false``), the file has another value. Hudi
    1.0.2 shows the value of the path (HoodieFileGroupReaderBasedParquetFileFormat), and prunes partitions by it.

    Args:
        config: the table's properties.
        schema: the table's columns (Arrow).
        path: the partition path.

    Returns:
        Column -> value. A column is left out if several values could have made the path; readers then show the value
        in the file.
    """
    fields = config.partition_fields
    if config.keygen_type not in PLAIN_KEYGENS or config.drop_partition_columns:
        return {}
    segments = [path] if len(fields) == 1 else path.split("/")
    if len(segments) != len(fields):
        return {}  # a value holds a slash
    values = {name: value_of(config, schema, name, segment) for name, segment in zip(fields, segments, strict=True)}
    return {name: value for name, value in values.items() if value is not None}


def shown_values(config: TableConfig, schema: pa.Schema, path: str) -> Mapping[str, Any]:
    """The values that readers show in partition columns, None among them; see `folder_values` and `null_columns`.

    Args:
        config: the table's properties.
        schema: the table's columns (Arrow).
        path: the partition path.
    """
    nulls = dict.fromkeys(null_columns(config, path) & set(schema.names))
    return {**folder_values(config, schema, path), **nulls}


def null_columns(config: TableConfig, path: str) -> frozenset[str]:
    """Columns that are shown as null in a partition, because the path says so.

    The path is also that of empty texts, and of rows that a global index keeps there. Hudi 1.0.2 shows null for these.

    Args:
        config: the table's properties.
        path: of the partition.
    """
    fields = config.partition_fields
    segments = [path] if len(fields) == 1 else path.split("/")
    if config.keygen_type in TEXT_KEYGENS or len(segments) != len(fields):
        return frozenset()
    named = zip(fields, segments, strict=True)
    nulls = {name for name, segment in named if segment == _default_segment(config, name)}
    return frozenset(nulls & set(shown_fields(config)))


def value_of(config: TableConfig, schema: pa.Schema, name: str, segment: str) -> Any:
    """The value from which a segment of the path was made; None where several values are possible.

    Args:
        config: the table's properties.
        schema: the table's columns (Arrow).
        name: the partition column.
        segment: of the path.
    """
    text = segment
    if config.hive_style:
        head = f"{name}="
        if not segment.startswith(head):
            return None
        text = segment[len(head) :]
    if config.url_encode:
        text = unquote(text)
    # a replacement character stands for bytes that are no text
    if text == DEFAULT_PARTITION or "\ufffd" in text or name not in schema.names:
        return None
    return _parse(text, schema.field(name).type)


def _parse(text: str, kind: pa.DataType) -> Any:
    if pa.types.is_string(kind):
        return text
    value: Any = None
    try:
        if pa.types.is_integer(kind):
            value = int(text)
        elif pa.types.is_date32(kind):
            value = date.fromisoformat(text)
    except ValueError:
        return None
    # Hudi's writers spell some values differently, for example dates as a number of days
    return value if value is not None and str(value) == text else None


def columns_shown_by_path(config: TableConfig) -> frozenset[str]:
    """Columns whose shown values may come from partition paths, so that those in the files may be others.

    Args:
        config: the table's properties.
    """
    return frozenset() if config.keygen_type in TEXT_KEYGENS else frozenset(shown_fields(config))


def _default_segment(config: TableConfig, name: str) -> str:
    return f"{name}={DEFAULT_PARTITION}" if config.hive_style else DEFAULT_PARTITION


def shown_fields(config: TableConfig) -> list[str]:
    """Partition fields that are columns. A field within a struct is not a column."""
    return [name for name in config.partition_fields if "." not in name]
