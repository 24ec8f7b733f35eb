"""A merge-on-read stream under Spark Connect that compacts; run by `test_connect.py` in an environment of its own.

connect_compaction.py FOLDER TABLE CHECKPOINT INLINE
"""

import os
import sys

from pyspark.sql import SparkSession

from streaming import HudiSink
from table.services.compaction import compaction

folder, table, checkpoint, inline = sys.argv[1:]
spark = (
    SparkSession.builder.remote("local[2]")
    .config("spark.sql.shuffle.partitions", "4")
    .config("spark.ui.enabled", "false")
    .getOrCreate()
)
options = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.compact.inline": inline,
    "hoodie.compact.inline.max.delta.commits": "2",
    "hudistream.checkpoint.location": checkpoint,
    "hudistream.compaction.executors.from.mb": "0",
}
sink = HudiSink(table, options)


def write(frame, batch_id):
    """A batch, in the process of the batches: tasks run in others, which do not see what is replaced here."""

    def refuse(*_):
        raise AssertionError(f"a slice was compacted in the process of the batches, {os.getpid()}")

    compaction.compact_slice = refuse
    sink(frame, batch_id)
    sink.services.wait()
    if sink.services.failures:
        raise sink.services.last_error


stream = spark.readStream.schema("id string, p string, ts bigint").option("maxFilesPerTrigger", 1).parquet(folder)
query = (
    stream.selectExpr("concat('k', ts % 70) id", "concat('p', ts % 70 % 3) p", "ts")
    .writeStream.foreachBatch(write)
    .option("checkpointLocation", checkpoint)
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
print("QUERY", query.exception(), flush=True)
spark.stop()
