"""Which row groups of a file are copied, patched or decoded when rows of it change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from table.write.merge_plan import plan_merge

FULL, ROW = 10_000, 1_000  # rows of a full row group; bytes of a row


def plan(group_rows, touched=(), losing=(), new_rows=0):
    return plan_merge(group_rows, touched, losing, new_rows, ROW, FULL * ROW)


def test_a_file_without_changes_is_copied():
    made = plan([FULL, FULL, 3])
    assert (made.patched, made.decoded) == ((), ())


def test_a_full_row_group_with_changes_is_patched():
    assert plan([FULL, FULL], touched=[1]).patched == (1,)


@pytest.mark.parametrize("rows", [10, 40 * FULL])
def test_a_small_row_group_is_decoded_and_so_is_one_that_does_not_fit_into_memory(rows):
    assert plan([FULL, rows], touched=[1]).decoded == (1,)


def test_a_row_group_that_may_lose_rows_is_decoded():
    made = plan([FULL, FULL], touched=[0, 1], losing=[0])
    assert (made.patched, made.decoded) == ((1,), (0,))


def test_a_small_unchanged_row_group_behind_a_patched_one_stays_behind_it():
    made = plan([FULL, FULL, 3], touched=[0])
    assert (made.patched, made.decoded) == ((0, 2), ())


def test_a_small_row_group_at_the_end_is_encoded_with_new_rows():
    assert plan([FULL, 3], new_rows=5).decoded == (1,)


@given(st.lists(st.integers(1, 3 * FULL), min_size=1, max_size=12), st.data())
def test_each_changed_row_group_is_patched_or_decoded_and_none_is_both(group_rows, data):
    numbers = st.sets(st.integers(0, len(group_rows) - 1))
    touched = data.draw(numbers)
    losing = data.draw(st.sets(st.sampled_from(sorted(touched)))) if touched else set()
    made = plan(group_rows, touched, losing, data.draw(st.integers(0, 2 * FULL)))
    patched, decoded = set(made.patched), set(made.decoded)
    assert not patched & decoded
    assert touched <= patched | decoded
    assert losing <= decoded
    assert made.patched == tuple(sorted(patched))
    assert made.decoded == tuple(sorted(decoded))
