"""Random tables, histories and questions: readers without a JVM answer as a table in memory. More: `make truth`."""

from dataclasses import replace

import pytest
from tiers import quick
from truth.cases import HUDIS, KEY, Case, Question, Shape, Step, read_case
from truth.draw import LISTS, SERVICES, draw_case
from truth.judge import Judge
from truth.readers import PLAIN, Scan
from truth.shrink import shrink
from truth.twins import Twins, portrait
from truth.writers import Arrow

A_FEW = 4


@pytest.mark.parametrize("first", quick(0, range(0, 20 * A_FEW, A_FEW)))
def test_every_reader_answers_as_the_table_in_memory(tmp_path, first):
    judge, ended, judged = Judge(str(tmp_path)), {}, 0
    for seed in range(first, first + A_FEW):
        case = draw_case(seed)
        outcome = judge.run(replace(case, questions=case.questions[:: 1 if first else 2]))
        assert not outcome.differences, (seed, outcome.differences)
        judged += not outcome.undefined
        for (who, end), count in outcome.counts.items():
            ended.setdefault(who, {})[end] = ended.get(who, {}).get(end, 0) + count
    assert judged >= A_FEW / 2
    for reader in PLAIN:
        counts = ended[reader.name]
        if reader.name == "to_dataset":  # it refuses log files, and four tables may all have them
            continue
        assert counts["right"] > counts.get("refused", 0), (reader.name, counts)


DIMENSIONS = {
    "versions": lambda case: case.shape.version == 9,
    "log files": lambda case: case.shape.merge_on_read,
    "a metadata table": lambda case: LISTS in case.shape.options,
    "a schema that changes": lambda case: len({tuple(step.kinds.items()) for step in case.steps if step.rows}) > 1,
    "services": lambda case: any(step.what in SERVICES for step in case.steps),
    "restores": lambda case: any(step.what == "restore" for step in case.steps),
    "ranges with an end": lambda case: any(asked.until is not None for asked in case.questions),
    "change feeds": lambda case: any(asked.feed is not None for asked in case.questions),
    "virtual keys": lambda case: case.shape.virtual,
    "keys of two columns": lambda case: len(case.shape.keys) > 1,
    "paths of two columns": lambda case: len(case.shape.paths) > 1,
    "real Hudi as a writer": lambda case: any(step.by in HUDIS for step in case.steps),
    "sinks in turns": lambda case: not case.shape.shared and len({step.by for step in case.steps}) > 1,
    "sinks that share a table": lambda case: case.shape.shared and len({step.by for step in case.steps}) > 1,
}


def test_cases_have_every_dimension():
    drawn = [draw_case(seed) for seed in range(200)]
    counts = {name: sum(map(has, drawn)) for name, has in DIMENSIONS.items()}
    assert min(counts.values()) >= 5, counts


class Forgetful(Scan):
    """Loses the rows with a face in them."""

    name = "forgetful"

    def rows(self, asked, question):
        rows = super().rows(asked, question).to_pylist()
        return [row for row in rows if "😀" not in row.values()]


ROWS = ({KEY: "a", "c": "x", "d": 1}, {KEY: "b", "c": "😀", "d": None}, {KEY: "e", "c": "😀", "d": 2})
KINDS = {KEY: "text", "c": "text", "d": "long"}
HISTORY = Case(
    7,
    Shape(version=8, index="SIMPLE", kinds=KINDS),
    (Step(1, "insert", ROWS, KINDS), Step(2, "clean"), Step(3, "delete", ({KEY: "a"},), {KEY: "text"})),
    (Question(("c",)), Question(where=[[("d", "!=", 7), ("c", ">", "a")]]), Question(as_of=1)),
)


def test_a_wrong_answer_is_found_and_its_history_shrinks_to_one_row(tmp_path):
    judge = Judge(str(tmp_path), [Forgetful()])
    [difference] = judge.run(HISTORY).differences
    assert difference.kind == ("forgetful", "rows")
    small = shrink(HISTORY, judge, difference.kind)
    kinds = {KEY: "text", "c": "text"}
    assert small.shape == Shape(kinds=kinds)
    assert small.steps == (Step(1, "insert", ({KEY: "b", "c": "😀"},), kinds),)
    assert small.questions == (Question(),)
    assert read_case(repr(small)) == small


class Hasty(Arrow):
    """Takes inserts for bulk inserts: readers see no difference."""

    def do(self, step):
        super().do(replace(step, what="bulk_insert") if step.what == "insert" else step)


def test_two_writers_that_make_different_tables_are_told_apart(tmp_path):
    def judge(name, writer):
        return Judge(str(tmp_path / name), [Scan()], writer, portrait)

    assert not Twins(judge("a", Arrow), judge("b", Arrow)).run(HISTORY).differences
    [difference] = Twins(judge("c", Arrow), judge("d", Hasty)).run(HISTORY).differences
    assert difference.kind == ("twins", "rows")
    assert (difference.what, len(difference.expected)) == ("history", 1)
