"""The conditions that a partition path guarantees for all its rows, as an Arrow expression (pure).

The rules that make a path from values lose some information (`table.keys.keygen`). The expression contains only what is
certain. If a scan's condition contradicts it, no row of the partition can match.
"""

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from table.config.table_config import TableConfig
from table.keys.folder_values import PLAIN_KEYGENS, shown_values, value_of
from table.schema.avro_schema import PARTITION_PATH


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
    for name, value in shown_values(config, schema, path).items():
        known &= ds.field(name).is_null() if value is None else ds.field(name) == value
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
    if config.keygen_type not in PLAIN_KEYGENS or config.drop_partition_columns or not config.partition_fields:
        return anything
    name = config.partition_fields[0]
    value = value_of(config, schema, name, folder.split("/", maxsplit=1)[0])
    if value is None:
        return anything
    field = ds.field(name)
    if config.url_encode or not isinstance(value, str):
        return (field == value,)
    # "0" follows "/": these are the texts that begin with the value and a slash
    return field == value, (field >= f"{value}/") & (field < f"{value}0")


def with_folder_values(rows: pa.Table, config: TableConfig, path: str) -> pa.Table:
    """Replaces partition columns by the values that readers show; see `shown_values`.

    Args:
        rows: of files of the partition.
        config: the table's properties.
        path: the partition path.
    """
    for name, value in shown_values(config, rows.schema, path).items():
        number = rows.schema.get_field_index(name)
        field = rows.schema.field(number)
        rows = rows.set_column(number, field, pa.repeat(pa.scalar(value, field.type), len(rows)))
    return rows
