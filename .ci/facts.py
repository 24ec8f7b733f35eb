"""Facts that several pages state, each with its one source; tests/test_facts.py holds every page to them.

A fact is read from where it is made true: pyproject.toml, a test that counts, the record of a run. A figure that only a
person can measure stands here as a number, with the day.
"""

import ast
import importlib.util
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parent.parent
MINUTES_OF_MAKE_TEST = 16  # two slow cores (a loop of 30,000,000 additions in Python takes 3.5 s or more), 2026-11-30


@dataclass(frozen=True)
class Fact:
    """What pages may state.

    Attributes:
        name: for messages.
        value: as the pages have to spell it.
        said: regular expressions of the sentences that state it, each with one group.
        least: in how many places it is stated at least: a pattern that finds nothing holds nothing.
    """

    name: str
    value: str
    said: tuple[str, ...]
    least: int = 1


def _text(path: str) -> str:
    return (ROOT / path).read_text()


def _project(pattern: str) -> str:
    found = re.search(pattern, _text("pyproject.toml"))
    assert found, pattern
    return found[1]


def constant(path: str, name: str) -> Any:
    """The value of a constant at the top of a module, which is not imported."""
    for node in ast.parse(_text(path)).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name:
            return ast.literal_eval(node.value)
    raise LookupError(f"{path} has no {name}")


def in_words(names: list[str]) -> str:
    """A list as a sentence has it: ``a, b and c``."""
    return ", ".join(names[:-1]) + " and " + names[-1]


def tested_pysparks() -> list[str]:
    """The PySparks of the runs that benchmarks/results/places.md records."""
    rows = [row for row in _text("benchmarks/results/places.md").splitlines() if row.startswith("| `pysparks`")]
    versions = {version for row in rows for version in re.findall(r"\b[34]\.\d\b", row.split("|")[2].partition("(")[0])}
    return sorted(versions)


def tried_pythons() -> list[str]:
    """The Pythons of the last `make release` that benchmarks/results/places.md records."""
    [*_, row] = [
        row for row in _text("benchmarks/results/places.md").splitlines() if row.startswith("| `make release`")
    ]
    return sorted(set(re.findall(r"\b3\.\d\d(?=\.\d)", row.split("|")[2])))


def tested_hudis() -> list[str]:
    """The Hudis that `make test` compares with: the oracle's own, and those of tests/agreement."""
    sources = _text("tests/support/oracles/hudi.py"), _text("tests/agreement/conftest.py")
    own, later = (
        re.findall(pattern, one)
        for pattern, one in zip((r'version="([\d.]+)"', r'Hudi\("([\d.]+)"\)'), sources, strict=True)
    )
    return sorted({*own, *later})


def requests_of_a_batch() -> int:
    """Of a steady batch that rewrites one file, as the test counts them: one more deletes the markers."""
    most = constant("tests/table/storage/test_requests.py", "MOST")
    [total] = {sum(kinds.values()) for kinds in most.values()}
    return int(total) + 1


def extras() -> list[str]:
    """The extras that a person may ask for, in the order of pyproject.toml."""
    named = re.search(r"\[project.optional-dependencies\]\n(.*?)\n\n", _text("pyproject.toml"), re.DOTALL)
    assert named
    return [name for name in re.findall(r"^(\w+) = ", named[1], re.MULTILINE) if name not in ("demo", "dev")]


def facts() -> list[Fact]:
    """All of them but the figures of speed."""
    more = constant("tests/table/storage/test_requests.py", "MORE")
    requests = str(requests_of_a_batch())
    return [
        Fact("minutes of make test", str(MINUTES_OF_MAKE_TEST),
             (r"(\d+) minutes on two cores", r"`make test` \|.*\| 9 to (\d+) minutes \|"), 3),
        Fact("requests of a batch on S3", requests,
             (r"that writes one file makes (\d+) requests", r"(\d+) requests remain",
              r"In a batch of one file, 22 of the (\d+)", r"sert into 1 path \|.*\| (\d+) \| \d+ \|"), 6),
        Fact("requests of the metadata table", str(more["lists"]),
             (r"add (\d+) requests to a batch", r"steady batch makes (\d+) requests more"), 2),
        Fact("requests of statistics", str(more["statistics"]),
             (r"With statistics of columns it is (\d+)", r"requests more, and (\d+) with statistics"), 2),
        Fact("tested PySparks", in_words(tested_pysparks()), (r"PySpark ((?:[34]\.\d, )+[34]\.\d and [34]\.\d)",)),
        Fact("tried Pythons", in_words(tried_pythons()), (r"tried on Python ((?:3\.\d+, )+3\.\d+ and 3\.\d+)",)),
        Fact("the least PySpark", _project(r'spark = \["pyspark>=([\d.]+),'), (r"PySpark from ([\d.]+) on",)),
        Fact("the PySpark that is not supported", _project(r'spark = \["pyspark>=[\d.]+,<(\d+)"'),
             (r"on and below (\d+) is supported",)),
        Fact("the least Python", _project(r'requires-python = ">=([\d.]+)"'),
             (r"Python ([\d.]+) or newer", r"Python from ([\d.]+) on"), 4),
        Fact("Hudi of the tests", in_words(tested_hudis()), (r"[Tt]ested with Hudi ([\d., and]+\d)",)),
        Fact("hudi-rs of the tests", _constrained("hudi"), (r"hudi-rs (\d\.\d+)",), 4),
        Fact("Trino of the tests", constant("tests/support/oracles/trino.py", "VERSION"), (r"Trino (\d+)",), 3),
        Fact("this version", constant("table/version.py", "VERSION"), (r"hudistream-(\d+\.\d+\.\d+)-py3",), 6),
        Fact("lines of a module", str(constant("tests/test_house.py", "MOST_LINES")),
             (r"at most (\d+) lines of code",)),
    ]  # fmt: skip


def _constrained(package: str) -> str:
    found = re.search(rf"^{package}==(\d+\.\d+)", _text("constraints.txt"), re.MULTILINE)
    assert found, package
    return found[1]


@dataclass(frozen=True)
class Speed:
    """A row of the README's figures: the file of its results, and the candidate of each column that is not ours.

    A candidate is known by words of its label: releases differ from row to row.
    """

    results: str
    others: dict[str, tuple[str, ...]]


HUDI, ICEBERG, DELTA, PARQUET = "Hudi", "Iceberg", "Delta", "bare Parquet"
_MERGES = {HUDI: ("Hudi ",), ICEBERG: ("Iceberg ", "MERGE, copy-on-write"), DELTA: ("Delta ", "MERGE")}
_LOGS = {HUDI: ("Hudi ",), ICEBERG: ("Iceberg ", "MERGE, merge-on-read"), PARQUET: ("bare partitioned Parquet",)}
_APPENDS = {HUDI: ("Hudi ",), ICEBERG: ("Iceberg ",), DELTA: ("Delta ",), PARQUET: ("bare partitioned Parquet",)}
SPEED = {
    "A: 100,000 new rows, files filled": Speed("A-packed", _APPENDS),
    "A: 100,000 new rows, bulk insert": Speed("A-appended", _APPENDS),
    "A2: 2,000 new rows, files filled": Speed("A2-small", _APPENDS),
    "B: 50,000 rows, half of them updates": Speed("B-upserts", _MERGES),
    "B skewed: 10,000 updates, 9 of 10 in one of 64 partitions": Speed("B-skewed-upserts", _MERGES),
    "B large: 10,000 updates anywhere in 10,000,000 rows": Speed("big-spread-upserts", _MERGES),
    "B, merge-on-read with a bucket index": Speed("B-merge-on-read", _LOGS),
    "B large, merge-on-read with a bucket index": Speed("big-spread-merge-on-read", _LOGS),
    # the first screen
    "100,000 new rows, small files filled": Speed("A-packed", _APPENDS),
    "2,000 new rows, small files filled": Speed("A2-small", _APPENDS),
    "50,000 rows, half of them updates": Speed("B-upserts", _MERGES),
    "the same, merge-on-read with a bucket index": Speed("B-merge-on-read", _LOGS),
}


def measured(row: Speed) -> tuple[str, dict[str, float]]:
    """The day of a row's measurement, and the seconds of ours (``""``) and the ratios of the others, by column."""
    report = _load("benchmarks/report.py")
    document = json.loads(_text(f"benchmarks/results/{row.results}.json"))
    runs = document["results"]
    first = next(iter(runs.values()))
    figures = {"": float(report.middle(first, report.steady))}
    for column, (begin, *words) in row.others.items():
        for name in (name for name in runs if name.startswith(begin) and all(word in name for word in words)):
            figures[column] = float(report.ratio(runs[name], first, report.steady))
    return document["measured"], figures


def _load(path: str) -> ModuleType:
    spec: Any = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    module: ModuleType = importlib.util.module_from_spec(spec)
    run: Callable[[ModuleType], None] = spec.loader.exec_module
    run(module)
    return module
