"""`make profile WORKLOAD=A`: where the time of a steady batch goes.

One stream of hudistream over a workload of `run.py`, with the options of `candidate.py`. A steady batch is the median
of the last half, line by line, so lines need not add up. Prints three tables: wall seconds of the driver by phase,
processor seconds by process, and the seconds of the workers' tasks by part, all tasks of a batch together.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import psutil
from candidate import TABLE_OPTIONS
from profiled_worker import PARTS, REST, WAITING
from workloads import DDL, SIZES, generate

# what Spark says of a trigger, in its order
SPARK_PHASES = (
    "latestOffset",
    "getBatch",
    "queryPlanning",
    "walCommit",
    "addBatch",
    "commitOffsets",
    "triggerExecution",
)


class Batches:
    """What was measured of each batch: a callback, and the clock around the sink."""

    def __init__(self, sink, java):
        self._sink, self._java = sink, java
        self.measured = []

    def _processor(self):
        driver, java = psutil.Process().cpu_times(), self._java.cpu_times()
        return {"driver": driver.user + driver.system, "JVM": java.user + java.system}

    def __call__(self, batch, batch_id):
        began, before = time.time(), self._processor()
        self._sink(batch, batch_id)
        after = self._processor()
        spent = {name: after[name] - before[name] for name in after}
        self.measured.append({"began": began, "ended": time.time(), "processor": spent})


class Phases(list):
    """A callback that keeps the phases of each batch."""

    def __call__(self, summary):
        self.append(dict(summary.phases))


def start(place):
    """A session whose workers have a clock."""
    from pyspark.sql import SparkSession

    os.environ["HUDISTREAM_PROFILE"] = place
    here, root = Path(__file__).parent, Path(__file__).parent.parent
    paths = [str(here), str(root), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "6g")
    for key, value in {
        "spark.python.daemon.module": "profiled_worker",
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def run(workload, batches, options, place):
    """Runs the stream. Returns for each batch what Spark, the sink, the processes and the tasks say."""
    import structlog

    from streaming import HudiSink

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    folder, out = os.path.join(place, "in"), os.path.join(place, "out")
    generate(workload, folder, batches)
    clocks = os.path.join(place, "clocks")
    os.makedirs(clocks)
    spark = start(clocks)
    [java] = [one for one in psutil.Process().children(recursive=True) if one.name() == "java"]
    phases = Phases()
    sink = Batches(HudiSink(os.path.join(out, "table"), {**TABLE_OPTIONS, **options}, callbacks=[phases]), java)
    stream = spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1).parquet(folder)
    writer = stream.writeStream.foreachBatch(sink)
    query = writer.option("checkpointLocation", os.path.join(out, "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    progress = [one["durationMs"] for one in query.recentProgress if one["numInputRows"] > 0]
    spark.stop()
    tasks = [json.loads(line) for file in Path(clocks).glob("*.jsonl") for line in file.read_text().splitlines()]
    found = []
    for said, measured, by_phase in zip(progress, sink.measured, phases, strict=True):
        mine = [task for task in tasks if measured["began"] <= task["began"] <= measured["ended"]]
        found.append({**measured, "spark": said, "phases": by_phase, "tasks": mine})
    return found


def median(batches, value):
    """Of the steady batches."""
    return statistics.median(value(batch) for batch in batches)


def lines_of(batches):
    """The tables as text."""
    steady = batches[len(batches) // 2 :]
    yield f"{len(steady)} steady batches of {len(batches)}; {median(steady, lambda b: len(b['tasks'])):.0f} tasks each"
    yield ""
    yield "driver, wall seconds"
    for name in SPARK_PHASES:
        yield line(name, median(steady, lambda b, name=name: b["spark"].get(name, 0) / 1000))
        if name == "addBatch":
            for phase in steady[0]["phases"]:
                yield line(f"  sink: {phase}", median(steady, lambda b, phase=phase: b["phases"].get(phase, 0.0)))
                if phase == "write":
                    yield line("    from the first task's begin to the last one's end", median(steady, working))
    yield ""
    yield "processes, processor seconds while the sink has the batch"
    for name in ("driver", "JVM"):
        yield line(name, median(steady, lambda b, name=name: b["processor"][name]))
    yield line("workers", median(steady, lambda b: sum(part_of(b, part, 1) for part in (WAITING, *PARTS, REST))))
    yield ""
    yield f"{'workers, all tasks together':60} {'wall':>8} {'processor':>10}"
    for part in (WAITING, *PARTS, REST):
        wall, processor = (median(steady, lambda b, part=part, w=which: part_of(b, part, w)) for which in (0, 1))
        if wall >= 0.0005:
            yield f"{line(part, wall)} {processor:10.3f}"


def working(batch):
    """Seconds during which a task of the batch ran."""
    tasks = batch["tasks"]
    return max(task["ended"] for task in tasks) - min(task["began"] for task in tasks) if tasks else 0.0


def part_of(batch, part, which):
    """Wall (0) or processor (1) seconds of a part in all tasks of a batch."""
    return sum(task["parts"].get(part, (0.0, 0.0))[which] for task in batch["tasks"])


def line(name, seconds):
    """A line of a table."""
    return f"{name:60} {seconds:8.3f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workload", choices=list(SIZES), default="A")
    parser.add_argument("--batches", type=int, default=12)
    parser.add_argument("--option", action="append", default=[], metavar="KEY=VALUE")
    given = parser.parse_args()
    options = dict(pair.split("=", 1) for pair in given.option)
    if given.workload.startswith(("B", "big")) and given.workload != "B-inserts":
        options.setdefault("hoodie.datasource.write.operation", "upsert")
    with tempfile.TemporaryDirectory() as place:
        for text in lines_of(run(given.workload, given.batches, options, place)):
            print(text)


if __name__ == "__main__":
    main()
