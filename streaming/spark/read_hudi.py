"""Reading a table from Spark without a JAR: rows as a DataFrame, through the DataFrame API alone."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from streaming.spark.conditions import spark_condition
from streaming.spark.questions import plan_of, scan_of
from streaming.spark.scan_frame import FrameMaker, log
from table.options.read_options import ReadOptions, parse_read_options
from table.scan.as_of import AsOf
from table.scan.predicate import Where
from table.secret_names import shown_value
from table.user_table import HudiTable


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
        storage_options: for fsspec, which lists the files; Spark reads with its own settings.
        as_of: an instant time, an ISO time, a date or a datetime; None means the newest snapshot. What names no zone is
            in the table's.
        since: rows that commits after this instant wrote, the latest row of each key; ``"earliest"``: after none.
        until: the last commit of that range; None means as far as every write is completed.
        columns: the columns wanted, in order; None means all.
        where: which rows: tuples ``(column, operator, value)`` that are all true; or a list of such lists of which one
            is true; or a ``pyarrow.compute.Expression``. Operators: ``= == != < > <= >= in``, ``not in``. Files that
            can hold no such row are not opened. It is asked of the values as they are stored.
        options: keys and values of Hudi's Spark reader, such as ``hoodie.datasource.query.type``.

    Returns:
        The columns wanted; else meta columns, then the table's columns in the order of its schema.

    Raises:
        TableNotFoundError: when there is no table.
        UnsupportedTableError: when the table's version, or what its log files hold, is not read.
        InvalidConfigError: a column is not in the table, there is no snapshot of that time or no such range, a
            condition cannot be asked, or an option is unknown or refused.
    """
    given = ReadOptions(as_of=as_of, since=since, until=until)
    parsed = parse_read_options(options or {}, given, os.fspath(path))
    for key, reason in parsed.without_effect.items():
        log.info("option_without_effect", key=key, value=shown_value(key, (options or {})[key]), reason=reason)
    table = HudiTable.open(path, storage_options)
    plan = plan_of(scan_of(table, parsed.options, columns, where), parsed.options)
    return FrameMaker(spark, plan, spark_condition(where, plan.changes, plan.schema)).make()
