"""Reading beside other readers: `python benchmarks/reading.py [--rounds 5] [--rows 5000000]`.

Each reader has a process of its own in each round, which loads no other reader, and reads four times. Each time it
opens the table or the files anew. Each round goes through all readers, and begins with another one. "First" is the
first reading of the process, which gets its memory from the system: on a virtual machine that has given memory back to
its host, this takes up to three times as long as the reading itself, whoever reads. "Seconds", "user" (seconds of
processors) and "system" are the medians of the other three. "Streamed" readers count batches as they come; the others
hold the result. "Peak" is the greatest resident memory of the process in its first reading, "before" what it had when
its libraries were loaded. "Times ours" compares seconds within a round, streamed readers with ours streamed.

Writes ``benchmarks/results/reading.json`` and the page ``benchmarks/reading.md``.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
TABLES = ("wide", "hundred", "avro", "parquet")
FILES, NARROW, ASKED = 24, ["id", "ts", "c1"], 1000
AGAIN = 3  # readings after the first one
MEDIANS = ("first_s", "seconds", "user_s", "system_s", "peak_mb", "before_mb")
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.parquet.max.file.size": str(1 << 30),
    "hoodie.parquet.small.file.limit": "0",
}


# ---- what is read, and by whom: each returns a number of rows


def ours(question):
    """Imports what is measured when it is called, as all readers do, and gives what is to be timed."""

    def load():
        from hudistream import HudiTable

        def read(path, **facts):
            found = question(HudiTable.open(path), **facts)
            return found.num_rows if hasattr(found, "num_rows") else sum(batch.num_rows for batch in found)

        return read

    return load


def arrow(**how):
    def load():
        import pyarrow.dataset as ds

        def read(_path, files, **facts):
            given = {name: value(ds, **facts) if callable(value) else value for name, value in how.items()}
            return ds.dataset(files, format="parquet").to_table(**given).num_rows

        return read

    return load


def hudi_rs(options=None, *, streams=False):
    def load():
        import hudi

        def read(path, **facts):
            asked = options(hudi.HudiReadOptions(), **facts) if options is not None else None
            table = hudi.HudiTableBuilder.from_base_uri(path).build()
            return sum(batch.num_rows for batch in (table.read_stream(asked) if streams else table.read(asked)))

        return read

    return load


def one_partition(ds, **_facts):
    return ds.field("p") == "p03"


def the_keys(name):
    return lambda ds, **facts: ds.field("id").isin(facts[name])


def by_keys(name):
    return {
        "hudistream, lookup": ours(lambda table, **facts: table.lookup(facts[name])),
        "pyarrow.dataset, isin": arrow(filter=the_keys(name)),
    }


def with_logs():
    return {
        "hudistream": ours(lambda table, **_: table.scan(meta_columns=True).to_arrow()),
        "hudi-rs 0.5": hudi_rs(),
        "hudistream, streamed": ours(lambda table, **_: table.scan(meta_columns=True).to_batches()),
        "hudi-rs 0.5, streamed": hudi_rs(streams=True),
    }


CASES = {
    "full scan": ("wide", {
        "hudistream": ours(lambda table, **_: table.scan(meta_columns=True).to_arrow()),
        "pyarrow.dataset": arrow(),
        "hudi-rs 0.5": hudi_rs(),
    }),
    "three columns of one partition": ("wide", {
        "hudistream": ours(lambda table, **_: table.scan(NARROW, where=[("p", "=", "p03")]).to_arrow()),
        "pyarrow.dataset": arrow(columns=NARROW, filter=one_partition),
        "hudi-rs 0.5": hudi_rs(lambda asked, **_: asked.with_filters([("p", "=", "p03")]).with_projection(NARROW)),
    }),
    "1,000 keys side by side in one of 24 files": ("wide", by_keys("neighbours")),
    "1,000 keys anywhere in one of 24 files": ("wide", by_keys("spread")),
    "changes of one commit, 1 of 100 files": ("hundred", {
        "hudistream, changes": ours(lambda table, since, **_: table.changes(since).to_arrow()),
        "hudistream, snapshot": ours(lambda table, **_: table.scan(meta_columns=True).to_arrow()),
    }),
    "merge on read, Avro blocks": ("avro", with_logs()),
    "merge on read, Parquet blocks": ("parquet", with_logs()),
}  # fmt: skip


# ---- tables


def build(place, rows):
    """The tables, and what the questions need to know of them."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    from hudistream import HudiTable
    from streaming import HudiSink

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "6g")
    builder = builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "4")
    spark = builder.getOrCreate()

    def made(first, end, paths):
        ids = spark.range(first, end)
        return ids.select(
            F.md5(F.col("id").cast("string")).alias("id"),
            *(F.md5((F.col("id") * 7 + n).cast("string")).alias(f"c{n}") for n in range(2)),
            *((F.col("id") * (n + 3) % 10_007).alias(f"n{n}") for n in range(4)),
            F.col("id").alias("ts"),
            F.format_string("p%02d", F.col("id") % paths).alias("p"),
        )

    def write(name, batch, **options):
        sink = HudiSink(os.path.join(place, name), {**OPTIONS, **options})
        sink.write(batch)
        sink.stop()

    write("wide", made(0, rows, FILES))
    write("hundred", made(0, rows // 5, 100))
    since = HudiTable.open(os.path.join(place, "hundred")).newest_instant
    write("hundred", made(0, rows // 5, 100).where("p = 'p07'").withColumn("ts", F.col("ts") + rows))
    for form in ("avro", "parquet"):
        log = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.logfile.data.block.format": form}
        write(form, made(0, rows // 5, 8), **log)
        write(form, made(0, rows // 10, 8).withColumn("ts", F.col("ts") + rows), **log)
    spark.stop()
    files = {name: HudiTable.open(os.path.join(place, name)).files()["path"].to_pylist() for name in TABLES}
    files = {name: [os.path.join(place, name, path) for path in paths] for name, paths in files.items()}
    keys = HudiTable.open(os.path.join(place, "wide")).scan(["id"], where=[("p", "=", "p11")]).to_arrow()["id"]
    asked = {"neighbours": keys[:ASKED].to_pylist(), "spread": keys.to_pylist()[:: len(keys) // ASKED][:ASKED]}
    return {"since": since, "files": files, **asked}


# ---- measuring


def read_all(case, reader, path, facts):
    """In the child: how long the readings took, rows, and the peak of this process's memory."""
    table, readers = CASES[case]
    files = facts.pop("files")[table]
    read = readers[reader]()
    before_mb = memory_mb("VmRSS")

    def read_once():
        used, started = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        count = read(os.path.join(path, table), files=files, **facts)
        seconds, now = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF)
        return seconds, now.ru_utime - used.ru_utime, now.ru_stime - used.ru_stime, count

    first_s, *_, count = read_once()
    peak_mb = memory_mb("VmHWM")
    again = [read_once() for _ in range(AGAIN)]
    assert {rows for *_, rows in again} == {count}
    seconds, user_s, system_s, _ = map(statistics.median, zip(*again, strict=True))
    times = {"first_s": first_s, "seconds": seconds, "user_s": user_s, "system_s": system_s}
    print(json.dumps({**times, "rows": count, "peak_mb": peak_mb, "before_mb": before_mb}))


def memory_mb(name):
    """Of this process; what the parent had does not count."""
    return int(Path("/proc/self/status").read_text().partition(f"{name}:")[2].split()[0]) / 1024


def in_turn(readers, number):
    """The readers in the order of a round: who is first in one round is not in the next."""
    names = list(readers)
    first = number % len(names)
    return [*names[first:], *names[:first]]


def measure(place, facts, rounds):
    """Case -> reader -> the readings of all rounds."""
    found = {case: {reader: [] for reader in readers} for case, (_, readers) in CASES.items()}
    with open(os.path.join(place, "facts.json"), "w") as file:
        json.dump(facts, file)
    for number in range(rounds):
        for case, readers in found.items():
            for reader in in_turn(readers, number):
                command = [sys.executable, __file__, "--child", case, reader, place]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode:
                    sys.exit(f"{case}, {reader}: {done.stderr[-2000:]}")
                readers[reader].append(json.loads(done.stdout.strip().splitlines()[-1]))
    return found


def compared_with(reader, readers):
    """The reading of ours that answers in the same way: streamed, or held in memory."""
    streamed = [name for name in readers if name.endswith(", streamed")]
    return streamed[0] if reader in streamed else next(iter(readers))


def summary(found):
    """Case -> reader -> medians, with the ratio to ours within each round."""
    told = {}
    for case, readers in found.items():
        told[case] = {
            reader: {
                **{name: statistics.median(one[name] for one in readings) for name in MEDIANS},
                "ratio": statistics.median(
                    one["seconds"] / mine["seconds"]
                    for one, mine in zip(readings, readers[compared_with(reader, readers)], strict=True)
                ),
                "rows": sorted({one["rows"] for one in readings}),
            }
            for reader, readings in readers.items()
        }
    return told


def page(result):
    """The results as a page."""
    lines = ["# Reading", "", *__doc__.split("\n\n")[1].splitlines(), ""]
    facts = ", ".join(f"{key} {value}" for key, value in result["machine"].items())
    lines += [
        f"{result['rows']:,} rows in {FILES} files, {result['rounds']} rounds, commit {result['commit']}, {facts}.",
        "",
    ]
    lines += ["| | | seconds | times ours | user s | system s | first s | peak MB | before, MB | rows |"]
    lines += ["|---|---|---:|---:|---:|---:|---:|---:|---:|---:|"]
    for case, readers in result["cases"].items():
        for reader, one in readers.items():
            rows = " or ".join(f"{count:,}" for count in one["rows"])
            times = f"{one['seconds']:.3f} | {one['ratio']:.2f} | {one['user_s']:.2f} | {one['system_s']:.2f}"
            figures = f"{times} | {one['first_s']:.3f} | {one['peak_mb']:,.0f} | {one['before_mb']:,.0f}"
            lines.append(f"| {case} | {reader} | {figures} | {rows} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--place", help="a folder where the tables stay, so that another run finds them")
    parser.add_argument("--child", nargs=3)
    given = parser.parse_args()
    if given.child:
        case, reader, place = given.child
        facts = json.loads(Path(place, "facts.json").read_text())
        return read_all(case, reader, place, facts)
    from run import machine

    with tempfile.TemporaryDirectory() as made:
        place = given.place or made
        known = Path(place, "facts.json")
        facts = json.loads(known.read_text()) if known.exists() else build(place, given.rows)
        cases = summary(measure(place, facts, given.rounds))
    told = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True, cwd=HERE)
    facts = {"commit": told.stdout.strip(), "machine": machine(), "rows": given.rows, "rounds": given.rounds}
    result = {**facts, "cases": cases}
    (HERE / "results" / "reading.json").write_text(json.dumps(result, indent=1) + "\n")
    (HERE / "reading.md").write_text(page(result))
    print(page(result))
    return None


if __name__ == "__main__":
    main()
