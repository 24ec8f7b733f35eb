"""The format hudistream in a Spark 4: what a session reads. Writes one JSON object to standard output.

spark4_source.py PLAIN MERGED SINCE FOLLOWED CHECKPOINTS [streams]

PLAIN is a table of `rows(range(9))` in three partitions, MERGED one with log files, SINCE an instant of PLAIN. FOLLOWED
is a table to be made, which streams follow, if they are asked for, where Spark can limit their batches.
"""

import json
import random
import sys

import pyspark
from engine import Engine
from every_type import random_batch
from pyspark.sql import SparkSession
from spark4_stream import Follower, follow_cleaned_changes, follow_cleaned_table, follow_table

plain, merged, since, followed, checkpoints, *what = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.sql.session.timeZone", "Asia/Tokyo")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
found = {"version": pyspark.__version__}


def read(path=plain, **options):
    return spark.read.format("hudistream").options(**options).load(path)


def refused(**options):
    try:
        read(**options).collect()
    except Exception as error:
        return str(error)
    return "nothing"


whole = read()
found["rows"] = whole.count()
found["columns"] = whole.columns
found["parcels"] = whole.rdd.getNumPartitions()
found["some"] = [tuple(row) for row in read(columns="v,id", where='[["p", "=", "p1"], ["ts", ">=", 0]]').collect()]
found["since"] = sorted(row.id for row in read(since=since).collect())
begin = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": since}
found["by_hudis_keys"] = sorted(row.id for row in read(**begin).collect())
found["as_of"] = sorted({row.v for row in read(as_of=since).collect()})
found["nothing"] = read(where='[["p", "=", "nowhere"]]').count()
found["merged"] = read(merged).count()
found["merged_eu"] = read(merged, where='[["region", "=", "eu"]]').count()
found["optimized"] = read(merged, **{"hoodie.datasource.query.type": "read_optimized"}).count()
Engine(f"{followed}_types").write(0, random_batch(random.Random(3), 0, 40))
types = read(f"{followed}_types")
found["types"] = [
    len(types.collect()),
    types.schema["place"].dataType.simpleString(),
    types.schema["at"].dataType.simpleString(),
]
found["unknown"] = refused(colums="id")
try:
    spark.read.format("hudistream").options(deletes="true").schema("id string").load(plain).collect()
except Exception as error:
    found["schema_of_feed"] = str(error)
found["of_streams"] = refused(max_instants_per_batch="1")
try:
    whole.write.format("hudistream").mode("append").save(followed)
    found["written"] = "written"
except Exception as error:
    found["written"] = str(error)
try:
    endless = spark.readStream.format("rate").load().writeStream.format("hudistream")
    endless.option("checkpointLocation", f"{checkpoints}_written").start(followed).awaitTermination(60)
    found["stream_written"] = "written"
except Exception as error:
    found["stream_written"] = str(error)
minor = tuple(map(int, pyspark.__version__.split(".")[:2]))
if minor >= (4, 2) and "streams" in what:
    found["stream"] = follow_table(spark, followed, checkpoints)
    found["cleaned"] = follow_cleaned_table(f"{followed}_cleaned")
    found["cleaned_changes"] = follow_cleaned_changes(f"{followed}_gone")
elif "streams" in what:
    old = Follower(spark, followed, checkpoints)
    old.commit(0, range(4))
    old.commit(1, range(2))
    found["old"] = [old.follow("old")]
    old.commit(2, range(1))
    found["old"] += [old.follow("old"), old.follow("old")]
    found["limited"] = old.refused(max_instants_per_batch="1")
print(json.dumps(found), flush=True)
spark.stop()
