"""A stream of files into many tables, of which one fails while a file says so.

SOURCE ROOT CHECKPOINT FAILS [STORAGE OPTIONS as JSON]
"""

import json
import os
import sys

from pyspark.sql import SparkSession

from hudistream import HudiRouter

source, root, checkpoint, fails, storage_options = [*sys.argv[1:], "{}"][:5]


def refuse(batch):
    return "it fails" if batch.table.endswith("/t3") and os.path.exists(fails) else None


spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "2")
    .getOrCreate()
)
rows = (
    spark.readStream.schema("id bigint, name string, ts bigint, v string")
    .option("maxFilesPerTrigger", 1)
    .parquet(source)
)
options = {"hoodie.clean.commits.retained": "2", "hoodie.keep.min.commits": "5", "hoodie.keep.max.commits": "7"}
router = HudiRouter(
    root,
    "name",
    options,
    storage_options=json.loads(storage_options),
    key="id",
    order_by="ts",
    validators=[refuse],
    tables={"t1": {"hoodie.datasource.write.operation": "insert"}},
)
query = (
    rows.writeStream.foreachBatch(router).option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
)
query.awaitTermination()
print("failing", sorted(router.failing))
router.stop()
