"""Reads a table once: a Spark partition for every parcel of file slices, rows as Arrow batches."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from pyspark_hudistream.source_options import SourceOptions
from streaming.spark.questions import plan_of, scan_of
from streaming.spark.schema import to_spark_arrow
from streaming.spark.split_rows import pack_splits, read_parcel
from table.errors import SchemaMismatchError
from table.hudi_table import HudiTable
from table.scan.as_of import AsOf
from table.scan.change_range import EARLIEST
from table.scan.feed.choices import CHANGE_COLUMNS
from table.scan.feed.feed import ChangeFeed
from table.scan.feed.plan import FeedPlan
from table.scan.plan import ScanPlan
from table.scan.split import ScanSplit


class Parcel(InputPartition):
    """Neighbouring file slices that one Spark task reads.

    Args:
        value: of `pack_splits`.
    """


class TableReader(DataSourceReader):
    """Reads a snapshot or a range of commits, according to the options.

    Args:
        asked: the options.
        schema: the columns, with Spark's types.
    """

    def __init__(self, asked: SourceOptions, schema: StructType) -> None:
        self._asked, self._schema = asked, schema

    def partitions(self) -> Sequence[InputPartition]:
        """The parcels of the snapshot, or of the range, at this moment.

        Raises:
            HudiError: as `table.scan.scan.Scan.plan`.
            SchemaMismatchError: a column has another type than when the DataFrame was made.
        """
        asked = self._asked
        if asked.feed is not None:
            feed = feed_of(self._open(), asked, asked.read.since, asked.read.until, self._schema.names)
            return parcels_of_feed(feed.plan_pinned()[0], self._schema)
        scan = scan_of(self._open(), asked.read, self._schema.names, asked.where)
        return parcels_of(plan_of(scan, asked.read), self._schema)

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """The rows of a parcel. If there are no parcels, Spark passes None, or a partition with None: no rows.

        Raises:
            CorruptFileError, StorageError: a file cannot be decoded or read.
        """
        if partition is not None and partition.value is not None:
            yield from read_parcel(partition.value)

    def _open(self) -> HudiTable:
        return HudiTable.open(self._asked.path, self._asked.storage_options)


def parcels_of(plan: ScanPlan, schema: StructType) -> list[InputPartition]:
    """The parcels of a plan.

    Args:
        plan: with the columns of the schema.
        schema: the schema that Spark expects.

    Raises:
        SchemaMismatchError: a column has another type by now. Names both types.
    """
    _check_types(plan.shown, schema)
    splits = [ScanSplit.of(plan, found) for found in plan.slices]
    return [Parcel(parcel) for parcel in pack_splits(splits)]


def feed_of(
    table: HudiTable, asked: SourceOptions, since: AsOf | None, until: AsOf | None, columns: Sequence[str] | None
) -> ChangeFeed:
    """The change feed that the options ask for.

    Args:
        asked: the options, which ask for one.
        since: as in `HudiTable.changes`.
        until: as in `HudiTable.changes`.
        columns: the columns wanted, those of each change among them; None means all.
    """
    assert asked.feed is not None
    names = None if columns is None else tuple(name for name in columns if name not in CHANGE_COLUMNS)
    return ChangeFeed(table, EARLIEST if since is None else since, until, names, asked.where, None, asked.feed)


def parcels_of_feed(plan: FeedPlan, schema: StructType) -> list[InputPartition]:
    """The parcels of a change feed; the arguments and errors are those of `parcels_of`."""
    _check_types(plan.shown, schema)
    return [Parcel(parcel) for parcel in pack_splits(plan.parts)]


def _check_types(shown: pa.Schema, schema: StructType) -> None:
    found = from_arrow_schema(to_spark_arrow(shown), prefer_timestamp_ntz=True)
    if found.names != schema.names:
        raise SchemaMismatchError(
            f"the rows have the columns {', '.join(found.names)}, and the schema that was given names "
            f"{', '.join(schema.names)}: leave the schema out, and name the columns by the option columns"
        )
    for ours, theirs in zip(found.fields, schema.fields, strict=True):
        if ours.dataType.simpleString() != theirs.dataType.simpleString():
            raise SchemaMismatchError(
                f"the column {ours.name!r} has the type {ours.dataType.simpleString()}, and the query expects "
                f"{theirs.dataType.simpleString()}: leave the schema out if one was given, make the DataFrame anew, or "
                "restart the stream"
            )
