"""The plan of a scan as a DataFrame: Spark reads the slices that it can, and Python on the workers reads the others.

Spark's Parquet reader reads file slices that are one base file. It fails on a file that was written before a column was
widened, so it reads such files with their own types, and widens numbers afterwards. Python on the workers merges slices
with log files, and reads files whose types are not known or differ otherwise. If Spark has no connector for the store,
Python reads all slices.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from urllib.parse import urlsplit

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from streaming.spark.carried import carried
from streaming.spark.partition_columns import (
    are_told_by_folders,
    column_that_is_the_path,
    text_columns,
)
from streaming.spark.schema import to_spark_ddl, to_spark_type
from streaming.spark.split_rows import pack_splits, read_parcels
from table.keys.folder_values import null_columns
from table.keys.sql_text import quote_name
from table.log import get_logger
from table.scan.hidden_floats import float_leaves
from table.scan.plan import ScanPlan
from table.scan.split import ScanSplit
from table.scan.written_types import find_written_types
from table.schema.avro_schema import PARTITION_PATH
from table.view.file_group import FileSlice

log = get_logger("hudistream.read")

# files of Hudi do not name the calendar of their dates; it is that of Spark 3 and of Arrow (decision 6)
_CALENDAR = "spark.sql.parquet.datetimeRebaseModeInRead"

_GLOB = re.compile(r"[\[\]{}*?\\]")
_NO_CONNECTOR = re.compile(r"No FileSystem for scheme|UnsupportedFileSystemException|Class \S*FileSystem\S* not found")


@dataclass(frozen=True)
class FrameMaker:
    """Makes the DataFrame of one plan.

    Attributes:
        spark: the session, classic or Connect.
        plan: of the scan.
        condition: the plan's condition as a Spark column; None where only Arrow can evaluate it. Python then reads the
            files.
        settings: of Hadoop's client for the store, for this reader alone.
    """

    spark: SparkSession
    plan: ScanPlan
    condition: Column | None
    settings: Mapping[str, str]

    def make(self) -> DataFrame:
        """The rows, with the columns wanted in order."""
        frames = [
            self._shown(rows)
            for nulls, found in self._slices_by_nulls().items()
            for rows in self._rows_of(found, nulls)
        ]
        if not frames:
            nothing = self.spark.createDataFrame([], to_spark_ddl(self.plan.shown))
            return self._shown(nothing)
        return reduce(DataFrame.unionAll, frames)

    def _slices_by_nulls(self) -> dict[frozenset[str], list[FileSlice]]:
        """Groups slices by the columns that are shown as null; nearly all slices have no such column.

        In slices without them the columns stay as they are in the files, so Spark pushes filters into the files.
        """
        config = self.plan.context.table.config
        groups: dict[frozenset[str], list[FileSlice]] = {}
        for found in self.plan.slices:
            groups.setdefault(null_columns(config, found.partition_path), []).append(found)
        return groups

    def _rows_of(self, slices: Sequence[FileSlice], nulls: frozenset[str]) -> list[DataFrame]:
        if self.condition is None:
            return [self._read_by_python(slices)]
        frames, others = [], [found for found in slices if found.log_files]
        for written, found in self._by_written_types([one for one in slices if not one.log_files]).items():
            casts = all(_spark_widens(field.type, self.plan.schema.field(field.name).type) for field in written or ())
            can = written is not None and casts
            rows = self._read_by_spark(found, self.condition, written or (), nulls) if can else None
            if rows is None:
                others += found
            else:
                frames.append(rows)
        return [*frames, *([self._read_by_python(others)] if others else [])]

    def _by_written_types(self, slices: Sequence[FileSlice]) -> dict[tuple[pa.Field, ...] | None, list[FileSlice]]:
        """Groups base files by the columns that they hold with other types; None: that is not known."""
        times = {found.base_file.instant_time for found in slices if found.base_file is not None}
        differences = find_written_types(self.plan.snapshot, self.plan.needed, times)
        groups: dict[tuple[pa.Field, ...] | None, list[FileSlice]] = {}
        for found in slices:
            time = found.base_file.instant_time if found.base_file is not None else ""
            groups.setdefault(differences.get(time), []).append(found)
        return groups

    def _read_by_spark(
        self, slices: Sequence[FileSlice], condition: Column, written: Sequence[pa.Field], nulls: frozenset[str]
    ) -> DataFrame | None:
        """Rows of base files; None where Spark cannot reach them.

        Args:
            slices: of one base file each.
            condition: the plan's.
            written: the columns that all of them hold with other types than the table.
            nulls: the columns that are shown as null in all of them.
        """
        storage = self.plan.context.table.storage
        paths = [storage.absolute(found.base_file.path) for found in slices if found.base_file is not None]
        config, schema = self.plan.context.table.config, self.plan.schema
        folders = {found.partition_path for found in slices}
        path_column = column_that_is_the_path(config, schema, folders)
        if path_column is not None and PARTITION_PATH not in schema.names:
            schema = schema.append(pa.field(PARTITION_PATH, pa.string()))
        own = {field.name: field for field in written}
        schema = pa.schema([own.get(field.name, field) for field in schema])
        reader = self.spark.read.schema(to_spark_ddl(schema)).options(**self.settings)
        if self.spark.conf.get(_CALENDAR, "EXCEPTION") == "EXCEPTION":  # nobody has said which
            reader = reader.option("datetimeRebaseMode", "CORRECTED")
        if are_told_by_folders(config, self.plan.schema, folders):
            reader = reader.option("basePath", storage.base_uri)
        else:
            # Spark must not make columns from folders like region=eu: the files have these columns
            reader = reader.option("recursiveFileLookup", "true")
        rows = _unless_without_connector(
            lambda: reader.parquet(*[_GLOB.sub(r"\\\g<0>", path) for path in paths]), storage.base_uri
        )
        if rows is None:
            return None
        if path_column is not None:  # an alias of the path column, so Spark pushes filters into the files
            rows = rows.withColumn(path_column, F.col(PARTITION_PATH))
        for name in nulls & set(self.plan.schema.names):
            rows = rows.withColumn(name, F.lit(None).cast(to_spark_type(self.plan.schema.field(name).type)))
        for field in written:
            present = to_spark_type(self.plan.schema.field(field.name).type)
            rows = rows.withColumn(field.name, F.col(quote_name(field.name)).cast(present))
        return _without_float_filters(rows.filter(condition), schema)

    def _read_by_python(self, slices: Sequence[FileSlice]) -> DataFrame:
        parcels = pack_splits([ScanSplit.of(self.plan, found) for found in slices])
        sent = self.spark.createDataFrame([(parcel,) for parcel in parcels], "parcel BINARY")
        return sent.repartition(len(parcels)).mapInArrow(carried(read_parcels), to_spark_ddl(self.plan.shown))

    def _shown(self, rows: DataFrame) -> DataFrame:
        texts = text_columns(self.plan.context.table.config)
        columns = []
        for name in self.plan.names:
            column = F.col(quote_name(name))
            kind = self.plan.schema.field(name).type
            if name in texts and not pa.types.is_string(kind):
                column = column.cast("string").alias(name)
            columns.append(column)
        return rows.select(columns)


def _spark_widens(written: pa.DataType, present: pa.DataType) -> bool:
    """Whether a cast of Spark makes of stored numbers what other readers make of them."""
    kinds = (written, present)
    are_numbers = all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds)
    return are_numbers or all(pa.types.is_decimal(kind) for kind in kinds)


def _without_float_filters(rows: DataFrame, schema: pa.Schema) -> DataFrame:
    """The same rows, in which Spark pushes no condition on floats down into the files.

    Spark passes over row groups by least and greatest values, which leave NaN out, and to Spark NaN is greater than
    all numbers: ``f > 5`` would lose it. Spark does not see through the case that stands for the column here.
    """
    hidden = {
        field.name: F.when(F.col(quote_name(field.name)).isNotNull(), F.col(quote_name(field.name)))
        for field in schema
        if float_leaves([field.name], schema)
    }
    return rows.withColumns(hidden) if hidden else rows


def _unless_without_connector(read: Callable[[], DataFrame], address: str) -> DataFrame | None:
    try:
        rows = read()
        rows.schema  # noqa: B018 Spark Connect looks for the files when it is asked for the schema
    except Exception as error:
        if not _NO_CONNECTOR.search(str(error)):
            raise
        _tell_no_connector(urlsplit(address).scheme)
        return None
    return rows


@cache
def _tell_no_connector(scheme: str) -> None:
    """Logs, once per process and scheme, that Spark cannot read from a store."""
    log.warning(
        "spark_has_no_connector",
        scheme=scheme,
        reason="Python on the workers reads the files through fsspec; with Hadoop's connector for this store on the "
        "class path, Spark's own reader would, which is faster",
    )
