"""`make bench`: the sink beside Hudi and bare Parquet, interleaved rounds, one process each.

Ratios within one run are what counts; seconds are for orientation. Results go to
``benchmarks/results/<workload>.json`` and a table to standard output.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from workloads import SIZES, generate

HERE = Path(__file__).parent
CANDIDATES = {
    "A": {
        "hudistream, packed (zstd)": ("hudistream",),
        "Hudi 1.0.2 insert, packed (gzip, its default)": ("hudi",),
        "bare partitioned Parquet (snappy, its default)": ("parquet",),
    }
}
CANDIDATES["A2"] = CANDIDATES["A"]


def run_one(arguments, folder, out):
    said = subprocess.run(
        [sys.executable, str(HERE / "candidate.py"), arguments[0], folder, out, *arguments[1:]],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        check=False,
    )
    if said.returncode:
        sys.exit(f"{arguments} failed:\n{said.stderr[-3000:]}")
    return json.loads(said.stdout.strip().splitlines()[-1])


def measure(workload, rounds, batches):
    results = {label: [] for label in CANDIDATES[workload]}
    with tempfile.TemporaryDirectory() as place:
        folder = os.path.join(place, "in")
        rows = generate(workload, folder, batches)
        for number in range(rounds):
            for label, arguments in CANDIDATES[workload].items():
                result = run_one(arguments, folder, os.path.join(place, "out"))
                if (result["rows"], result["keys"]) != (rows, rows):
                    sys.exit(f"{label} lost or doubled rows: {result['rows']} of {rows}, {result['keys']} keys")
                results[label].append(result)
                print(f"round {number + 1}: {label}: {result['steady_s']} s a steady batch", flush=True)
    return results


def machine():
    """What the figures were measured on; no names."""
    versions = {name: importlib.metadata.version(name) for name in ("pyspark", "pyarrow", "numpy")}
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {"cores": os.cpu_count(), "memory_gib": round(memory), "python": platform.python_version(), **versions}


def report(workload, results):
    ours = next(iter(results))
    print(f"\nworkload {workload}: median seconds of a steady batch (last half of the batches), by round")
    for label, runs in results.items():
        steady = [run["steady_s"] for run in runs]
        ratios = [run["steady_s"] / mine["steady_s"] for run, mine in zip(runs, results[ours], strict=True)]
        print(
            f"  {label:50s} {statistics.median(steady):7.2f} s   x{statistics.median(ratios):5.2f}   "
            f"{runs[-1]['live_files']:4d} live files, {runs[-1]['live_mb']:.0f} MB   rounds {steady}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workload", choices=list(SIZES), default="A")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, help="fewer batches than the workload has, for all alike")
    given = parser.parse_args()
    results = measure(given.workload, given.rounds, given.batches)
    report(given.workload, results)
    document = {
        "workload": given.workload,
        "measured": time.strftime("%Y-%m-%d"),
        "machine": machine(),
        "results": results,
    }
    target = HERE / "results" / f"{given.workload}.json"
    target.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
