"""A stream of inserts from a topic: a row that is read twice is there twice.

Arguments: BROKER TOPIC TABLE CHECKPOINT START PACKAGE
"""

import sys

from pyspark.sql import SparkSession

from hudistream import HudiSink, starting_offsets

broker, topic, table, checkpoint, start, package = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.jars.packages", package)
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "2")
    .getOrCreate()
)
kafka = {"kafka.bootstrap.servers": broker, "subscribe": topic}
begin = starting_offsets(table, otherwise="earliest", broker=kafka) if start == "table" else start
rows = (
    spark.readStream.format("kafka")
    .options(**kafka, startingOffsets=begin, maxOffsetsPerTrigger=200)
    .load()
    .selectExpr("cast(value AS string) AS id", "offset AS ts")
)
sink = HudiSink(
    table,
    {"hudistream.checkpoint.location": checkpoint, "hoodie.datasource.write.operation": "insert"},
    key="id",
)
query = rows.writeStream.foreachBatch(sink).option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
query.awaitTermination()
sink.stop()
