"""Our sink of two checkouts, side by side: `python benchmarks/paired.py OTHER_CHECKOUT [--workload A] [--rounds 5]`.

With `--set KEY=VALUE` and this checkout as the other one, an option is measured: `hoodie.write.table.version=9`. Rounds
alternate. With `--beside` both run at the same time, each on a core of its own, and change cores from round to round:
a machine that is now fast and now slow treats both alike, so that one percent can be seen (Linux). Wall time is the
median of the later half of the batches; processor time is that of the whole process tree, driver, JVM and workers, so
that a busy machine does not decide.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
from workloads import generate

HERE = Path(__file__).parent


def run(checkout, folder, out, options, core=None):
    """One run of one checkout. Returns its figures, with the processor seconds of all its processes."""
    pinned = [] if core is None else ["taskset", "-c", str(core)]
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(checkout)}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled once, and not by each process
    command = [
        *pinned,
        sys.executable,
        str(checkout / "benchmarks" / "candidate.py"),
        "hudistream",
        folder,
        out,
        *options,
    ]
    spent = {}
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdout=said, stderr=subprocess.DEVNULL, env=env, cwd=checkout)
        me = psutil.Process(process.pid)
        while process.poll() is None:
            try:
                for one in [me, *me.children(recursive=True)]:
                    times = one.cpu_times()
                    spent[one.pid] = times.user + times.system
            except psutil.Error:
                pass
            time.sleep(0.1)
        said.seek(0)
        if process.returncode:
            sys.exit(f"{checkout} failed")
        result = json.loads(said.read().decode().strip().splitlines()[-1])
    return {"steady_s": result["steady_s"], "cpu_s": round(sum(spent.values()), 2), "rows": result["rows"]}


def main():
    """Prints a line each round, and the ratios."""
    parser = argparse.ArgumentParser()
    parser.add_argument("other", type=Path)
    parser.add_argument("--workload", action="append")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int)
    parser.add_argument("--beside", action="store_true", help="both at the same time, on a core each")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for this checkout alone")
    parser.add_argument("--both", action="append", default=[], metavar="KEY=VALUE", help="for both checkouts")
    given = parser.parse_args()
    for workload in given.workload or ["A", "A2", "B"]:
        options = [
            "hoodie.datasource.write.operation=" + ("upsert" if workload.startswith("B") else "insert"),
            *given.both,
        ]
        ratios = {"steady_s": [], "cpu_s": []}
        with tempfile.TemporaryDirectory() as place:
            folder = os.path.join(place, "in")
            generate(workload, folder, given.batches)
            for number in range(given.rounds):
                pair = [(given.other.resolve(), ()), (HERE.parent, tuple(given.set))]
                order = pair if number % 2 == 0 else pair[::-1]
                with ThreadPoolExecutor(2 if given.beside else 1) as together:
                    runs = {}
                    for core, each in enumerate(order):
                        out, pinned = os.path.join(place, f"out{core}"), core if given.beside else None
                        runs[each] = together.submit(run, each[0], folder, out, [*options, *each[1]], pinned)
                    found = {each: one.result() for each, one in runs.items()}
                before, after = found[pair[0]], found[pair[1]]
                for name, kept in ratios.items():
                    kept.append(after[name] / before[name])
                print(f"{workload} round {number + 1}: before {before}, after {after}", flush=True)
        for name, kept in ratios.items():
            spread = f"{min(kept):.3f} to {max(kept):.3f}"
            print(f"{workload} {name}: after / before, median {statistics.median(kept):.3f} ({spread})", flush=True)


if __name__ == "__main__":
    main()
