"""Draws and judges cases as long as time allows, shrinks what differs, and keeps it: `make truth`.

python tests/support/truth/run.py [--minutes 60] [--first SEED] [--processes 2] [--engines all]
python tests/support/truth/run.py --case FILE        a shrunk case of the result, once
"""

import argparse
import faulthandler
import json
import logging
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

ROOT = str(Path(__file__).parents[3])
sys.path[:0] = [ROOT, os.path.join(ROOT, "tests", "support")]
RESULT = os.path.join(ROOT, "benchmarks", "results", "truth.json")
ENGINES_FROM = 1_000_000  # seeds that engines with a JVM get, too
STANDS_STILL_S = 1200  # for a case, shrunk
# dates and times of any year as they are, as files of hudistream and of pyarrow have them
CALENDAR = [
    f"set spark.sql.{kind}.datetimeRebaseModeIn{way}=CORRECTED"
    for kind in ("parquet", "avro")
    for way in ("Read", "Write")
]


def prepare():
    """A quiet process, in a zone that is not UTC as far as no engine needs that."""
    import structlog

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    warnings.simplefilter("ignore")
    os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    time.tzset()
    os.fsync = (
        os.fstat
    )  # nobody cuts the power of this machine: what asks the disk to hold a file is told about descriptors


def memory_folder():
    """A folder for tables, in memory where the machine has that."""
    from memory_folder import make_memory_folder

    return tempfile.TemporaryDirectory(dir=make_memory_folder())


def open_spark():
    """A session that reads and writes without a JAR."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.memory": "2g",
    }
    builder = SparkSession.builder.master("local[2]").appName("hudistream-truth")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def judge_cases(judges, seeds, until_s, every=1):
    """Cases of some seeds, by each judge. `every`: which of the questions are asked.

    Returns:
        (cases, counts, [{seed, who, …}]).
    """
    from truth.draw import draw_case
    from truth.shrink import shrink

    counts, found, cases = Counter(), [], Counter()
    for seed in seeds:
        if time.time() > until_s:
            break
        faulthandler.dump_traceback_later(STANDS_STILL_S)  # a query that never ends is told
        case = draw_case(seed)
        case = replace(case, questions=case.questions[::every])
        for judge in judges:
            try:
                outcome = judge.run(case)
            except Exception:  # of the machine itself: the other seeds are judged all the same
                told = traceback.format_exc(limit=-1).replace(ROOT, "")
                print(f"seed {seed}: {told}", flush=True)
                found.append({"seed": seed, "who": "the machine", "found": told, "case": repr(case)})
                continue
            cases["undefined" if outcome.undefined else "judged"] += 1
            counts.update(outcome.counts)
            for one in outcome.differences:
                print(f"seed {seed}: {one.who}: {one.found}"[:300], flush=True)
                smaller = shrink(case, judge, one.kind)
                again = next(iter(judge.run(smaller).differences), one)
                found.append({"seed": seed, "who": again.who, "asked": repr(again.what), "missing": str(again.expected),
                              "found": str(again.found), "case": repr(smaller)})  # fmt: skip
    faulthandler.cancel_dump_traceback_later()
    return cases, counts, found


def run_plain(first, step, until_s):
    """Every `step`-th seed, by all that needs no JVM."""
    with plain_judges() as judges:
        return judge_cases(judges, range(first, sys.maxsize, step), until_s)


@contextmanager
def engine_judges():
    """Judges that need JVMs: `read_hudi`, and Hudi's own readers and writers; and the same histories by `HudiSink`."""
    os.environ["TZ"] = "UTC"  # Python's Spark collects times in the zone of its process
    prepare()
    from oracles.hudi import Hudi

    from truth.cases import HUDIS
    from truth.judge import Judge
    from truth.readers import RealHudi, Scan, SparkFilter, SparkReader
    from truth.twins import Twins, portrait
    from truth.writers import Arrow, Spark

    spark, hudis = open_spark(), {version: Hudi(version) for version in HUDIS}
    try:
        for hudi in hudis.values():
            hudi.sql(*CALENDAR)
        readers = [Scan(), SparkReader(spark), SparkFilter(spark)]
        readers += [RealHudi(hudi, version, skips=skips) for version, hudi in hudis.items() for skips in (False, True)]
        with memory_folder() as folder:
            yield [
                Judge(folder, readers, lambda path, shape: Arrow(path, shape, hudis)),
                Twins(
                    Judge(folder + "/arrow", [Scan()], portray=portrait),
                    Judge(folder + "/spark", [Scan()], lambda path, shape: Spark(path, shape, spark), portrait),
                ),
            ]
    finally:
        for hudi in hudis.values():
            hudi.stop()
        spark.stop()


def run_engines(first, until_s):
    """Seeds of their own, by the judges that need JVMs."""
    with engine_judges() as judges:
        # a question takes a second: more tables say more than more questions about each
        return judge_cases(judges, range(first + ENGINES_FROM, sys.maxsize), until_s, every=3)


@contextmanager
def plain_judges():
    """The judge that needs no JVM."""
    prepare()
    from truth.judge import Judge

    with memory_folder() as folder:
        yield [Judge(folder)]


def by_end(counts, who):
    """Of one reader or writer, how often it ended how."""
    return {end: count for (one, end), count in sorted(counts.items()) if one == who}


def main():
    """Runs, prints, and writes benchmarks/results/truth.json."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--engines", choices=("all", "plain"), default="all", help="plain: without a JVM")
    parser.add_argument("--report", default=RESULT)
    parser.add_argument("--case", help="a file with a case, as the result spells it")
    given = parser.parse_args()
    if given.case:
        return run_one(given.case, engines=given.engines == "all")
    started = time.time()
    until = started + 60 * given.minutes
    context = multiprocessing.get_context("spawn")
    with context.Pool(given.processes) as pool:
        engines = given.engines == "all"
        running = [pool.apply_async(run_engines, (given.first, until))] if engines else []
        plain = max(1, given.processes - engines)
        running += [pool.apply_async(run_plain, (given.first + number, plain, until)) for number in range(plain)]
        outcomes = [one.get(until - started + STANDS_STILL_S) for one in running]
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    counts = sum((counts for _, counts, _ in outcomes), Counter())
    result = {
        "commit": commit.stdout.strip(),
        "minutes": round((time.time() - started) / 60, 1),
        "first_seed": given.first,
        "cases": dict(sum((cases for cases, _, _ in outcomes), Counter())),
        "counts": {who: by_end(counts, who) for who in sorted({who for who, _ in counts})},
        "differences": [one for _, _, found in outcomes for one in found],
    }
    with open(given.report, "w") as file:
        json.dump(result, file, indent=1, ensure_ascii=False)
        file.write("\n")
    print(json.dumps(result["counts"], indent=1))
    print(f"{result['cases']}, {len(result['differences'])} differences")
    return 1 if result["differences"] else 0


def run_one(file, *, engines):
    """A case of a file: what differs."""
    found = 0
    with engine_judges() if engines else plain_judges() as judges:
        from truth.cases import read_case

        for judge in judges:
            outcome = judge.run(read_case(Path(file).read_text()), most=100)
            for one in outcome.differences:
                print(f"{one.who}: {one.what}\n  missing {one.expected}\n  found   {one.found}")
            print(outcome.undefined or f"{len(outcome.differences)} differences")
            found += len(outcome.differences)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
