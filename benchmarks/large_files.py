"""Topping up files near their limit: the same batches into 8 files of about 90 MB and into an empty table, in turns.

Results go to ``benchmarks/results/large-files.json``; `report.py` tells them.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import report
from run import machine

HERE = Path(__file__).parent
LOADED, LOADS, ROWS = 6_240_000, 13, 8_000  # each load is small enough for one file a path
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "k",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.operation": "insert",
    "hoodie.copyonwrite.record.size.estimate": "100",
}


def rows_between(spark, first, end):
    """Five columns of 32 random hexadecimal digits, spread over 8 paths."""
    from pyspark.sql import functions as F

    ids = spark.range(first, end)
    return ids.select(
        F.md5(F.col("id").cast("string")).alias("k"),
        *(F.md5((F.col("id") * 7 + n).cast("string")).alias(f"c{n}") for n in range(4)),
        F.col("id").alias("ts"),
        F.concat(F.lit("p"), (F.col("id") % 8).cast("string")).alias("p"),
    )


def measure(spark, batches, place):
    import structlog

    from streaming import HudiSink

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    large = HudiSink(os.path.join(place, "large"), OPTIONS)
    step = LOADED // LOADS
    for number in range(LOADS):
        large.write(rows_between(spark, number * step, (number + 1) * step))
    turns = []
    for number in range(batches):
        first = LOADED + number * ROWS
        batch = rows_between(spark, first, first + ROWS)
        started = time.perf_counter()
        summary = large.write(batch)
        between = time.perf_counter()
        HudiSink(os.path.join(place, f"empty-{number}"), OPTIONS).write(batch)
        spent = between - started, time.perf_counter() - between
        turns.append({"large_s": spent[0], "empty_s": spent[1], "copied_mb": summary.bytes_copied / 1e6})
        print({key: round(value, 2) for key, value in turns[-1].items()}, flush=True)
        if (summary.files_created, summary.files_topped_up) != (0, 8):
            sys.exit(f"{summary.files_created} files were made, {summary.files_topped_up} topped up, not 8")
    return turns[batches // 2 :]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=20)
    given = parser.parse_args()
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "6g")
    builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "4").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as place:
        turns = measure(spark, given.batches, place)
    spark.stop()
    document = {
        "measured": time.strftime("%Y-%m-%d"),
        "machine": machine(),
        "batches": len(turns),
        "rows": ROWS,
        "copied_mb": round(statistics.median(turn["copied_mb"] for turn in turns)),
        "large_s": round(statistics.median(turn["large_s"] for turn in turns), 3),
        "empty_s": round(statistics.median(turn["empty_s"] for turn in turns), 3),
        "ratio": round(statistics.median(turn["large_s"] / turn["empty_s"] for turn in turns), 2),
    }
    (HERE / "results" / "large-files.json").write_text(json.dumps(document, indent=1) + "\n")
    report.main()


if __name__ == "__main__":
    main()
