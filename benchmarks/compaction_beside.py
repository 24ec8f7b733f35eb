"""What compaction beside a stream costs it: `python benchmarks/compaction_beside.py [--rounds 3] [--batches 40]`.

A stream of updates into a merge-on-read table rests after each batch for as long as the batch took. One run compacts
beside the stream after every fourth delta commit, the other one never. Each run is a process of its own; rounds take
turns. The first batches do not count. Writes ``benchmarks/results/compaction-beside.json``.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from run import machine
from workloads import keys_of

HERE = Path(__file__).parent
KEYS, PARTITIONS, WARM = 1_000_000, 8, 8
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "1",
    "hoodie.compact.inline.max.delta.commits": "4",
}
COMPACTS = {"always": "true", "never": "false"}


def generate(folder, batches, rows):
    """One file for each batch: the first one has all keys, the others change some."""
    os.makedirs(folder)
    rng = np.random.default_rng(7)
    for number in range(batches):
        ids = np.sort(rng.choice(KEYS, rows, replace=False)) if number else np.arange(KEYS)
        columns = {f"n{n}": rng.random(len(ids)) for n in range(6)}
        made = {"id": keys_of(ids), "p": np.array([f"p{n}" for n in range(PARTITIONS)])[ids % PARTITIONS]}
        file = os.path.join(folder, f"{number:05d}.parquet")
        pq.write_table(pa.table({**made, "ts": np.full(len(ids), number), **columns}), file)
        os.utime(file, (1e9 + number, 1e9 + number))


def stream(place, compacts):
    """In the child: seconds of each batch that counts."""
    import logging

    import structlog
    from pyspark.sql import SparkSession

    from hudistream import HudiTable
    from streaming import HudiSink

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "2g")
    for key, value in {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "4"}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    seconds, sink = [], None
    with tempfile.TemporaryDirectory() as fresh:
        table = os.path.join(fresh, "table")
        sink = HudiSink(table, {**OPTIONS, "hoodie.datasource.compaction.async.enable": COMPACTS[compacts]})

        def write(batch, batch_id):
            started = time.perf_counter()
            sink(batch, batch_id)
            seconds.append(time.perf_counter() - started)
            time.sleep(seconds[-1])

        fields = "id string, p string, ts bigint, " + ", ".join(f"n{n} double" for n in range(6))
        rows = spark.readStream.schema(fields).option("maxFilesPerTrigger", 1).parquet(os.path.join(place, "in"))
        query = rows.writeStream.foreachBatch(write).option("checkpointLocation", os.path.join(fresh, "checkpoint"))
        query.trigger(availableNow=True).start().awaitTermination()
        sink.stop()
        history = HudiTable.open(table).history()
        done = sum(action == "commit" for action in history["action"].to_pylist())
    spark.stop()
    print(json.dumps({"seconds": seconds[WARM:], "compactions": done}))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, default=40)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--child", nargs=2)
    given = parser.parse_args()
    if given.child:
        return stream(*given.child)
    found = {name: [] for name in COMPACTS}
    with tempfile.TemporaryDirectory() as place:
        generate(os.path.join(place, "in"), given.batches, given.rows)
        for number in range(given.rounds):
            for name in sorted(COMPACTS, reverse=bool(number % 2)):
                command = [sys.executable, __file__, "--child", place, name]
                environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
                done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
                if done.returncode:
                    sys.exit(done.stderr[-2000:])
                told = json.loads(done.stdout.strip().splitlines()[-1])
                assert bool(told["compactions"]) == (name == "always"), told
                mean = statistics.mean(told.pop("seconds"))
                found[name].append({**told, "mean_s": round(mean, 4)})
                print(name, found[name][-1], flush=True)
    ratios = [on["mean_s"] / off["mean_s"] for on, off in zip(found["always"], found["never"], strict=True)]
    result = {"machine": machine(), "batches": given.batches, "rows": given.rows, "runs": found}
    result["ratio"] = round(statistics.median(ratios), 3)
    (HERE / "results" / "compaction-beside.json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result["ratio"]))
    return None


if __name__ == "__main__":
    main()
