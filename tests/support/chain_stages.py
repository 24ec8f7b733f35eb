"""Both stages of examples/chain.py at once, until silver has read all of bronze; run by `test_chain.py`.

chain_stages.py FOLDER
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import chain
from pyspark.sql import SparkSession

from hudistream import HudiSink, HudiTable
from table import TableNotFoundError

folder = sys.argv[1]
LATE = {"hoodie.clean.commits.retained": "150"}  # on a busy machine silver is more than 50 commits late
chain.HudiSink = lambda path, options=None, **given: HudiSink(path, {**(options or {}), **LATE}, **given)
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
first = chain.bronze(spark, folder).trigger(processingTime="0 seconds").start()
while first.isActive and not has_a_commit():
    time.sleep(0.05)
second = chain.silver(spark, folder).trigger(processingTime="0 seconds").start()
for query in (first, second):
    query.processAllAvailable()
    query.stop()
print("DONE", flush=True)
