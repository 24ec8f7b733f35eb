"""Writing without Spark beside delta-rs, pyiceberg and DuckLake: `benchmarks/without_spark.py --python …/bin/python`.

Each write is a process of its own, so that its peak memory is its own; it holds the rows that are written. Rounds go
through all writers in turn. Half of the rows of an upsert are new, and the upserts of a writer change one table, which
grows alike for all. An upsert that takes longer than the limit is stopped, and its writer is asked for no more
upserts; nor is one that crashed. Small batches go to one partition path each, or to eight. Writers that are not asked
(`--writers`) keep their last readings. Writes ``benchmarks/results/without-spark.json`` and
``benchmarks/without_spark.md``.

The interpreter of `--python` has hudistream's dependencies, deltalake, pyiceberg[sql-sqlite,pyarrow], duckdb and
duckdb-extension-ducklake.
"""

import argparse
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa

HERE = Path(__file__).parent
SIZES = (10_000, 100_000, 1_000_000)
PARTITIONS = 8
PACKAGES = {"hudistream": "pyarrow", "deltalake": "deltalake", "pyiceberg": "pyiceberg", "ducklake": "duckdb"}


# ---- rows


def made(numbers, ts, texts=3, columns=5, partitions=PARTITIONS):
    """Rows with these numbers as keys, in this order."""
    numbers = np.asarray(numbers, np.int64)
    random = np.random.default_rng(ts)
    told = {"id": pa.array(numbers).cast(pa.string()), "p": pa.array(numbers % partitions).cast(pa.string())}
    told["ts"] = pa.array(np.full(len(numbers), ts, np.int64))
    for n in range(texts):
        told[f"c{n}"] = pa.array(random.integers(0, 1 << 60, len(numbers))).cast(pa.string())
    for n in range(columns - texts):
        told[f"n{n}"] = pa.array(random.random(len(numbers)))
    return pa.table(told)


def first_rows(rows):
    return made(np.random.default_rng(0).permutation(rows), 0)


def changes(rows, size, number):
    """Half of them change rows, half are new; `number` counts the upserts before."""
    random = np.random.default_rng(number + 1)
    old = random.choice(rows, size // 2, replace=False)
    new = rows + number * max(SIZES) + np.arange(size - size // 2)
    return made(random.permutation(np.concatenate([old, new])), number + 1)


def small(number, partitions):
    return made(np.arange(number * 10, number * 10 + 10), number, texts=10, columns=20, partitions=partitions)


# ---- writers: each makes a table, upserts rows, appends many small batches


class Ours:
    """Small batches as they come, with cleaning and archival beside them; no upkeep for a process of one upsert."""

    form: ClassVar = {}
    first, operation = "bulk_insert", "insert"

    def __init__(self, place):
        from hudistream import ArrowSink

        self.make = lambda name, operation, **options: ArrowSink(
            os.path.join(place, name), {**self.form, **options}, key="id", partition_by="p", order_by="ts",
            operation=operation,
        )  # fmt: skip

    def build(self, rows):
        self.make("table", self.first).write(rows)

    def upsert(self, rows):
        self.make("table", "upsert", **{"hoodie.clean.automatic": "false"}).write(rows)

    def append_all(self, batches):
        with self.make("small", self.operation) as sink:
            for number, rows in enumerate(batches):
                sink.write(rows, batch_id=number)


class OursInLogs(Ours):
    """Merge-on-read with a bucket index: a batch appends log files, and looks no key up. Compaction runs beside it."""

    form: ClassVar = {
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "1",
        "hoodie.compact.inline.max.delta.commits": "50",
    }
    first = operation = "upsert"


class Delta:
    def __init__(self, place):
        self.place = place

    def build(self, rows):
        from deltalake import write_deltalake

        write_deltalake(os.path.join(self.place, "table"), rows, partition_by=["p"])

    def upsert(self, rows):
        from deltalake import DeltaTable

        merge = DeltaTable(os.path.join(self.place, "table")).merge(
            rows, "t.p = s.p AND t.id = s.id", source_alias="s", target_alias="t"
        )
        merge.when_matched_update_all().when_not_matched_insert_all().execute()

    def append_all(self, batches):
        from deltalake import write_deltalake

        for rows in batches:
            write_deltalake(os.path.join(self.place, "small"), rows, mode="append", partition_by=["p"])


class Iceberg:
    def __init__(self, place):
        from pyiceberg.catalog.sql import SqlCatalog

        os.makedirs(place, exist_ok=True)
        self.catalog = SqlCatalog("c", uri=f"sqlite:///{place}/catalog.db", warehouse=f"file://{place}")

    def create(self, name, schema):
        from pyiceberg.transforms import IdentityTransform

        self.catalog.create_namespace_if_not_exists("n")
        table = self.catalog.create_table(f"n.{name}", schema=schema)
        with table.update_spec() as update:
            update.add_field("p", IdentityTransform(), "p")
        return self.catalog.load_table(f"n.{name}")

    def build(self, rows):
        self.create("table", rows.schema).append(rows)

    def upsert(self, rows):
        self.catalog.load_table("n.table").upsert(rows, join_cols=["p", "id"])

    def append_all(self, batches):
        table = None
        for rows in batches:
            table = table or self.create("small", rows.schema)
            table.append(rows)


class DuckLake:
    """As it comes: the catalog is a DuckDB file, and batches of few rows stay in it ("inlined")."""

    def __init__(self, place):
        import duckdb
        import duckdb_extension_ducklake as extension

        os.makedirs(place, exist_ok=True)
        [found] = Path(extension.__file__).parent.rglob("*.duckdb_extension")
        self.db = duckdb.connect()
        self.db.execute(f"LOAD '{found}'")
        self.db.execute(f"ATTACH 'ducklake:{place}/catalog.ducklake' AS l (DATA_PATH '{place}/data')")

    def create(self, name, rows):
        self.db.register("given", rows)
        self.db.execute(f"CREATE TABLE l.{name} AS SELECT * FROM given LIMIT 0")
        self.db.execute(f"ALTER TABLE l.{name} SET PARTITIONED BY (p)")

    def insert(self, name, rows):
        self.db.register("given", rows)
        self.db.execute(f"INSERT INTO l.{name} SELECT * FROM given")

    def build(self, rows):
        self.create("tbl", rows)
        self.insert("tbl", rows)

    def upsert(self, rows):
        self.db.register("given", rows)
        self.db.execute(
            "MERGE INTO l.tbl AS t USING given AS s ON t.p = s.p AND t.id = s.id "
            "WHEN MATCHED THEN UPDATE WHEN NOT MATCHED THEN INSERT"
        )

    def append_all(self, batches):
        self.create("small", batches[0])
        for rows in batches:
            self.insert("small", rows)


WRITERS = {
    "hudistream": Ours,
    "hudistream logs": OursInLogs,
    "deltalake": Delta,
    "pyiceberg": Iceberg,
    "ducklake": DuckLake,
}


# ---- measuring


def child(writer, place, what, rows, size, number):
    """In the child: seconds, and the peak of this process's memory; rows are made before the time is taken."""
    if what == "small":
        given = [small(n, rows) for n in range(size)]
    else:
        given = first_rows(rows) if what == "build" else changes(rows, size, number)
    one = WRITERS[writer](os.path.join(place, writer))
    status = Path("/proc/self/status").read_text()
    before_mb = int(status.partition("VmRSS:")[2].split()[0]) / 1024
    started = time.perf_counter()
    {"build": one.build, "upsert": one.upsert, "small": one.append_all}[what](given)
    seconds = time.perf_counter() - started
    peak_mb = int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) / 1024
    print(json.dumps({"seconds": seconds, "peak_mb": peak_mb, "before_mb": before_mb}))


def _deep_stack():
    """pyiceberg makes one condition of all keys of an upsert, which Arrow walks by recursion: 8 MB end in a crash."""
    resource.setrlimit(resource.RLIMIT_STACK, (4 << 30, resource.getrlimit(resource.RLIMIT_STACK)[1]))


def run(given, place, writer, what, size=0, number=0):
    """One reading; None where an upsert took longer than the limit."""
    facts = [writer, place, what, str(number if what == "small" else given.rows), str(size), str(number)]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    limit = given.limit if what == "upsert" else None
    try:
        done = subprocess.run(
            [given.python, __file__, "--child", *facts],
            capture_output=True, text=True, check=False, timeout=limit, env=environment, preexec_fn=_deep_stack,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None
    if done.returncode < 0:
        print(f"{writer}, {what}: killed by signal {-done.returncode}", flush=True)
        return None
    if done.returncode:
        sys.exit(f"{writer}, {what}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def measure(given, place):
    """Case -> writer -> readings; None for one that was stopped."""
    names = [name for name in given.writers.split(",") if name]
    found = {f"upsert of {size:,}": {name: [] for name in names} for size in SIZES}
    smalls = {f"{given.batches:,} batches of 10, into {paths}": paths for paths in (1, PARTITIONS)}
    found |= {case: {name: [] for name in names} for case in smalls}
    stopped = set()
    for name in names:
        run(given, place, name, "build")
    for turn in range(given.rounds):
        for step, size in enumerate(SIZES):
            for name in names:
                number = turn * len(SIZES) + step
                told = None if name in stopped else run(given, place, name, "upsert", size, number)
                found[f"upsert of {size:,}"][name].append(told)
                if told is None:
                    stopped.add(name)
                print(name, size, told, flush=True)
        for (case, paths), name in itertools.product(smalls.items(), names):
            with tempfile.TemporaryDirectory() as fresh:
                told = run(given, fresh, name, "small", given.batches, paths)
            found[case][name].append(told)
            print(name, case, told, flush=True)
    return found


def page(result):
    """The results as a page."""
    lines = ["# Writing without Spark", "", __doc__.split("\n\n")[1].replace("\n", " "), ""]
    facts = ", ".join(f"{key} {value}" for key, value in result["machine"].items())
    lines += [
        f"Tables of {result['rows']:,} rows at first, {result['rounds']} rounds, limit {result['limit']} s, {facts}.",
        "",
    ]
    lines += ["| | | seconds | times ours | peak MB |", "|---|---|---:|---:|---:|"]
    for case, writers in result["cases"].items():
        mine = next(iter(writers.values()))
        for name, readings in writers.items():
            if None in readings:
                lines.append(f"| {case} | {name} | stopped | | |")
                continue
            pairs = [(one, our) for one, our in zip(readings, mine, strict=False) if our is not None]
            seconds = statistics.median(one["seconds"] for one in readings)
            peak = statistics.median(one["peak_mb"] for one in readings)
            ratio = f"{statistics.median(one['seconds'] / our['seconds'] for one, our in pairs):.2f}" if pairs else ""
            lines.append(f"| {case} | {name} | {seconds:.2f} | {ratio} | {peak:,.0f} |")
    return "\n".join(lines) + "\n"


def versions(python):
    code = f"import importlib.metadata as m; print({{n: m.version(p) for n, p in {PACKAGES!r}.items()}})"
    said = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout
    told = dict(eval(said))
    told["pyarrow"] = told.pop("hudistream")
    return told


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--batches", type=int, default=1000)
    parser.add_argument("--limit", type=int, default=1200, help="seconds")
    parser.add_argument("--writers", default=",".join(WRITERS))
    parser.add_argument("--child", nargs=6)
    given = parser.parse_args()
    if given.child:
        writer, place, what, *numbers = given.child
        return child(writer, place, what, *map(int, numbers))
    from run import machine

    facts = {**machine(), **versions(given.python)}
    with tempfile.TemporaryDirectory() as place:
        cases = measure(given, place)
    kept = json.loads((HERE / "results" / "without-spark.json").read_text())["cases"]
    cases = {case: {**kept.get(case, {}), **writers} for case, writers in cases.items()}
    result = {"machine": facts, "rows": given.rows, "rounds": given.rounds, "limit": given.limit, "cases": cases}
    (HERE / "results" / "without-spark.json").write_text(json.dumps(result, indent=1) + "\n")
    (HERE / "without_spark.md").write_text(page(result))
    print(page(result))
    return None


if __name__ == "__main__":
    main()
