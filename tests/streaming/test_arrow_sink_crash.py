"""An Arrow sink stopped at its storage calls, and a plain Python process killed: every batch is there exactly once."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pytest
from faults import FaultyStorage, Fuse, PowerCut, dying_process
from oracles import hudi_rs
from snapshots import assert_clean

from streaming import ArrowSink, table_sink
from table import clock, read_table
from table.storage.local import LocalStorage
from table.timeline.active_timeline import sweep_temporaries

OPTIONS = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false",
           "hoodie.insert.shuffle.parallelism": "2"}  # fmt: skip


def rows(numbers, v):
    numbers = list(numbers)
    return pa.table({"id": [f"k{n}" for n in numbers], "p": [f"p{n % 3}" for n in numbers], "v": [v] * len(numbers)})


FIRST, SECOND = rows(range(12), "first"), rows(range(6, 30), "second")
BEFORE = {f"k{n}": "first" for n in range(12)}
AFTER = {**BEFORE, **{f"k{n}": "second" for n in range(6, 30)}}


def open_sink(path, monkeypatch, fuse=None, **options):
    with monkeypatch.context() as patched:
        if fuse is not None:
            patched.setattr(table_sink, "open_storage", lambda uri, _: FaultyStorage(LocalStorage(uri), fuse))
        return ArrowSink(path, {**OPTIONS, **options}, key="id", partition_by="p", workers=1)


def contents(path):
    found = read_table(path).select(["id", "v"]).to_pylist()
    assert len({row["id"] for row in found}) == len(found), "a key is there twice"
    return {row["id"]: row["v"] for row in found}


TYPES = ["COPY_ON_WRITE", "MERGE_ON_READ"]


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.slow)])
def test_a_batch_stopped_at_a_storage_call_is_written_exactly_once(tmp_path, monkeypatch, table_type, step):
    options = {"hoodie.datasource.write.table.type": table_type}
    first = str(tmp_path / "first")
    with open_sink(first, monkeypatch, **options) as sink:
        sink.write(FIRST, batch_id=0)
    calls = [calls_of(first, tmp_path / f"count{n}", monkeypatch, options) for n in range(2)]
    assert calls[0] == calls[1] > 30  # one worker calls in the same order whenever the same rows are written
    for number in range(1, calls[0] + 1, step):
        path = shutil.copytree(first, str(tmp_path / str(number)))
        dead = open_sink(path, monkeypatch, Fuse(number, after=number % 2 == 0), **options)
        with dying_process(), pytest.raises(PowerCut):
            dead.write(SECOND, batch_id=1)
        dead._writer.lease._forget()  # its thread ends with its process
        assert contents(path) in (BEFORE, AFTER), f"call {number}: a reader sees part of the batch"
        with open_sink(path, monkeypatch, **options) as sink:
            sink.write(SECOND, batch_id=1)
            assert contents(path) == AFTER, f"call {number}"
            sink.write(rows([99], "third"), batch_id=2)
        assert contents(path) == {**AFTER, "k99": "third"}
        assert_clean(path)


def calls_of(first, path, monkeypatch, options):
    fuse = Fuse()
    shutil.copytree(first, path)
    sink = open_sink(path, monkeypatch, fuse, **options)
    sink.write(SECOND, batch_id=1)
    calls = len(fuse.calls)
    sink.stop()
    return calls


WRITER = """
import sys
import pyarrow as pa
from streaming import ArrowSink

path, batches, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
sink = ArrowSink(path, key="id", partition_by="p", order_by="ts", workers=2)
print("READY", flush=True)
for batch in range(batches):
    # half of the rows change those of the batch before
    numbers = range(batch * size, batch * size + 2 * size)
    rows = pa.table({
        "id": [f"k{n}" for n in numbers], "p": [f"p{n % 4}" for n in numbers], "ts": [batch] * len(numbers),
        "v": ["x" * 50] * len(numbers),
    })
    try:
        sink.write(rows, batch_id=batch)
    except Exception as error:
        if "is not above batch" not in str(error):
            raise
print("DONE", flush=True)
"""
SIZE = 300


@pytest.mark.slow
@pytest.mark.parametrize(("kills", "batches"), [(1, 30), (40, 480)])
def test_a_process_killed_at_random_moments_loses_and_doubles_nothing(tmp_path, kills, batches):
    seed = int(os.environ.get("HUDISTREAM_SEED", time.time_ns() % 10**6))
    print("seed", seed)
    moments, path, script = random.Random(seed), str(tmp_path / "t"), tmp_path / "writer.py"
    script.write_text(WRITER)
    for number in range(kills):
        process = start(script, path, batches)
        assert process.stdout.readline() == "READY\n"
        wait_for_a_commit(path, process)
        time.sleep(moments.uniform(0, 0.4))
        assert process.poll() is None, f"seed {seed}: it was through after {number} kills; give it more batches"
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        if os.path.exists(os.path.join(path, ".hoodie", "hoodie.properties")):
            check(path, seed)
    process = start(script, path, batches)
    said, _ = process.communicate(timeout=300)
    assert said.endswith("DONE\n")
    assert check(path, seed) == batches
    keys = sorted(f"k{n}" for n in range((batches + 1) * SIZE))
    assert sorted(hudi_rs.read(path).column("id").to_pylist()) == keys
    with ArrowSink(path, {"hoodie.clean.async": "false"}) as sink:  # goes on with a clean that died
        sink.write(read_table(path).slice(0, 1).select(["id", "p", "ts", "v"]))
    assert check(path, seed) == batches
    for name in os.listdir(os.path.join(path, ".hoodie")):
        os.utime(os.path.join(path, ".hoodie", name), (1e9, 1e9))
    sweep_temporaries(LocalStorage(path), clock.now_ms())
    assert_clean(path)


def start(script, path, batches):
    return subprocess.Popen(
        [sys.executable, str(script), path, str(batches), str(SIZE)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def wait_for_a_commit(path, process):
    folder = os.path.join(path, ".hoodie")

    def commits():
        return sum(name.endswith(".commit") for name in os.listdir(folder)) if os.path.isdir(folder) else 0

    before, deadline = commits(), time.monotonic() + 60
    while commits() == before and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)


def check(path, seed):
    """A reader sees whole batches, all up to the last. Returns how many."""
    table = read_table(path)
    if not table.num_rows:
        return 0
    found = dict(zip(table["id"].to_pylist(), table["ts"].to_pylist(), strict=True))
    assert len(found) == table.num_rows, f"seed {seed}: a key is there twice"
    last = max(found.values())
    wanted = {f"k{n}": min(n // SIZE, last) for n in range((last + 2) * SIZE)}
    assert found == wanted, f"seed {seed}: not the rows of batches 0 to {last}"
    return last + 1
