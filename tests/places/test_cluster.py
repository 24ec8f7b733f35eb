"""A stream on a Spark cluster whose parts are killed, whose nodes lack the package, and whose clocks are off."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cluster import Cluster, make_environment
from cluster_source import JOB, values, write_source
from stores import INSTALLED

from hudistream import HudiTable

pytestmark = [pytest.mark.slow, pytest.mark.places]
PROJECT = Path(__file__).parents[2]
BATCHES, DRIVER_KILLS = int(os.environ.get("BATCHES", "40")), int(os.environ.get("KILLS", "3"))
# the clock of a node that is an hour ahead, for its Python
AHEAD = """
import datetime, time
_time, _time_ns = time.time, time.time_ns
time.time = lambda: _time() + 3600
time.time_ns = lambda: _time_ns() + 3_600_000_000_000
"""


@pytest.fixture(scope="module")
def packed_node():
    """A Python that has the package from its wheel, for nodes and to be packed."""
    folder = INSTALLED / "node"
    python = make_environment(folder, f"{PROJECT}[spark]", "pyspark==3.5.*", "venv-pack", "setuptools<81")
    # what is tested is this tree
    again = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--force-reinstall"]
    subprocess.run([python, *again, str(PROJECT)], check=True)
    return python


def wait_for_text(log, text, process, patience_s=180, count=1):
    """Waits until a job has printed a text so many times, or has ended."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        if log.exists() and log.read_text().count(text) >= count:
            return True
        if process.poll() is not None:
            return log.read_text().count(text) >= count
        time.sleep(0.1)
    pytest.fail(f"{text!r} did not come: {log.read_text()[-3000:]}")


def end(process):
    """Kills a driver and what it started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_executors_workers_daemons_and_drivers_that_are_killed_lose_nothing(tmp_path, table_type):
    held = write_source(tmp_path / "in", BATCHES)
    table, checkpoint = tmp_path / "t", tmp_path / "c"
    options = (
        f'{{"hoodie.datasource.write.table.type": "{table_type}", "hoodie.compact.inline.max.delta.commits": "5"}}'
    )
    luck, killed = random.Random(), {"executor": 0, "python": 0, "worker": 0, "driver": 0}
    with Cluster(tmp_path / "cluster", {"a": sys.executable, "b": sys.executable}) as cluster:
        deadline, done = time.monotonic() + 60 * max(8, BATCHES // 5), False
        for life in range(1000):
            log = tmp_path / f"driver-{life}.log"
            driver = cluster.submit(JOB, tmp_path / "in", table, checkpoint, "0", options, log=log)
            dies_s = time.monotonic() + luck.uniform(15, 40) if life < DRIVER_KILLS else deadline
            while driver.poll() is None and time.monotonic() < min(dies_s, deadline):
                time.sleep(luck.uniform(1.5, 6))
                kind, name = luck.choice(["executor", "python", "executor", "worker"]), luck.choice("ab")
                if kind == "worker":
                    cluster.kill_worker(name)
                    time.sleep(luck.uniform(0, 4))
                    cluster.start_worker(name)
                else:
                    victims = cluster.victims(name)[kind]
                    for victim in victims:
                        victim.kill()
                    if not victims:
                        continue
                killed[kind] += 1
            if driver.poll() is None:
                killed["driver"] += 1
                end(driver)
            done = "DONE" in log.read_text()
            if done or time.monotonic() > deadline:
                break
        assert done, (killed, log.read_text()[-3000:])
    print(killed)
    assert sum(killed.values()) > 5
    assert values(table) == held
    assert HudiTable.open(table).check().is_sound


@pytest.mark.parametrize("lacking", ["everything", "hudistream"])
def test_a_node_without_the_package_is_named_before_anything_is_requested(tmp_path, lacking):
    write_source(tmp_path / "in", 1)
    packages = ["pyarrow", "pandas<3"] if lacking == "hudistream" else []
    bare = make_environment(INSTALLED / f"bare-{len(packages)}", *packages)
    with Cluster(tmp_path / "cluster", {"a": sys.executable, "b": bare}) as cluster:
        log = tmp_path / "driver.log"
        driver = cluster.submit(
            JOB, tmp_path / "in", tmp_path / "t", tmp_path / "c", log=log, conf=["spark.cores.max=2"]
        )
        driver.wait(180)
    told = log.read_text()
    assert "DONE" not in told
    failed = re.search(r"FAILED (.*)", told)
    assert failed, told[-3000:]
    assert re.search(r"Spark's worker on \S+ does not have the module 'streaming'", failed[1]), failed[1]
    assert "install the hudistream of the driver on every node" in failed[1]
    assert not list((tmp_path / "t").rglob("*.requested"))


def test_where_no_node_has_the_package_or_the_store_the_driver_writes(tmp_path):
    """Nodes have pyarrow and no hudistream; the batches of the stream come to the driver."""
    held = write_source(tmp_path / "in", 3)
    bare = make_environment(INSTALLED / "bare-2", "pyarrow", "pandas<3")
    table, log = tmp_path / "t", tmp_path / "driver.log"
    with Cluster(tmp_path / "cluster", {"a": bare, "b": bare}) as cluster:
        on_driver = '{"hudistream.write.location": "driver"}'
        cluster.submit(JOB, tmp_path / "in", table, tmp_path / "c", "0", on_driver, log=log).wait(240)
    assert "DONE" in log.read_text(), log.read_text()[-3000:]
    assert values(table) == held


def test_a_bare_node_that_comes_later_is_named_or_its_tasks_move(tmp_path):
    held = write_source(tmp_path / "in", 12)
    bare = make_environment(INSTALLED / "bare-2", "pyarrow", "pandas<3")
    parallel = '{"hoodie.upsert.shuffle.parallelism": "4"}'
    table = tmp_path / "t"
    with Cluster(tmp_path / "cluster", {"a": sys.executable}) as cluster:
        log = tmp_path / "driver.log"
        driver = cluster.submit(JOB, tmp_path / "in", table, tmp_path / "c", "1", parallel, log=log)
        wait_for_text(log, "BATCH", driver, count=2)
        cluster.start_worker("b", bare)
        driver.wait(240)
        told = log.read_text()
        if "DONE" not in told:
            failed = re.search(r"FAILED (.*)", told)
            assert failed, told[-3000:]
            named = r"Spark's worker on \S+ does not have the module '(table|streaming)'"
            assert re.search(named, failed[1]), failed[1]
            cluster.kill_worker("b")
            cluster.start_worker("b", sys.executable)
            log = tmp_path / "again.log"
            cluster.submit(JOB, tmp_path / "in", table, tmp_path / "c", "0", parallel, log=log).wait(240)
        assert "DONE" in log.read_text(), log.read_text()[-3000:]
        print("the batch failed" if "DONE" not in told else "the tasks moved")
    assert values(table) == held


def test_a_packed_environment_on_nodes_without_any_package(tmp_path, packed_node):
    held = write_source(tmp_path / "in", 5)
    packed = tmp_path / "env.tar.gz"
    pack = [
        packed_node.with_name("venv-pack"),
        "-p",
        packed_node.parents[1],
        "-o",
        packed,
        "-q",
        "--compress-level",
        "1",
    ]
    subprocess.run(list(map(str, pack)), check=True, env={**os.environ, "PYTHONPATH": ""})
    bare = make_environment(INSTALLED / "bare-0")
    with Cluster(tmp_path / "cluster", {"a": bare, "b": bare}) as cluster:
        log = tmp_path / "driver.log"
        cluster.submit(
            JOB, tmp_path / "in", tmp_path / "t", tmp_path / "c", log=log, archives=f"{packed}#environment",
            python="./environment/bin/python",
        ).wait(240)  # fmt: skip
        assert "DONE" in log.read_text(), log.read_text()[-3000:]
    assert values(tmp_path / "t") == held


def python_ahead(folder):
    """A Python whose clock is an hour ahead."""
    (folder / "sitecustomize.py").write_text(AHEAD)
    python = folder / "python-ahead"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}:$PYTHONPATH" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return python


def variables_ahead():
    """Variables of an environment in which each process is an hour ahead: the worker's JVM and its executors, too."""
    home = make_environment(INSTALLED / "libfaketime", "libfaketime", constrained=False).parents[1]
    (library,) = home.glob("lib/python*/site-packages/libfaketime/vendor/libfaketime/src/libfaketime.so.1")
    # the "fix" makes threads of a JVM that wait spin instead
    own = {"FAKETIME": "+3600", "FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_FORCE_MONOTONIC_FIX": "0"}
    return {"LD_PRELOAD": str(library), **own}


@pytest.mark.parametrize("what", ["its Python", "the whole node"])
def test_a_node_whose_clock_is_an_hour_ahead_is_named_and_harmless(tmp_path, what):
    held = write_source(tmp_path / "in", 8)
    (tmp_path / "ahead").mkdir()
    is_whole = what == "the whole node"
    pythons = {"a": sys.executable, "b": sys.executable if is_whole else python_ahead(tmp_path / "ahead")}
    with Cluster(tmp_path / "cluster", pythons, {"b": variables_ahead()} if is_whole else None) as cluster:
        log = tmp_path / "driver.log"
        cluster.submit(
            JOB, tmp_path / "in", tmp_path / "t", tmp_path / "c", "0", '{"hoodie.clean.commits.retained": "2"}', log=log
        ).wait(240)
    told = log.read_text()
    assert "DONE" in told, told[-3000:]
    assert re.search(r"clock_of_a_worker_is_off.*seconds=3[56]\d\d", told), told[-3000:]
    assert values(tmp_path / "t") == held
    assert HudiTable.open(tmp_path / "t").check().is_sound
