"""A stream under Spark Connect; run by `test_connect.py` in an environment of its own.

connect_stream.py FOLDER TABLE CHECKPOINT
"""

import glob
import os
import sys
from unittest import mock

import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql.functions import lit

from hudistream import HudiTable
from streaming import HudiSink, read_hudi
from streaming.spark import scan_frame
from table import LostDataError

folder, table, checkpoint = sys.argv[1:]
spark = (
    SparkSession.builder.remote("local[2]")
    .config("spark.sql.shuffle.partitions", "4")
    .config("spark.ui.enabled", "false")
    .getOrCreate()
)
print("SESSION", type(spark).__module__, flush=True)
options = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.operation": "insert",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hudistream.checkpoint.location": checkpoint,
}
sink = HudiSink(table, options)


def run():
    stream = spark.readStream.schema("id string, p string, ts bigint").option("maxFilesPerTrigger", 1).parquet(folder)
    query = (
        stream.writeStream.foreachBatch(sink)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    failure = query.exception()
    print("QUERY", query.id, failure, flush=True)


run()
frame = spark.range(1000, 1010).selectExpr("concat('k', id) id", "'p0' p", "id ts")
print("WRITE", sink.write(frame).rows, flush=True)
print("COUNT", read_hudi(spark, table).count(), flush=True)
[by_spark] = read_hudi(spark, table, columns=["id"], where=[("id", "=", "k7")]).collect()
[by_arrow] = read_hudi(spark, table, columns=["id"], where=pc.field("id") == "k7").collect()
with mock.patch.object(scan_frame, "_unless_without_connector", return_value=None):
    [by_python] = read_hudi(spark, table, columns=["id"], where=[("id", "=", "k7")]).collect()
by_format = spark.read.format("hudistream")
print("FORMAT", by_format.load(table).count(), by_format.option("where", '[["id", "=", "k7"]]').load(table).count())
on_driver = f"{table}_on_driver"
HudiSink(on_driver, {**options, "hudistream.write.location": "driver"}).write(frame)
print("DRIVER", read_hudi(spark, on_driver).count(), flush=True)
newest = HudiTable.open(table).history(1)["instant"][0].as_py()
written = read_hudi(spark, table, since=str(int(newest) - 1)).count()
print("WHERE", by_spark.id, by_arrow.id, by_python.id, written, flush=True)
collated = spark.range(4).selectExpr("id", "if(id = 0, 'p', 'P') p").selectExpr("id", "p collate UTF8_LCASE p")
in_any_case = HudiSink(f"{table}_collated", key="id", partition_by="p")
in_any_case.write(collated, operation="insert")
in_any_case.write(collated, operation="delete_partition")
print("COLLATED", read_hudi(spark, f"{table}_collated").count(), flush=True)
changes = {"hoodie.datasource.write.operation": "upsert", "hoodie.index.type": "GLOBAL_BLOOM"}
moved = HudiSink(table, {**options, **changes}).write(
    spark.range(1000, 1020).selectExpr("concat('k', id) id", "'p9' p", "id + 1 ts")
)
print("UPSERT", moved.rows, moved.rows_deleted, flush=True)
file = max(glob.glob(f"{table}/p9/*.parquet"), key=os.path.getmtime)
with open(file, "r+b") as stored:
    whole = stored.read()
    stored.truncate(len(whole) - 1)
try:
    HudiSink(table, options).write(frame.withColumn("p", lit("p9")))
except LostDataError as error:
    of_task = error.__cause__
    print("FAILED", error.partition_path, error.file_group in file, type(of_task.__cause__).__name__, flush=True)
with open(file, "wb") as stored:
    stored.write(whole)
try:
    HudiSink(table, {**options, "hudistream.checkpoint.location": ""})
except ValueError as error:
    print("EMPTY", error, flush=True)
try:  # a batch of another query, whose number is committed
    HudiSink(table, options)(frame, 2)
except ValueError as error:
    print("OTHER", error, flush=True)
del options["hudistream.checkpoint.location"]
try:
    HudiSink(table, options)(frame, 99)
except ValueError as error:
    print("WITHOUT", error, flush=True)
spark.stop()
