import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import table.records.merge as merge_module
from table.config.merge_mode import MergeMode
from table.records.merge import (
    ARRIVAL_COLUMN,
    MergeRules,
    combine_rows,
    last_of_each_key,
    last_of_each_run,
    merge_rows,
    newer_than_stored,
    sortable,
)
from table.schema.avro_schema import DELETE_MARKER


def table(*rows):
    return pa.table(
        {
            "_hoodie_record_key": [key for key, _, _ in rows],
            "ts": pa.array([ts for _, ts, _ in rows], pa.int64()),
            "v": [value for _, _, value in rows],
        }
    )


def plain(rows):
    return [tuple(row.values()) for row in rows.to_pylist()]


STORED = table(("k1", 5, "a"), ("k2", 5, "a"), ("k3", None, "a"), ("k1", 9, "a"))


# what Hudi 1.0.2 does with the same rows, see test_hudi_agrees.py
@pytest.mark.parametrize(
    ("incoming", "event_time", "expected", "updated"),
    [
        ([("k1", 7, "b")], True, [("k1", 7, "b"), ("k2", 5, "a"), ("k3", None, "a"), ("k1", 9, "a")], 1),
        ([("k1", 7, "b")], False, [("k1", 7, "b"), ("k2", 5, "a"), ("k3", None, "a"), ("k1", 7, "b")], 2),
        ([("k2", 5, "tie")], True, [("k1", 5, "a"), ("k2", 5, "tie"), ("k3", None, "a"), ("k1", 9, "a")], 1),
        ([("k2", 4, "late")], True, [("k1", 5, "a"), ("k2", 5, "a"), ("k3", None, "a"), ("k1", 9, "a")], 0),
        ([("k3", 1, "b")], True, [("k1", 5, "a"), ("k2", 5, "a"), ("k3", 1, "b"), ("k1", 9, "a")], 1),
        ([("k2", None, "b")], True, [("k1", 5, "a"), ("k2", 5, "a"), ("k3", None, "a"), ("k1", 9, "a")], 0),
        ([("k9", 1, "b")], True, plain(STORED), 0),
    ],
)
def test_merge(incoming, event_time, expected, updated):
    merged = merge(
        STORED, table(*incoming), MergeRules(MergeMode.EVENT_TIME if event_time else MergeMode.COMMIT_TIME, ("ts",))
    )
    assert plain(merged.rows) == expected
    assert (merged.updated, merged.deleted) == (updated, 0)


def merge(stored, incoming, rules):
    keys = incoming.column("_hoodie_record_key").to_pylist()
    found = [keys.index(key) if key in keys else -1 for key in stored.column("_hoodie_record_key").to_pylist()]
    return merge_rows(stored, incoming, np.array(found), rules)


def test_without_ordering_field_the_incoming_row_wins():
    merged = merge(STORED, table(("k2", 1, "b")), MergeRules())
    assert plain(merged.rows)[1] == ("k2", 1, "b")


def marked(rows, *flags):
    return rows.append_column(DELETE_MARKER, pa.array(flags, pa.bool_()))


@pytest.mark.parametrize(
    ("mode", "gone"),
    [
        (MergeMode.EVENT_TIME, ["k1", "k2"]),
        (MergeMode.COMMIT_TIME, ["k1", "k2", "k1"]),
        (MergeMode.PARTIAL_UPDATE, ["k1", "k2", "k1"]),
    ],
)
def test_marked_records_delete(mode, gone):
    stored = marked(STORED, None, False, False, None)
    incoming = marked(table(("k1", 6, "y"), ("k2", 5, "x"), ("k3", 1, "kept")), True, True, False)
    merged = merge(stored, incoming, MergeRules(mode, ("ts",)))
    left = [row[0] for row in plain(merged.rows)]
    assert sorted(left + gone) == ["k1", "k1", "k2", "k3"]
    assert merged.deleted == len(gone)


def test_the_delete_operation_does_not_look_at_the_order():
    merged = merge(STORED, table(("k1", -1, "x")), MergeRules(MergeMode.EVENT_TIME, ("ts",), deletes_all=True))
    assert [row[0] for row in plain(merged.rows)] == ["k2", "k3"]
    assert (merged.updated, merged.deleted) == (0, 2)


def test_a_partial_update_fills_the_newer_record_from_the_older():
    stored = table(("k1", 5, "old"), ("k2", 5, "old"), ("k3", 5, None))
    incoming = table(("k1", 6, None), ("k2", 4, "late"), ("k3", 4, "late"))
    merged = merge(stored, incoming, MergeRules(MergeMode.PARTIAL_UPDATE, ("ts",)))
    assert plain(merged.rows) == [("k1", 6, "old"), ("k2", 5, "old"), ("k3", 5, "late")]


@pytest.mark.parametrize(
    ("mode", "ordering", "expected"),
    [
        (MergeMode.EVENT_TIME, ("ts",), [("b", 1, "2"), ("a", 3, "4")]),
        (MergeMode.EVENT_TIME, (), [("b", 1, "2"), ("a", 2, "5")]),
        (MergeMode.COMMIT_TIME, ("ts",), [("b", 1, "2"), ("a", 2, "5")]),
        (MergeMode.PARTIAL_UPDATE, ("ts",), [("a", 3, "4"), ("b", 1, "2")]),
    ],
)
def test_of_records_that_arrive_together_the_newest_stays(mode, ordering, expected):
    rows = table(("a", 3, "1"), ("b", 1, "2"), ("a", 1, "3"), ("a", 3, "4"), ("a", 2, "5"))
    assert plain(combine_rows(rows, MergeRules(mode, ordering))) == expected


ORDERED = st.tuples(st.integers(0, 2), st.sampled_from([0.5, -1.0, None]), st.sampled_from(["", "a", "b"]))


def ordered_rows(orders):
    columns = {"_hoodie_record_key": ["k"] * len(orders), "day": [day for day, _, _ in orders]}
    columns |= {"at": pa.array([at for _, at, _ in orders], pa.float64()), "name": [name for _, _, name in orders]}
    return pa.table({**columns, "number": range(len(orders))})


@given(st.lists(ORDERED, min_size=1, max_size=6))
def test_several_ordering_fields_are_compared_one_after_another(orders):
    """The oracle is how Python compares tuples. Among records that arrive together a null is the least value."""
    rules = MergeRules(ordering_fields=("day", "at", "name"))
    kept = combine_rows(ordered_rows(orders), rules).column("number").to_pylist()
    ranks = [(day, -2.0 if at is None else at, name) for day, at, name in orders]
    assert kept == [max(range(len(ranks)), key=lambda number: (ranks[number], number))]


@given(ORDERED, ORDERED)
def test_of_a_stored_row_and_a_record_the_greater_in_all_ordering_fields_together_stays(stored, incoming):
    """A stored row without one of its values gives way."""
    rules = MergeRules(ordering_fields=("day", "at", "name"))
    newer = newer_than_stored(ordered_rows([stored]), ordered_rows([incoming]), rules).tolist()
    if stored[1] is None:
        assert newer == [True]
    elif incoming[1] is None:
        assert newer == [incoming[0] > stored[0]]
    else:
        assert newer == [incoming >= stored]


def test_equals_go_by_the_number_of_arrival_where_there_is_one():
    rows = table(("a", 3, "1"), ("a", 3, "2"), ("a", 3, "3")).append_column(ARRIVAL_COLUMN, pa.array([5, 9, 7]))
    assert plain(combine_rows(rows, MergeRules(MergeMode.EVENT_TIME, ("ts",))))[0][:3] == ("a", 3, "2")


def test_partial_records_are_put_together_in_order_of_arrival():
    rows = table(("a", 1, "x"), ("a", 3, None), ("a", 2, "y"), ("b", 1, None))
    # the second is newer and takes what it lacks from the first, so the third finds nothing to fill
    assert plain(combine_rows(rows, MergeRules(MergeMode.PARTIAL_UPDATE, ("ts",)))) == [("a", 3, "x"), ("b", 1, None)]


def test_floats_are_ordered_as_java_orders_them():
    values = [float("-inf"), -1.5, -0.0, 0.0, 1e-300, 2.5, float("inf"), float("nan")]
    ordered = sortable(pa.chunked_array([pa.array([*values, None])])).to_pylist()
    assert ordered[:-1] == sorted(set(ordered[:-1]))
    assert ordered[-1] is None


def test_last_of_each_key_keeps_the_order_of_arrival():
    rows = table(("a", 1, "1"), ("b", 1, "2"), ("a", 1, "3"), ("c", 1, "4"), ("b", 1, "5"))
    assert plain(last_of_each_key(rows)) == [("a", 1, "3"), ("c", 1, "4"), ("b", 1, "5")]


@pytest.mark.parametrize(("next_key", "expected"), [(None, ["2", "3"]), ("b", ["2"]), ("c", ["2", "3"])])
def test_last_of_each_run_looks_across_the_border(next_key, expected):
    rows = table(("a", 1, "1"), ("a", 2, "2"), ("b", 1, "3"))
    assert [row[2] for row in plain(last_of_each_run(rows, next_key))] == expected


def test_a_delete_among_partial_records_stands_for_itself():
    rows = marked(table(("a", 2, "x"), ("a", 3, "gone"), ("b", 3, "gone"), ("b", 2, "y")), False, True, True, False)
    combined = combine_rows(rows, MergeRules(MergeMode.PARTIAL_UPDATE, ("ts",)))
    assert plain(combined) == [("a", 3, "gone", True), ("b", 2, "y", False)]


@pytest.mark.parametrize("changes", [0, 1, 3, 40, 2_000])
@pytest.mark.parametrize("deleting", [False, True])
def test_few_changes_are_merged_by_runs_of_rows_as_many_are_row_by_row(monkeypatch, changes, deleting):
    rng = random.Random(changes)
    count = 20_000
    texts = pa.array([f"value {n}" for n in range(count)])
    nested = pa.array([{"n": n, "l": [n, n + 1]} for n in range(count)])
    names = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array(["old"]))
    stored = pa.table({"id": texts, "nested": nested, "name": names, DELETE_MARKER: [False] * count})
    places = sorted(rng.sample(range(count), changes))
    incoming = pa.table(
        {
            "id": pa.array([f"new {n}" for n in range(changes)], pa.string()),
            "nested": pa.array([{"n": -n, "l": []} for n in range(changes)], nested.type),
            "name": pa.DictionaryArray.from_arrays(pa.array([0] * changes, pa.int32()), pa.array(["new"])),
            DELETE_MARKER: pa.array([deleting and n % 3 == 0 for n in range(changes)], pa.bool_()),
        }
    )
    found = np.full(count, -1)
    order = rng.sample(range(changes), changes)
    found[places] = order
    by_runs = merge_rows(stored, incoming, found, MergeRules())
    monkeypatch.setattr(merge_module, "_LONG_RUN", 10**9)
    by_row = merge_rows(stored, incoming, found, MergeRules())
    assert by_runs.rows.equals(by_row.rows)
    assert (by_runs.updated, by_runs.deleted) == (by_row.updated, by_row.deleted)
    gone = {place for place, n in zip(places, order, strict=True) if deleting and n % 3 == 0}
    wanted = [f"value {n}" for n in range(count)]
    for place, n in zip(places, order, strict=True):
        wanted[place] = f"new {n}"
    assert by_runs.rows.column("id").to_pylist() == [text for n, text in enumerate(wanted) if n not in gone]


def test_a_run_of_rows_that_all_go_leaves_none():
    stored = pa.table({"id": ["a", "b"], DELETE_MARKER: [False, False]})
    incoming = pa.table({"id": ["b", "a"], DELETE_MARKER: [True, True]})
    merged = merge_rows(stored, incoming, np.array([1, 0]), MergeRules())
    assert (len(merged.rows), merged.deleted) == (0, 2)
