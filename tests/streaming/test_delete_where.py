"""Deleting the rows for which a condition is true, without Spark."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudistream import HudiTable, erase
from streaming import arrow_sink
from streaming.arrow_sink import ArrowSink
from table import read_table
from table.errors import InvalidConfigError


def rows(count, of="ab", ts=0):
    return pa.table(
        {
            "id": [f"k{number:03}" for number in range(count)],
            "p": [of[number % len(of)] for number in range(count)],
            "ts": [ts] * count,
            "v": list(range(count)),
        }
    )


def sink_of(path, options=None, **more):
    return ArrowSink(path, options, key="id", partition_by="p", order_by="ts", **more)


def left(path):
    return sorted(read_table(path).column("v").to_pylist())


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(
    ("where", "stays"),
    [
        ([("v", ">=", 10)], lambda v: v < 10),
        ([("p", "=", "a"), ("v", "<", 30)], lambda v: v % 2 or v >= 30),
        ([[("v", "=", 3)], [("id", "in", ["k004", "nobody"])]], lambda v: v not in (3, 4)),
        (pc.field("v") == 7, lambda v: v != 7),
    ],
)
def test_the_rows_of_a_condition_are_deleted_and_no_others(tmp_path, table_type, where, stays):
    path = str(tmp_path / "t")
    with sink_of(path, table_type=table_type) as sink:
        sink.write(rows(50))
        expected = [v for v in range(50) if stays(v)]
        summary = sink.delete(where=where)
        assert summary.rows_deleted == 50 - len(expected)
    assert left(path) == expected


def test_later_rows_of_a_key_are_deleted_whatever_their_time(tmp_path):
    path = str(tmp_path / "t")
    with sink_of(path) as sink:
        sink.write(rows(10, ts=5))
        assert sink.delete(where=[("id", "=", "k001")]).rows_deleted == 1
    assert left(path) == [0, *range(2, 10)]


def test_a_condition_that_no_row_meets_leaves_no_instant(tmp_path):
    path = str(tmp_path / "t")
    with sink_of(path) as sink:
        sink.write(rows(5))
        assert sink.delete(where=[("v", ">", 99)]).instant_time is None
    assert left(path) == [0, 1, 2, 3, 4]


def test_a_row_that_stayed_in_another_partition_path_is_found_by_it(tmp_path):
    path = str(tmp_path / "t")
    with sink_of(path, {"hoodie.bloom.index.update.partition.path": "false"}, index="global_bloom") as sink:
        sink.write(rows(4, "a"))
        sink.write(rows(2, "b", ts=1))  # stay in the partition path a
    with sink_of(path) as sink:
        assert sink.delete(where=[("v", "<", 3)]).rows_deleted == 3
    assert left(path) == [3]


def test_a_row_that_another_writer_deletes_meanwhile_is_told(tmp_path, logs, monkeypatch):
    path, make = str(tmp_path / "t"), arrow_sink.make_scan
    with sink_of(path) as sink:
        sink.write(rows(4))

    def overtaken(table, columns, where):
        found = make(table, columns, where).to_arrow()
        with sink_of(path) as other:
            other.delete(found.slice(0, 1).select(["id", "p"]))
        return ReadBefore(found)

    monkeypatch.setattr(arrow_sink, "make_scan", overtaken)
    with sink_of(path) as sink:
        assert sink.delete(where=[("v", "<", 3)]).rows_deleted == 2
    (told,) = [one for one in logs if one["event"] == "rows_not_deleted"]
    assert (told["found"], told["deleted"]) == (3, 2)
    assert left(path) == [3]


class ReadBefore:
    """A scan of rows that were read before."""

    def __init__(self, found):
        self._found = found

    def to_arrow(self):
        return self._found


SHARED = pa.table({"id": ["s1", "s1", "s2"], "p": ["a", "a", "a"], "v": [1, 2, 1]})


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_rows_that_share_a_key_go_together_or_not_at_all(tmp_path, table_type):
    path = str(tmp_path / "t")
    with ArrowSink(path, key="id", partition_by="p", operation="insert", table_type=table_type) as sink:
        sink.write(SHARED)
        with pytest.raises(InvalidConfigError, match="1 rows for which it is not true have the same .* 's1'"):
            sink.delete(where=[("v", "=", 1)])
    with pytest.raises(InvalidConfigError, match="nothing was deleted"):
        erase(path, where=[("v", "=", 1)])
    table = HudiTable.open(path)
    assert table.count() == 3
    table.delete([("id", "=", "s1")])
    assert table.scan(["id", "v"]).to_arrow().to_pylist() == [{"id": "s2", "v": 1}]


def test_the_same_key_in_another_partition_path_is_another_row(tmp_path):
    path = str(tmp_path / "t")
    with ArrowSink(path, key="id", partition_by="p", operation="insert") as sink:
        sink.write(pa.table({"id": ["s1", "s1"], "p": ["a", "b"], "v": [1, 2]}))
    assert HudiTable.open(path).delete([("v", "=", 1)]).rows_deleted == 1
    assert HudiTable.open(path).scan(["p"]).to_arrow()["p"].to_pylist() == ["b"]
    with ArrowSink(path, key="id", partition_by="p", operation="insert") as sink:
        sink.write(pa.table({"id": ["s1"], "p": ["a"], "v": [1]}))
    with pytest.raises(InvalidConfigError, match="'s1'"):  # an erasure goes by key alone
        erase(path, where=[("v", "=", 1)])


def test_what_came_since_the_look_is_judged_again(tmp_path, monkeypatch):
    path, look = str(tmp_path / "t"), arrow_sink.check_no_rows_beside
    with sink_of(path) as sink:
        sink.write(rows(4))
    looks = []

    def overtaken(table, where, found):
        looks.append(len(found))
        look(table, where, found)
        if len(looks) == 1:
            with sink_of(path) as other:
                other.write(rows(1).set_column(3, "v", pa.array([77])))

    monkeypatch.setattr(arrow_sink, "check_no_rows_beside", overtaken)
    with sink_of(path) as sink, pytest.raises(InvalidConfigError, match="not true"):
        sink.delete(where=[("v", "<", 3)])
    assert looks == [3, 3]
    assert left(path) == [1, 2, 3, 77]


def test_what_is_to_be_deleted_is_said_once(tmp_path):
    path = str(tmp_path / "t")
    with sink_of(path) as sink:
        sink.write(rows(3))
        for given in ({}, {"rows": ["k001"], "where": [("v", "=", 1)]}):
            with pytest.raises(InvalidConfigError, match="delete takes rows, or where"):
                sink.delete(**given)
        with pytest.raises(InvalidConfigError, match="nobody"):
            sink.delete(where=[("nobody", "=", 1)])
    assert left(path) == [0, 1, 2]
