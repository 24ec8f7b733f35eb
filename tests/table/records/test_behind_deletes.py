"""Records that a log may not hold behind the delete of their key."""

import numpy as np
import pyarrow as pa
import pytest

from table.config.merge_mode import MergeMode
from table.records.behind_deletes import any_behind_delete, may_forget_deletes
from table.records.merge import MergeRules
from table.schema.avro_schema import DELETE_MARKER

BY_TIME = MergeRules(MergeMode.EVENT_TIME, ("ts",))
BY_ARRIVAL = MergeRules(MergeMode.EVENT_TIME)


def incoming(ts, *, deleted=False):
    return pa.table({"id": ["a"], "ts": pa.array([ts], pa.int64()), DELETE_MARKER: [deleted]})


def deletes(ts, *, unordered=False, at=0):
    return pa.table({"at": pa.array([at], pa.int64()), "removes": [unordered], "ts": pa.array([ts], pa.int64())})


NONE = deletes(0).slice(0, 0)


def judge(record, found, *, removes=False, rules=BY_TIME):
    return any_behind_delete(record, np.array([removes]), found, rules)


@pytest.mark.parametrize(
    ("rules", "may"),
    [
        (BY_TIME, True),
        (BY_ARRIVAL, False),
        (MergeRules(MergeMode.COMMIT_TIME, ("ts",)), False),
        (MergeRules(MergeMode.EVENT_TIME, ("ts",), deletes_all=True), False),
    ],
)
def test_only_an_order_by_values_can_bring_a_row_back(rules, may):
    assert may_forget_deletes(rules) == may


def test_a_log_without_deletes_takes_every_record():
    assert not judge(incoming(1), NONE)


@pytest.mark.parametrize(
    ("ts", "delete_ts", "is_wrong"),
    [
        (1, 5, True),  # the delete is newer: the base row would come back in its place
        (5, 5, False),
        (9, 5, False),  # the record is newer than the delete, so newer than the row
    ],
)
def test_a_record_older_than_the_delete_must_be_merged_into_the_base_file(ts, delete_ts, is_wrong):
    assert judge(incoming(ts), deletes(delete_ts)) == is_wrong


def test_a_delete_that_ignores_the_order_holds_against_every_record():
    assert judge(incoming(9), deletes(0, unordered=True))
    assert judge(incoming(9, deleted=True), deletes(0, unordered=True))


def test_a_second_delete_brings_nothing_back():
    assert not judge(incoming(1, deleted=True), deletes(5))


def test_a_record_that_removes_its_key_whatever_the_order_may_follow():
    assert not judge(incoming(1), deletes(5), removes=True)
    assert not judge(incoming(1), deletes(0, unordered=True), removes=True)


def test_one_wrong_record_among_many_is_found():
    records = pa.concat_tables([incoming(9), incoming(9), incoming(1)])
    found = pa.concat_tables([deletes(5, at=0), deletes(5, at=2)])
    assert any_behind_delete(records, np.zeros(3, np.bool_), found, BY_TIME)
    assert not any_behind_delete(records, np.zeros(3, np.bool_), found.slice(0, 1), BY_TIME)
