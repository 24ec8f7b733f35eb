"""Reads a table from Spark without a JAR, as a DataFrame, with the DataFrame API only."""

import os
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from pyspark.sql import DataFrame, SparkSession

from streaming.spark.conditions import spark_condition
from streaming.spark.hadoop_settings import hadoop_settings
from streaming.spark.questions import plan_of, scan_of
from streaming.spark.scan_frame import FrameMaker, log
from table.hudi_table import HudiTable
from table.options.read_options import ReadOptions, parse_read_options
from table.scan.as_of import AsOf
from table.scan.predicate import Where


def read_hudi(  # noqa: PLR0913 one parameter per thing that users say; all but the first three by name
    spark: SparkSession,
    path: str | os.PathLike[str],
    storage_options: Mapping[str, Any] | None = None,
    *,
    as_of: AsOf | None = None,
    since: AsOf | None = None,
    until: AsOf | None = None,
    columns: Sequence[str] | None = None,
    where: Where | None = None,
    options: Mapping[str, Any] | None = None,
) -> DataFrame:
    """Rows of a table, as Hudi's own Spark reader shows them.

    The list of files is made here, once, and cleaning leaves the files alone for 15 minutes. Spark's Parquet reader
    reads the file slices that have no log files. Python on the workers merges the others, and reads all files in a
    store for which Spark has no connector. A partition column shows what the partition path says: null in the default
    partition, and text where the key generator made the path from it (timestamp, custom).

    Args:
        spark: the session, classic or Connect.
        path: the table.
        storage_options: for fsspec, which lists the files. For S3 Spark's reader gets its keys and its endpoint from
            them, too; else, and where they leave something open, from Spark's own settings.
        as_of: an instant time, an ISO time, a date or a datetime; None means the newest snapshot. A time without a zone
            is in the table's zone.
        since: read rows that commits after this instant wrote, the latest row of each key; ``"earliest"``: of all
            commits.
        until: the last commit of that range; None: the last commit before which no write is pending.
        columns: the columns wanted, in order; None means all.
        where: which rows: tuples ``(column, operator, value)``, which all must be true; or a list of such lists, of
            which one must be true; or a ``pyarrow.compute.Expression``. Operators: ``= == != < > <= >= in``,
            ``not in``. Files that cannot contain such a row are not opened. The condition is applied to stored values.
        options: keys and values of Hudi's Spark reader, such as ``hoodie.datasource.query.type``.

    Returns:
        The columns wanted; else meta columns, then the table's columns in the order of its schema.

    Raises:
        TableNotFoundError: there is no table.
        UnsupportedTableError: the table's version, or a block in its log files, is not supported.
        InvalidConfigError: a column is not in the table, there is no snapshot of that time or no such range, a
            condition is not supported, or an option is unknown or refused.
    """
    given = ReadOptions(as_of=as_of, since=since, until=until)
    parsed = parse_read_options(options or {}, given, os.fspath(path))
    for key, reason in parsed.without_effect.items():
        log.info("option_without_effect", key=key, reason=reason)
    table = HudiTable.open(path, storage_options)
    plan = plan_of(scan_of(table, parsed.options, columns, where), parsed.options)
    settings = hadoop_settings(urlsplit(os.fspath(path)).scheme, storage_options or {})
    condition = spark_condition(where, plan.changes, plan.schema, table.config.timezone)
    return FrameMaker(spark, plan, condition, settings).make()
