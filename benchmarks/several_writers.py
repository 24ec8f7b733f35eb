"""What it costs that two streams share a table: `python benchmarks/several_writers.py [--rounds 3] [--rows 50000]`.

One stream writes every batch into a table; then two streams, in two processes at the same time, write every other batch
each into one table that they share. Processor time is that of the processes, JVMs and Python workers included, from the
second batch on. Writes ``benchmarks/results/several-writers.json``.
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

from run import machine

HERE = Path(__file__).parent
PARTITIONS = 4


def write_batches(folder, batches, rows):
    """One Parquet file per batch; keys are new in each."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    for batch in range(batches):
        numbers = np.arange(batch * rows, (batch + 1) * rows)
        made = pa.table({
            "id": [f"key-{n:012d}" for n in numbers], "p": [f"p{n % PARTITIONS}" for n in numbers], "ts": numbers,
            "v": numbers * 7 % 10_007, "text": [f"some text of row {n * 31 % 1_000_003}" for n in numbers],
        })  # fmt: skip
        pq.write_table(made, folder / f"{batch:05d}.parquet")
        os.utime(folder / f"{batch:05d}.parquet", (1e9 + batch, 1e9 + batch))


def stream(folder, path, name, mode):
    """In a process of its own: prints seconds and processor seconds after the first batch."""
    import psutil
    from pyspark.sql import SparkSession

    from streaming import HudiSink

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    marks, me = [], psutil.Process()

    def used():
        times = [one.cpu_times() for one in (me, *me.children(recursive=True))]
        return sum(t.user + t.system + t.children_user + t.children_system for t in times)

    conflicts = []
    sink = HudiSink(
        path,
        {
            "hoodie.write.concurrency.mode": mode,
            "hoodie.datasource.write.streaming.checkpoint.identifier": name,
            "hoodie.clean.automatic": "false",
        },
        key="id", partition_by="p", operation="insert",
        callbacks=[lambda _: marks.append((time.monotonic(), used()))],
        on_failure=[lambda failed: conflicts.append(str(failed.error))],
    )  # fmt: skip
    rows = spark.readStream.schema("id string, p string, ts bigint, v bigint, text string")
    query = (
        rows.option("maxFilesPerTrigger", 1).parquet(folder).writeStream.foreachBatch(sink)
        .option("checkpointLocation", f"{path}-checkpoint-{name}").trigger(availableNow=True).start()
    )  # fmt: skip
    query.awaitTermination()
    (began, before), (ended, after) = marks[0], marks[-1]
    done = {"batches": len(marks) - 1, "seconds": ended - began, "cpu": after - before, "failed": len(conflicts)}
    print("RESULT " + json.dumps(done))


def run(work, name, parts, batches):
    """Streams at the same time, one for each folder."""
    mode = "single_writer" if len(parts) == 1 else "optimistic_concurrency_control"
    command = [sys.executable, __file__, "--stream"]
    started = [
        subprocess.Popen([*command, str(folder), str(work / name), f"s{n}", mode], stdout=subprocess.PIPE, text=True)
        for n, folder in enumerate(parts)
    ]
    said = [process.communicate()[0] for process in started]
    results = [json.loads(text.rsplit("RESULT ", 1)[1]) for text in said]
    assert sum(result["batches"] for result in results) == batches - len(parts)
    shutil.rmtree(work / name)
    return sum(r["cpu"] for r in results) / sum(r["batches"] for r in results), max(r["seconds"] for r in results)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stream", nargs=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--batches", type=int, default=16)
    asked = parser.parse_args()
    if asked.stream:
        stream(*asked.stream)
        return
    found = {"alone": [], "shared": []}
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        whole, halves = work / "whole", [work / "half0", work / "half1"]
        for place in (whole, *halves):
            place.mkdir()
        write_batches(whole, asked.batches, asked.rows)
        for n, file in enumerate(sorted(whole.iterdir())):
            shutil.copy2(file, halves[n % 2])
        for number in range(asked.rounds):
            found["alone"].append(run(work, f"alone{number}", [whole], asked.batches))
            found["shared"].append(run(work, f"shared{number}", halves, asked.batches))
            print(number, {name: values[-1] for name, values in found.items()}, flush=True)
    ratios = [ours[0] / alone[0] for ours, alone in zip(found["shared"], found["alone"], strict=True)]
    spread = {"median": statistics.median(ratios), "min": min(ratios), "max": max(ratios)}
    result = {
        "machine": machine(), "rows_per_batch": asked.rows, "batches": asked.batches, "rounds": asked.rounds,
        "cpu_seconds_per_batch": {name: [round(cpu, 3) for cpu, _ in values] for name, values in found.items()},
        "ratio": {name: round(value, 2) for name, value in spread.items()},
    }  # fmt: skip
    (HERE / "results" / "several-writers.json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result["ratio"]))


if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parent))
    main()
