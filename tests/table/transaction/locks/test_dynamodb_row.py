"""The row of a lock in DynamoDB: read back as written, refused if it is none, and watched for a whole lease."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from table.errors import StorageError
from table.transaction.locks.dynamodb_row import LockRow, decode_row, may_take, watch

ROWS = st.builds(LockRow, st.text(max_size=5), st.integers(0, 10**12), st.text(max_size=5))
ITEM = LockRow("o", 60_000, "v").encode("t")


@given(ROWS, st.text(max_size=5))
def test_a_row_that_was_written_is_read_back_and_has_no_time_in_it(row, key):
    item = row.encode(key)
    assert decode_row(item) == row
    assert {name for attribute in item.values() for name in attribute} == {"S"}
    assert set(item) == {"key", "ownerName", "leaseDuration", "recordVersionNumber"}


@pytest.mark.parametrize("mark", [{"S": "1"}, {"S": "0"}, {"BOOL": False}])
def test_a_row_is_released_if_it_has_the_mark_whatever_its_value(mark):
    assert decode_row({**ITEM, "isReleased": mark}).is_released


def test_a_row_that_replaces_a_released_one_does_not_keep_the_mark():
    assert "isReleased" not in LockRow("o", 5, "v", is_released=True).encode("t")


@pytest.mark.parametrize("attribute", ["ownerName", "leaseDuration", "recordVersionNumber"])
@pytest.mark.parametrize("value", [None, {"N": "5"}, "5"], ids=repr)
def test_an_item_that_is_no_row_of_a_lock_is_shown_with_the_way_out(attribute, value):
    item = {**ITEM, attribute: value}
    with pytest.raises(StorageError) as refused:
        decode_row(item)
    assert str(refused.value) == (
        f"the lock table does not hold the row of a lock but {item!r}: delete the row if no writer is at work"
    )


LOOKS = st.lists(st.tuples(st.integers(0, 8), st.booleans(), st.integers(1, 10)), min_size=1, max_size=12)


@given(st.integers(1, 10), LOOKS)
def test_a_lock_is_taken_only_after_one_number_was_seen_for_longer_than_its_lease(lease_s, looks):
    now_s, number, seen_s, watched = 0, 0, None, None
    for pause_s, is_renewed, new_lease_s in looks:
        now_s += pause_s
        if is_renewed:
            number, seen_s, lease_s = number + 1, None, new_lease_s
        row = LockRow("them", lease_s * 1000, str(number))
        is_silent = seen_s is not None and now_s - seen_s > lease_s
        assert may_take(row, "me", watched, now_s) is is_silent
        assert may_take(row, "them", watched, now_s)
        watched = watch(watched, row, now_s)
        seen_s = now_s if seen_s is None else seen_s
        assert (watched.row, watched.since_s) == (row, seen_s)
