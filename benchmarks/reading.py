"""Reading beside other readers: `python benchmarks/reading.py [--rounds 5] [--rows 5000000]`.

Each reading is a process of its own, so that its peak memory is its own; rounds go through all readers in turn. Writes
``benchmarks/results/reading.json`` and the page ``benchmarks/reading.md``.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import hudi
import pyarrow.dataset as ds
from run import machine

from table import HudiTable

HERE = Path(__file__).parent
TABLES = ("wide", "hundred", "avro", "parquet")
FILES, NARROW, ASKED = 24, ["id", "ts", "c1"], 1000
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
    def read(path, **facts):
        return question(HudiTable.open(path), **facts).num_rows

    return read


def arrow(**how):
    def read(_path, files, **facts):
        given = {name: value(**facts) if callable(value) else value for name, value in how.items()}
        return ds.dataset(files, format="parquet").to_table(**given).num_rows

    return read


def hudi_rs(options=None):
    def read(path, **facts):
        asked = options(hudi.HudiReadOptions(), **facts) if options is not None else None
        return sum(batch.num_rows for batch in hudi.HudiTableBuilder.from_base_uri(path).build().read(asked))

    return read


def one_partition(**_facts):
    return ds.field("p") == "p03"


def the_keys(keys, **_facts):
    return ds.field("id").isin(keys)


CASES = {
    "full scan": ("wide", {
        "hudistream": ours(lambda table, **_: table.scan().to_arrow()),
        "pyarrow.dataset": arrow(),
        "hudi-rs 0.5": hudi_rs(),
    }),
    "three columns of one partition": ("wide", {
        "hudistream": ours(lambda table, **_: table.scan(NARROW, where=[("p", "=", "p03")]).to_arrow()),
        "pyarrow.dataset": arrow(columns=NARROW, filter=one_partition),
        "hudi-rs 0.5": hudi_rs(lambda asked, **_: asked.with_filters([("p", "=", "p03")]).with_projection(NARROW)),
    }),
    "1,000 keys of one file": ("wide", {
        "hudistream, lookup": ours(lambda table, keys, **_: table.lookup(keys)),
        "pyarrow.dataset, isin": arrow(filter=the_keys),
    }),
    "changes of one commit, 1 of 100 files": ("hundred", {
        "hudistream, changes": ours(lambda table, since, **_: table.changes(since).to_arrow()),
        "hudistream, snapshot": ours(lambda table, **_: table.scan().to_arrow()),
    }),
    "merge on read, Avro blocks": ("avro", {
        "hudistream": ours(lambda table, **_: table.scan().to_arrow()), "hudi-rs 0.5": hudi_rs(),
    }),
    "merge on read, Parquet blocks": ("parquet", {
        "hudistream": ours(lambda table, **_: table.scan().to_arrow()), "hudi-rs 0.5": hudi_rs(),
    }),
}  # fmt: skip


# ---- tables


def build(place, rows):
    """The tables, and what the questions need to know of them."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

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
    keys = HudiTable.open(os.path.join(place, "wide")).scan(["id"], where=[("p", "=", "p11")], limit=ASKED)
    return {"since": since, "files": files, "keys": keys.to_arrow()["id"].to_pylist()}


# ---- measuring


def read_once(case, reader, path, facts):
    """In the child: seconds, rows, and the peak of this process's memory."""
    table, readers = CASES[case]
    files = facts.pop("files")[table]
    started = time.perf_counter()
    count = readers[reader](os.path.join(path, table), files=files, **facts)
    seconds = time.perf_counter() - started
    status = Path("/proc/self/status").read_text()
    peak_mb = int(status.partition("VmHWM:")[2].split()[0]) / 1024  # what the parent had does not count
    print(json.dumps({"seconds": seconds, "rows": count, "peak_mb": peak_mb}))


def measure(place, facts, rounds):
    """Case -> reader -> the readings of all rounds."""
    found = {case: {reader: [] for reader in readers} for case, (_, readers) in CASES.items()}
    with open(os.path.join(place, "facts.json"), "w") as file:
        json.dump(facts, file)
    for _ in range(rounds):
        for case, readers in found.items():
            for reader, readings in readers.items():
                command = [sys.executable, __file__, "--child", case, reader, place]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode:
                    sys.exit(f"{case}, {reader}: {done.stderr[-2000:]}")
                readings.append(json.loads(done.stdout.strip().splitlines()[-1]))
    return found


def summary(found):
    """Case -> reader -> medians, with the ratio to ours within each round."""
    told = {}
    for case, readers in found.items():
        first = next(iter(readers.values()))
        told[case] = {
            reader: {
                "seconds": statistics.median(one["seconds"] for one in readings),
                "ratio": statistics.median(
                    one["seconds"] / mine["seconds"] for one, mine in zip(readings, first, strict=True)
                ),
                "peak_mb": statistics.median(one["peak_mb"] for one in readings),
                "rows": sorted({one["rows"] for one in readings}),
            }
            for reader, readings in readers.items()
        }
    return told


def page(result):
    """The results as a page."""
    lines = ["# Reading", "", __doc__.split("\n\n")[1].replace("\n", " "), ""]
    facts = ", ".join(f"{key} {value}" for key, value in result["machine"].items())
    lines += [f"{result['rows']:,} rows in {FILES} files, {result['rounds']} rounds, {facts}.", ""]
    lines += ["| | | seconds | times ours | peak MB | rows |", "|---|---|---:|---:|---:|---:|"]
    for case, readers in result["cases"].items():
        for reader, one in readers.items():
            rows = " or ".join(f"{count:,}" for count in one["rows"])
            lines.append(
                f"| {case} | {reader} | {one['seconds']:.3f} | {one['ratio']:.2f} | {one['peak_mb']:,.0f} | {rows} |"
            )
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--child", nargs=3)
    given = parser.parse_args()
    if given.child:
        case, reader, place = given.child
        facts = json.loads(Path(place, "facts.json").read_text())
        return read_once(case, reader, place, facts)
    with tempfile.TemporaryDirectory() as place:
        facts = build(place, given.rows)
        cases = summary(measure(place, facts, given.rounds))
    result = {"machine": machine(), "rows": given.rows, "rounds": given.rounds, "cases": cases}
    (HERE / "results" / "reading.json").write_text(json.dumps(result, indent=1) + "\n")
    (HERE / "reading.md").write_text(page(result))
    print(page(result))
    return None


if __name__ == "__main__":
    main()
