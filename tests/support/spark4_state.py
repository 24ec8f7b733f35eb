"""Stateful operators of Spark 4 upstream of a sink: what a table holds after two runs of a query. A program of its own.

python spark4_state.py FOLDER
"""

import json
import os
import sys

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StatefulProcessor
from pyspark.sql.types import LongType, StringType, StructField, StructType

from hudistream import HudiSink, read_table

COUNT = StructType([StructField("n", LongType())])
OUT = StructType([StructField("id", StringType()), StructField("n", LongType())])


class Counts(StatefulProcessor):
    """Counts the events of a key, over all batches."""

    def init(self, handle):
        self._count = handle.getValueState("count", COUNT)

    def handleInputRows(self, key, rows, timerValues):  # noqa: N802, N803 Spark's names
        before = self._count.get()[0] if self._count.exists() else 0
        count = before + sum(len(part) for part in rows)
        self._count.update((count,))
        yield pd.DataFrame({"id": [key[0]], "n": [count]})

    def close(self):
        pass


def run(spark, folder):
    """One run of the query: what is there is counted, and the counts are upserted."""
    events = spark.readStream.schema("id string, at long").parquet(f"{folder}/events")
    counts = events.groupBy("id").transformWithStateInPandas(
        statefulProcessor=Counts(), outputStructType=OUT, outputMode="Update", timeMode="None"
    )
    sink = HudiSink(f"{folder}/table", key="id")
    query = counts.writeStream.foreachBatch(sink).outputMode("update")
    query.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start().awaitTermination()


def main(folder):
    """Two runs with events before each; prints the rows of the table."""
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config(
            "spark.sql.streaming.stateStore.providerClass",
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        )
        .getOrCreate()
    )
    os.makedirs(f"{folder}/events")
    for number, ids in enumerate(("aab", "bc")):
        pq.write_table(pa.table({"id": list(ids), "at": list(range(len(ids)))}), f"{folder}/events/{number}.parquet")
        run(spark, folder)
    rows = read_table(f"{folder}/table", columns=["id", "n"]).to_pylist()
    print(json.dumps(sorted([row["id"], row["n"]] for row in rows)))


if __name__ == "__main__":
    main(sys.argv[1])
