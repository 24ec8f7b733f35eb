"""A Spark stream whose micro-batches are known: one Parquet file per batch."""

import os

import pyarrow as pa
import pyarrow.parquet as pq

from table import read_table

OPTIONS = {
    "hoodie.table.name": "events",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.operation": "insert",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
}


def frame(spark, start, end, partitions=3):
    """A DataFrame of the keys k{start} up to and without k{end}."""
    return spark.range(start, end).selectExpr("concat('k', id) id", f"concat('p', id % {partitions}) p", "id ts")


def keys(path):
    """The record keys of a table as a sorted list: duplicates show."""
    return sorted(read_table(path).column("id").to_pylist())


def expected(start, end):
    """The record keys of `frame(spark, start, end)`, sorted."""
    return sorted(f"k{n}" for n in range(start, end))


def write_batches(folder, batches, rows=50, first=0):
    """Writes one Parquet file per micro-batch, in the order of their modification times; what exists stays."""
    os.makedirs(folder, exist_ok=True)
    for number in range(first, first + batches):
        numbers = range(number * rows, (number + 1) * rows)
        table = pa.table(
            {"id": [f"k{n}" for n in numbers], "p": [f"p{n % 3}" for n in numbers], "ts": pa.array(numbers, pa.int64())}
        )
        file = os.path.join(folder, f"{number:05d}.parquet")
        if not os.path.exists(file):
            pq.write_table(table, file)
            os.utime(file, (1e9 + number, 1e9 + number))


def source(spark, folder, batches, rows=50):
    """A folder of Parquet files, one per micro-batch, and the stream that reads it."""
    write_batches(folder, batches, rows)
    return spark.readStream.schema("id string, p string, ts bigint").option("maxFilesPerTrigger", 1).parquet(folder)


def run(stream, sink, checkpoint):
    """Runs a stream through a sink until its source has no more batches; returns the query."""
    query = (
        stream.writeStream.foreachBatch(sink)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return query
