"""Models of protocols hold with all their rules, and each rule taken out is found."""

import pytest
from models.one_batch_two_tables import RULES, check

JVM = "a reader that asks no ledger sees one table moved"  # Hudi's readers, with any rules


def test_a_ledger_makes_a_batch_of_two_tables_visible_at_one_moment():
    states, found = check()
    assert states > 5000
    assert set(found) == {JVM}


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_of_the_ledger_is_missed_when_it_is_taken_out(rule):
    _, found = check(rule)
    assert set(found) > {JVM}


def test_a_writer_that_knows_no_ledger_tears_a_batch():
    _, found = check(with_jvm_writer=True)
    assert "a batch that was acknowledged is not whole" in found
