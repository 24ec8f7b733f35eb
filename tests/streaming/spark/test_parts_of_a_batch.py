"""A foreachBatch that gives a batch to a sink in several calls, on classic Spark and under Spark Connect."""

import pytest
from environments import SPARK_4, make_environment, run_program
from parts import CASES, REFUSED, outcome
from tiers import quick

ALL = {"equal": 50, "same": 100, "after an error": 50}


def wanted(name):
    """The rows of the table, and the error: of a batch that is refused, the first part of the first one is there."""
    return (25, "other rows") if name in REFUSED else (ALL.get(name, 100), "-")


@pytest.mark.spark
@pytest.mark.parametrize("name", quick(6, CASES))
def test_the_parts_of_a_batch_are_refused_and_repeats_are_not(spark, tmp_path, name):
    assert outcome(spark, str(tmp_path), name) == wanted(name)


@pytest.mark.spark
@pytest.mark.slow  # under Connect of Spark 4 the sink runs in `make test` (test_connect)
@pytest.mark.parametrize("kind", ["connect", "classic"])
def test_so_they_are_on_spark_4(tmp_path, kind):
    names = ("one sink", "a sink for each call", "equal", "again") if kind == "connect" else CASES
    said = run_program(make_environment(*SPARK_4["4.2"]), "parts.py", tmp_path, kind, *names)
    found = [line.split("|")[1:] for line in said.splitlines() if line.startswith("CASE|")]
    assert {name: (int(rows), error) for name, rows, error in found} == {name: wanted(name) for name in names}
