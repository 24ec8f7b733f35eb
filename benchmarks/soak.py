"""`make soak`: 2,000 small batches with cleaning and archival on, files that fill and roll many times.

Asserts that batch time, memory, entries below ``.hoodie`` and versions a file group stay flat, and writes
the figures and a picture to ``docs/soak``.
"""

import argparse
import collections
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from report import picture
from run import machine
from workloads import keys_of

DOCS = Path(__file__).parent.parent / "docs" / "soak"
OPTIONS = {
    "hoodie.table.name": "soak",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.operation": "insert",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.parquet.max.file.size": "1000000",
}
ROWS = 2_000


def generate(folder, batches):
    os.makedirs(folder)
    rng = np.random.default_rng(7)
    for number in range(batches):
        ids = np.arange(number * ROWS, (number + 1) * ROWS)
        table = pa.table(
            {
                "id": keys_of(ids),
                "p": np.array([f"p{n}" for n in range(4)])[ids % 4],
                "ts": ids,
                "amount": rng.random(ROWS),
            }
        )
        file = os.path.join(folder, f"{number:05d}.parquet")
        pq.write_table(table, file)
        os.utime(file, (1e9 + number, 1e9 + number))


def sizes(table):
    """Entries of the active timeline, and most versions of a file group."""
    entries = sum(not entry.is_dir() for entry in os.scandir(os.path.join(table, ".hoodie")))
    versions = collections.Counter(
        file.split("_")[0] for folder, folders, files in os.walk(table) for file in files if file.endswith(".parquet")
    )
    return entries, max(versions.values()), len(versions)


def memory():
    """MiB of this process, of the JVM, and of the largest Python worker."""
    me = psutil.Process()
    jvm = worker = 0
    for child in me.children(recursive=True):
        try:
            size = child.memory_info().rss
            if "java" in child.name():
                jvm = max(jvm, size)
            elif "python" in child.name():
                worker = max(worker, size)
        except psutil.Error:
            continue
    return [round(size / 2**20, 1) for size in (me.memory_info().rss, jvm, worker)]


def stream(place, batches):
    from pyspark.sql import SparkSession

    from streaming import HudiSink

    table = os.path.join(place, "table")
    builder = SparkSession.builder.master("local[2]").appName("soak").config("spark.driver.memory", "2g")
    for key, value in {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "4"}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    sink, samples = HudiSink(table, OPTIONS), []

    def write(batch, batch_id):
        started = time.perf_counter()
        sink(batch, batch_id)
        seconds = time.perf_counter() - started
        entries, versions, groups = sizes(table)
        samples.append([seconds, entries, versions, groups, *(memory() if batch_id % 10 == 0 else samples[-1][4:])])
        if batch_id % 100 == 0:
            print(f"batch {batch_id}: {samples[-1]}", file=sys.stderr, flush=True)

    source = spark.readStream.schema("id string, p string, ts bigint, amount double").option("maxFilesPerTrigger", 1)
    query = source.parquet(os.path.join(place, "in")).writeStream.foreachBatch(write)
    query.option("checkpointLocation", os.path.join(place, "checkpoint")).trigger(
        availableNow=True
    ).start().awaitTermination()
    sink.stop()
    rows = spark.read.parquet(*live_files(table)).count()
    assert rows == batches * ROWS, f"{rows} rows of {batches * ROWS}"
    assert sink.services.failures == 0, sink.services.last_error
    return samples


def live_files(table):
    from table.hudi_table import HudiTable
    from table.scan.read_table import list_snapshot_files

    return [os.path.join(table, file.path) for file in list_snapshot_files(HudiTable.open(table))]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=2000)
    batches = parser.parse_args().batches
    import logging

    import structlog

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    place = tempfile.mkdtemp()
    try:
        generate(os.path.join(place, "in"), batches)
        samples = stream(place, batches)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    columns = dict(
        zip(
            ("seconds", "entries", "versions", "groups", "driver", "jvm", "worker"),
            zip(*samples, strict=True),
            strict=True,
        )
    )
    tenth, fifth = batches // 10, batches // 5
    early = statistics.median(columns["seconds"][tenth : tenth + fifth])
    late = statistics.median(columns["seconds"][-fifth:])
    result = {
        "batches": batches,
        "machine": machine(),
        "median_s_early": round(early, 3),
        "median_s_late": round(late, 3),
        "ratio": round(late / early, 3),
        "file_groups": columns["groups"][-1],
        "most_entries": max(columns["entries"]),
        "most_versions": max(columns["versions"]),
        "mib": {name: [columns[name][tenth], columns[name][-1]] for name in ("driver", "jvm", "worker")},
    }
    DOCS.mkdir(parents=True, exist_ok=True)
    (DOCS / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    step = max(1, batches // 200)
    smooth = [statistics.median(columns["seconds"][at : at + step]) for at in range(0, batches, step)]
    (DOCS / "seconds.svg").write_text(
        picture(f"{batches} batches: seconds a batch (median of {step})", {"seconds": smooth}, "s")
    )
    curves = {
        "entries of the timeline": list(columns["entries"][::step]),
        "file groups": list(columns["groups"][::step]),
        "versions of a file group, at most": list(columns["versions"][::step]),
    }
    (DOCS / "sizes.svg").write_text(picture(f"{batches} batches: what grows, and what does not", curves, ""))
    print(json.dumps(result, indent=1))
    assert late <= 1.2 * early, "batches became slower"
    assert result["most_versions"] < 40
    assert result["most_entries"] < 400


if __name__ == "__main__":
    main()
