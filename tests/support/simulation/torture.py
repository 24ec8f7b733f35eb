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
from pathlib import Path

ROOT = str(Path(__file__).parents[3])
sys.path[:0] = [ROOT, os.path.join(ROOT, "tests", "support")]
RESULT = os.path.join(ROOT, "benchmarks", "results", "torture.json")


def quiet():
    """No log: a world says what happened in its story."""
    import structlog

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


def run_worlds(first, step, until_s):
    """Every `step`-th world from `first` on. Returns (worlds, steps, [(seed, violation, end of the story)])."""
    quiet()
    from simulation import worlds

    count, found, seed = 0, [], first
    while time.time() < until_s:
        outcome = worlds.run(seed)
        if outcome is not None:
            found.append((seed, outcome[0], outcome[1][-80:]))
            print(f"seed {seed}: {outcome[0]}", flush=True)
        count, seed = count + 1, seed + step
    return count, found


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
        "worlds": sum(count for count, _ in outcomes),
        "violations": [{"seed": s, "what": what, "story": story} for _, found in outcomes for s, what, story in found],
        "rules_taken_out": rules,
    }
    with open(RESULT, "w") as file:
        json.dump(result, file, indent=1)
    print(f"{result['worlds']} worlds, {len(result['violations'])} violations")
    for rule in rules:
        print(f"without rule {rule['rule']}: seed {rule['seed']}, {rule['found'][:120]}")
    return 1 if result["violations"] or any(rule["seed"] is None for rule in rules) else 0


if __name__ == "__main__":
    sys.exit(main())
