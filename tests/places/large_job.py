"""One batch of many inserts and one of many upserts, beside bare Parquet. TABLE PARQUET ROWS CHANGES"""

import json
import sys
import time

from pyspark.sql import SparkSession

from hudistream import HudiSink

table, parquet, rows, changes = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
spark = SparkSession.builder.appName("large-job").getOrCreate()
spark.sparkContext.setLogLevel("ERROR")


def made(numbers, ts):
    """Rows of some 100 bytes; a key has one partition path for ever."""
    return numbers.selectExpr(
        "concat('k', lpad(id, 10, '0')) id",
        "concat('p', lpad(id % 16, 2, '0')) p",
        f"CAST({ts} AS BIGINT) ts",
        "CAST(id * 7919 % 1000003 AS INT) n",
        "CAST(id % 1000 AS DOUBLE) / 7 amount",
        "md5(CAST(id AS STRING)) v",
    )


def measure(name, work):
    began = time.time()
    work()
    print("TIMED", json.dumps({"name": name, "seconds": round(time.time() - began, 1)}), flush=True)


def write(frame, operation):
    summary = sink.write(frame, operation)
    print("WROTE", json.dumps({"rows": summary.rows, "updated": summary.rows_updated}), flush=True)


sink = HudiSink(table, key="id", partition_by="p", order_by="ts")
inserts = made(spark.range(rows), 0)
upserts = made(spark.range(0, rows, rows // changes), 1)
measure("parquet", lambda: inserts.write.partitionBy("p").parquet(parquet))
measure("insert", lambda: write(inserts, "insert"))
measure("upsert", lambda: write(upserts, "upsert"))
sink.stop()
print("DONE", flush=True)
