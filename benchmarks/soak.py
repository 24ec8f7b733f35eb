"""`make soak`: 2,000 small batches with cleaning and archival on, files that fill and roll many times.

Asserts that batch time, memory, entries below ``.hoodie`` and versions a file group stay flat, and writes
the figures and a picture to ``docs/soak``. With ``--table-type mor`` half of the rows are updates, and compactions run
beside the batches: log files of a slice and the time of a snapshot read stay flat, too (``docs/soak/mor``).
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
KNOWN = 40_000  # keys that are updated: a table that does not grow shows what grows
MERGE_ON_READ = {
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
}


def generate(folder, batches, has_logs):
    """One file for each batch. Returns how many keys there are."""
    os.makedirs(folder)
    rng = np.random.default_rng(7)
    for number in range(batches):
        ids = np.arange(number * ROWS, (number + 1) * ROWS)
        if has_logs:
            ids = np.sort(rng.choice(KNOWN, ROWS, replace=False)) if number else np.arange(KNOWN)
        table = pa.table(
            {
                "id": keys_of(ids),
                "p": np.array([f"p{n}" for n in range(4)])[ids % 4],
                "ts": np.full(len(ids), number) if has_logs else ids,
                "amount": rng.random(len(ids)),
            }
        )
        file = os.path.join(folder, f"{number:05d}.parquet")
        pq.write_table(table, file)
        os.utime(file, (1e9 + number, 1e9 + number))
    return KNOWN if has_logs else batches * ROWS


def sizes(table):
    """Entries of the active timeline, most versions of a file group, and file groups."""
    entries = sum(not entry.is_dir() for entry in os.scandir(os.path.join(table, ".hoodie")))
    versions = collections.Counter(
        file.split("_")[0] for folder, folders, files in os.walk(table) for file in files if file.endswith(".parquet")
    )
    return entries, max(versions.values(), default=0), len(versions)


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


def read(table):
    """How long a snapshot takes, most log files of one of its slices, and its rows."""
    from table import HudiTable

    started = time.perf_counter()
    scan = HudiTable.open(table).scan()
    rows = sum(batch.num_rows for batch in scan.to_batches())
    seconds = time.perf_counter() - started
    return seconds, max(len(found.log_files) for found in scan.plan().slices), rows


def stream(place, has_logs, keys):
    from pyspark.sql import SparkSession

    from streaming import HudiSink

    table = os.path.join(place, "table")
    builder = SparkSession.builder.master("local[2]").appName("soak").config("spark.driver.memory", "2g")
    for key, value in {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "4"}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    sink, samples = HudiSink(table, {**OPTIONS, **(MERGE_ON_READ if has_logs else {})}), []

    def write(batch, batch_id):
        started = time.perf_counter()
        sink(batch, batch_id)
        seconds = time.perf_counter() - started
        slow = [*read(table)[:2], *memory()] if batch_id % 7 == 0 else samples[-1][4:]
        samples.append([seconds, *sizes(table), *slow])
        if batch_id % 100 == 0:
            print(f"batch {batch_id}: {samples[-1]}", file=sys.stderr, flush=True)

    source = spark.readStream.schema("id string, p string, ts bigint, amount double").option("maxFilesPerTrigger", 1)
    query = source.parquet(os.path.join(place, "in")).writeStream.foreachBatch(write)
    query.option("checkpointLocation", os.path.join(place, "checkpoint")).trigger(
        availableNow=True
    ).start().awaitTermination()
    sink.stop()
    rows = read(table)[2]
    assert rows == keys, f"{rows} rows of {keys}"
    assert sink.services.failures == 0, sink.services.last_error
    return samples


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=2000)
    parser.add_argument("--table-type", choices=("cow", "mor"), default="cow")
    given = parser.parse_args()
    batches, has_logs = given.batches, given.table_type == "mor"
    docs = DOCS / "mor" if has_logs else DOCS
    import logging

    import structlog

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    place = tempfile.mkdtemp()
    try:
        keys = generate(os.path.join(place, "in"), batches, has_logs)
        samples = stream(place, has_logs, keys)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    columns = dict(
        zip(
            ("seconds", "entries", "versions", "groups", "read", "logs", "driver", "jvm", "worker"),
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
        "most_log_files_of_a_slice": max(columns["logs"]),
        "median_read_s_early": round(statistics.median(columns["read"][tenth : tenth + fifth]), 4),
        "median_read_s_late": round(statistics.median(columns["read"][-fifth:]), 4),
        "mib": {name: [columns[name][tenth], columns[name][-1]] for name in ("driver", "jvm", "worker")},
    }
    docs.mkdir(parents=True, exist_ok=True)
    (docs / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    step = max(1, batches // 200)
    smooth = [statistics.median(columns["seconds"][at : at + step]) for at in range(0, batches, step)]
    (docs / "seconds.svg").write_text(
        picture(f"{batches} batches: seconds a batch (median of {step})", {"seconds": smooth}, "s")
    )
    curves = {
        "entries of the timeline": list(columns["entries"][::step]),
        "file groups": list(columns["groups"][::step]),
        "versions of a file group, at most": list(columns["versions"][::step]),
        "log files of a slice, at most": list(columns["logs"][::step]),
    }
    (docs / "sizes.svg").write_text(picture(f"{batches} batches: what grows, and what does not", curves, ""))
    print(json.dumps(result, indent=1))
    assert late <= 1.2 * early, "batches became slower"
    assert result["most_versions"] < 40
    assert result["most_entries"] < 400
    assert result["most_log_files_of_a_slice"] < 20
    assert result["median_read_s_late"] <= 1.5 * result["median_read_s_early"] or not has_logs, "reads became slower"


if __name__ == "__main__":
    main()
