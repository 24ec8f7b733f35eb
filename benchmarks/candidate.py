"""Runs one sink over one workload in a process of its own and prints one JSON line.

candidate.py NAME FOLDER_OF_BATCHES OUT [KEY=VALUE …]
"""

import glob
import importlib.metadata
import importlib.util
import json
import os
import shutil
import statistics
import sys
import time

from workloads import DDL, KEY, ORDERING, PARTITION

# the newest releases of the peers whose files the registry has. Delta has none above 3.3.2 for Spark 3.5
HUDI, ICEBERG = "1.2.0", "1.12.0"
DELTA = {"3": "3.3.2", "4": "4.4.0"}
DELTA_PACKAGES = {"3": "io.delta:delta-spark_2.12:", "4": "io.delta:delta-spark_4.2_2.13:"}
BUNDLE = f"org.apache.hudi:hudi-spark3.5-bundle_2.12:{HUDI}"
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
    # no metadata table: Hudi's own best case
    given = {
        **TABLE_OPTIONS,
        "hoodie.metadata.enable": "false",
        "hoodie.insert.shuffle.parallelism": "4",
        **options,
    }

    def write(batch, _batch_id):
        batch.write.format("hudi").options(**given).mode("append").save(table)

    return write


MERGE = """
    MERGE INTO {table} t USING changes s ON t.event_id = s.event_id AND t.dt = s.dt
    WHEN MATCHED AND s.ts >= t.ts THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *
"""


def delta_merge(table, _options):
    def write(batch, batch_id):
        spark = batch.sparkSession
        if batch_id == 0:
            spark.sql(f"CREATE TABLE delta.`{table}` ({DDL}) USING delta PARTITIONED BY ({PARTITION})")
        batch.createOrReplaceTempView("changes")
        spark.sql(MERGE.format(table=f"delta.`{table}`"))

    return write


def iceberg_merge(_table, options):
    mode = options.get("mode", "copy-on-write")
    properties = ", ".join(f"'write.{kind}.mode'='{mode}'" for kind in ("merge", "update", "delete"))

    def write(batch, batch_id):
        spark = batch.sparkSession
        if batch_id == 0:
            spark.sql(
                f"CREATE TABLE {ICEBERG_TABLE} ({DDL}) USING iceberg PARTITIONED BY ({PARTITION}) "
                f"TBLPROPERTIES ({properties}, 'format-version'='3')"
            )
        batch.createOrReplaceTempView("changes")
        spark.sql(MERGE.format(table=ICEBERG_TABLE))

    return write


def delta(table, options):
    def write(batch, _batch_id):
        batch.write.format("delta").options(**options).partitionBy(PARTITION).mode("append").save(table)

    return write


ICEBERG_TABLE = "ice.db.t"


def iceberg(_table, _options):
    def write(batch, batch_id):
        if batch_id == 0:
            batch.sparkSession.sql(f"CREATE TABLE {ICEBERG_TABLE} ({DDL}) USING iceberg PARTITIONED BY ({PARTITION})")
        batch.writeTo(ICEBERG_TABLE).append()

    return write


SPARK = importlib.metadata.version("pyspark")[0]
DELTA_CONF = {
    "spark.jars.packages": DELTA_PACKAGES[SPARK] + DELTA[SPARK],
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
ICEBERG_CONF = {
    "spark.jars.packages": "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:" + ICEBERG,
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.ice.type": "hadoop",
}
CANDIDATES = {
    "hudistream": (hudistream, {}),
    "parquet": (parquet, {}),
    "hudi": (hudi, HUDI_CONF),
    "delta": (delta, DELTA_CONF),
    "iceberg": (iceberg, ICEBERG_CONF),
    "delta-merge": (delta_merge, DELTA_CONF),
    "iceberg-merge": (iceberg_merge, ICEBERG_CONF),
}


def count_files(name, table):
    """Live files by names alone, cheap enough to do after every batch: file groups, or all data files."""
    groups = set()
    for _, folders, files in os.walk(table):
        folders[:] = [folder for folder in folders if folder[0] not in "._" and folder != "metadata"]
        data = [file for file in files if file.endswith(".parquet") and file[0] not in "._"]
        groups.update(file.split("_")[0] if name in ("hudistream", "hudi") else file for file in data)
    return len(groups)


def live_files(name, spark, table):
    """Files and bytes that a snapshot reader opens."""
    if name == "parquet":
        files = glob.glob(os.path.join(table, "*", "*.parquet"))
        return len(files), sum(map(os.path.getsize, files))
    if name.startswith("delta"):
        row = spark.sql(f"DESCRIBE DETAIL delta.`{table}`").first()
        return row["numFiles"], row["sizeInBytes"]
    if name.startswith("iceberg"):
        row = spark.sql(f"SELECT count(*), sum(file_size_in_bytes) FROM {ICEBERG_TABLE}.files").first()
        return row[0], row[1]
    from hudistream import HudiTable

    sizes = [file.size_bytes for one in HudiTable.open(table).scan().plan().slices for file in one.files]
    return len(sizes), sum(sizes)


def read_back(name, spark, table):
    """Rows, distinct keys and the sum of ``rev``, read by other code than wrote them."""
    from pyspark.sql import functions as F

    name = name.removesuffix("-merge")
    if name == "iceberg":
        # foreachBatch writes through a cloned session; this one's catalog has cached the table
        spark.sql(f"REFRESH TABLE {ICEBERG_TABLE}")
        frame = spark.table(ICEBERG_TABLE)
    elif name in ("hudi", "parquet", "delta"):
        frame = spark.read.format(name).load(table)
    elif any(glob.glob(os.path.join(table, "*", ".*.log.*"))) or not importlib.util.find_spec("hudi"):
        # hudi-rs misses file groups that have log files alone, and the environment with Spark 4 does not have it
        return read_as_a_table(table)
    else:
        import pyarrow as pa
        import pyarrow.compute as pc
        from hudi import HudiTableBuilder

        batches = [pa.record_batch(batch) for batch in HudiTableBuilder.from_base_uri(table).build().read()]
        keys = pa.chunked_array([batch.column(KEY) for batch in batches])
        return len(keys), len(keys.unique()), sum(pc.sum(batch.column("rev")).as_py() or 0 for batch in batches)
    row = frame.agg(F.count("*").alias("n"), F.count_distinct(KEY).alias("k"), F.sum("rev").alias("rev")).first()
    return row.n, row.k, row.rev


def read_as_a_table(table):
    import pyarrow.compute as pc

    from hudistream import HudiTable

    rows = HudiTable.open(table).scan([KEY, "rev"]).to_arrow()
    return rows.num_rows, pc.count_distinct(rows.column(KEY)).as_py(), pc.sum(rows.column("rev")).as_py()


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
        "spark.sql.catalog.ice.warehouse": table,
        **conf,
    }.items():
        builder = builder.config(key, value)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the JVM inherits descriptor 1
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    stream = spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1).parquet(folder)
    write, files_by_batch = make(table, options), []

    def write_and_count(batch, batch_id):
        write(batch, batch_id)
        files_by_batch.append(count_files(name, table))

    writer = stream.writeStream.foreachBatch(write_and_count).option("checkpointLocation", checkpoint)
    started = time.monotonic()
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    total = time.monotonic() - started
    seconds = [p["durationMs"]["triggerExecution"] / 1000 for p in query.recentProgress if p["numInputRows"] > 0]
    rows, keys, newest = read_back(name, spark, table)
    files, size = live_files(name, spark, table)
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
            "newest": newest,
            "live_files": files,
            "live_mb": round(size / 1e6, 1),
            "seconds": seconds,
            "files_by_batch": files_by_batch,
        },
        answers,
    )
    answers.write("\n")
    answers.flush()
    spark.stop()
    shutil.rmtree(out, ignore_errors=True)


if __name__ == "__main__":
    main()
