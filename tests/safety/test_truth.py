"""Random tables, histories and questions: readers without a JVM answer as a table in memory. More: `make truth`."""

import pytest
from tiers import quick
from truth.cases import read_case
from truth.draw import draw_case
from truth.judge import Judge
from truth.readers import PLAIN, Scan
from truth.shrink import shrink

A_FEW = 20


@pytest.mark.parametrize("first", quick(1, range(0, 20 * A_FEW, A_FEW)))
def test_every_reader_answers_as_the_table_in_memory(tmp_path, first):
    judge, ended, judged = Judge(str(tmp_path)), {}, 0
    for seed in range(first, first + A_FEW):
        outcome = judge.run(draw_case(seed))
        assert not outcome.differences, (seed, outcome.differences)
        judged += not outcome.undefined
        for (who, end), count in outcome.counts.items():
            ended.setdefault(who, {})[end] = ended.get(who, {}).get(end, 0) + count
    assert judged >= A_FEW / 2
    for reader in PLAIN:
        counts = ended[reader.name]
        assert counts["right"] > counts.get("refused", 0), (reader.name, counts)


class Forgetful(Scan):
    """Loses the rows with a face in them."""

    name = "forgetful"

    def rows(self, asked, question):
        rows = super().rows(asked, question).to_pylist()
        return [row for row in rows if "😀" not in row.values()]


def test_a_wrong_answer_is_found_and_its_history_shrinks_to_one_row(tmp_path):
    judge = Judge(str(tmp_path), [Forgetful()])
    for seed in range(A_FEW):
        case = draw_case(seed)
        found = judge.run(case).differences
        if found:
            break
    [difference] = found
    assert difference.kind == ("forgetful", "rows")
    small = shrink(case, judge, difference.kind, seconds=10)
    assert sum(len(step.rows) for step in small.steps) == 1
    assert len(small.questions) == 1
    assert repr(read_case(repr(small))) == repr(small)
    assert judge.run(small).differences[0].kind == difference.kind
