"""Both stages of examples/chain.py at once, until silver has read all of bronze; run by `test_chain.py`.

chain_stages.py FOLDER
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

from chain import bronze, silver
from pyspark.sql import SparkSession

from hudistream import HudiTable
from table import TableNotFoundError

folder = sys.argv[1]
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "2")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")


def has_a_commit():
    try:
        return HudiTable.open(f"{folder}/bronze").newest_instant is not None
    except TableNotFoundError:
        return False


print("READY", flush=True)
first = bronze(spark, folder).trigger(processingTime="0 seconds").start()
while first.isActive and not has_a_commit():
    time.sleep(0.05)
second = silver(spark, folder).trigger(processingTime="0 seconds").start()
for query in (first, second):
    query.processAllAvailable()
    query.stop()
print("DONE", flush=True)
