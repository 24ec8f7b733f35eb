"""A chain of three tables in a Spark 4: each follows the changes of the one before. Writes JSON to standard output.

spark4_changes.py TABLE CHECKPOINTS
"""

import json
import sys

from engine import Engine, rows
from pyspark.sql import SparkSession
from spark4_stream import UPSERT, Follower

from hudistream import HudiSink, HudiTable, as_upserts
from table import read_table


def follow_changes(spark, path, checkpoints):
    """What three tables of a chain hold after each of two runs of their streams; and the changes of a range."""
    moving = {**UPSERT, "hoodie.index.type": "GLOBAL_SIMPLE"}
    table, (one, two) = Follower(spark, path, checkpoints), (f"{path}_one", f"{path}_two")
    table.commit(0, range(6))
    first = HudiTable.open(path).newest_instant
    found = {"runs": []}
    for number in (1, 3):
        table.commit(number, range(number, number + 2))
        Engine(path, {"hoodie.datasource.write.operation": "delete"}).write(None, rows([number - 1]))
        Engine(path, moving).write(None, rows([5], lambda _, n=number: f"p{n % 3}", ts=number, v="moved"))
        for source, target, column, limits in ((path, one, "p", {"max_instants_per_batch": "2"}), (one, two, "v", {})):
            asked = {"deletes": "true", "before": "true", **limits}
            stream = spark.readStream.format("hudistream").options(**asked).load(source)
            sink = HudiSink(target, {"hoodie.table.name": "t"}, key="id", partition_by=column)
            writer = as_upserts(stream, moved_by=column).writeStream.foreachBatch(sink)
            query = writer.option("checkpointLocation", f"{checkpoints}/to_{target.rsplit('_', 1)[-1]}")
            query.trigger(availableNow=True).start().awaitTermination()
            sink.stop()
        tables = [read_table(one_of, ["id", "p", "ts", "v"]).to_pylist() for one_of in (path, one, two)]
        found["runs"].append([sorted(f"{row['id']}{row['p']}{row['ts']}{row['v']}" for row in held) for held in tables])
    whole = spark.read.format("hudistream").options(since=first, before="true").load(path)
    found["range"] = sorted(
        [row._change_operation, row.id, row._change_before.v if row._change_before else ""] for row in whole.collect()
    )
    return found


session = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "2")
    .getOrCreate()
)
session.sparkContext.setLogLevel("OFF")
print(json.dumps(follow_changes(session, *sys.argv[1:])), flush=True)
session.stop()
