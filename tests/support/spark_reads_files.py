"""What a Spark reads of Parquet files of ours, vectorised and row by row. Writes one JSON object to standard output.

spark_reads_files.py KEY FILE,FILE... ...

KEY is a value of the column id, which is the record key. Each further argument is a table: its files, with commas.
"""

import json
import sys

import pyspark
from pyspark.sql import SparkSession

COLUMNS = ["_hoodie_record_key", "id", "ts", "n", "few", "edge", "unix_micros(at)", "unix_date(day)", "seq", "v"]
key, *tables = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    # several splits per file: each row group is to be read by one of them
    .config("spark.sql.files.maxPartitionBytes", "400000")
    .config("spark.sql.files.openCostInBytes", "0")
    .config("spark.sql.shuffle.partitions", "2")
    .getOrCreate()
)


def read(files, vectorised):
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorised)
    rows = spark.read.parquet(*files)
    by_both = rows.where((rows._hoodie_record_key == key) & (rows.id == key))
    return {
        "splits": rows.rdd.getNumPartitions(),
        "rows": [list(row) for row in rows.selectExpr(*COLUMNS).collect()],
        "differ": rows.where("_hoodie_record_key <> id").count(),
        "low": rows.where("n < -500000").count(),
        "by_column": [row.v for row in rows.where(rows.id == key).select("v").collect()],
        "by_key": [row.v for row in rows.where(rows._hoodie_record_key == key).select("v").collect()],
        "by_both": [row.v for row in by_both.select("v").collect()],
    }


found = [{way: read(files.split(","), way) for way in ("true", "false")} for files in tables]
print(json.dumps({"version": pyspark.__version__, "tables": found}))
