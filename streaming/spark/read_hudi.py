"""Reading a table from Spark without a JAR: the snapshot as a DataFrame, through the DataFrame API alone."""

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from streaming.spark.schema import to_spark_ddl
from table.config.table_config import TableConfig
from table.hudi_table import HudiTable
from table.keys.keygen import DEFAULT_PARTITION
from table.keys.sql_text import quote_name
from table.scan.as_of import AsOf, load_snapshot
from table.scan.plan import checked_names
from table.scan.read_table import base_files_of
from table.schema.avro_schema import META_FIELDS, PARTITION_PATH, with_meta_columns

_GLOB = re.compile(r"[\[\]{}*?\\]")


def read_hudi(
    spark: SparkSession,
    path: str | os.PathLike[str],
    storage_options: Mapping[str, Any] | None = None,
    *,
    as_of: AsOf | None = None,
    columns: Sequence[str] | None = None,
) -> DataFrame:
    """A snapshot of a copy-on-write table, as Hudi's own Spark reader shows it.

    The list of files is made here, once; the rows are read by Spark's Parquet reader on the workers.
    A partition column shows what the partition path says: null in the default partition, and text
    where the key generator made the path from it (timestamp, custom).

    Args:
        spark: the session, classic or Connect.
        path: the table.
        storage_options: for fsspec, which lists the files; Spark reads with its own settings.
        as_of: an instant time, an ISO time, a date or a datetime; None means the newest snapshot. What names no zone is
            in the table's.
        columns: the columns wanted, in order; None means all.

    Returns:
        The columns wanted; else meta columns, then the table's columns in the order of its schema.

    Raises:
        TableNotFoundError: when there is no table.
        UnsupportedTableError: when rows live in log files.
        InvalidConfigError: a column is not in the table, or there is no snapshot of that time.
    """
    table = HudiTable.open(path, storage_options)
    snapshot = load_snapshot(table, as_of)
    schema = snapshot.load_schema()
    known = with_meta_columns(schema) if schema is not None else pa.schema(META_FIELDS)
    names = checked_names(columns, known)
    ddl = to_spark_ddl(known)
    # Spark takes what it is given for patterns
    files = [_GLOB.sub(r"\\\g<0>", table.storage.absolute(file.path)) for file in base_files_of(snapshot)]
    if not files:
        return spark.createDataFrame([], ddl).select([F.col(quote_name(name)) for name in names])
    # folders like region=eu are not to be taken for columns: the files hold them
    rows = spark.read.schema(ddl).option("recursiveFileLookup", "true").parquet(*files)
    shown = {name: _partition_column(table.config, name) for name in table.config.partition_fields if "." not in name}
    return rows.select([shown[name].alias(name) if name in shown else F.col(quote_name(name)) for name in names])


def _partition_column(config: TableConfig, name: str) -> Column:
    column = F.col(quote_name(name))
    if config.keygen_type in ("TIMESTAMP", "CUSTOM"):
        return column.cast("string")
    fields = config.partition_fields
    segment = f"{name}={DEFAULT_PARTITION}" if config.hive_style else DEFAULT_PARTITION
    if len(fields) == 1:
        found = F.col(PARTITION_PATH)
    else:
        segments = F.split(F.col(PARTITION_PATH), "/")
        found = F.when(F.size(segments) == len(fields), segments.getItem(fields.index(name)))
    return F.when(found == segment, F.lit(None)).otherwise(column)
