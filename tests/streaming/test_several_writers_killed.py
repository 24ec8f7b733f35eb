"""Two plain Python processes write one table at the same time, and both are killed again and again."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest
from oracles import hudi_rs
from s3_server import s3_options

from streaming import ArrowSink
from table import CommitConflictError, read_table

# its clock is off by some seconds; a batch that was acknowledged is said at once
WRITER = """
import json, sys
import pyarrow as pa
from table import clock

path, name, operation, batches, size, skew_ms, storage = sys.argv[1:]
batches, size, now_ms = int(batches), int(size), clock.now_ms
clock.now_ms = lambda: now_ms() + int(skew_ms)

from streaming import ArrowSink

sink = ArrowSink(path, {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.datasource.write.streaming.checkpoint.identifier": name,
    "hoodie.write.num.retries.on.conflict.failures": "50",
    "hoodie.client.heartbeat.interval_in_ms": "1000",
    "hoodie.clean.commits.retained": "20", "hoodie.keep.min.commits": "30", "hoodie.keep.max.commits": "40",
}, json.loads(storage), key="id", partition_by="p", operation=operation, workers=1)
print("READY", flush=True)
for batch in range(batches):
    numbers = range(batch * size, (batch + 1) * size) if operation == "insert" else range(size)
    rows = pa.table({
        "id": [f"{name}{n}" for n in numbers], "p": [f"p{n % 3}" for n in numbers], "v": [batch] * len(numbers),
    })
    while True:
        try:
            sink.write(rows, batch_id=batch)
            break
        except Exception as error:
            if "is not above batch" in str(error):
                break
            print("AGAIN", str(error)[:300], flush=True)
    print("DONE", batch, flush=True)
sink.stop()
"""
SIZE = 30
LIVES_S = (0.9, 3.0)  # a process needs half a second before its first batch
QUICK = {"hoodie.client.heartbeat.interval_in_ms": "1000"}  # by it a dead writer is known after seconds


class Writer:
    """One of the processes: killed at random moments, and started again until it is through."""

    def __init__(self, folder, table, name, operation, moments):
        self.script = folder / f"{name}.py"
        self.script.write_text(WRITER)
        path, batches, skew_ms, storage = table
        self.arguments = [path, name, operation, str(batches), str(SIZE), str(skew_ms), json.dumps(storage)]
        self.batches, self.moments, self.said, self.kills = batches, moments, folder / f"{name}.txt", 0
        self.start()

    def start(self):
        with self.said.open("a") as said:
            command = [sys.executable, str(self.script), *self.arguments]
            self.process = subprocess.Popen(command, stdout=said, stderr=said)
        self.dies_at = time.monotonic() + self.moments.uniform(*LIVES_S)

    def step(self, kills):
        """Kills it if it is time to. Returns whether it is through."""
        code = self.process.poll()
        if code == 0:
            return True
        assert code in (None, -signal.SIGKILL), self.said.read_text()[-2000:]
        if self.kills < kills and time.monotonic() > self.dies_at:
            self.process.kill()
            self.process.wait()
            self.kills += 1
            self.start()
        return False

    @property
    def acknowledged(self):
        """The last batch that it knows to be written."""
        lines = [line for line in self.said.read_text().splitlines() if line.startswith("DONE")]
        return max((int(line.split()[1]) for line in lines), default=-1)


def check(path, storage, writers):
    """What is acknowledged is there, nothing is there twice, and of what is not acknowledged whole batches at most."""
    known = [writer.acknowledged for writer in writers]
    rows = read_table(path, storage_options=storage).select(["id", "v"]).to_pylist()
    ids = [row["id"] for row in rows]
    assert len(ids) == len(set(ids)), "a key is there twice"
    inserted = sorted(int(i[1:]) for i in ids if i.startswith("a"))
    assert inserted == list(range(len(inserted)))
    assert len(inserted) % SIZE == 0, "part of a batch"
    assert len(inserted) // SIZE > known[0], "an acknowledged batch is lost"
    values = {row["v"] for row in rows if row["id"].startswith("b")}
    assert len(values) <= 1, "part of a batch"
    assert max(values, default=-1) >= known[1], "an acknowledged batch is lost"


@pytest.mark.parametrize(("batches", "kills", "place"), [
    pytest.param(30, 1, "disk", marks=pytest.mark.slow),
    pytest.param(200, 20, "disk", marks=pytest.mark.slow),
    pytest.param(60, 8, "s3", marks=pytest.mark.slow),
])  # fmt: skip
def test_two_processes_killed_at_random_moments_lose_and_double_nothing(tmp_path, batches, kills, place):
    seed = int(os.environ.get("HUDISTREAM_SEED", time.time_ns() % 10**6))
    print("seed", seed)
    if place == "disk":
        _race(tmp_path, str(tmp_path / "t"), {}, batches, kills, random.Random(seed))
        return
    with s3_options() as storage:
        _race(tmp_path, "s3://lake/t", storage, batches, kills, random.Random(seed))


def _race(folder, path, storage, batches, kills, moments):
    writers = [
        Writer(folder, (path, batches, skew_ms, storage), name, operation, moments)
        for name, operation, skew_ms in (("a", "insert", -15_000), ("b", "upsert", 15_000))
    ]
    try:
        while [writer.step(kills) for writer in writers] != [True, True]:
            time.sleep(0.2)
            if min(writer.acknowledged for writer in writers) >= 0:
                check(path, storage, writers)
    finally:
        for writer in writers:
            writer.process.kill()
    assert [writer.acknowledged for writer in writers] == [batches - 1] * 2
    assert sum(writer.kills for writer in writers) > 0, "both were through before a process was killed"
    check(path, storage, writers)
    rows = read_table(path, storage_options=storage)
    assert len(rows) == batches * SIZE + SIZE
    if not storage:
        keys = sorted(row["id"] for row in rows.to_pylist())
        assert sorted(hudi_rs.read(path).column("id").to_pylist()) == keys
    # a writer alone goes on once they have left, and the one that was killed is taken for dead
    with ArrowSink(path, QUICK, storage_options=storage, operation="upsert") as sink:
        deadline = time.monotonic() + 180
        while True:
            try:
                sink.write(rows.slice(0, 1).select(["id", "p", "v"]))
                break
            except CommitConflictError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(1)
