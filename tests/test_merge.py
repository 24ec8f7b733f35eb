import pyarrow as pa
import pytest

from table.write.merge import last_of_each_key, last_of_each_run, merge_stored_rows


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
    merged = merge_stored_rows(STORED, table(*incoming), "ts", event_time_order=event_time)
    assert plain(merged.rows) == expected
    assert merged.updated == updated
    assert merged.matched.tolist() == ([] if incoming[0][0] == "k9" else [0])


def test_without_ordering_field_the_incoming_row_wins():
    merged = merge_stored_rows(STORED, table(("k2", 1, "b")), None, event_time_order=True)
    assert plain(merged.rows)[1] == ("k2", 1, "b")


def test_last_of_each_key_keeps_the_order_of_arrival():
    rows = table(("a", 1, "1"), ("b", 1, "2"), ("a", 1, "3"), ("c", 1, "4"), ("b", 1, "5"))
    assert plain(last_of_each_key(rows)) == [("a", 1, "3"), ("c", 1, "4"), ("b", 1, "5")]


@pytest.mark.parametrize(("next_key", "expected"), [(None, ["2", "3"]), ("b", ["2"]), ("c", ["2", "3"])])
def test_last_of_each_run_looks_across_the_border(next_key, expected):
    rows = table(("a", 1, "1"), ("a", 2, "2"), ("b", 1, "3"))
    assert [row[2] for row in plain(last_of_each_run(rows, next_key))] == expected
