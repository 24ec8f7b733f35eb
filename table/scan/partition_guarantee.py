"""What a partition path says of every row below it, as an Arrow expression (pure).

A path is made of values by rules that lose some of them (`table.keys.keygen`). Here only what is certain is said: a
condition that contradicts it can be true of no row of the partition.
"""

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
    fields = config.partition_fields
    if config.keygen_type not in _PLAIN_KEYGENS or config.drop_partition_columns:
        return known
    segments = [path] if len(fields) == 1 else path.split("/")
    if len(segments) != len(fields):
        return known  # a value holds a slash
    for name, segment in zip(fields, segments, strict=True):
        value = _value_of(config, schema, name, segment)
        if value is not None:
            known &= ds.field(name) == value
    return known


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
