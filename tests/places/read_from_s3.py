"""Spark with Hadoop's S3 client reads a table; run in a process of its own, whose class path has the client.

Arguments: class path, address of the table, storage options as JSON. Prints JSON: rows, sum of ts, and how Spark read.
"""

import json
import sys

from pyspark.sql import SparkSession

from hudistream import read_hudi


def main():
    jars, path, options = sys.argv[1:]
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.extraClassPath", jars)
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    rows = read_hudi(spark, path, json.loads(options))
    plan = rows._jdf.queryExecution().executedPlan().toString()
    found = rows.selectExpr("count(*) AS n", "sum(ts) AS total").first()
    print(json.dumps({"rows": found.n, "total": found.total, "by_spark": "FileScan parquet" in plan}))


main()
