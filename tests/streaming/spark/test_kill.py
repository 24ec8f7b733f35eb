"""A real stream killed by SIGKILL, and worker processes killed in the middle of a batch."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import psutil
import pytest
from oracles import hudi_rs
from snapshots import assert_clean
from stream import write_batches

from hudistream import HudiTable
from table import clock, read_table
from table.storage.interface import TEMPORARY_PREFIX
from table.storage.local import LocalStorage
from table.timeline.active_timeline import sweep_temporaries
from table.timeline.instant import Action

pytestmark = pytest.mark.spark

ROWS = 400
BATCHES_PER_KILL = 6

STREAM = """
import json, sys
from pyspark.sql import SparkSession
from streaming import HudiSink

folder, path, checkpoint, options = sys.argv[1:]
spark = (SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
         .config("spark.sql.shuffle.partitions", "4").getOrCreate())
spark.sparkContext.setLogLevel("OFF")
sink = HudiSink(path, {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    **json.loads(options),
})
stream = spark.readStream.schema("id string, p string, ts bigint").option("maxFilesPerTrigger", 1).parquet(folder)
print("READY", flush=True)
query = (stream.writeStream.foreachBatch(sink).option("checkpointLocation", checkpoint)
         .trigger(availableNow=True).start())
query.awaitTermination()
print("DONE", flush=True)
"""


COPY_ON_WRITE = {"hoodie.datasource.write.operation": "insert", "hoodie.parquet.max.file.size": "60000"}
# each row goes to a log file, and compactions run on the executors beside the batches
MERGE_ON_READ = {
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.compact.inline.max.delta.commits": "2",
    "hudistream.compaction.executors.from.mb": "0",
}


def start(script, *arguments):
    """Runs a script; what it logs stands beside it."""
    with open(f"{script}.log", "a") as log:
        return subprocess.Popen(
            [sys.executable, str(script), *arguments],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        )


def kill_all(process):
    """The driver, its JVM and its Python workers, at once."""
    family = [process, *psutil.Process(process.pid).children(recursive=True)]
    for member in family:
        try:
            os.kill(member.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    process.wait()


@pytest.mark.parametrize(("kills", "options"), [
    pytest.param(1, COPY_ON_WRITE, marks=pytest.mark.slow),
    pytest.param(10, COPY_ON_WRITE, marks=pytest.mark.slow),
    pytest.param(10, MERGE_ON_READ, marks=pytest.mark.slow),
], ids=("copy-on-write", "copy-on-write, often", "merge-on-read, often"))  # fmt: skip
def test_a_stream_killed_at_random_moments_loses_and_doubles_nothing(tmp_path, kills, options):
    seed = int(os.environ.get("HUDISTREAM_SEED", time.time_ns() % 10**6))
    print("seed", seed)
    moments = random.Random(seed)
    folder, path, checkpoint = (str(tmp_path / name) for name in ("in", "t", "c"))
    batches = kills * BATCHES_PER_KILL
    write_batches(folder, batches, ROWS)
    script = tmp_path / "stream.py"
    script.write_text(STREAM)
    killed = 0
    while killed < kills:
        process = start(script, folder, path, checkpoint, json.dumps(options))
        assert process.stdout.readline() == "READY\n"
        wait_for_progress(process, path, killed)
        time.sleep(moments.uniform(0, 0.9))
        if process.poll() is not None:
            break
        kill_all(process)
        killed += 1
        if os.path.exists(os.path.join(path, ".hoodie", "hoodie.properties")):
            table = read_table(path)  # without a commit it has no columns of its own yet
            seen = table.column("id").to_pylist() if "id" in table.column_names else []
            assert len(seen) == len(set(seen)), f"seed {seed}: a reader sees doubled rows"
            assert len(seen) % ROWS == 0, f"seed {seed}: a reader sees part of a batch"
    process = start(script, folder, path, checkpoint, json.dumps(options))
    said, _ = process.communicate(timeout=300)
    assert said.endswith("DONE\n")
    assert killed == kills, f"seed {seed}: the stream was through after {killed} kills; give it more batches"
    everything = sorted(f"k{n}" for n in range(ROWS * batches))
    assert sorted(read_table(path).column("id").to_pylist()) == everything, f"seed {seed}"
    if options is COPY_ON_WRITE:  # hudi-rs misses file groups of log files alone
        assert sorted(hudi_rs.read(path).column("id").to_pylist()) == everything
    else:
        assert HudiTable.open(path).load_timeline().completed_of(Action.COMMIT), "nothing was compacted"
    assert_clean_in_the_end(path)


def assert_clean_in_the_end(path):
    """A process killed between two system calls leaves its temporary; a sink sweeps it once it is surely nobody's."""
    hoodie = os.path.join(path, ".hoodie")
    for name in os.listdir(hoodie):
        if name.startswith(TEMPORARY_PREFIX):
            os.utime(os.path.join(hoodie, name), (1e9, 1e9))
    sweep_temporaries(LocalStorage(path), clock.now_ms())
    assert_clean(path)


def wait_for_progress(process, path, killed):
    """Until the stream has begun to write in earnest; the first kills come as early as the first batch."""
    hoodie = os.path.join(path, ".hoodie")

    def instants():
        return len(os.listdir(hoodie)) if os.path.isdir(hoodie) else 0

    before, deadline = instants(), time.monotonic() + 60
    wanted = before + (1 if killed < 3 else 4)
    while instants() < wanted and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)


WORKER_KILL = """
import os, sys, threading, time, psutil
from pyspark.sql import SparkSession
from streaming import HudiSink

path = sys.argv[1]
spark = (SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false").getOrCreate())
spark.sparkContext.setLogLevel("OFF")
sink = HudiSink(path, {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.operation": "insert",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.insert.shuffle.parallelism": "2",
})
frame = lambda a, b: spark.range(a, b).selectExpr("concat('k', id) id", "concat('p', id % 4) p", "repeat('x', 200) v")
sink(frame(0, 1000), 0)
killed = []

def kill_a_worker():
    # a worker that has a data file of this batch open is in the middle of it
    while not killed:
        for child in psutil.Process().children(recursive=True):
            try:
                if any(f.path.startswith(path) and f.path.endswith(".parquet") for f in child.open_files()):
                    child.kill()
                    killed.append(child.pid)
                    return
            except psutil.Error:
                continue

thread = threading.Thread(target=kill_a_worker, daemon=True)
thread.start()
sink(frame(1000, 250_000), 1)
print("KILLED", len(killed), flush=True)
sink(frame(250_000, 251_000), 2)
print("DONE", flush=True)
"""


@pytest.mark.slow
def test_a_worker_killed_in_the_middle_of_a_batch_is_replaced_and_leaves_nothing(tmp_path):
    script, path = tmp_path / "stream.py", str(tmp_path / "t")
    script.write_text(WORKER_KILL)
    process = start(script, path)
    said, _ = process.communicate(timeout=300)
    assert [line for line in said.splitlines() if line.isupper() or line.startswith("KILLED")] == ["KILLED 1", "DONE"]
    assert sorted(read_table(path).column("id").to_pylist()) == sorted(f"k{n}" for n in range(251_000))
    assert_clean_in_the_end(path)


COMPACTION = """
import json, sys, time
from pyspark.sql import SparkSession
from streaming import HudiSink

path, options, first, last = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
spark = (SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false")
         .config("spark.sql.shuffle.partitions", "2").getOrCreate())
spark.sparkContext.setLogLevel("OFF")
sink = HudiSink(path, {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "",
    **options,
})
for number in range(first, last):
    step = 1 if not number else 7
    rows = spark.range(0, 400_000, step).selectExpr(
        "concat('k', id) id", f"{number}L ts", *(f"sha2(concat(id, '-{number}-{n}'), 256) v{n}" for n in range(2)))
    sink(rows, number)
    print("BATCH", number, flush=True)
sink.stop()
print("DONE", flush=True)
"""


def wait_for_open_file(process, path):
    """The worker that has a file of a compaction open: no batch runs once the last one is committed."""
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        for child in psutil.Process(process.pid).children(recursive=True):
            try:
                names = [file.path for file in child.open_files()] if "python" in child.name() else []
            except psutil.Error:
                continue
            if any(name.startswith(path) and name.endswith(".parquet") for name in names):
                return child
    raise AssertionError("no worker was seen to compact")


@pytest.mark.slow
@pytest.mark.parametrize("dies", ["worker", "all"])
def test_a_compaction_on_the_executors_outlives_its_worker_and_its_driver(tmp_path, dies):
    script, path = tmp_path / "compaction.py", str(tmp_path / "t")
    script.write_text(COMPACTION)
    options = json.dumps(MERGE_ON_READ)
    process = start(script, path, options, "0", "2")
    assert [process.stdout.readline() for _ in range(2)] == ["BATCH 0\n", "BATCH 1\n"]
    worker = wait_for_open_file(process, path)
    pending = HudiTable.open(path).load_timeline().pending_of(Action.COMPACTION)
    if dies == "all":
        kill_all(process)
        assert pending == HudiTable.open(path).load_timeline().pending_of(Action.COMPACTION)
        process = start(script, path, options, "2", "3")
    else:
        worker.kill()
    said, _ = process.communicate(timeout=300)
    assert said.endswith("DONE\n"), (tmp_path / "compaction.py.log").read_text()[-3000:]
    line = HudiTable.open(path).load_timeline()
    assert [instant.time for instant in pending] == [instant.time for instant in line.completed_of(Action.COMMIT)][:1]
    last = 2 if dies == "all" else 1
    found = {row["id"]: row["ts"] for row in HudiTable.open(path).scan(["id", "ts"]).to_arrow().to_pylist()}
    assert found == {f"k{n}": 0 if n % 7 else last for n in range(400_000)}
    assert_clean_in_the_end(path)
