"""A router writes the batches of one query."""

import pytest

from streaming.router.query import check_serves
from table.errors import InvalidConfigError


@pytest.mark.parametrize("served", [None, "a"])
def test_the_first_query_is_served_and_goes_on(served):
    check_serves(served, "a", 7)


def test_a_second_query_is_refused_with_the_ways_out():
    with pytest.raises(InvalidConfigError) as refused:
        check_serves("a", "b", 7)
    said = str(refused.value)
    assert "batch 7 is of the query b, and this router writes the batches of the query a" in said
    assert "nothing of it is visible" in said
    for way in ("a HudiRouter of its own, with a root of its own", "union", "stop()", "checkpoint.identifier"):
        assert way in said
