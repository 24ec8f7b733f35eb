"""Versions that a later write did not continue, in the order in which timeline and archive give them."""

import pytest

from table.services.check.chains import Chains, Claim

GROUP = ("p", "f-0")


def claim(time, continued="", *, is_log=False, folds=False):
    return Claim(GROUP, time, continued, f"p/{time}", 1, is_log, folds)


@pytest.mark.parametrize(
    ("claims", "layout_1", "expected"),
    [
        ([claim("1"), claim("2", "1"), claim("3", "2")], True, []),
        ([claim("1"), claim("2", "1"), claim("3", "1")], True, [("2", "3")]),
        ([claim("1"), claim("3", "2")], True, []),  # the commit of 2 left no record
        ([claim("1"), claim("2", "1"), claim("4", "1", is_log=True)], True, [("2", "4")]),
        ([claim("1"), claim("2", "1"), claim("4", "1", is_log=True)], False, []),
        ([claim("1"), claim("2", "1"), claim("4", "1", is_log=True), claim("5", "2", is_log=True)], True, [("2", "4")]),
        ([claim("1"), claim("2", "1"), claim("4", "2", is_log=True), claim("6", "2")], True, []),
        # a batch folded the slice into a base file beside a compaction that did the same
        ([claim("1"), claim("2", "1", folds=True), claim("3", "1")], True, []),
        ([claim("1"), claim("2", "1", folds=True), claim("3", "1", is_log=True)], True, [("2", "3")]),
        ([claim("1"), claim("2")], True, []),  # a new file group of the same id, as overwrites of buckets make
    ],
)
@pytest.mark.parametrize("parts", [1, 2, 9])
def test_chains(claims, layout_1, expected, parts):
    chains = Chains(logs_name_slices=layout_1)
    size = -(-len(claims) // parts)
    for start in reversed(range(0, len(claims), size)):  # the archive is read newest file first
        chains.add(claims[start : start + size])
    assert [(one.lost.time, one.by.time) for one in chains.broken] == expected
