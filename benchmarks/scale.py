"""What grows with a table: processor seconds and storage calls of batches, reads and services over large tables.

    python benchmarks/scale.py --out /tmp/now.json   all steps; docs/concepts/scale.md says what came of it
    python benchmarks/scale.py --only timeline --out /tmp/now.json
    PYTHONPATH=/another/checkout python benchmarks/scale.py --out /tmp/before.json   the same of another version

Large tables are made cheaply: a writer writes one file and its commit, the file is linked under other names, and the
commit names them all. Each step runs in a process of its own, without Spark, on a local disk in memory.
"""

import argparse
import json
import logging
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))  # behind PYTHONPATH, which may name another version
PLACE = "/dev/shm" if os.path.isdir("/dev/shm") else None
QUIET = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
CALLS = (
    "read", "list_dir", "list_names", "list_tree", "exists", "create_exclusive", "put", "_delete", "open_input",
    "open_output", "open_copy", "publish", "sync", "open_staging", "is_open", "fence", "remove_empty_dir", "make_dir",
)  # fmt: skip
calls: Counter[str] = Counter()


# ---- measuring


def count_calls() -> None:
    """Counts the calls of the local storage."""
    from table.storage.local import LocalStorage

    for name in CALLS:
        inner = getattr(LocalStorage, name, None)
        if inner is not None:
            setattr(LocalStorage, name, _counted(name, inner))


def _counted(name: str, inner: Callable[..., Any]) -> Callable[..., Any]:
    def call(*given: Any, **named: Any) -> Any:
        calls[name] += 1
        return inner(*given, **named)

    return call


def spent_s() -> float:
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime


def bytes_read() -> int:
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("rchar")).split()[1])


def measure(step: Callable[[], Any]) -> dict[str, Any]:
    """Processor seconds, storage calls, megabytes read and peak memory of one step."""
    calls.clear()
    began, read = spent_s(), bytes_read()
    step()
    return {
        "cpu_s": round(spent_s() - began, 3),
        "calls": sum(calls.values()),
        "listings": calls["list_dir"] + calls["list_names"] + calls["list_tree"],
        "mb_read": round((bytes_read() - read) / 1e6, 1),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


# ---- tables


def make_rows(count: int, first: int = 0, paths: int = 8, ts: int = 0) -> pa.Table:
    numbers = np.arange(first, first + count)
    return pa.table({
        "id": [f"k{n}" for n in numbers],
        "p": [f"p{n % paths:06d}" for n in numbers],
        "ts": np.full(count, ts, np.int64),
        "v": [f"v{n}" for n in numbers],
    })  # fmt: skip


def make_sink(path: str, operation: str = "insert", **options: str) -> Any:
    from hudistream import ArrowSink

    given = {**QUIET, **{name.replace("__", "."): value for name, value in options.items()}}
    return ArrowSink(path, given, key="id", partition_by="p", order_by="ts", operation=operation, workers=1)


def make_table(path: str, paths: int, files: int = 1) -> None:
    """A table of links: `files` files of 100 rows in each partition path, which one commit names."""
    with make_sink(path) as sink:
        sink.write(make_rows(100, paths=1), batch_id=0)
    [commit] = Path(path, ".hoodie").glob("*.commit")
    written = json.loads(commit.read_text())
    [(first, [stat])] = written["partitionToWriteStats"].items()
    [source] = Path(path, first).glob("*.parquet")
    partition_file, end = next(Path(path, first).glob(".hoodie_partition_metadata*")), source.name.partition("_")[2]
    stats = {}
    links = 0
    for number in range(paths):
        folder = Path(path, f"p{number:06d}")
        if number:
            folder.mkdir()
            os.link(partition_file, folder / partition_file.name)
        stats[folder.name] = [stat] if number == 0 else []
        for _ in range(files - (number == 0)):
            file_id = f"{uuid.uuid4()}-0"
            links += 1
            if links % 50_000 == 0:  # a file has at most 65,000 links
                source = Path(shutil.copy(source, Path(path, ".hoodie", f".source-{links}")))
            os.link(source, folder / f"{file_id}_{end}")
            told = {"fileId": file_id, "path": f"{folder.name}/{file_id}_{end}", "partitionPath": folder.name}
            stats[folder.name].append({**stat, **told})
    written["partitionToWriteStats"] = stats
    commit.write_text(json.dumps(written))


def make_timeline(path: str, commits: int) -> None:
    """A table with many commits that name no file."""
    with make_sink(path, "upsert") as sink:
        sink.write(make_rows(2000), batch_id=0)
    folder = Path(path, ".hoodie")
    [first] = folder.glob("*.commit")
    written = json.loads(first.read_text())
    body = json.dumps({**written, "partitionToWriteStats": {}})
    for number in range(commits):
        time = f"20250101{number:09d}"
        for state in ("commit.requested", "inflight"):
            (folder / f"{time}.{state}").touch()
        (folder / f"{time}.commit").write_text(body)


# ---- steps: each yields (name, figures)


def steady(path: str, paths: int) -> Any:
    """Batches of 2,000 rows into 8 of many partition paths."""
    make_table(path, paths)
    for operation in ("insert", "upsert"):
        with make_sink(path, operation) as sink:
            for number in range(1, 5):
                batch = make_rows(2000, number * 10_000 if operation == "insert" else 0, ts=number)
                figures = measure(lambda batch=batch, number=number: sink.write(batch, batch_id=number))
                if number in (1, 4):
                    yield f"{operation}, {'first' if number == 1 else 'steady'}", figures
        shutil.rmtree(path)
        make_table(path, paths)


def wide(path: str, paths: int) -> Any:
    """A batch that touches many partition paths."""
    with make_sink(path, "upsert") as sink:
        yield "new files", measure(lambda: sink.write(make_rows(paths * 10, paths=paths), batch_id=0))
        yield "upsert", measure(lambda: sink.write(make_rows(paths * 10, paths=paths, ts=1), batch_id=1))
        yield "next batch into 8", measure(lambda: sink.write(make_rows(2000, ts=2), batch_id=2))


def reads(path: str, files: int) -> Any:
    """Questions to a table of many files, ten to a path."""
    from hudistream import HudiTable, check

    make_table(path, max(1, files // 10), 10)
    where = [("p", "=", "p000003")]
    yield "plan, one partition", measure(lambda: HudiTable.open(path).scan(where=where).plan())
    yield "plan, all", measure(lambda: HudiTable.open(path).scan().plan())
    yield "schema", measure(lambda: HudiTable.open(path).schema)
    yield "history(1)", measure(lambda: HudiTable.open(path).history(1))
    yield "files()", measure(lambda: HudiTable.open(path).files())
    yield "check", measure(lambda: check(HudiTable.open(path)))
    with make_sink(path, "upsert") as sink:
        for number in range(1, 4):
            sink.write(make_rows(2000, ts=number), batch_id=number)
    settings = _settings("CleanSettings", commits_retained=1, grace_ms=0)
    yield "first clean", measure(lambda: HudiTable.open(path).clean(settings))
    with make_sink(path, "upsert") as sink:
        sink.write(make_rows(2000, ts=9), batch_id=9)
    yield "later clean", measure(lambda: HudiTable.open(path).clean(settings))


def timeline(path: str, commits: int) -> Any:
    """A timeline whose archival is held."""
    from hudistream import HudiTable

    make_timeline(path, commits)
    with make_sink(path, "upsert") as sink:
        for number in range(1, 6):
            figures = measure(lambda number=number: sink.write(make_rows(2000, ts=number), batch_id=number))
            if number in (1, 5):
                yield "first batch" if number == 1 else "steady batch", figures
    yield "plan", measure(lambda: HudiTable.open(path).scan().plan())
    bounds = _settings("ArchiveSettings", min_commits=20, max_commits=30)
    yield (
        "archive",
        measure(lambda: HudiTable.open(path).archive(bounds, _settings("CleanSettings", commits_retained=1))),
    )


def global_index(path: str, paths: int) -> Any:
    """A global bloom index; batches of 2,000 new keys."""
    make_table(path, paths)
    with make_sink(path, "upsert", hoodie__index__type="GLOBAL_BLOOM") as sink:
        for number in range(1, 5):
            batch = make_rows(2000, 10**7 + number * 2000, ts=number)
            figures = measure(lambda batch=batch, number=number: sink.write(batch, batch_id=number))
            if number in (1, 4):
                yield "first" if number == 1 else "steady", figures


def record_index(path: str, paths: int) -> Any:
    """The record index of 900,000 keys; batches of 2,000 new keys, and of 2,000 known ones in eight partition paths."""
    rows = make_rows(900_000, paths=paths)
    known = rows.filter(pc.is_in(rows.column("p"), rows.column("p")[:8].unique())).slice(0, 2000)
    made = {"hoodie__metadata__enable": "true", "hoodie__metadata__record__index__enable": "true"}
    with make_sink(path, "insert") as sink:
        sink.write(rows, batch_id=0)
    for index in ("GLOBAL_BLOOM", "RECORD_INDEX"):
        with make_sink(path, "upsert", hoodie__index__type=index, **made) as sink:
            for number in range(4):
                new = make_rows(2000, 10**7 + 10_000 * (number + len(index)), ts=number)
                figures = measure(lambda new=new: sink.write(new))
                updated = measure(lambda: sink.write(known))
            yield f"new keys, {index}", figures
            yield f"known keys, {index}", updated


def logs(path: str, count: int) -> Any:
    """A slice of 50,000 rows with many log files of 1,000 rows."""
    from hudistream import ArrowSink, HudiTable

    options = {
        **QUIET, "hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "1", "compaction.async.enabled": "false", "hoodie.compact.inline": "false",
    }  # fmt: skip
    with ArrowSink(path, options, key="id", partition_by="p", order_by="ts", operation="upsert") as sink:
        sink.write(make_rows(50_000, paths=1), batch_id=0)
        for number in range(count):
            chosen = np.sort(np.random.default_rng(number).choice(50_000, 1000, replace=False))
            batch = make_rows(50_000, paths=1, ts=number + 1).take(pa.array(chosen))
            sink.write(batch, batch_id=number + 1)
    yield "read all", measure(lambda: HudiTable.open(path).scan().to_arrow())
    yield "read one column", measure(lambda: HudiTable.open(path).scan(columns=["id"]).to_arrow())


def sinks(path: str, count: int) -> Any:
    """Sinks of as many tables in one process, each with a batch written; the ten in the middle get more."""
    opened = [make_sink(f"{path}{number}") for number in range(count)]

    def open_all() -> None:
        for sink in opened:
            sink.write(make_rows(100), 0)

    yield "the first batch of each", measure(open_all)
    alive = opened[count // 2 - 5 : count // 2 + 5]
    for number in range(1, 4):
        for sink in alive:
            sink.write(make_rows(100, 1000 * number), number)

    def write_ten() -> None:
        for sink in alive:
            sink.write(make_rows(100, 9000), 9)

    told = {**measure(write_ten), "threads": len(threading.enumerate()), "files": len(os.listdir("/proc/self/fd"))}
    yield "a batch in each of ten", told
    for sink in opened:
        sink.stop()
    for number in range(count):
        shutil.rmtree(f"{path}{number}")


def _settings(name: str, **given: Any) -> Any:
    import hudistream

    return getattr(hudistream, name)(**given)


STEPS: dict[str, tuple[Callable[[str, int], Any], str, tuple[int, ...]]] = {
    "steady": (steady, "partition paths", (100, 10_000, 50_000)),
    "wide": (wide, "partition paths", (10, 100, 1000)),
    "reads": (reads, "files", (1000, 10_000, 100_000)),
    "timeline": (timeline, "commits", (30, 3000, 10_000)),
    "global": (global_index, "partition paths", (1000, 9000, 12_000)),
    "record index": (record_index, "files", (1000, 9000)),
    "logs": (logs, "log files", (5, 50, 200, 500)),
    "sinks": (sinks, "sinks", (10, 100, 1000)),
}


def run_one(name: str, size: int) -> None:
    """One step over one table; prints its figures as JSON."""
    import structlog

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    count_calls()
    folder = tempfile.mkdtemp(dir=PLACE)
    try:
        found = dict(STEPS[name][0](f"{folder}/t", size))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(found))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=STEPS, help="one of the steps")
    parser.add_argument("--out", default="scale.json", help="a file for the figures")
    parser.add_argument("--one", nargs=2, metavar=("STEP", "SIZE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        run_one(given.one[0], int(given.one[1]))
        return 0
    results: dict[str, dict[str, Any]] = {}
    for name, (_, unit, sizes) in STEPS.items():
        if given.only not in (None, name):
            continue
        results[name] = {"unit": unit}
        for size in sizes:
            one = [sys.executable, __file__, "--one", name, str(size)]
            done = subprocess.run(one, capture_output=True, text=True, check=False, timeout=1800)
            lines = done.stdout.strip().splitlines()
            results[name][str(size)] = json.loads(lines[-1]) if done.returncode == 0 else done.stderr[-500:]
            print(name, size, json.dumps(results[name][str(size)]), flush=True)
            Path(given.out).write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
