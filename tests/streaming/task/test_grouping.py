from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from streaming.plan.columns import SLOT_COLUMN
from streaming.task import grouping
from streaming.task.grouping import group_by_slot, group_rows, split_in_order
from table.schema.avro_schema import PARTITION_PATH

ROW = st.tuples(st.sampled_from(["", "a", "b", "a/b", None]), st.integers(0, 3))


def batches_of(rows, size):
    table = pa.table(
        {
            "number": pa.array(range(len(rows)), pa.int64()),
            "nested": pa.array([[{"x": "x" * 20}] for _ in rows], pa.list_(pa.struct([("x", pa.string())]))),
            PARTITION_PATH: pa.array([path for path, _ in rows], pa.string()),
            SLOT_COLUMN: pa.array([slot for _, slot in rows], pa.int32()),
        }
    )
    return table.to_batches(size)


def numbers_by_group(pieces):
    """Row numbers by group; a group that comes back after another one is an error."""
    found, last = {}, None
    for path, slot, rows in pieces:
        assert (path, slot) == last or (path, slot) not in found, "the pieces of a slot follow each other"
        last = (path, slot)
        assert rows.column_names == ["number", "nested"]
        found.setdefault(last, []).extend(rows.column("number").to_pylist())
    return found


@settings(max_examples=examples(150), deadline=None)
@given(
    st.lists(ROW, max_size=60),
    st.integers(1, 9),
    st.sampled_from([1, 300, 2000, 10**9]),
    st.sampled_from([1, 3, 256]),
    st.sampled_from([1, 10, 4096]),
)
def test_rows_come_together_in_order_of_arrival_whenever_they_are_sorted(rows, size, memory_bytes, large, parts):
    wanted = {}
    for number, (path, slot) in enumerate(rows):
        wanted.setdefault((path, slot), []).append(number)
    with mock.patch.multiple(grouping, _ROWS_OF_A_LARGE_GROUP=large, _MOST_PARTS=parts):
        assert numbers_by_group(group_by_slot(batches_of(rows, size), memory_bytes)) == wanted


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(ROW, max_size=40), st.integers(1, 9))
def test_sorted_rows_are_passed_on_at_once(rows, size):
    rows = sorted(rows, key=lambda row: (row[0] or "", row[0] is None, row[1]))
    wanted = {}
    for number, (path, slot) in enumerate(rows):
        wanted.setdefault((path, slot), []).append(number)
    assert numbers_by_group(split_in_order(batches_of(rows, size))) == wanted


def test_one_slot_is_passed_on_without_the_disk(monkeypatch):
    monkeypatch.setattr("tempfile.TemporaryFile", lambda *_, **__: pytest.fail("nothing needs the disk"))
    pieces = list(group_by_slot(batches_of([("a", 0)] * 50, 5), 300))
    assert sum(len(rows) for _, _, rows in pieces) == 50
    assert len(pieces) == 5


def test_rows_that_pass_keep_none_of_the_rows_that_they_came_with():
    text, numbers = pa.array(["x" * 10_000] * 64), np.arange(64)
    pieces = [(pa.table({"v": text}).take(pa.array(numbers)), numbers // 2) for _ in range(4)]
    first = next(rows for number, rows in group_rows(iter(pieces), 1) if number == 0)
    assert (len(first), first.get_total_buffer_size() < 3 * first.nbytes) == (2, True)
