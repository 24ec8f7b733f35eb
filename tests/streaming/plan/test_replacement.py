"""Overwrites and deleted partitions: the action, and the paths that are meant. A value is not a pattern."""

import pytest

from streaming.plan.replacement import action_of, existing_paths, matching_paths
from table.errors import InvalidConfigError
from table.options.operation import Operation
from table.timeline.instant import Action

PATHS = ["*", "a", "ab", "a/b", "b.c", "bxc", ""]


@pytest.mark.parametrize(
    ("operation", "table_type", "action"),
    [
        (Operation.UPSERT, "COPY_ON_WRITE", Action.COMMIT),
        (Operation.UPSERT, "MERGE_ON_READ", Action.DELTA_COMMIT),
        (Operation.INSERT_OVERWRITE, "COPY_ON_WRITE", Action.REPLACE_COMMIT),
        (Operation.DELETE_PARTITION, "MERGE_ON_READ", Action.REPLACE_COMMIT),
    ],
)
def test_actions(operation, table_type, action):
    assert action_of(operation, table_type) is action


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (["a"], ("a",)),
        (["a*"], ("a", "ab", "a/b")),
        (["b.c"], ("b.c",)),
        (["a", "a*", "a"], ("a", "ab", "a/b")),
        (["*b"], ("ab", "a/b")),
        ([""], ("",)),
    ],
)
def test_an_option_holds_patterns(wanted, expected):
    assert matching_paths(wanted, PATHS) == expected


@pytest.mark.parametrize(("wanted", "expected"), [(["*"], ("*",)), (["a", "*", "a"], ("a", "*")), ([""], ("",))])
def test_a_row_holds_a_path(wanted, expected):
    assert existing_paths(wanted, PATHS) == expected


@pytest.mark.parametrize(("find", "wanted"), [(matching_paths, "c*"), (existing_paths, "a*"), (existing_paths, "c")])
def test_a_path_that_is_not_there_is_named(find, wanted):
    with pytest.raises(InvalidConfigError, match="no partition path") as told:
        find(["a", wanted], PATHS)
    assert repr(wanted) in str(told.value)


def test_a_table_without_partitions_says_so():
    with pytest.raises(InvalidConfigError, match="among those it has are: none"):
        matching_paths(["*"], [])
