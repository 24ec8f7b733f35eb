"""Faults of other engines that `make truth` passes over are still there. What is mended goes out of `truth.known`."""

import math
from dataclasses import replace
from decimal import Decimal

import pytest
from truth.cases import GONE, KEY, ORDER, PATH, Case, Question, Shape, Step
from truth.judge import Judge
from truth.known import HIVE_STYLE, KNOWN
from truth.readers import HudiRs, RealHudi
from truth.writers import Arrow


def case_of(shape, steps, question):
    """Batches of rows, or names of operations with rows."""
    kinds = dict(shape.kinds)
    made = []
    for number, (what, rows, changed) in enumerate(steps, 1):
        kinds = {**kinds, **changed}
        made.append(Step(number, what, rows, {name: kinds[name] for name in rows[0]}))
    return Case(0, shape, tuple(made), (question,))


FLOATS = Shape(kinds={KEY: "text", "c": "double"})
NUMBERS = ({KEY: "a", "c": 1.0}, {KEY: "b", "c": math.nan}, {KEY: "d", "c": 0.0})
PARTIAL = Shape(version=8, merge_on_read=True, kinds={KEY: "text", ORDER: "long", "c": "map"}, merging="partial")
PARTIAL_ROWS = ({KEY: "a", ORDER: 1, "c": [("k", 1)]},)
TENTH = 0.10000000149011612  # as a float holds it
WIDENS = {"hudistream.schema.integers.to.floats": "true"}
APART = {"hoodie.parquet.small.file.limit": "0"}
WITH_STATS = {"hoodie.metadata.enable": "true", "hoodie.metadata.index.column.stats.enable": "true"}
ONE_BUCKET = {"hoodie.bucket.index.num.buckets": "1"}
CASES = {
    "bounds hide NaN": (
        HudiRs,
        case_of(FLOATS, [("upsert", NUMBERS, {})], Question(where=[[("c", "=", math.nan)]])),
    ),
    "a float becomes a double by its text": (
        HudiRs,
        case_of(
            Shape(kinds={KEY: "text", "c": "float"}, options=APART),
            [("upsert", ({KEY: "a", "c": TENTH},), {}), ("upsert", ({KEY: "b", "c": 0.5},), {"c": "double"})],
            Question(),
        ),
    ),
    "an earlier snapshot has the newest columns": (
        HudiRs,
        case_of(
            Shape(kinds={KEY: "text", "c": "long"}, options=WIDENS),
            [("upsert", ({KEY: "a", "c": 2**53 + 1},), {}), ("upsert", ({KEY: "b", "c": 0.5},), {"c": "double"})],
            Question(as_of=1),
        ),
    ),
    "log files from before a change of columns fail": (
        HudiRs,
        case_of(
            Shape(merge_on_read=True, index="BUCKET", kinds={KEY: "text", "c": "map"}, options=ONE_BUCKET),
            [
                ("upsert", ({KEY: "a", "c": None},), {}),
                ("upsert", ({KEY: "b", "c": None},), {}),
                ("upsert", ({KEY: "d", "c": [("k", 1)], "n": "x"},), {"n": "text"}),
            ],
            Question(),
        ),
    ),
    "no partial updates behind a change of columns": (
        HudiRs,
        case_of(
            replace(PARTIAL, version=9),
            [
                ("upsert", PARTIAL_ROWS, {}),
                ("upsert", ({KEY: "a", ORDER: 2, "c": None},), {}),
                ("upsert", ({KEY: "b", ORDER: 1, "c": None, "n": "x"},), {"n": "text"}),
            ],
            Question(),
        ),
    ),
    "a delete in a log takes one of the rows that share a key": (
        HudiRs,
        case_of(
            Shape(merge_on_read=True, kinds={KEY: "text", "c": "long"}, repeats=True),
            [("bulk_insert", ({KEY: "a", "c": 1}, {KEY: "a", "c": 1}), {}), ("delete", ({KEY: "a"},), {})],
            Question(),
        ),
    ),
    "no partial updates of lists and maps": (
        HudiRs,
        case_of(
            replace(PARTIAL, version=9),
            [("upsert", PARTIAL_ROWS, {}), ("upsert", ({KEY: "a", ORDER: 2, "c": None},), {})],
            Question(),
        ),
    ),
    "a row group of NaN alone hides behind the bounds of others": (
        HudiRs,
        case_of(
            replace(FLOATS, options={"hoodie.parquet.block.size": "200"}),
            [("bulk_insert", ({KEY: "a", "c": 1.5}, {KEY: "b", "c": math.nan}), {})],
            Question(where=[[("c", "!=", 1.5)]]),
        ),
    ),
    "no partial updates": (
        HudiRs,
        case_of(PARTIAL, [("upsert", PARTIAL_ROWS, {}), ("upsert", PARTIAL_ROWS, {})], Question()),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_fault_is_still_there(tmp_path, name):
    reader, case = CASES[name]
    check_fault(tmp_path, reader(), case, name)


ENCODED = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
OF_HUDI = {
    "a range shows partition values as folders spell them": case_of(
        Shape(version=8, kinds={KEY: "text", PATH: "text"}, options=ENCODED),
        [("upsert", ({KEY: "a", PATH: "x"},), {}), ("upsert", ({KEY: "b", PATH: "x=y"},), {})],
        Question(since=1),
    ),
    "deletes that are ordered by decimals fail": case_of(
        Shape(merge_on_read=True, kinds={KEY: "text", ORDER: "small_decimal", GONE: "bool"}),
        [
            ("upsert", ({KEY: "a", ORDER: Decimal("0.5"), GONE: None},), {}),
            ("upsert", ({KEY: "a", ORDER: Decimal("1.0"), GONE: True},), {}),
        ],
        Question(),
    ),
    "a condition on a partition value that is null fails": case_of(
        Shape(kinds={KEY: "text", PATH: "text"}, options={**ENCODED, HIVE_STYLE: "true"}),
        [("upsert", ({KEY: "a", PATH: None},), {})],
        Question(where=[[(PATH, "!=", "x")]]),
    ),
    "a float becomes a double by its text": case_of(
        Shape(merge_on_read=True, kinds={KEY: "text", "c": "float"}),
        [
            ("upsert", ({KEY: "a", "c": TENTH}, {KEY: "b", "c": TENTH}), {}),
            ("upsert", ({KEY: "b", "c": TENTH},), {}),
            ("upsert", ({KEY: "d", "c": 0.5},), {"c": "double"}),
        ],
        Question(),
    ),
    "bounds hide NaN and zeros": case_of(FLOATS, [("upsert", NUMBERS, {})], Question(where=[[("c", "=", math.nan)]])),
}


# of Hudi 1.2.0
OF_LATER_HUDI = {
    "some columns of partial updates fail": case_of(
        Shape(
            merge_on_read=True, index="BUCKET", kinds={KEY: "int", ORDER: "long"}, merging="partial", options=ONE_BUCKET
        ),
        [("upsert", ({KEY: 6, ORDER: 33},), {}), ("upsert", ({KEY: 7, ORDER: 40},), {})],
        Question(),
    ),
    "a float becomes a double by its text": case_of(
        Shape(kinds={KEY: "text", "c": "float"}, options=APART),
        [("upsert", ({KEY: "a", "c": TENTH},), {}), ("upsert", ({KEY: "b", "c": 0.5},), {"c": "double"})],
        Question(),
    ),
    "statistics of binary columns cannot be compared": case_of(
        Shape(version=9, kinds={KEY: "text", PATH: "text", "c": "bytes"}, options=WITH_STATS),
        [("upsert", ({KEY: "a", PATH: "x", "c": b"\xff"},), {}), ("upsert", ({KEY: "b", PATH: "y", "c": b"d"},), {})],
        Question(where=[[("c", "=", b"abc")]]),
    ),
}


def check_fault(folder, reader, case, name):
    outcome = Judge(str(folder), [reader]).run(case)
    assert not outcome.differences
    assert outcome.counts[reader.name, name] == 1, outcome.counts


@pytest.mark.hudi
@pytest.mark.parametrize("name", OF_HUDI)
def test_a_fault_of_hudi_is_still_there(hudi, tmp_path, utc, name):
    check_fault(tmp_path, RealHudi(hudi, "1.0.2", skips=False), OF_HUDI[name], name)


@pytest.mark.slow
@pytest.mark.hudi
@pytest.mark.parametrize("name", OF_LATER_HUDI)
def test_a_fault_of_a_later_hudi_is_still_there(partners, tmp_path, utc, name):
    check_fault(tmp_path, RealHudi(partners[9], "1.2.0", skips="statistics" in name), OF_LATER_HUDI[name], name)


# what Hudi 1.2.0 wrote, told by `check`
OF_HUDI_AS_A_WRITER = {
    "statistics that Hudi makes of binary columns take bytes for signed numbers": case_of(
        Shape(
            version=9,
            index="BUCKET",
            kinds={KEY: "text", PATH: "text", "c": "bytes"},
            options={**WITH_STATS, **ONE_BUCKET, "hoodie.parquet.block.size": "200"},
        ),
        [
            ("upsert", ({KEY: "a", PATH: "x", "c": None},), {}),
            (
                "insert",
                tuple({KEY: f"b{n}", PATH: "x", "c": b"abc" if n < 300 else b"\xff\xfe"} for n in range(600)),
                {},
            ),
        ],
        Question(),
    ),
    "statistics that Hudi makes beside a NaN are zeros": case_of(
        Shape(version=9, kinds={KEY: "text", "c": "double"}, options=WITH_STATS),
        [("upsert", ({KEY: "a", "c": 1.0},), {}), ("bulk_insert", ({KEY: "b", "c": math.nan},), {})],
        Question(),
    ),
}


@pytest.mark.slow
@pytest.mark.hudi
@pytest.mark.parametrize("name", OF_HUDI_AS_A_WRITER)
def test_a_fault_of_hudi_as_a_writer_is_still_there(partners, tmp_path, utc, name):
    case = OF_HUDI_AS_A_WRITER[name]
    *ours, last = case.steps
    judge = Judge(str(tmp_path), [], lambda path, shape: Arrow(path, shape, {"1.2.0": partners[9]}))
    outcome = judge.run(replace(case, steps=(*ours, replace(last, by="1.2.0"))))
    assert not outcome.differences
    assert outcome.counts["check", name] == 1, outcome.counts


OF_TWO_HUDIS = "1.0.2 does not know the ordering column of a table that 1.2.0 made"


@pytest.mark.slow
@pytest.mark.hudi
def test_a_fault_of_one_hudi_on_a_table_of_another_is_still_there(hudi, partners, tmp_path, utc):
    shape = Shape(version=8, merge_on_read=True, index="BUCKET", kinds={KEY: "text", ORDER: "long"}, options=ONE_BUCKET)
    first, late = ({KEY: "a", ORDER: 5},), ({KEY: "a", ORDER: 4},)
    case = case_of(shape, [("upsert", first, {}), ("upsert", late, {})], Question())
    steps = (replace(case.steps[0], by="1.2.0"), case.steps[1])
    reader = RealHudi(hudi, "1.0.2", skips=False)
    judge = Judge(str(tmp_path), [reader], lambda path, shape: Arrow(path, shape, {"1.2.0": partners[9]}))
    outcome = judge.run(replace(case, steps=steps))
    assert not outcome.differences
    assert outcome.counts[reader.name, OF_TWO_HUDIS] == 1, outcome.counts


def test_each_fault_has_a_test():
    assert sorted(fault.name for fault in KNOWN) == sorted(
        {*CASES, *OF_HUDI, *OF_LATER_HUDI, *OF_HUDI_AS_A_WRITER, OF_TWO_HUDIS}
    )
