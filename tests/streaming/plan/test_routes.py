import pytest

from streaming.plan.bucket_assigner import AssignRules
from streaming.plan.routes import (
    FILE_BYTES,
    PLANNED_PATHS,
    SLOT_BYTES,
    SMALL_BATCH_BYTES,
    Routes,
    hash_int,
    plan_change_routes,
    plan_routes,
    task_values,
)
from streaming.plan.write_profile import PathProfile, WriteProfile
from table.view.file_group import base_file_of

RULES = AssignRules(120 << 20, 100 << 20, 1024)
ROWS = SLOT_BYTES // 1024  # as many fill one slot


def profile(**rows):
    return WriteProfile(batches=1, paths={path: PathProfile((), float(count)) for path, count in rows.items()})


def test_nothing_known_means_hashing_over_all_tasks():
    assert plan_routes(WriteProfile(), RULES, 4) == Routes(4, 1)


def test_a_small_batch_needs_no_exchange():
    assert plan_routes(profile(a=100, b=100), RULES, 4) == Routes(1, 1)


def test_a_small_batch_that_tops_up_large_files_is_not_small():
    paths = {path: PathProfile((base_file_of(path, "f_0-0-0_1.parquet", 90 << 20),), 10.0) for path in "abcd"}
    routes = plan_routes(WriteProfile(batches=1, paths=paths), RULES, 2)
    assert routes.tasks == 2
    assert sorted(task for tasks in routes.planned.values() for task in tasks) == [0, 0, 1, 1]


def test_one_hot_path_among_fifty_spreads_and_the_quiet_ones_make_one_file_each():
    rows = {f"quiet{number}": 100 for number in range(49)}
    routes = plan_routes(profile(hot=3 * ROWS + 10, **rows), RULES, 4)
    assert routes.tasks == 4
    assert sorted(routes.planned["hot"]) == [0, 1, 2, 3]
    assert {len(tasks) for path, tasks in routes.planned.items() if path != "hot"} == {1}
    assert len(routes.planned) == 50


def test_slots_go_to_the_least_loaded_task_heaviest_first():
    routes = plan_routes(profile(a=9 * 1000, b=7 * 1000, c=6 * 1000, d=5 * 1000), RULES, 2)
    assert {path: tasks[0] for path, tasks in routes.planned.items()} == {"a": 0, "b": 1, "c": 1, "d": 0}


def test_a_path_has_no_more_slots_than_there_are_tasks():
    assert len(plan_routes(profile(hot=100 * ROWS), RULES, 3).planned["hot"]) == 3


def test_unknown_paths_get_the_configured_slots():
    assert plan_routes(WriteProfile(), RULES, 4, default_slots=2).slots_of("new") == 2
    assert plan_routes(WriteProfile(), RULES, 1, default_slots=2).slots_of("new") == 1


MANY_FILES = SMALL_BATCH_BYTES // FILE_BYTES  # as many are a small batch's work without any row


def small_files(paths, share, rows=4.0):
    return WriteProfile(batches=3, paths={f"p{n}": PathProfile((), rows, share) for n in range(paths)})


@pytest.mark.parametrize(
    ("paths", "share", "tasks"),
    [
        (1, 1.0, 1),
        (MANY_FILES * 15 // 16, 1.0, 1),
        (MANY_FILES, 1.0, 4),
        (1000, 1.0, 4),
        (5000, 1.0, 4),
        (MANY_FILES, 0.5, 1),  # half of the batches write each
        (1000, 1 / 32, 1),  # a backfill, five batches ago
        (MANY_FILES, 0.0, 1),  # listed, and not written by this stream
    ],
)
def test_files_of_a_few_rows_count_as_work(paths, share, tasks):
    assert plan_routes(small_files(paths, share), RULES, 4).tasks == tasks
    routes, apart = plan_change_routes(small_files(paths, share), RULES, 4, spread=False)
    assert (routes.tasks, apart) == (tasks, False)


def test_a_path_of_which_no_row_is_expected_any_more_counts_no_file():
    assert plan_routes(small_files(1000, 1.0, rows=0.5), RULES, 4).tasks == 1


def test_many_small_paths_fill_every_task():
    routes = plan_routes(small_files(MANY_FILES, 1.0), RULES, 4)
    used = [task for tasks in routes.planned.values() for task in tasks]
    assert {used.count(task) for task in range(4)} == {PLANNED_PATHS // 4}


@pytest.mark.parametrize("tasks", [1, 2, 3, 8, 200])
def test_task_values_send_each_row_to_the_task_they_name(tasks):
    assert [hash_int(value) % tasks for value in task_values(tasks)] == list(range(tasks))
