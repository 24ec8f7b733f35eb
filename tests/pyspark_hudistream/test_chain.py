"""Two tables in a chain: the second has what follows from the first, whatever was killed on the way."""

import importlib.util
import json
import os
import random
import re
import signal
import subprocess
import threading
import time
from decimal import Decimal
from pathlib import Path

import psutil
import pytest
from environments import ROOT, SPARK_4, make_environment, run_program, surroundings

from table import read_table

pytestmark = pytest.mark.spark

KILLS = 10


def expected_rows(folder):
    """Silver as it follows from the files: the newest event of each order, unless it deletes the order."""
    newest = {}
    for file in sorted(Path(folder, "incoming").glob("*.json")):
        for line in file.read_text().splitlines():
            event = json.loads(line)
            if event["id"] not in newest or event["ts"] >= newest[event["id"]]["ts"]:
                newest[event["id"]] = event
    return sorted(
        (event["id"], event["customer"].strip().upper(), Decimal(event["cents"]) / 100, event["ts"])
        for event in newest.values()
        if event["customer"] != "test" and not event["_hoodie_is_deleted"]
    )


def silver_rows(folder, name="silver"):
    table = read_table(f"{folder}/{name}", ["id", "customer", "euros", "ts"])
    return sorted(tuple(row.values()) for row in table.to_pylist())


def newest_events(folder):
    """The newest event of each order that it does not delete: key, amount and time of what bronze holds."""
    newest = {}
    for file in sorted(Path(folder, "incoming").glob("*.json")):
        newest.update((event["id"], event) for event in map(json.loads, file.read_text().splitlines()))
    return sorted((one["id"], one["cents"], one["ts"]) for one in newest.values() if not one["_hoodie_is_deleted"])


@pytest.mark.slow
def test_the_example_runs(tmp_path):
    python = make_environment(*SPARK_4["4.2"])
    load_example().make_events(str(tmp_path), files=3)
    program = [python, str(ROOT / "examples" / "chain.py"), str(tmp_path)]
    done = subprocess.run(program, env=surroundings(python), capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    counted = dict(line.split() for line in done.stdout.splitlines())
    assert int(counted["silver"]) == len(silver_rows(tmp_path)) < int(counted["bronze"])
    assert silver_rows(tmp_path) == expected_rows(tmp_path)


def test_the_guide_shows_the_example():
    example = (ROOT / "examples" / "chain.py").read_text()
    guide = (ROOT / "docs" / "guides" / "chain.md").read_text()
    blocks = re.findall(r"^```py\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 2
    for block in blocks:
        assert block.strip() in example


@pytest.mark.slow
def test_three_tables_are_equal_after_updates_deletes_moves_and_restarts(tmp_path):
    said = run_program(make_environment(*SPARK_4["4.2"]), "spark4_changes.py", tmp_path / "t", tmp_path / "c")
    found = json.loads(said.splitlines()[-1])
    first, second = found["runs"]
    assert first[0] == ["k1p11v1", "k2p21v1", "k3p00v0", "k4p10v0", "k5p11moved"]
    assert second[0] == ["k1p11v1", "k3p03v3", "k4p13v3", "k5p03moved"]
    for source, *others in (first, second):
        assert others == [source, source]
    assert found["range"] == [
        ["d", "k0", "v0"], ["d", "k2", "v0"],
        ["u", "k1", "v0"], ["u", "k3", "v0"], ["u", "k4", "v0"], ["u", "k5", "v0"],
    ]  # fmt: skip


def load_example():
    spec = importlib.util.spec_from_file_location("chain", ROOT / "examples" / "chain.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def start(python, folder, *stage):
    program = "chain_drivers.py" if stage else "chain_stages.py"
    return subprocess.Popen(
        [python, str(ROOT / "tests" / "support" / program), str(folder), *stage],
        stdout=subprocess.PIPE,
        stderr=Path(folder, "-".join(["stderr", *stage])).open("w"),
        text=True,
        start_new_session=True,
        env=surroundings(python, ROOT / "tests" / "support"),
    )


def kill_all(process):
    """The driver, its JVM and its Python workers, at once."""
    for member in [process, *psutil.Process(process.pid).children(recursive=True)]:
        try:
            os.kill(member.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    process.wait()


def instants(folder, name, suffix):
    hoodie = Path(folder, name, ".hoodie")
    return sum(entry.name.endswith(suffix) for entry in hoodie.iterdir()) if hoodie.is_dir() else 0


@pytest.mark.slow
def test_a_chain_killed_at_random_moments_loses_and_doubles_nothing(tmp_path):
    python = make_environment(*SPARK_4["4.2"])
    seed = int(os.environ.get("HUDISTREAM_SEED", time.time_ns() % 10**6))
    print("seed", seed)
    moments = random.Random(seed)
    load_example().make_events(str(tmp_path), files=20 * KILLS)
    for killed in range(KILLS):
        process = start(python, tmp_path)
        assert process.stdout.readline() == "READY\n"
        # in a batch of the first stage, in one of the second, or soon after one of the second was done
        watched = moments.choice([("bronze", ""), ("silver", ""), ("silver", ".commit"), ("silver", ".commit")])
        before, deadline = instants(tmp_path, *watched), time.monotonic() + 180
        while instants(tmp_path, *watched) == before and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(moments.uniform(0, 2.5))
        why = f"seed {seed}: the chain ended after {killed} kills; give it more files, or see why it failed"
        assert process.poll() is None, f"{why}: {Path(tmp_path, 'stderr').read_text()[-3000:]}"
        kill_all(process)
    process = start(python, tmp_path)
    said, _ = process.communicate(timeout=600)
    assert said.endswith("DONE\n"), f"seed {seed}: {Path(tmp_path, 'stderr').read_text()[-3000:]}"
    assert silver_rows(tmp_path) == expected_rows(tmp_path), f"seed {seed}"


def comes(folder, *watched):
    """Whether another instant comes within minutes."""
    before, deadline = instants(folder, *watched), time.monotonic() + 600
    while instants(folder, *watched) == before and time.monotonic() < deadline:
        time.sleep(0.01)
    return time.monotonic() < deadline


def feed(folder, is_over):
    """Lets files arrive one by one, as long as drivers are killed."""
    for file in sorted(Path(folder, "later", "incoming").glob("*.json")):
        if is_over.wait(2):
            return
        os.utime(file)  # Spark takes files by their times: a late event of a deleted order would bring it back
        file.rename(Path(folder, "incoming", file.name))


@pytest.mark.slow
def test_three_drivers_are_killed_in_turns_and_three_tables_are_equal(tmp_path):
    """Each stage is a driver of its own, and gold has change files, too."""
    python, stages = make_environment(*SPARK_4["4.2"]), ("bronze", "silver", "gold")
    seed = int(os.environ.get("HUDISTREAM_SEED", time.time_ns() % 10**6))
    print("seed", seed)
    moments = random.Random(seed)
    load_example().make_events(str(tmp_path / "later"), files=600)
    Path(tmp_path, "incoming").mkdir()
    is_over = threading.Event()
    feeder = threading.Thread(target=feed, args=(tmp_path, is_over))
    feeder.start()
    drivers = {stage: start(python, tmp_path, stage) for stage in stages}
    try:
        for stage in stages:
            assert comes(tmp_path, stage, ".commit"), f"seed {seed}: {stage} does not begin"
        for killed in range(2 * KILLS):
            stage = moments.choice(stages)
            assert comes(tmp_path, stage, moments.choice(["", ".commit"])), f"{seed}: {stage} stands, {killed} kills"
            time.sleep(moments.uniform(0, 2.5))
            assert drivers[stage].poll() is None, f"seed {seed}: {stage} ended by itself"
            kill_all(drivers[stage])
            drivers[stage] = start(python, tmp_path, stage)
        is_over.set()
        feeder.join()
        for stage in stages:
            Path(tmp_path, f"stop-{stage}").touch()
            said, _ = drivers[stage].communicate(timeout=900)
            assert said.endswith("DONE\n"), f"seed {seed}: {Path(tmp_path, f'stderr-{stage}').read_text()[-3000:]}"
    finally:
        is_over.set()
        for driver in drivers.values():
            if driver.poll() is None:
                kill_all(driver)
    held = read_table(f"{tmp_path}/bronze", ["id", "cents", "ts"]).to_pylist()
    assert sorted(tuple(row.values()) for row in held) == newest_events(tmp_path), f"seed {seed}"
    assert silver_rows(tmp_path) == expected_rows(tmp_path), f"seed {seed}"
    assert silver_rows(tmp_path, "gold") == silver_rows(tmp_path), f"seed {seed}"
