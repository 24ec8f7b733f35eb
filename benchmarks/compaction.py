"""Compaction beside Hudi's: `python benchmarks/compaction.py [--rounds 5] [--rows 1000000] [--changes all]`.

One table, written here: each file group has a base file of 1,000,000 rows, and a log file that updates one row in ten.
An update changes the time of its row alone, or with `--changes all` every column but the key.
In each round both compact a copy of it: Hudi in a JVM that has already compacted another copy, so that it is warm.
Peak memory is that of a process of its own. Writes ``benchmarks/results/compaction.json``, or ``compaction-all.json``.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from candidate import HUDI_CONF
from run import machine

HERE = Path(__file__).parent
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.compaction.async.enable": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.parquet.max.file.size": str(1 << 30),
    "hoodie.parquet.small.file.limit": "0",
}
HUDI_OPTIONS = {
    "hoodie.metadata.enable": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.write.table.version": "6",
    "hoodie.compact.inline.max.delta.commits": "1",
}


def session():
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "6g")
    for key, value in {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "4", **HUDI_CONF}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def build(spark, path, rows, groups, changes):
    """A table with `groups` partitions of one file group each."""
    from pyspark.sql import functions as F

    from streaming import HudiSink

    def made(every, ts):
        ids = spark.range(0, rows * groups, every)
        salt = ts if changes == "all" else 0
        return ids.select(
            F.md5(F.col("id").cast("string")).alias("id"),
            *(F.md5((F.col("id") * 7 + n + salt).cast("string")).alias(f"c{n}") for n in range(2)),
            *(((F.col("id") + salt) * (n + 3) % 10_007).alias(f"n{n}") for n in range(4)),
            F.lit(ts).cast("long").alias("ts"),
            F.format_string("p%02d", F.floor(F.col("id") / rows)).alias("p"),
        )

    sink = HudiSink(path, OPTIONS)
    sink.write(made(1, 1))
    sink.write(made(10, 2))
    sink.stop()


def ours(path, tasks):
    """In a process of its own: seconds, and the peak of its memory in MB."""
    from table import BaseFileSettings, CompactionSettings
    from table.hudi_table import HudiTable
    from table.services.compaction.compaction import compact

    started = time.perf_counter()
    [_] = compact(HudiTable.open(path), CompactionSettings(tasks=tasks or None), BaseFileSettings())
    seconds = time.perf_counter() - started
    status = Path("/proc/self/status").read_text()
    print(json.dumps({"seconds": seconds, "peak_mb": int(status.partition("VmHWM:")[2].split()[0]) / 1024}))


def run_ours(path, tasks):
    command = [sys.executable, __file__, "--child", path, str(tasks)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    return json.loads(done.stdout.strip().splitlines()[-1])


def run_hudi(spark, path):
    given = ",".join(f"{key}={value}" for key, value in HUDI_OPTIONS.items())
    started = time.perf_counter()
    told = spark.sql(
        f"call run_compaction(op => 'scheduleAndExecute', path => '{path}', options => '{given}')"
    ).collect()
    seconds = time.perf_counter() - started
    assert len(told) == 1, told
    return {"seconds": seconds}


def checked(path, rows, groups):
    """Refuses a table whose rows are not what they were, or whose log files still count."""
    from hudistream import HudiTable

    table = HudiTable.open(path)
    found = table.scan(["ts"]).to_arrow()["ts"].to_pylist()
    assert (len(found), found.count(2)) == (rows * groups, rows * groups // 10), path
    assert not any(one.log_files for one in table.scan().plan().slices), path


def measure(place, given):
    rows, groups, rounds = given.rows, given.groups, given.rounds
    spark = session()
    path = os.path.join(place, "t")
    build(spark, path, rows, groups, given.changes)
    found = {"hudistream": [], "hudistream, one slice at a time": [], "Hudi 1.0.2": []}
    for number in range(rounds + 1):
        for name, readings in found.items():
            if not number and name != "Hudi 1.0.2":
                continue  # the round that warms the JVM
            copy = os.path.join(place, "copy")
            shutil.copytree(path, copy)
            one = run_hudi(spark, copy) if name == "Hudi 1.0.2" else run_ours(copy, 1 if "one" in name else 0)
            checked(copy, rows, groups)
            shutil.rmtree(copy)
            if number:
                readings.append(one)
                print(f"round {number}: {name}: {one['seconds']:.2f} s", flush=True)
    spark.stop()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--groups", type=int, default=2)
    parser.add_argument("--changes", choices=["time", "all"], default="time")
    parser.add_argument("--child", nargs=2)
    given = parser.parse_args()
    if given.child:
        ours(given.child[0], int(given.child[1]))
        return
    with tempfile.TemporaryDirectory() as place:
        found = measure(place, given)
    first = found["hudistream"]
    cases = {
        name: {
            "seconds": statistics.median(one["seconds"] for one in readings),
            "ratio": statistics.median(a["seconds"] / b["seconds"] for a, b in zip(readings, first, strict=True)),
            "peak_mb": max((one["peak_mb"] for one in readings if "peak_mb" in one), default=None),
        }
        for name, readings in found.items()
    }
    asked = {name: getattr(given, name) for name in ("rows", "groups", "rounds", "changes")}
    result = {"machine": machine(), **asked, "cases": cases}
    name = "compaction.json" if given.changes == "time" else "compaction-all.json"
    (HERE / "results" / name).write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(cases, indent=1))


if __name__ == "__main__":
    main()
