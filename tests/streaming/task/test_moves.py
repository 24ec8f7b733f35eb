"""Does a row update, move or insert its key?"""

import numpy as np
import pyarrow as pa
import pytest

from streaming.task.moves import decide_ways
from table.index.key_lookup import FileHits
from table.view.file_group import BaseFile


def hits(path, sought, stored):
    file = BaseFile(path, "f_1-0-1_7.parquet", "f", "7", 1)
    return FileHits(file, np.array(stored, np.int64), np.array(sought, np.int64))


def decide(found, known, paths, deletes=None, *, may_leave=True):
    deletes = [False] * len(known) if deletes is None else deletes
    named = pa.array(paths).dictionary_encode()
    return decide_ways(found, np.array(known), named, np.array(deletes), may_leave=may_leave)


def told(ways):
    return [(one.updates.tolist(), one.leaving.tolist(), one.leaving_stored.tolist()) for one in ways.of_files]


def test_a_key_in_the_path_that_its_row_names_is_updated_and_an_unknown_one_is_new():
    ways = decide([hits("a", [0], [5])], [True, False], ["a", "a"])
    assert told(ways) == [([0], [], [])]
    assert ways.stays.tolist() == [True, False]
    assert ways.fresh.tolist() == [False, True]


@pytest.mark.parametrize(
    ("may_leave", "deletes", "expected"),
    [
        (True, False, ([], [0], [5])),  # it moves
        (False, False, ([0], [], [])),  # its row stays in the old path
        (True, True, ([0], [], [])),  # it is deleted where it is
    ],
)
def test_a_key_in_another_path_moves_where_it_may(may_leave, deletes, expected):
    ways = decide([hits("a", [0], [5])], [True], ["b"], [deletes], may_leave=may_leave)
    assert told(ways) == [expected]
    assert ways.stays.tolist() == [False]
    assert ways.fresh.tolist() == [False]


def test_a_key_in_several_files_is_told_for_each():
    ways = decide([hits("a", [0, 1], [3, 4]), hits("b", [0], [9])], [True, True], ["b", "a"])
    assert told(ways) == [([1], [0], [3]), ([0], [], [])]
    assert ways.stays.tolist() == [True, True]


def test_a_row_is_listed_once_for_a_file_that_holds_its_key_twice():
    assert told(decide([hits("a", [0, 0], [3, 4])], [True], ["b"])) == [([], [0], [3])]


def test_a_delete_of_an_unknown_key_is_no_new_row():
    assert decide([], [False], ["a"], [True]).fresh.tolist() == [False]
