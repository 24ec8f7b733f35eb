"""A table as a lazy frame of Polars: the same rows, and what Polars asks for reaches the scan."""

from datetime import date, datetime

import polars as pl
import pyarrow as pa
import pytest
from engine import Engine

from hudistream import HudiTable
from table import scan_hudi, threads
from table.scan import polars_source
from table.scan.polars_source import _terms_of

NAN = float("nan")
SCHEMA = pa.schema(
    [("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.string()), ("d", pa.date32())]
)


@pytest.fixture
def path(tmp_path):
    path = str(tmp_path / "t")
    for part in range(4):
        numbers = range(part * 10, part * 10 + 10)
        rows = {"id": [f"k{n:02d}" for n in numbers], "p": [f"p{part}"] * 10, "ts": list(numbers), "v": ["a", "b"] * 5}
        rows["d"] = [date(2024, 1, 1 + part)] * 10
        Engine(path, {"hoodie.datasource.write.operation": "upsert"}).write(None, pa.table(rows, schema=SCHEMA))
    return path


@pytest.fixture
def asked(monkeypatch):
    """What the scans were asked for."""
    seen = []
    narrowed = polars_source._narrowed

    def note(*given):
        seen.append(narrowed(*given))
        return seen[-1]

    monkeypatch.setattr(polars_source, "_narrowed", note)
    return seen


CONDITIONS = [
    pl.col("p") == "p2",
    pl.col("p").is_in(["p1", "p3"]),
    pl.lit("p1") < pl.col("p"),
    (pl.col("p") == "p1") & (pl.col("ts") > 13) & pl.col("v").str.starts_with("b"),
    (pl.col("p") == "p1") | (pl.col("ts") == 33),
    pl.col("d") == date(2024, 1, 3),
    pl.col("id").is_in(["k03", "k33", "nobody"]),
    pl.col("v") == pl.col("p"),
    pl.col("ts").is_null(),
    ~(pl.col("p") == "p2"),
]


@pytest.mark.parametrize("condition", CONDITIONS, ids=str)
def test_a_condition_gives_the_rows_that_polars_gives(path, condition):
    whole = pl.from_arrow(HudiTable.open(path).scan().to_arrow())
    assert scan_hudi(path).filter(condition).collect().equals(whole.filter(condition))
    assert (
        scan_hudi(path)
        .filter(condition)
        .select("id", "ts")
        .collect()
        .equals(whole.filter(condition).select("id", "ts"))
    )


@pytest.mark.parametrize(("condition", "terms"), [
    (CONDITIONS[0], [("p", "=", "p2")]),
    (CONDITIONS[1], [("p", "in", ["p1", "p3"])]),
    (CONDITIONS[2], [("p", ">", "p1")]),
    (CONDITIONS[3], [("p", "=", "p1"), ("ts", ">", 13)]),
    (CONDITIONS[4], []),
    (CONDITIONS[5], [("d", "=", date(2024, 1, 3))]),
    (CONDITIONS[7], []),
    (CONDITIONS[9], []),
    (pl.col("t") == datetime(2024, 1, 1), []),  # noqa: DTZ001 not understood: units and zones
    (None, []),
])  # fmt: skip
def test_what_is_understood_of_a_condition(condition, terms):
    assert _terms_of(condition) == terms


def test_columns_and_conditions_reach_the_scan(path, asked):
    found = scan_hudi(path).filter(pl.col("p") == "p2").select("id").collect()
    assert found["id"].to_list() == [f"k{n}" for n in range(20, 30)]
    [scan] = asked
    assert set(scan.columns) == {"id", "p"}
    assert scan.explain().files_read == 1


def test_a_limit_reaches_the_scan(path, asked):
    assert scan_hudi(path).head(7).collect().height == 7
    assert asked[0].limit == 7


def test_a_scan_keeps_its_own_question(path, asked):
    table = HudiTable.open(path)
    narrow = table.scan(["id", "ts"], where=[("p", "=", "p1")])
    assert scan_hudi(narrow).filter(pl.col("ts") > 15).collect()["id"].to_list() == ["k16", "k17", "k18", "k19"]
    assert scan_hudi(table.scan(limit=12)).filter(pl.col("p") == "p1").collect().height == 2
    assert asked[-1].where is None
    assert scan_hudi(table.changes(table.history()["instant"][1].as_py())).collect()["p"].unique().to_list() == ["p3"]


def test_a_damaged_spelling_costs_time_alone(path, monkeypatch):
    monkeypatch.setattr(polars_source, "_conjuncts", lambda node: node["no such key"])
    assert _terms_of(pl.col("p") == "p2") == []
    assert scan_hudi(path).filter(pl.col("p") == "p2").collect().height == 10


@pytest.mark.parametrize("condition", [
    pl.col("x") > 1.0, pl.col("x") == NAN, pl.col("x") >= 1.0, pl.lit(1.0) < pl.col("x"),
    (pl.col("x") > 1.0) & (pl.col("p") == "p0"), pl.col("x").is_in([NAN]),
], ids=str)  # fmt: skip
def test_polars_takes_nan_for_the_greatest_number(tmp_path, condition):
    path = str(tmp_path / "t")
    rows = {"id": ["a", "b", "c"], "p": ["p0"] * 3, "ts": [1] * 3, "x": [NAN, 2.0, 0.5]}
    Engine(path, {"hoodie.datasource.write.operation": "upsert"}).write(None, pa.table(rows))
    found = scan_hudi(path).filter(condition).collect()
    assert found.equals(pl.from_arrow(HudiTable.open(path).scan().to_arrow()).filter(condition))
    assert "a" in found["id"]


def test_the_end_of_a_process_waits_for_a_read_whose_query_has_ended(path, monkeypatch):
    """A thread of Polars that came back into an interpreter that is gone would end the process with an error."""
    entered, may_end, ended = threads.make_signal(), threads.make_signal(), threads.make_signal()

    class Slow:
        def open_batches(self):
            def batches():
                entered.set()
                may_end.wait(10)
                yield from ()

            return None, batches()

    monkeypatch.setattr(polars_source, "_narrowed", lambda *given: Slow())
    query = threads.start_thread(lambda: scan_hudi(path).collect(), "query")
    assert entered.wait(10)
    waiting = threads.start_thread(lambda: (polars_source._wait_for_reads(), ended.set()), "end")
    assert not ended.wait(0.1)
    may_end.set()
    assert ended.wait(1)
    query.join()
    waiting.join()
    assert not polars_source._OPEN
    scan_hudi(path).filter(pl.col("ts") > 3).head(1).collect()
    polars_source._wait_for_reads()
    assert not polars_source._OPEN
