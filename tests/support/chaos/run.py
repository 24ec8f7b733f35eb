"""Worlds one after another, as long as time allows; see the docstring of the package."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bad_network import bad_network

from chaos.draw import WRITERS, draw
from chaos.explain import explain_world
from chaos.journal import read_journal
from chaos.monkey import run_processes

STARVED_S = {False: 15.0, True: 40.0}  # on an object store a batch makes fifty requests


def run_world(seed, results, storage=None, base=None, **fixed):
    """Runs the world of a seed.

    Args:
        seed: draws it.
        results: folder for what is kept of a world with findings.
        storage: (address of a folder, storage options) of an object store; None: a local folder.
        base: where local worlds are made.
        fixed: overrides what the seed draws.

    Returns:
        (the world, its findings, what it did).
    """
    folder = tempfile.mkdtemp(prefix=f"chaos-{seed}-", dir=base)
    journals = os.path.join(folder, "journals")
    os.mkdir(journals)
    address, options = storage or (folder, None)
    drawn = draw(seed, f"{address}/table-{seed}-{os.path.basename(folder)}", journals, options, **fixed)
    findings, down = run_processes(drawn, folder)
    findings += list(_findings(folder, journals, has_vandal=drawn.vandal))
    gaps = {writer: longest_gap(read_journal(journals, writer), down[writer]) for writer in WRITERS}
    unexplained, told = explain_world(drawn, _names(journals), damaged_times(read_journal(journals, "vandal")))
    findings += [f"history: {unexplained}"] if unexplained else []
    if drawn.several and not drawn.vandal and not drawn.toxic:
        findings += [
            f"{w} was starved: {s:.1f} s without a batch" for w, s in gaps.items() if s > STARVED_S[storage is not None]
        ]
    done = {
        "batches": {w: sum(one["what"] == "acknowledged" for one in read_journal(journals, w)) for w in WRITERS},
        "guest": told,
        "longest_gap_s": {writer: round(seconds, 1) for writer, seconds in gaps.items()},
        "damaged": sum(one["what"] == "damaged" for one in read_journal(journals, "vandal")),
        "verified": sum(one["what"] == "verified" for one in read_journal(journals, "verifier")),
        "snapshots": sum(one["what"] == "read" for name in _names(journals) for one in read_journal(journals, name)),
    }
    if findings:
        _keep(drawn, folder, findings, os.path.join(results, f"seed-{seed}"))
    shutil.rmtree(folder, ignore_errors=True)
    return drawn, findings, done


def longest_gap(lines, down):
    """The longest time between acknowledged batches, without the time for which the process could not run (pure).

    Args:
        lines: of the writer's journal.
        down: (since, until) while it was dead or stopped.
    """
    times = [line["at"] for line in lines if line["what"] in ("acknowledged", "intent")]
    gaps = [0.0]
    for since, until in pairwise(times):
        lost = sum(max(0.0, min(until, ends) - max(since, begins)) for begins, ends in down)
        gaps.append(until - since - lost)
    return max(gaps)


def _names(journals):
    return [path.stem for path in Path(journals).glob("*.jsonl")]


def damaged_times(lines):
    """(since, until) while a file was damaged, by the vandal's journal (pure)."""
    since = [line["at"] for line in lines if line["what"] == "damages"]
    until = [line["at"] for line in lines if line["what"] == "restored"]
    return list(zip(since, [*until, *[float("inf")] * (len(since) - len(until))], strict=True))


def _findings(folder, journals, *, has_vandal):
    sound, times = 0, damaged_times(read_journal(journals, "vandal"))
    for name in _names(journals):
        for line in read_journal(journals, name):
            is_unexplained = line["what"] == "suspect" and not any(
                line["began"] - 1 < until and since < line["at"] for since, until in times
            )
            if line["what"] == "violation" or is_unexplained:
                yield f"{name}: {line['text']}"
            elif line["what"] == "error" and not line["ours"] and not (has_vandal and line["damage"]):
                yield f"{name}, {line['doing']}: {line['kind']}: {line['text']}"
            sound += line["what"] == "sound"
    if sound < 2:
        yield f"the last look came to no end: {Path(folder, 'judge.stderr').read_text()[-500:]}"


def _keep(drawn, folder, findings, kept):
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(folder, kept, ignore=shutil.ignore_patterns("*.parquet", ".*log*", "staged"))
    story = [f"seed {drawn.seed}: {drawn.describe()}", *findings]
    Path(kept, "story.txt").write_text("\n".join(story) + "\n")


def main():
    """The command line."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--minutes", type=float, default=10)
    arguments.add_argument("--store", choices=["disk", "s3"], default="disk")
    arguments.add_argument("--first", type=int, default=1)
    arguments.add_argument("--vandal", action="store_true", help="somebody damages files, and brings them back")
    arguments.add_argument("--toxic", action="store_true", help="the disk or the network fails as they do")
    arguments.add_argument("--seeds", help="these alone, such as 5,8")
    arguments.add_argument("--results", default="build/chaos")
    arguments.add_argument("--report", help="adds totals to this JSON file")
    given = arguments.parse_args()
    chosen = [int(seed) for seed in given.seeds.split(",")] if given.seeds else None
    # a batch compares the files of commits that are on the timeline: they stay there for longer than a file is damaged
    fixed = {"vandal": True, "keep_least": 40, "keep_most": 50} if given.vandal else {}
    fixed |= {"toxic": True} if given.toxic else {}
    started_s, worlds, batches, snapshots, damaged, failed = time.monotonic(), 0, 0, 0, 0, {}
    verified, guest = 0, Counter()
    with ExitStack() as stack:
        storage = stack.enter_context(_s3(given.toxic)) if given.store == "s3" else None
        seed = given.first
        while chosen or (not given.seeds and time.monotonic() - started_s < given.minutes * 60):
            if chosen:
                seed = chosen.pop(0)
            drawn, findings, done = run_world(seed, given.results, storage, **fixed)
            worlds, batches = worlds + 1, batches + sum(done["batches"].values())
            verified += done["verified"]
            guest.update(done["guest"])
            snapshots, damaged = snapshots + done["snapshots"], damaged + done["damaged"]
            print(f"{'FOUND' if findings else 'holds'} {seed}: {drawn.describe()}; {json.dumps(done)}", flush=True)
            for finding in findings:
                print(f"    {finding[:400]}", flush=True)
            if findings:
                failed[seed] = findings
            seed += 1
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    told = {"commit": commit.stdout.strip(), "minutes": round((time.monotonic() - started_s) / 60)}
    told |= {"store": given.store, "first": given.first, "worlds": worlds, "batches": batches, "snapshots": snapshots}
    told |= {"verified commits": verified, "guest was told": dict(sorted(guest.items()))}
    told |= {"damaged": damaged} if given.vandal else {}
    told["beside"] = ["a vandal"] * given.vandal + ["toxics"] * given.toxic
    told["findings"] = failed
    print(json.dumps({**told, "findings": len(failed)}))
    if given.report:
        _report(Path(given.report), told)
    return 1 if failed else 0


def _report(path, told):
    known = json.loads(path.read_text()) if path.exists() else {}
    name = told.pop("store") + "".join(f" with {beside}" for beside in told.pop("beside"))
    path.write_text(json.dumps({**known, name: told}, indent=1) + "\n")


@contextmanager
def _s3(toxic):
    from s3_server import s3_options

    with s3_options() as options, ExitStack() as stack:
        yield "s3a://lake", stack.enter_context(_through_bad_network(options)) if toxic else options


@contextmanager
def _through_bad_network(options):
    port = int(options["client_kwargs"]["endpoint_url"].rpartition(":")[2])
    with bad_network(port, share=0.004) as network:
        client = {**options["client_kwargs"], "endpoint_url": f"http://127.0.0.1:{network.port}"}
        # a half-open connection is given up after this time
        yield {**options, "client_kwargs": client, "config_kwargs": {"read_timeout": 4, "connect_timeout": 2}}
        print(json.dumps(network.happened))


if __name__ == "__main__":
    sys.exit(main())
