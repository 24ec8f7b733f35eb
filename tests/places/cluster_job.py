"""A stream of upserts on a cluster, one file a batch. SOURCE TABLE CHECKPOINT [PAUSE_S] [OPTIONS as JSON]"""

import json
import sys
import time

from pyspark.sql import SparkSession

from hudistream import HudiSink

source, table, checkpoint, pause_s, options = [*sys.argv[1:], *["0", "{}"][len(sys.argv) - 4 :]]
spark = SparkSession.builder.appName("cluster-job").getOrCreate()
spark.sparkContext.setLogLevel("ERROR")


def tell(summary):
    print("BATCH", summary.batch_id, flush=True)
    time.sleep(float(pause_s))


def tell_failure(failed):
    print("FAILED", str(failed).replace("\n", " ")[:2000], flush=True)


sink = HudiSink(table, json.loads(options), key="id", partition_by="p", order_by="ts", callbacks=[tell],
                on_failure=[tell_failure])  # fmt: skip
rows = spark.readStream.schema("id string, p string, ts long, v string").option("maxFilesPerTrigger", 1).parquet(source)
query = rows.writeStream.foreachBatch(sink).option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
query.awaitTermination()
sink.stop()
print("DONE", flush=True)
