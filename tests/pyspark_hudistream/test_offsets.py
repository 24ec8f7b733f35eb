"""Where a batch of a stream begins and ends."""

import pytest

from pyspark_hudistream.offsets import choose_end, make_offset, since_of

WRITES = [("1", 100), ("2", 50), ("3", 10), ("4", 1000)]


@pytest.mark.parametrize(
    ("max_instants", "max_bytes", "end"),
    [
        (None, None, "4"),
        (1, None, "1"),
        (3, None, "3"),
        (9, None, "4"),
        (None, 1, "1"),  # one instant is always taken
        (None, 150, "2"),
        (None, 160, "3"),
        (2, 160, "2"),
        (3, 150, "2"),
    ],
)
def test_the_first_limit_that_is_reached_ends_a_batch(max_instants, max_bytes, end):
    assert choose_end(WRITES, max_instants, max_bytes) == end


def test_a_batch_begins_where_the_one_before_ended():
    assert since_of(make_offset("5", "0"), make_offset("7", "0")) == "5"
    assert since_of({"instant": "5", "began_after": "0"}, {"instant": "7"}) == "5"


def test_a_stream_that_began_at_the_latest_instant_begins_there_again():
    # the first batch was planned from 5 to 7; asked anew, the latest instant is 9
    assert since_of(make_offset("9", "9"), make_offset("7", "5")) == "5"
