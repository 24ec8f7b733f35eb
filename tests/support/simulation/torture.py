"""Runs worlds as long as time allows, and keeps what it found: `make torture`.

python tests/support/simulation/torture.py [--minutes 60] [--first SEED] [--processes 2] [--rules]
"""

import argparse
import json
import logging
import multiprocessing
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = str(Path(__file__).parents[3])
sys.path[:0] = [ROOT, os.path.join(ROOT, "tests", "support")]
RESULT = os.path.join(ROOT, "benchmarks", "results", "torture.json")


def quiet():
    """No log: a world says what happened in its story."""
    import structlog

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


KINDS = (
    "build",
    "build_several_writers",
    "build_merge_on_read",
    "build_crowd",
    "build_later_version",
    "build_clustered",
    "build_clustered_beside",
    "build_planned_clusterings",
    "build_converted",
    "build_dropped",
    "build_late_readers",
    "build_routed",
)


def run_worlds(first, step, until_s):
    """Every `step`-th seed from `first` on, a world of each kind.

    Returns:
        (worlds by kind, [(kind, seed, violation, end of the story)]).
    """
    quiet()
    from simulation import worlds

    counts, found, seed = Counter(), [], first
    while time.time() < until_s:
        for kind in KINDS:
            outcome = worlds.run(seed, getattr(worlds, kind))
            counts[kind] += 1
            if outcome is not None:
                found.append((kind, seed, outcome[0], outcome[1][-80:]))
                print(f"{kind} seed {seed}: {outcome[0]}", flush=True)
        seed += step
    return counts, found


def find_without(name, most):
    """Worlds that it takes to notice that a rule is missing, or None."""
    quiet()
    from simulation import worlds
    from simulation.rules import BUILDS, RULES, patched

    with patched(*RULES[name]):
        for seed in range(most):
            outcome = worlds.run(seed, BUILDS.get(name, worlds.build))
            if outcome is not None:
                return {"rule": name, "seed": seed, "found": outcome[0][:200]}
    return {"rule": name, "seed": None, "found": f"nothing in {most} worlds"}


def _keep(path, result):
    """Writes a result, with the runs before it in short: the page of the record has them all."""
    known = json.loads(path.read_text()) if path.exists() else {}
    names = ("commit", "minutes", "first_seed", "worlds", "violations")
    earlier = [{name: known[name] for name in names}] if "commit" in known else []
    whole = {**known, **result, "earlier": [*earlier, *known.get("earlier", [])]}
    path.write_text(json.dumps(whole, indent=1) + "\n")


def main():
    """Runs, prints, and writes benchmarks/results/torture.json."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--rules", action="store_true", help="also take each rule out, and count the worlds")
    given = parser.parse_args()
    started = time.time()
    until = started + 60 * given.minutes
    jobs = [(given.first + number, given.processes, until) for number in range(given.processes)]
    context = multiprocessing.get_context("spawn")
    with context.Pool(given.processes) as pool:
        outcomes = pool.starmap(run_worlds, jobs)
        rules = []
        if given.rules:
            from simulation.rules import RULES

            rules = pool.starmap(find_without, [(name, 2000) for name in RULES])
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    result = {
        "commit": commit.stdout.strip(),
        "minutes": round((time.time() - started) / 60, 1),
        "first_seed": given.first,
        "worlds": dict(sum((counts for counts, _ in outcomes), Counter())),
        "violations": [
            {"kind": kind, "seed": seed, "what": what, "story": story}
            for _, found in outcomes
            for kind, seed, what, story in found
        ],
        "rules_taken_out": rules,
    }
    _keep(Path(RESULT), result)
    print(f"{sum(result['worlds'].values())} worlds, {len(result['violations'])} violations")
    for rule in rules:
        print(f"without rule {rule['rule']}: seed {rule['seed']}, {rule['found'][:120]}")
    return 1 if result["violations"] or any(rule["seed"] is None for rule in rules) else 0


if __name__ == "__main__":
    sys.exit(main())
