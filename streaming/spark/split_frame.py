"""Spark's part in splitting a batch by table: one action that yields pieces, and a DataFrame over large pieces."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from streaming.router.split import NAME_COLUMN, PIECE_SCHEMA, Piece, Splitter, decode_piece
from streaming.router.table_rows import Columns
from streaming.spark.carried import carried
from streaming.spark.worker_failure import failure_of
from streaming.spark.workers import QUERY_ID_PROPERTY
from streaming.task.failure import told_to_the_driver
from table.errors import InvalidConfigError
from table.storage.interface import Storage

Chooser = str | Callable[[DataFrame], Column]


def split_frame(rows: DataFrame, table: Chooser, splitter: Splitter) -> tuple[list[Piece], str | None]:
    """Reads the rows of a batch once, and splits them by table.

    Args:
        rows: the batch.
        table: the column with the table's name, or a function that makes it of the frame.
        splitter: splits the rows of one task. It is sent to the workers.

    Returns:
        The pieces, in the order of the tasks, and the query that the tasks saw; None where they saw none.

    Raises:
        InvalidConfigError: the batch does not have the column.
        HudiError: a task failed.
    """
    if isinstance(table, str) and table not in rows.columns:
        raise InvalidConfigError(f"table={table!r}: the batch has the columns {', '.join(rows.columns)}")
    name = F.col(f"`{table}`") if isinstance(table, str) else table(rows)
    named = rows.select("*", name.cast("string").alias(NAME_COLUMN))
    try:
        found = named.mapInArrow(
            carried(partial(_split_on_worker, splitter)), f"{PIECE_SCHEMA}, query_id string"
        ).collect()
    except Exception as error:
        failed = failure_of(error)
        if failed is None:
            raise
        raise failed from error
    return [decode_piece(row.asDict()) for row in found], next((row.query_id for row in found), None)


def _split_on_worker(splitter: Splitter, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    query_id = None if context is None else context.getLocalProperty(QUERY_ID_PROPERTY)
    with told_to_the_driver():
        for pieces in splitter.run(batches):
            yield pieces.append_column("query_id", pa.array([query_id] * len(pieces), pa.string()))


def frame_of(spark: SparkSession, storage: Storage, pieces: Sequence[Piece], columns: Columns) -> DataFrame:
    """A DataFrame of one table's rows, which are in files."""
    files = [piece.file for piece in pieces]
    listed = spark.createDataFrame([(file,) for file in files], "file string").repartition(len(files))
    return listed.mapInArrow(carried(partial(_read_on_worker, storage, columns)), from_arrow_schema(columns.schema))


def _read_on_worker(storage: Storage, columns: Columns, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    with told_to_the_driver():
        for batch in batches:
            for file in batch.column("file").to_pylist():
                with pa.ipc.open_stream(storage.open_input(file)) as reader:
                    yield from columns.take(reader)
