"""Models of protocols hold with all their rules, and each rule taken out is found."""

import pytest
from models import one_instant, passed_by_archival
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


def test_an_instant_ends_in_one_way_and_shows_the_rows_of_one_attempt():
    states, found = one_instant.check()
    assert states > 3000
    assert not found


@pytest.mark.parametrize("rule", one_instant.RULES)
def test_each_rule_of_an_end_is_missed_when_it_is_taken_out(rule):
    assert one_instant.check(rule)[1]


def test_a_writer_that_archival_passes_loses_no_update_and_doubles_no_key():
    states, found = passed_by_archival.check()
    assert states > 20_000
    assert not found


@pytest.mark.parametrize("rules", passed_by_archival.TAKEN_OUT, ids=" and ".join)
def test_each_rule_beside_archival_is_missed_when_it_is_taken_out(rules):
    assert passed_by_archival.check(rules)[1]
