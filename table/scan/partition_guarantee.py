"""What a partition path says of every row below it, as an Arrow expression (pure).

A path is made of values by rules that lose some of them (`table.keys.keygen`). Here only what is certain is said: a
condition that contradicts it can be true of no row of the partition.
"""

from collections.abc import Mapping
from datetime import date
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from table.config.table_config import TableConfig
from table.keys.keygen import DEFAULT_PARTITION
from table.schema.avro_schema import PARTITION_PATH

_PLAIN_KEYGENS = ("SIMPLE", "COMPLEX")


def partition_guarantee(config: TableConfig, schema: pa.Schema, path: str) -> pc.Expression:
    """What is true of every row of a partition.

    Args:
        config: the table's properties.
        schema: the table's columns (Arrow), meta columns included.
        path: the partition path.
    """
    known = pc.scalar(True)
    if config.populate_meta_fields:
        known &= ds.field(PARTITION_PATH) == path
    for name, value in folder_values(config, schema, path).items():
        known &= ds.field(name) == value
    return known


def folder_values(config: TableConfig, schema: pa.Schema, path: str) -> Mapping[str, Any]:
    """What partition columns show in a partition: the values that its path was made of.

    A global index that keeps rows in their path (``update.partition.path=false``) stores other values in their files.
    Hudi 1.0.2 shows those of the path (HoodieFileGroupReaderBasedParquetFileFormat), and rules out partitions by them.

    Args:
        config: the table's properties.
        schema: the table's columns (Arrow).
        path: the partition path.

    Returns:
        Column -> value. A column is left out where several values could have made the path: it shows what the files
        hold.
    """
    fields = config.partition_fields
    if config.keygen_type not in _PLAIN_KEYGENS or config.drop_partition_columns:
        return {}
    segments = [path] if len(fields) == 1 else path.split("/")
    if len(segments) != len(fields):
        return {}  # a value holds a slash
    values = {name: _value_of(config, schema, name, segment) for name, segment in zip(fields, segments, strict=True)}
    return {name: value for name, value in values.items() if value is not None}


def with_folder_values(rows: pa.Table, config: TableConfig, path: str) -> pa.Table:
    """Rows of a partition as readers show them: see `folder_values`.

    Args:
        rows: of files of the partition.
        config: the table's properties.
        path: the partition path.
    """
    for name, value in folder_values(config, rows.schema, path).items():
        number = rows.schema.get_field_index(name)
        field = rows.schema.field(number)
        rows = rows.set_column(number, field, pa.repeat(pa.scalar(value, field.type), len(rows)))
    return rows


def _value_of(config: TableConfig, schema: pa.Schema, name: str, segment: str) -> Any:
    """The value that a segment of the path was made of, or None where several could have been."""
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
    # Hudi's writers spell some values otherwise, as dates by their number of days
    return value if value is not None and str(value) == text else None
