"""`make bench`: the sink beside its peers, interleaved rounds, one process each, equal batch counts.

Ratios within one round are what counts; seconds are for orientation. Results go to
``benchmarks/results/<workload>.json``; `report.py` makes the table and the pictures of them.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import report
from candidate import DELTA, HUDI, ICEBERG
from workloads import SIZES, generate

HERE = Path(__file__).parent
OURS = ("hudistream, files packed (zstd 1)", "hudistream")
UNPACKED = ("hoodie.parquet.small.file.limit=0",)
CANDIDATES = {
    "packed": {
        OURS[0]: (OURS[1],),
        f"Hudi {HUDI} insert, files packed (gzip, its default)": ("hudi",),
        "bare partitioned Parquet (snappy, its default)": ("parquet",),
    },
    "appended": {
        "hudistream, bulk_insert (zstd 1)": ("hudistream", "hoodie.datasource.write.operation=bulk_insert"),
        "hudistream, packing off (zstd 1)": ("hudistream", *UNPACKED),
        f"Hudi {HUDI} bulk_insert (gzip, its default)": ("hudi", "hoodie.datasource.write.operation=bulk_insert"),
        f"Hudi {HUDI} insert, packing off (gzip, its default)": ("hudi", *UNPACKED),
        f"Iceberg {ICEBERG} append (zstd, its default)": ("iceberg",),
        f"Delta {DELTA['3']} append (snappy, its default)": ("delta",),
        "bare partitioned Parquet (snappy, its default)": ("parquet",),
    },
}
CANDIDATES["all"] = {**CANDIDATES["packed"], **CANDIDATES["appended"]}
CANDIDATES["small"] = {
    **CANDIDATES["packed"],
    **{label: CANDIDATES["appended"][label] for label in CANDIDATES["appended"] if label.startswith(("Ice", "Delta"))},
}
CANDIDATES["cleaning"] = {
    "hudistream, cleaning and archival on (the default)": ("hudistream",),
    "hudistream, cleaning and archival off": (
        "hudistream",
        "hoodie.clean.automatic=false",
        "hoodie.archive.automatic=false",
    ),
}
CANDIDATES["virtual"] = {
    OURS[0]: (OURS[1],),
    "hudistream, virtual keys (zstd 1)": (OURS[1], "hoodie.populate.meta.fields=false"),
    f"Iceberg {ICEBERG} append (zstd, its default)": ("iceberg",),
    "bare partitioned Parquet (snappy, its default)": ("parquet",),
}
UPSERT = "hoodie.datasource.write.operation=upsert"
CANDIDATES["upserts"] = {
    "hudistream upsert, BLOOM (zstd 1)": ("hudistream", UPSERT),
    "hudistream upsert, BLOOM, worker caches off": ("hudistream", UPSERT, "hudistream.index.cache.bytes=0"),
    f"Hudi {HUDI} upsert, SIMPLE, no metadata table (gzip, its default)": ("hudi", UPSERT, "hoodie.index.type=SIMPLE"),
    f"Hudi {HUDI} upsert, BLOOM, no metadata table (gzip, its default)": ("hudi", UPSERT, "hoodie.index.type=BLOOM"),
    f"Iceberg {ICEBERG} MERGE, copy-on-write (zstd, its default)": ("iceberg-merge",),
    f"Iceberg {ICEBERG} MERGE, merge-on-read (zstd, its default)": ("iceberg-merge", "mode=merge-on-read"),
    f"Delta {DELTA['3']} MERGE (snappy, its default)": ("delta-merge",),
}
APPENDS = "every version of a row appended"
MERGE_ON_READ = "hoodie.datasource.write.table.type=MERGE_ON_READ"
BUCKET = ("hoodie.index.type=BUCKET", "hoodie.bucket.index.num.buckets=4")
NO_COMPACTION = "hoodie.datasource.compaction.async.enable=false"
CANDIDATES["merge-on-read"] = {
    # what a batch of log files costs by itself, as the median of Hudi's batches between its compactions tells it
    "hudistream merge-on-read, BUCKET, no compaction": ("hudistream", UPSERT, MERGE_ON_READ, *BUCKET, NO_COMPACTION),
    "hudistream merge-on-read, BUCKET, compaction beside": ("hudistream", UPSERT, MERGE_ON_READ, *BUCKET),
    "hudistream merge-on-read, BLOOM, Avro blocks": ("hudistream", UPSERT, MERGE_ON_READ),
    "hudistream copy-on-write, BLOOM (zstd 1)": ("hudistream", UPSERT),
    # small files are not looked for, so that it writes log files; it compacts within every fifth batch
    f"Hudi {HUDI} merge-on-read, BUCKET, no metadata table": ("hudi", UPSERT, MERGE_ON_READ, *BUCKET, *UNPACKED),
    f"Iceberg {ICEBERG} MERGE, merge-on-read (zstd, its default)": ("iceberg-merge", "mode=merge-on-read"),
    f"bare partitioned Parquet, {APPENDS}": ("parquet",),
}
# Delta's present releases need Spark 4, in an environment of its own (`make spark4`)
ON_4 = "-on-spark-4"
CANDIDATES["spark-4"] = {
    "hudistream on Spark 4.2 (zstd 1)": ("hudistream" + ON_4,),
    f"Delta {DELTA['4']} append (snappy, its default)": ("delta" + ON_4,),
    "bare partitioned Parquet (snappy, its default)": ("parquet" + ON_4,),
}
CANDIDATES["spark-4-upserts"] = {
    "hudistream on Spark 4.2, upsert, BLOOM (zstd 1)": ("hudistream" + ON_4, UPSERT),
    f"Delta {DELTA['4']} MERGE (snappy, its default)": ("delta-merge" + ON_4,),
}
# what is measured unless told otherwise
USUAL = (
    ("A", "packed"),
    ("A", "appended"),
    ("A2", "small"),
    ("A2", "cleaning"),
    ("B-inserts", "packed"),
    ("one-row", "small"),
    ("B", "upserts"),
    ("B-skewed", "upserts"),
    ("big-spread", "upserts"),
    ("big-recent", "upserts"),
    ("B", "merge-on-read"),
    ("big-spread", "merge-on-read"),
    ("A", "spark-4"),
    ("A2", "spark-4"),
    ("B", "spark-4-upserts"),
)


def run_one(arguments, folder, out):
    name, python = arguments[0], sys.executable
    if name.endswith(ON_4):
        name, python = name.removesuffix(ON_4), str(HERE.parent / ".venv-spark4" / "bin" / "python")
    env = {**os.environ, "PYSPARK_PYTHON": python, "PYTHONPATH": str(HERE.parent)}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled once, and not by each process
    said = subprocess.run(
        [python, str(HERE / "candidate.py"), name, folder, out, *arguments[1:]],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
        check=False,
    )
    if said.returncode:
        sys.exit(f"{arguments} failed:\n{said.stderr[-3000:]}")
    return json.loads(said.stdout.strip().splitlines()[-1])


def measure(workload, candidates, once, rounds, batches, keep_results):
    """Runs every candidate in every round, some in the last one only; what is known is kept after each."""
    results = {label: [] for label in candidates}
    with tempfile.TemporaryDirectory() as place:
        folder = os.path.join(place, "in")
        keys, newest = generate(workload, folder, batches)
        for number in range(rounds):
            for label, arguments in candidates.items():
                if number < rounds - 1 and named(label, once):
                    continue
                result = run_one(arguments, folder, os.path.join(place, "out"))
                held = (result["rows"], result["keys"], result["newest"])
                if held != (keys, keys, newest) and (APPENDS not in label or result["keys"] != keys):
                    found = f"{result['rows']} rows of {result['keys']} keys, rev {result['newest']}"
                    sys.exit(f"{label} holds {found}; there are {keys} keys, rev {newest}")
                results[label].append(result)
                print(f"{workload}, round {number + 1}: {label}: {result['steady_s']} s a steady batch", flush=True)
            keep_results({label: runs for label, runs in results.items() if runs})


def named(label, texts):
    return any(text in label for text in texts)


def keep(workload, against, results):
    document = {
        "workload": workload,
        "against": against,
        "measured": time.strftime("%Y-%m-%d"),
        "commit": commit(),
        "machine": machine(),
        "results": results,
    }
    (HERE / "results" / f"{workload}-{against}.json").write_text(json.dumps(document, indent=1) + "\n")
    report.main()


def commit():
    """Of the checkout that is measured."""
    asked = ("git", "rev-parse", "--short=8", "HEAD")
    return subprocess.run(asked, cwd=HERE, capture_output=True, text=True, check=True).stdout.strip()


def machine():
    """What the figures were measured on; no names."""
    versions = {name: importlib.metadata.version(name) for name in ("pyspark", "pyarrow", "numpy")}
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {"cores": os.cpu_count(), "memory_gib": round(memory), "python": platform.python_version(), **versions}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workload", choices=list(SIZES), action="append", help="one or more; without it, all")
    parser.add_argument("--against", choices=list(CANDIDATES), help="which candidates; without it, what is usual")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, help="fewer batches than the workload has, for all alike")
    parser.add_argument(
        "--only", action="append", metavar="TEXT", help="beside ours, candidates with this in their name"
    )
    parser.add_argument(
        "--once",
        action="append",
        default=[],
        metavar="TEXT",
        help="candidates with this in their name: in the last round only",
    )
    given = parser.parse_args()
    chosen = [pair for pair in USUAL if not given.workload or pair[0] in given.workload]
    if given.against:
        chosen = [(workload, given.against) for workload in given.workload or SIZES]
    for workload, against in chosen:
        candidates = {
            label: arguments
            for number, (label, arguments) in enumerate(CANDIDATES[against].items())
            if not number or not given.only or named(label, given.only)
        }
        kept = partial(keep, workload, against)
        measure(workload, candidates, given.once, given.rounds, given.batches, kept)


if __name__ == "__main__":
    main()
