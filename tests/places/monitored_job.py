"""A stream whose metrics are to be scraped. After some batches a validator refuses all: Spark repeats what failed.

Arguments: TABLE CHECKPOINT PORT GOOD_BATCHES
"""

import sys
import time

from prometheus_client import start_http_server
from pyspark.sql import SparkSession

from hudistream import BatchRefusedError, HudiError, HudiSink, PrometheusMetrics

table, checkpoint, port, good = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "2")
    .getOrCreate()
)


def refuse_late_ones(batch):
    if batch.batch_id >= good:
        raise BatchRefusedError("on purpose")


metrics = PrometheusMetrics(health_every_s=1)
options = {"hoodie.clean.commits.retained": "1", "hudistream.clean.grace.ms": "0"}
sink = HudiSink(
    table, options, key="id", order_by="timestamp", validators=[refuse_late_ones], callbacks=[metrics],
    on_failure=[metrics],
)  # fmt: skip


def write(batch, batch_id):
    try:
        sink(batch, batch_id)
    except HudiError:
        time.sleep(1)


start_http_server(port, addr="127.0.0.1")
rows = spark.readStream.format("rate").option("rowsPerSecond", 20).load()
rows = rows.selectExpr("concat('k', value % 50) AS id", "timestamp", "value")
query = rows.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
query.trigger(processingTime="1 second").start().awaitTermination(600)
