"""One stage of a chain of three tables as a driver of its own; run by `test_chain.py`, which kills it.

chain_drivers.py FOLDER STAGE       bronze and silver of examples/chain.py, and gold, a copy of silver
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import chain
from pyspark.sql import SparkSession

from hudistream import HudiSink, HudiTable, as_upserts
from table import TableNotFoundError

folder, stage = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.driver.memory", "1g")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
LATE = {"hoodie.clean.commits.retained": "400"}  # stages are killed, and start slowly on a busy machine


def late_sink(path, options=None, **named):
    """A sink whose table the next stage may follow many commits late."""
    return HudiSink(path, {**(options or {}), **LATE}, **named)


chain.HudiSink = late_sink


def gold(spark, folder):
    """What silver holds, followed by its changes."""
    changes = spark.readStream.format("hudistream").options(deletes="true", before="true").load(f"{folder}/silver")
    sink = HudiSink(
        f"{folder}/gold", {"hoodie.table.cdc.enabled": "true"}, key="id", partition_by="customer", order_by="ts"
    )
    rows = as_upserts(changes, moved_by="customer").writeStream.foreachBatch(sink)
    return rows.option("checkpointLocation", f"{folder}/checkpoints/gold")


def has_a_commit(name):
    try:
        return HudiTable.open(f"{folder}/{name}").newest_instant is not None
    except TableNotFoundError:
        return False


print("READY", flush=True)
source = {"silver": "bronze", "gold": "silver"}.get(stage)
while source is not None and not has_a_commit(source):
    time.sleep(0.05)
query = {"bronze": chain.bronze, "silver": chain.silver, "gold": gold}[stage](spark, folder).trigger(
    processingTime="0 seconds"
)
running = query.start()
while not Path(folder, f"stop-{stage}").exists():
    if running.exception() is not None:
        raise running.exception()
    time.sleep(0.1)
running.processAllAvailable()
running.stop()
print("DONE", flush=True)
