import pytest

from streaming.plan.bucket_assigner import AssignRules, BucketAssigner, find_small_files, share_of_slot
from table.view.file_group import base_file_of
from table.write.context import BucketType

RULES = AssignRules(max_file_size_bytes=1000, small_file_limit_bytes=800, record_size_bytes=10)


def small(name, size):
    return base_file_of("p", f"{name}_0-0-0_1.parquet", size)


def assigner(*files, rules=RULES, slot=0, slots=1):
    ids = iter(f"new{number}" for number in range(99))
    return BucketAssigner("p", share_of_slot(find_small_files(files, rules), slot, slots), rules, lambda: next(ids))


def counts(assigned):
    return [(bucket.file_id, count) for bucket, count in assigned]


def test_smallest_file_is_filled_first_then_the_next_then_new_files():
    # capacities by hand: (1000 - 700) / 10 = 30, (1000 - 100) / 10 = 90, (1000 - 500) / 10 = 50
    assigned = assigner(small("a", 700), small("b", 100), small("c", 500)).assign(300)
    assert counts(assigned) == [("b", 90), ("c", 50), ("a", 30), ("new0", 100), ("new1", 30)]
    assert [bucket.type for bucket, _ in assigned] == [BucketType.UPDATE] * 3 + [BucketType.INSERT] * 2


def test_state_is_kept_between_runs_of_rows():
    state = assigner(small("b", 100))
    assert counts(state.assign(60)) == [("b", 60)]
    assert counts(state.assign(60)) == [("b", 30), ("new0", 30)]
    assert counts(state.assign(70)) == [("new0", 70)]
    assert counts(state.assign(1)) == [("new1", 1)]


def test_four_slots_own_disjoint_shares_of_five_small_files():
    files = [small("a", 100), small("b", 200), small("c", 300), small("d", 400), small("e", 500)]
    shares = [counts(assigner(*files, slot=slot, slots=4).assign(200)) for slot in range(4)]
    assert shares == [
        [("a", 90), ("e", 50), ("new0", 60)],
        [("b", 80), ("new0", 100), ("new1", 20)],
        [("c", 70), ("new0", 100), ("new1", 30)],
        [("d", 60), ("new0", 100), ("new1", 40)],
    ]


@pytest.mark.parametrize(
    ("size", "limit", "is_small"),
    [(0, 800, False), (1, 800, True), (799, 800, True), (800, 800, False), (10, 0, False), (10, -1, False)],
)
def test_a_file_is_small_between_zero_and_the_limit(size, limit, is_small):
    rules = AssignRules(1000, limit, 10)
    assert bool(find_small_files([small("a", size)], rules)) is is_small


def test_a_small_file_without_room_for_one_row_takes_none():
    rules = AssignRules(max_file_size_bytes=500, small_file_limit_bytes=800, record_size_bytes=10)
    assert counts(assigner(small("full", 495), small("over", 600), rules=rules).assign(5)) == [("new0", 5)]


def test_rows_larger_than_a_file_get_a_file_each():
    rules = AssignRules(max_file_size_bytes=5, small_file_limit_bytes=0, record_size_bytes=10)
    assert counts(assigner(rules=rules).assign(3)) == [("new0", 1), ("new1", 1), ("new2", 1)]


def test_fixed_split_size_wins_over_the_average():
    rules = AssignRules(1000, 0, 10, rows_per_new_file=7)
    assert counts(assigner(rules=rules).assign(20)) == [("new0", 7), ("new1", 7), ("new2", 6)]


def test_no_rows_no_bucket():
    assert assigner(small("a", 1)).assign(0) == []
