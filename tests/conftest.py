"""Fixtures: one Spark session a run, real Hudi in its own process, golden tables, oracles that must not be skipped."""

import json
import os
import shutil
import sys
import threading
import time
import zipfile
from pathlib import Path
from unittest import mock

import pytest
import structlog
from costs import CostRecord
from last_runs import RunRecord, keep_longest_waiting
from memory_folder import make_memory_folder
from tiers import EVERYTHING, mark_beyond_budget, mark_beyond_pairs, set_pace

GOLDEN = Path(__file__).with_name("golden")

# their asserts say what they compared, too
pytest.register_assert_rewrite("engine", "command_line", "snapshots", "upkeep", "oracles", "simulation")


def pytest_addoption(parser):
    parser.addoption("--hours", type=float, help="run what waited longest of the tests that make test leaves out")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from processes import ByJvm

    return ByJvm(config, log)


def is_pure(item):
    """Whether a test only decides over values: nothing on disk, no Spark, no Hudi, no simulated world."""
    outside = {"tmp_path", "tmp_path_factory", "golden", "s3", "spark", "hudi"} & set(item.fixturenames)
    marked = any(item.get_closest_marker(name) for name in ("spark", "hudi", "slow"))
    # a test case of a class makes its own folder, and tests/safety simulates whole tables
    return not outside and not marked and item.cls is None and "safety" not in item.path.parts


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    mark_beyond_pairs(items)
    if config.option.markexpr == "not slow":  # make test; mutants are shown to all
        mark_beyond_budget(items)
    if config.option.hours:
        keep_longest_waiting(config, items)
    for item in items:
        if is_pure(item):
            item.add_marker(pytest.mark.pure)
    if hasattr(config, "workerinput"):  # one of several processes
        from processes import heaviest_first

        items.sort(key=lambda item: heaviest_first(item.nodeid))


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    set_pace(config.option.markexpr or "")
    if config.option.markexpr in ("", EVERYTHING) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(RunRecord() if config.option.hours else CostRecord())
    if config.option.basetemp is None:  # processes are given theirs by the one that starts them
        config.option.basetemp = made = make_memory_folder()
        if made is not None:
            config.add_cleanup(lambda: shutil.rmtree(made, ignore_errors=True))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # the threads of the optimising compiler take the cores from the tests, and their JVMs live for minutes
    os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    os.environ["TZ"] = "America/New_York"  # a machine that is not in UTC finds what relies on it
    time.tzset()


@pytest.fixture(autouse=True, scope="session")
def _no_wait_for_the_disk():
    """Nobody cuts the power of this machine: what asks the disk to hold a file gets an error for a bad descriptor only.

    Processes that a test starts, which are killed, do wait for it.
    """
    with mock.patch.object(os, "fsync", os.fstat):
        yield


@pytest.fixture(autouse=True)
def _quiet_log():
    with structlog.testing.capture_logs():
        yield
    structlog.reset_defaults()  # else structlog counts as configured by the application


@pytest.fixture
def logs():
    """Events of every level, with all their fields.

    Left out is what watches of earlier tests say: they notice some seconds later that a query has ended.
    """
    earlier = {thread for thread in threading.enumerate() if thread.name == "hudistream-query"}

    def of_this_test(_logger, _method, event):
        if threading.current_thread() in earlier:
            raise structlog.DropEvent
        return event

    with structlog.testing.capture_logs() as entries:
        # what a batch binds is part of its events, as with structlog's default configuration
        structlog.get_config()["processors"][:0] = [of_this_test, structlog.contextvars.merge_contextvars]
        yield entries


@pytest.fixture(scope="session")
def spark():
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .appName("hudistream-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.session.timeZone", "Asia/Tokyo")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.python.worker.faulthandler.enabled", "true")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def hudi():
    from oracles.hudi import Hudi, HudiError

    real = Hudi()
    try:
        real.start()
    except HudiError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"real Hudi cannot be had here: {error}")
    yield real
    real.stop()


@pytest.fixture
def utc(monkeypatch):
    """A machine in UTC: the golden tables' zone is LOCAL, and their writer's machine was there."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def golden(tmp_path):
    """golden(name) -> (path of the unpacked table with its modification times, what it is to hold)."""

    def unpack(name):
        target = tmp_path / name
        with zipfile.ZipFile(GOLDEN / f"{name}.zip") as archive:
            archive.extractall(target)
        expected = json.loads((GOLDEN / f"{name}.expected.json").read_text())
        for path, modified_ms in expected.get("completed_instant_mtimes_ms", {}).items():
            os.utime(target / path, (modified_ms / 1000, modified_ms / 1000))
        return str(target), expected

    return unpack
