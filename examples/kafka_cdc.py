"""Changes of a database, from Kafka into a Hudi table: Debezium's events as they are, upserted, exactly once.

``python kafka_cdc.py --broker localhost:9092 --topic shop.public.orders --table /data/orders --checkpoint /data/c``

Kill it and start it again: no change is lost, and none is written twice. If the checkpoint is lost, it goes on from the
offsets that the table records. The Kafka source of Spark comes as a package, which Spark fetches at its start.
"""

import argparse

import pyspark
from pyspark.sql import SparkSession

from hudistream import HudiSink, debezium, starting_offsets

LAST_OF_3_5 = 7  # newest Kafka source of Spark 3.5 on Maven Central; it runs in later versions 3.5, too


def kafka_package(version: str) -> str:
    major, minor, patch = (int(part) for part in version.split(".")[:3])
    if (major, minor) == (3, 5):
        return f"org.apache.spark:spark-sql-kafka-0-10_2.12:3.5.{min(patch, LAST_OF_3_5)}"
    return f"org.apache.spark:spark-sql-kafka-0-10_2.13:{version}"


asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
asked.add_argument("--broker", required=True, help="kafka.bootstrap.servers")
asked.add_argument("--topic", required=True)
asked.add_argument("--table", required=True)
asked.add_argument("--checkpoint", required=True, help="checkpointLocation of the query")
asked.add_argument("--columns", default="id bigint, customer string, amount double", help="of the database's table")
asked.add_argument("--key", default="id")
asked.add_argument("--rows-per-batch", type=int, default=20_000)
asked.add_argument("--once", action="store_true", help="end when the topic has no more rows")
given = asked.parse_args()

spark = (
    SparkSession.builder.appName("kafka_cdc")
    .config("spark.jars.packages", kafka_package(pyspark.__version__))
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "4")
    .getOrCreate()
)
kafka = {"kafka.bootstrap.servers": given.broker, "subscribe": given.topic}
events = (
    spark.readStream.format("kafka")
    .options(**kafka)
    # used only where the checkpoint is empty
    .option("startingOffsets", starting_offsets(given.table, otherwise="earliest", broker=kafka))
    .option("maxOffsetsPerTrigger", given.rows_per_batch)
    .load()
)
sink = HudiSink(
    given.table,
    {"hudistream.checkpoint.location": given.checkpoint},
    key=given.key,
    order_by="_event_lsn",
    callbacks=[
        lambda batch: print(f"batch {batch.batch_id}: {'skipped' if batch.skipped else batch.short}", flush=True)
    ],
)
writer = debezium(events, given.columns).writeStream.foreachBatch(sink).option("checkpointLocation", given.checkpoint)
query = (writer.trigger(availableNow=True) if given.once else writer).start()
query.awaitTermination()
sink.stop()
