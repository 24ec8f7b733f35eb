"""Adjacent ranges are one copy; order and bytes stay."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from table.storage.byte_ranges import ByteRange, joined_ranges


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        ([], []),
        ([(0, 4), (4, 6)], [(0, 10)]),
        ([(0, 4), (5, 6)], [(0, 4), (5, 6)]),
        ([(5, 6), (0, 5)], [(5, 6), (0, 5)]),
        ([(0, 4), (4, 0), (4, 2)], [(0, 6)]),
        ([(7, 0), (7, 2)], [(7, 2)]),
    ],
)
def test_ranges_are_joined(ranges, expected):
    assert joined_ranges(ByteRange(*one) for one in ranges) == expected


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9))))
def test_the_bytes_and_their_order_stay(ranges):
    def bytes_of(found):
        return [place for start, length in found for place in range(start, start + length)]

    joined = joined_ranges(ByteRange(*one) for one in ranges)
    assert bytes_of(joined) == bytes_of(ranges)
    assert all(one.length and one.start + one.length != next_one.start for one, next_one in pairwise(joined))
