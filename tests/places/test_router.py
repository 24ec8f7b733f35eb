"""A router that is killed at random moments, with a table that fails for a while: every table equals its model.

On the disk, and on an object store of the table in `stores`: ``STORE=minio``.
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from statistics import median

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from stores import serve_store

from hudistream import HudiRouter, HudiTable, read_table
from streaming.router.aside import OWN_FOLDER
from streaming.router.template import RouterLimits
from table.storage.opening import open_storage

pytestmark = [pytest.mark.slow, pytest.mark.places]
JOB = Path(__file__).with_name("router_job.py")
PLACES = ["disk", os.environ.get("STORE", "moto")]
KILLS, BATCHES, TABLES = int(os.environ.get("KILLS", "12")), 60, 8


def write_source(folder):
    """Files of one batch each; and the rows that each table has at the end: `t1` keeps them all."""
    rng, latest, everything = random.Random(11), {}, []
    folder.mkdir()
    for number in range(BATCHES):
        rows = []
        for _ in range(300):
            name, key = f"t{rng.randrange(TABLES)}", rng.randrange(400)
            row = {"id": key, "name": name, "ts": number, "v": f"{number}-{len(rows)}"}
            if name != "t1":  # one row of a key in a batch: which of two with one order stays is Spark's choice
                if any(known["id"] == key and known["name"] == name for known in rows):
                    continue
                latest[name, key] = row["v"]
            else:
                everything.append(row["v"])
            rows.append(row)
        file = folder / f"{number:05d}.parquet"
        pq.write_table(pa.Table.from_pylist(rows), file)
        os.utime(file, (1e9 + number, 1e9 + number))
    return latest, sorted(everything)


@pytest.fixture(params=PLACES)
def place(request, tmp_path):
    """(folder for tables, storage options)."""
    if request.param == "disk":
        yield str(tmp_path / "r"), {}
        return
    (tmp_path / "store").mkdir()
    with serve_store(request.param, tmp_path / "store") as store:
        yield f"{store.address}/r", store.options


def test_every_table_equals_its_model_after_processes_that_were_killed(tmp_path, place):
    latest, everything = write_source(tmp_path / "in")
    (root, options), checkpoint, fails = place, tmp_path / "c", tmp_path / "fails"
    command = [sys.executable, JOB, tmp_path / "in", root, checkpoint, fails, json.dumps(options)]
    command = list(map(str, command))
    rng = random.Random()
    for kill in range(KILLS):
        if rng.random() < 0.5:
            fails.touch()
        else:
            fails.unlink(missing_ok=True)
        offsets = checkpoint / "offsets"
        planned = len(list(offsets.glob("[0-9]*"))) if offsets.is_dir() else 0
        with open(tmp_path / f"killed-{kill}.log", "wb") as told:
            process = subprocess.Popen(command, stdout=told, stderr=told, start_new_session=True)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and process.poll() is None:
            if offsets.is_dir() and len(list(offsets.glob("[0-9]*"))) > planned + 1:
                break
            time.sleep(0.02)
        time.sleep(rng.random() * 2)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    fails.unlink(missing_ok=True)
    for attempt in range(2):  # what waits is tried again when a process starts, with a batch
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        extra = pa.Table.from_pylist([{"id": 0, "name": "t0", "ts": 10_000, "v": "last"}])
        pq.write_table(extra, tmp_path / "in" / f"{90_000 + attempt}.parquet")
    latest["t0", 0] = "last"
    assert "failing []" in done.stdout
    for number in range(TABLES):
        name = f"t{number}"
        found = read_table(f"{root}/{name}", columns=["id", "v"], storage_options=options).to_pylist()
        if name == "t1":
            assert sorted(row["v"] for row in found) == everything
        else:
            assert {(name, row["id"]): row["v"] for row in found} == {k: v for k, v in latest.items() if k[0] == name}
            assert len(found) == len({row["id"] for row in found})
        assert HudiTable.open(f"{root}/{name}", options).check().is_sound
    left = open_storage(f"{root}/{OWN_FOLDER}", options).list_tree("")
    assert [file for file in left if file.endswith(".arrow")] == []


def batch_of(spark, number, tables):
    """50 rows for each of these tables."""
    names = spark.range(len(tables) * 50).selectExpr("id", f"'t' || ({tables.start} + id % {len(tables)}) name")
    return names.selectExpr("id", "name", f"{number}L ts", f"'{number}' v")


def spent_s():
    """Processor seconds of this process and of those that it started."""
    every = [psutil.Process(), *psutil.Process().children(recursive=True)]
    return sum(sum(process.cpu_times()[:2]) for process in every)


@pytest.mark.spark
def test_a_thousand_tables_with_ten_alive_cost_what_ten_cost(spark, tmp_path):
    many, limits = int(os.environ.get("TABLES", "1000")), RouterLimits(idle_s=5.0)
    costs = {}
    for name, made in ("ten", range(10)), ("many", range(many)):
        router = HudiRouter(tmp_path / name, "name", key="id", order_by="ts", limits=limits)
        for number, first in enumerate(range(0, len(made), 100)):
            router(batch_of(spark, number, made[first : first + 100]), number)
        time.sleep(6)
        seconds = []
        for number in range(100, 120):
            before = spent_s()
            router(batch_of(spark, number, range(10)), number)
            seconds.append(spent_s() - before)
        own = [thread for thread in threading.enumerate() if "hudistream" in thread.name]
        me = psutil.Process()
        costs[name] = (median(seconds[5:]), len(own), me.num_fds(), me.memory_info().rss / 1e6)
        router.stop()
    print("\nprocessor seconds of a batch, own threads, open files, MB of this process:", costs)
    (few_s, few_threads, few_files, few_mb), (many_s, many_threads, many_files, many_mb) = costs["ten"], costs["many"]
    assert many_s < 1.3 * few_s
    assert many_threads <= few_threads + 2
    assert many_files <= few_files + 10
    assert many_mb < few_mb + 200
