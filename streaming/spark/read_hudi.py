"""Reading a table from Spark without a JAR: the snapshot as a DataFrame, through the DataFrame API alone."""

import os
import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from streaming.spark.schema import to_spark_ddl
from table.config.table_config import TableConfig
from table.hudi_table import HudiTable
from table.keys.keygen import DEFAULT_PARTITION
from table.keys.sql_text import quote_name
from table.scan.read_table import base_files_of
from table.schema.avro_schema import META_FIELDS, PARTITION_PATH, with_meta_columns
from table.snapshot import Snapshot

_GLOB = re.compile(r"[\[\]{}*?\\]")


def read_hudi(
    spark: SparkSession, path: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None
) -> DataFrame:
    """The latest snapshot of a copy-on-write table, as Hudi's own Spark reader shows it.

    The list of files is made here, once; the rows are read by Spark's Parquet reader on the workers.
    A partition column shows what the partition path says: null in the default partition, and text
    where the key generator made the path from it (timestamp, custom).

    Args:
        spark: the session, classic or Connect.
        path: the table.
        storage_options: for fsspec, which lists the files; Spark reads with its own settings.

    Returns:
        Meta columns, then the table's columns in the order of its schema.

    Raises:
        TableNotFoundError: when there is no table.
        UnsupportedTableError: when rows live in log files.
    """
    table = HudiTable.open(path, storage_options)
    snapshot = Snapshot.load(table)
    schema = snapshot.load_schema()
    columns = with_meta_columns(schema) if schema is not None else pa.schema(META_FIELDS)
    ddl = to_spark_ddl(columns)
    # Spark takes what it is given for patterns
    files = [_GLOB.sub(r"\\\g<0>", table.storage.absolute(file.path)) for file in base_files_of(snapshot)]
    if not files:
        return spark.createDataFrame([], ddl)
    # folders like region=eu are not to be taken for columns: the files hold them
    rows = spark.read.schema(ddl).option("recursiveFileLookup", "true").parquet(*files)
    shown = {name: _partition_column(table.config, name) for name in table.config.partition_fields if "." not in name}
    return rows.select(
        [shown[name].alias(name) if name in shown else F.col(quote_name(name)) for name in columns.names]
    )


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
