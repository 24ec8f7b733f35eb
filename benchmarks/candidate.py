"""Runs one sink over one workload in a process of its own and prints one JSON line.

candidate.py NAME FOLDER_OF_BATCHES OUT [KEY=VALUE …]
"""

import glob
import json
import os
import shutil
import statistics
import sys
import time

from workloads import DDL, KEY, ORDERING, PARTITION

BUNDLE = "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.0.2"
TABLE_OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": KEY,
    "hoodie.datasource.write.precombine.field": ORDERING,
    "hoodie.datasource.write.partitionpath.field": PARTITION,
    "hoodie.datasource.write.operation": "insert",
}
HUDI_CONF = {
    "spark.jars.packages": BUNDLE,
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
}


def hudistream(table, options):
    from streaming import HudiSink

    return HudiSink(table, {**TABLE_OPTIONS, **options})


def parquet(table, options):
    def write(batch, _batch_id):
        batch.write.partitionBy(PARTITION).mode("append").options(**options).parquet(table)

    return write


def hudi(table, options):
    # version 6 and no metadata table: what shares a table with us, and Hudi's own best case
    given = {
        **TABLE_OPTIONS,
        "hoodie.write.table.version": "6",
        "hoodie.metadata.enable": "false",
        "hoodie.insert.shuffle.parallelism": "4",
        **options,
    }

    def write(batch, _batch_id):
        batch.write.format("hudi").options(**given).mode("append").save(table)

    return write


CANDIDATES = {"hudistream": (hudistream, {}), "parquet": (parquet, {}), "hudi": (hudi, HUDI_CONF)}


def live_files(name, table):
    """Files and bytes that a snapshot reader opens."""
    if name == "parquet":
        files = glob.glob(os.path.join(table, "*", "*.parquet"))
        return len(files), sum(map(os.path.getsize, files))
    from table.hudi_table import HudiTable
    from table.read.read_table import list_snapshot_files

    files = list_snapshot_files(HudiTable.open(table))
    return len(files), sum(file.size_bytes for file in files)


def read_back(name, spark, table):
    """Rows and distinct keys, read by other code than wrote them."""
    from pyspark.sql import functions as F

    if name == "hudi":
        frame = spark.read.format("hudi").load(table)
    elif name == "parquet":
        frame = spark.read.parquet(table)
    else:
        from hudi import HudiTableBuilder

        count, distinct = 0, set()
        for batch in HudiTableBuilder.from_base_uri(table).build().read():
            import pyarrow as pa

            ours = pa.record_batch(batch)
            count += len(ours)
            distinct.update(ours.column(KEY).to_pylist())
        return count, len(distinct)
    row = frame.agg(F.count("*").alias("n"), F.count_distinct(KEY).alias("k")).first()
    return row.n, row.k


def main():
    name, folder, out, *pairs = sys.argv[1:]
    options = dict(pair.split("=", 1) for pair in pairs)
    make, conf = CANDIDATES[name]
    shutil.rmtree(out, ignore_errors=True)
    table, checkpoint = os.path.join(out, "table"), os.path.join(out, "checkpoint")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("bench " + name)
    for key, value in {
        "spark.driver.memory": "6g",
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
        "spark.local.dir": os.path.join(out, "tmp"),
        **conf,
    }.items():
        builder = builder.config(key, value)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the JVM inherits descriptor 1
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    stream = spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1).parquet(folder)
    writer = stream.writeStream.foreachBatch(make(table, options)).option("checkpointLocation", checkpoint)
    started = time.monotonic()
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    total = time.monotonic() - started
    seconds = [p["durationMs"]["triggerExecution"] / 1000 for p in query.recentProgress if p["numInputRows"] > 0]
    rows, keys = read_back(name, spark, table)
    files, size = live_files(name, table)
    half = seconds[len(seconds) // 2 :]
    json.dump(
        {
            "candidate": name,
            "options": options,
            "batches": len(seconds),
            "first_s": seconds[0],
            "steady_s": round(statistics.median(half), 3),
            "total_s": round(total, 2),
            "rows": rows,
            "keys": keys,
            "live_files": files,
            "live_mb": round(size / 1e6, 1),
            "seconds": seconds,
        },
        answers,
    )
    answers.write("\n")
    answers.flush()
    spark.stop()
    shutil.rmtree(out, ignore_errors=True)


if __name__ == "__main__":
    main()
