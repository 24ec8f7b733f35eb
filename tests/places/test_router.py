"""A router that is killed at random moments, with a table that fails for a while: every table equals its model."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudistream import HudiTable, read_table
from streaming.hudi_router import OWN_FOLDER

pytestmark = [pytest.mark.slow, pytest.mark.places]
JOB = Path(__file__).with_name("router_job.py")
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


def test_every_table_equals_its_model_after_processes_that_were_killed(tmp_path):
    latest, everything = write_source(tmp_path / "in")
    root, checkpoint, fails = tmp_path / "r", tmp_path / "c", tmp_path / "fails"
    command = [sys.executable, str(JOB), *map(str, (tmp_path / "in", root, checkpoint, fails))]
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
        found = read_table(root / name, columns=["id", "v"]).to_pylist()
        if name == "t1":
            assert sorted(row["v"] for row in found) == everything
        else:
            assert {(name, row["id"]): row["v"] for row in found} == {k: v for k, v in latest.items() if k[0] == name}
            assert len(found) == len({row["id"] for row in found})
        assert HudiTable.open(root / name).check().is_sound
    assert list((root / OWN_FOLDER).rglob("*.arrow")) == []
