"""Values in a notebook: their facts, escaped, and no secrets."""

from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from hudistream import HudiTable
from streaming import ArrowSink
from table.notebook import ShownInNotebooks, facts_html


@dataclass(frozen=True)
class Told(ShownInNotebooks):
    name: str = ""
    rows: int = 0
    paths: tuple[str, ...] = ()
    facts: dict[str, int] = field(default_factory=dict)
    hidden: str = field(default="secret", repr=False)


@pytest.mark.pure
def test_fields_that_say_nothing_are_left_out_and_text_is_escaped():
    told = Told("<script>", 12_345, ("a=<b>", "c"), {"x": 1})._repr_html_()
    assert "&lt;script&gt;" in told
    assert "12,345" in told
    assert "a=&lt;b&gt;, c" in told
    assert "x: 1" in told
    assert "<script>" not in told
    assert "secret" not in told
    assert "<tr>" not in Told()._repr_html_()
    assert len(facts_html("t", [("a", "x" * 10_000)])) < 1_000


def test_what_people_hold_shows_itself(tmp_path):
    path = str(tmp_path / "t")
    options = {"hoodie.datasource.hive_sync.password": "hush"}
    with ArrowSink(path, options, {"key": "AKIA", "secret": "hush"}, key=["id", "n"]) as sink:
        assert repr(sink) == f"ArrowSink({path!r}, upsert by id,n)"
        summary = sink.write(pa.table({"id": ["a"], "n": [1]}))
    table = HudiTable.open(path)
    for shown in (summary, table, table.scan(["id"]), table.check(), table.health(), table.cluster("n")):
        told = shown._repr_html_()
        assert told.startswith(f"<table><caption>{type(shown).__name__}</caption><tr>"), told
        assert "hush" not in told
        assert "\n" not in repr(shown)


def test_the_line_of_a_value_leaves_out_what_is_empty_and_stays_short(tmp_path):
    path = str(tmp_path / "t")
    with ArrowSink(path, key="id") as sink:
        summary = sink.write(pa.table({"id": ["a"]}))
    line = repr(summary)
    assert line.startswith(f"BatchSummary(table={path!r}, instant_time='{summary.instant_time}', rows=1, ")
    assert "bad_rows" not in line
    assert "lookup=<LookupCounts>" in line
    assert (
        repr(HudiTable.open(path).check())
        == f"CheckReport(table={path!r}, files=1, files_read=1, chunks_read=6, chunks_summed=6)"
    )


def test_a_table_counts_its_rows_and_answers_sql(tmp_path):
    path = str(tmp_path / "t")
    with ArrowSink(path, key="id") as sink:
        first = sink.write(pa.table({"id": ["a", "b"]})).instant_time
        sink.write(pa.table({"id": ["c"]}))
    table = HudiTable.open(path)
    assert (table.count(), table.count([("id", "=", "a")]), table.count(as_of=first)) == (3, 1, 2)
    assert table.to_duckdb(name="mine").execute("select min(id), count(*) from mine").fetchall() == [("a", 3)]
