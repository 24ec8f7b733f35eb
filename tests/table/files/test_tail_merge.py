"""Which row groups are encoded anew: cases, and what the rule promises."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from table.files.base.tail_merge import GROUPS_A_TIER, plan_tail_merge


@pytest.mark.parametrize(
    ("groups", "new", "kept", "why"),
    [
        ([], 10, 0, "nothing there"),
        ([1000], 10, 1, "a full group stays"),
        ([400], 10, 1, "two fifths of a full group are settled"),
        ([399], 1, 0, "together they are settled"),
        ([399], 600, 0, "a small group never stays before a full one"),
        ([10], 10, 1, "two of a tier may stay"),
        ([10] * 6, 10, 6, "seven of a tier may stay"),
        ([10] * 7, 10, 0, "the eighth merges them"),
        ([200, *[10] * 7], 10, 1, "but not the tier above"),
        ([1000, *[60] * 7], 60, 1, "eight make a settled group"),
        ([1000, 100, 5], 5, 2, "the lowest tier holds one group"),
        ([1000, 100, 8], 1, 2, "and is encoded again each time"),
        ([1000, 100, 1], 10, 2, "a smaller one at the end goes along"),
        ([1000, 300, 300], 1, 1, "two that make a settled one merge"),
        ([390, 390, 390], 1, 1, "no more is gathered than a full group"),
        ([499, 1000, 3], 1, 2, "a small group behind a full one is out of reach"),
    ],
)
def test_cases(groups, new, kept, why):
    assert plan_tail_merge(groups, new, 1000, cheap_rows=8) == kept, why


def fill(batches, full, cheap):
    """Row groups and rows encoded after these top-ups of one file."""
    groups, encoded = [], 0
    for new in batches:
        kept = plan_tail_merge(groups, new, full, cheap)
        together = sum(groups[kept:]) + new
        assert together - new <= full, "memory"
        encoded += together
        parts = -(-together // full)
        groups = groups[:kept] + [together // parts + (number < together % parts) for number in range(parts)]
    return groups, encoded


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.integers(1, 3000), min_size=1, max_size=80), st.integers(1, 40))
def test_small_groups_are_few_and_sizes_near_the_target(batches, cheap):
    full = 1000
    groups, _ = fill(batches, full, cheap)
    small = [rows for rows in groups if 5 * rows < 2 * full]  # from two fifths on a group is left alone
    tiers = math.ceil(math.log(full / cheap, GROUPS_A_TIER)) + 1
    assert len(small) <= (GROUPS_A_TIER - 1) * tiers + 1
    assert max(groups) <= full
    assert sum(small) < 2 * full


@pytest.mark.parametrize(("new", "most"), [(50, 22), (250, 7), (1000, 4.5), (12_500, 2.5), (50_000, 2), (200_000, 1)])
def test_encoding_is_logarithmic_in_the_number_of_top_ups(new, most):
    total, full, cheap = 1_000_000, 200_000, 1600
    groups, encoded = fill([new] * (total // new), full, cheap)
    assert sum(groups) == total
    assert encoded / total <= most
    reencoding_everything = (total // new + 1) / 2
    assert encoded / total <= reencoding_everything
