"""Batches that are larger than the memory of the cluster that writes them: `ROWS=50000000 CHANGES=5000000`."""

import json
import os
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from cluster import Cluster

from hudistream import HudiTable, check

pytestmark = [pytest.mark.slow, pytest.mark.places]
JOB = Path(__file__).with_name("large_job.py")
ROWS, CHANGES = int(os.environ.get("ROWS", "5000000")), int(os.environ.get("CHANGES", "500000"))
_MB = 1024 * 1024
# of a process: the heap of a JVM is 1 GB, and it may use 384 MB beside it; a task of Python holds
# hudistream.task.memory.bytes (128 MB) of rows, and what it works on grows with the rows of a file, which
# hoodie.parquet.max.file.size (120 MB) bounds: 491 MB at 0.3 million rows a file, 599 at 0.9, 949 at 3.1
MOST_MB = {"driver": 1_500, "driver's python": 700, "executor": 1_500, "worker": 1_200}


class Peaks(threading.Thread):
    """The largest resident memory of the processes below this one, by kind, in MB."""

    def __init__(self):
        super().__init__(daemon=True)
        self.mb, self.done = {}, threading.Event()

    def run(self):
        while not self.done.wait(0.3):
            for process in psutil.Process().children(recursive=True):
                try:
                    kind = kind_of(" ".join(process.cmdline()))
                    if kind is not None:
                        held = process.memory_info()
                        self.mb[kind] = max(self.mb.get(kind, 0), (held.rss - held.shared) // _MB)
                except psutil.Error:
                    continue


def kind_of(line):
    kinds = {
        "CoarseGrainedExecutorBackend": "executor",
        "pyspark.daemon": "worker",
        "org.apache.spark.deploy.SparkSubmit": "driver",
        JOB.name: "driver's python",
    }
    return next((kind for text, kind in kinds.items() if text in line), None)


def test_memory_is_bounded_whatever_the_batch(tmp_path):
    table, log = tmp_path / "t", tmp_path / "driver.log"
    peaks = Peaks()
    with Cluster(tmp_path / "cluster", {"a": sys.executable, "b": sys.executable}) as cluster:
        peaks.start()
        driver = cluster.submit(JOB, table, tmp_path / "parquet", ROWS, CHANGES, log=log)
        began = time.monotonic()
        driver.wait(int(os.environ.get("PATIENCE_S", "1700")))
        seconds = time.monotonic() - began
        peaks.done.set()
    said = log.read_text()
    assert "DONE" in said, said[-3000:]
    timed = {each["name"]: each["seconds"] for each in told(said, "TIMED")}
    print(json.dumps({"rows": ROWS, "changes": CHANGES, "seconds": timed, "whole": round(seconds), "mb": peaks.mb}))
    assert told(said, "WROTE") == [{"rows": ROWS, "updated": 0}, {"rows": 0, "updated": CHANGES}]
    found = HudiTable.open(str(table))
    assert (found.count(), found.count([("ts", "=", 1)])) == (ROWS, CHANGES)
    assert check(found).is_sound
    assert peaks.mb.keys() == MOST_MB.keys()
    assert {kind: mb for kind, mb in peaks.mb.items() if mb > MOST_MB[kind]} == {}


def told(said, word):
    return [json.loads(line.removeprefix(word)) for line in said.splitlines() if line.startswith(word + " ")]
