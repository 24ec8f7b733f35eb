"""When a table is cleaned after a commit: the table of Flink's gate."""

from itertools import product

import pytest

from table.services.clean.trigger import Cleaning, choose_cleaning
from table.services.service import Trigger

ASYNC = (True, False)


@pytest.mark.parametrize(("compacts", "cleans"), list(product(ASYNC, ASYNC)))
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_the_gate(kind, compacts, cleans):
    expected = Cleaning.AT_CHECKPOINT if cleans else Cleaning.NEVER
    if kind == "MERGE_ON_READ" and compacts and not cleans:
        expected = Cleaning.AFTER_COMPACTION
    assert choose_cleaning(kind, compaction_async=compacts, clean_async=cleans) is expected
    off = choose_cleaning(kind, compaction_async=compacts, clean_async=cleans, automatic=False)
    assert off is Cleaning.NEVER


def test_hudis_own_switch_cleans_before_the_next_batch():
    found = choose_cleaning("COPY_ON_WRITE", compaction_async=False, clean_async=True, inline=True)
    assert found is Cleaning.INLINE


def test_each_row_has_its_trigger():
    assert {one: one.trigger for one in Cleaning} == {
        Cleaning.AT_CHECKPOINT: Trigger.BACKGROUND,
        Cleaning.INLINE: Trigger.INLINE,
        Cleaning.AFTER_COMPACTION: Trigger.AFTER_COMPACTION,
        Cleaning.NEVER: Trigger.NOT_NOW,
    }
