"""When the tests ran that `make test` leaves to `make test-all`: with HOURS, those run that have waited longest."""

import json
import os
import subprocess
import zlib
from collections import Counter, defaultdict
from datetime import datetime, timezone
from pathlib import Path

import pytest
from costs import function_of, load_costs

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "benchmarks" / "results" / "test-all.json"
_GUESS_S = 15  # a case that never ran
_NEVER = ""


def load_runs():
    """What is known by function: `at`, `commit`, `cases`, `seconds`, `failed`."""
    return json.loads(FILE.read_text()) if FILE.exists() else {}


def left_to_test_all(items):
    """Cases by function, of functions of which `make test` runs a part or nothing.

    Args:
        items: collected tests, marked by `tiers`.
    """
    cases, left = defaultdict(list), set(load_costs())
    for item in items:
        if item.get_closest_marker("places"):
            continue
        name = function_of(item.nodeid)
        cases[name].append(item)
        if item.get_closest_marker("slow"):
            left.add(name)
    return {name: found for name, found in cases.items() if name in left}


def longest_waiting(counts, runs, seconds):
    """The functions that run: those that never ran, then those that failed, then by the time of their last run.

    Args:
        counts: how many cases each function has.
        runs: as `load_runs` has them.
        seconds: of all processes together. One function runs whatever it costs.
    """

    def waited(name):
        run = runs.get(name, {"failed": [], "at": _NEVER})
        mixed = zlib.crc32(name.encode())  # in the order of names, all that need Hudi would come first, in one process
        return run["at"] != _NEVER, not run["failed"], run["at"], mixed

    chosen = []
    for name in sorted(counts, key=waited):
        run = runs.get(name)
        seconds -= counts[name] * (run["seconds"] / run["cases"] if run else _GUESS_S)
        if chosen and seconds < 0:
            break
        chosen.append(name)
    return chosen


def keep_longest_waiting(config, items):
    """Deselects what `longest_waiting` leaves out."""
    cases = left_to_test_all(items)
    processes = getattr(config, "workerinput", {}).get("workercount", 1)
    seconds = config.option.hours * 3600 * processes
    counts = {name: len(found) for name, found in cases.items()}
    chosen = set(longest_waiting(counts, load_runs(), seconds))
    out = [item for item in items if function_of(item.nodeid) not in chosen]
    config.hook.pytest_deselected(items=out)
    items[:] = [item for item in items if function_of(item.nodeid) in chosen]


class RunRecord:
    """Notes what ran, and writes down each function of which every case ran."""

    def __init__(self):
        self.expected, self.ran = {}, Counter()
        self.seconds, self.failed = Counter(), defaultdict(set)

    def pytest_collection_finish(self, session):
        self.expected = Counter(function_of(item.nodeid) for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node, ids):
        self.expected = Counter(map(function_of, ids))

    def pytest_runtest_logreport(self, report):
        name = function_of(report.nodeid)
        self.seconds[name] += report.duration
        self.ran[name] += report.when == "teardown"
        if report.failed:
            self.failed[name].add(report.nodeid.removeprefix(name))

    def pytest_sessionfinish(self):
        asked = ("git", "rev-parse", "--short=9", "HEAD")
        commit = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
        at, runs = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M"), load_runs()
        for name, cases in self.expected.items():
            if self.ran[name] == cases:
                runs[name] = {
                    "at": at,
                    "commit": commit.stdout.strip() or "no repository",
                    "cases": cases,
                    "seconds": round(self.seconds[name], 1),
                    "failed": sorted(self.failed[name]),
                }
        lines = (f"{json.dumps(name)}: {json.dumps(runs[name])}" for name in sorted(runs))
        part = FILE.with_suffix(f".{os.getpid()}")
        part.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        part.replace(FILE)
