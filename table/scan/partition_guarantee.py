"""The conditions that a partition path guarantees for all its rows, as an Arrow expression (pure).

The rules that make a path from values lose some information (`table.keys.keygen`). The expression contains only what is
certain. If a scan's condition contradicts it, no row of the partition can match.
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
    """An expression that is true for every row of a partition.

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


def guarantees_below(config: TableConfig, schema: pa.Schema, folder: str) -> tuple[pc.Expression, ...]:
    """Expressions; each row of the partitions at a folder, or below it, fulfils at least one of them.

    A folder need not be a partition: the values of Hudi's path can contain slashes, unless they are encoded. So the
    first partition column has the value in the folder's first segment, or a value that continues after a slash.

    Args:
        config: the table's properties.
        schema: the table's columns (Arrow), meta columns included.
        folder: relative to the table; its segments are those of partition paths.
    """
    anything = (pc.scalar(True),)
    if config.keygen_type not in _PLAIN_KEYGENS or config.drop_partition_columns or not config.partition_fields:
        return anything
    name = config.partition_fields[0]
    value = _value_of(config, schema, name, folder.split("/", maxsplit=1)[0])
    if value is None:
        return anything
    field = ds.field(name)
    if config.url_encode or not isinstance(value, str):
        return (field == value,)
    # "0" follows "/": these are the texts that begin with the value and a slash
    return field == value, (field >= f"{value}/") & (field < f"{value}0")


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
    if config.keygen_type not in _PLAIN_KEYGENS or config.drop_partition_columns:
        return {}
    segments = [path] if len(fields) == 1 else path.split("/")
    if len(segments) != len(fields):
        return {}  # a value holds a slash
    values = {name: _value_of(config, schema, name, segment) for name, segment in zip(fields, segments, strict=True)}
    return {name: value for name, value in values.items() if value is not None}


def with_folder_values(rows: pa.Table, config: TableConfig, path: str) -> pa.Table:
    """Replaces partition columns by the values that readers show; see `folder_values`.

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
    """The value from which a segment of the path was made; None where several values are possible."""
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
