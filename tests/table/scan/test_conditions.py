"""Conditions in tuples: nulls as in SQL, times in the table's zone, fields of structs, errors that say so."""

import time
from datetime import date, datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudistream import ArrowSink, HudiTable
from table.errors import CorruptFileError, InvalidConfigError
from table.scan.predicate import parse_where

SCHEMA = pa.schema(
    [
        ("x", pa.int64()),
        ("t", pa.string()),
        ("ts", pa.timestamp("us", "UTC")),
        ("s", pa.struct([("a", pa.int64()), ("deep", pa.struct([("b", pa.string())]))])),
        ("s.a", pa.string()),
        ("q", pa.struct([("a", pa.int64())])),
    ]
)
DAY = datetime(2024, 1, 2, tzinfo=timezone.utc)
NAIVE = DAY.replace(tzinfo=None)
ROWS = pa.Table.from_pylist(
    [
        {"x": 1, "t": "p", "ts": DAY, "s": {"a": 7, "deep": {"b": "z"}}, "s.a": "dotted", "q": {"a": 1}},
        {"x": 2, "t": "", "ts": DAY + timedelta(hours=5), "s": None, "q": {"a": None}},
        {"x": None, "t": None, "ts": None, "s": {"a": None, "deep": None}, "q": None},
    ],
    SCHEMA,
)


def found(where, zone="UTC"):
    return ROWS.filter(parse_where(where, SCHEMA, zone=zone).expression)["x"].to_pylist()


@pytest.mark.parametrize(
    ("where", "want"),
    [
        ([("x", "not in", [1])], [2]),
        ([("x", "not in", [1, None])], []),
        ([("x", "not in", [None])], []),
        ([("x", "not in", [])], [1, 2, None]),
        ([("x", "in", [])], []),
        ([("x", "in", [None])], []),
        ([("x", "in", [1, None])], [1]),
        ([("x", "=", None)], []),
        ([("x", "!=", None)], []),
        ([("x", "!=", 1)], [2]),
        ([("x", "<", None)], []),
        ([("t", "not in", ["p"])], [2]),
        ([[("x", "not in", [1])], [("x", "=", 1)]], [1, 2]),
        ([("q.a", "=", 1)], [1]),
        ([("q.a", "not in", [5])], [1]),
        ([("s.deep.b", "=", "z")], [1]),
        ([("s.a", "=", "dotted")], [1]),  # a column of that name comes first
        ([("ts", ">", DAY)], [2]),
        ([("ts", "=", NAIVE)], [1]),
        ([("ts", "=", date(2024, 1, 2))], [1]),
        ([("ts", "=", "2024-01-02")], [1]),
        ([("ts", "=", "2024-01-02 00:00:00")], [1]),
        ([("ts", "in", ["2024-01-02T05:00:00Z", NAIVE])], [1, 2]),
        ([("ts", "=", np.datetime64("2024-01-02"))], [1]),
        ([("ts", "=", pa.scalar(NAIVE))], [1]),
    ],
    ids=str,
)
def test_terms_mean_what_they_mean_in_sql(where, want):
    assert found(where) == want


def test_a_time_without_zone_is_in_the_tables(monkeypatch):
    monkeypatch.setenv("TZ", "Etc/GMT+5")  # five hours behind UTC
    time.tzset()
    try:
        assert found([("ts", "=", NAIVE)], "LOCAL") == [2]
        assert found([("ts", "=", "2024-01-02")], "LOCAL") == [2]
        assert found([("ts", "in", ["2024-01-02", DAY])], "LOCAL") == [1, 2]
        assert found([("ts", "=", DAY)], "LOCAL") == [1]
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    "where",
    [
        [("ts", ">", "yesterday")],
        [("s.nothing", "=", 1)],
        [("x.a", "=", 1)],
        pc.field("ts") >= NAIVE,
        pc.field("ts").isin([NAIVE]),
    ],
    ids=str,
)
def test_what_cannot_be_compared_is_refused(where):
    with pytest.raises(InvalidConfigError):
        parse_where(where, SCHEMA)


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_an_error_of_a_condition_is_no_damaged_file(tmp_path, table_type):
    path = str(tmp_path / "t")
    options = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"} if table_type == "mor" else {}
    with ArrowSink(path, options, key="id", operation="upsert", table_type=table_type) as sink:
        for _ in range(2):
            sink.write(pa.table({"id": ["a", "b"], "t": ["1", "two"]}))
    table = HudiTable.open(path)
    condition = pc.field("t").cast(pa.int32()) > 0
    for read in (
        table.scan(where=condition).to_arrow,
        lambda: list(table.scan(where=condition).to_batches()),
        lambda: table.count(condition),
        lambda: table.delete(condition),
    ):
        with pytest.raises(InvalidConfigError, match="cannot be evaluated"):
            read()
    for file in tmp_path.glob("t/*.parquet"):  # damage stays damage
        raw = bytearray(file.read_bytes())
        raw[4:1000] = b"\xff" * 996
        file.write_bytes(raw)
    with pytest.raises(CorruptFileError):
        table.scan(where=condition).to_arrow()


@pytest.mark.parametrize(("operator", "value", "found"), [
    (">", 2**70, []), ("<", 2**70, ["a", "b"]), (">=", 1e308, []), ("<=", 1e308, ["a", "b"]), ("=", 2**63, []),
    ("!=", 2**63, ["a", "b"]), (">", -(2**70), ["a", "b"]), ("<", -1e308, []), ("=", float("inf"), []),
    ("<", float("inf"), ["a", "b"]), ("!=", float("nan"), ["a", "b"]), ("<", float("nan"), []),
    ("in", [2**70, 1e308, 1.0, 0.5], ["a"]), ("not in", [2**70, 1.0], ["b"]),
    ("not in", [2**70], ["a", "b"]), ("not in", [0.5, float("nan")], ["a", "b"]), ("in", [2**62], ["b"]),
], ids=str)  # fmt: skip
def test_a_number_that_no_integer_of_the_column_can_be_is_compared_all_the_same(tmp_path, operator, value, found):
    with ArrowSink(str(tmp_path / "t"), key="id") as sink:
        sink.write(pa.table({"id": ["a", "b", "c"], "n": pa.array([1, 2**62, None], pa.int64())}))
    rows = HudiTable.open(tmp_path / "t").scan(["id"], [("n", operator, value)]).to_arrow()
    assert sorted(rows.column("id").to_pylist()) == found
