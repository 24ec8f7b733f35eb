"""history, files and query: what a table did, which files it shows, and answers of DuckDB."""

import json
import re
import sys

import pyarrow as pa
import pytest
from command_line import said
from engine import Engine, rows
from needs import require

from hudistream import ArrowSink
from table import InvalidRecordError


@pytest.fixture
def lake(tmp_path):
    path = str(tmp_path / "t")
    times = [Engine(path).write(None, rows(range(n * 6, n * 6 + 6))).instant_time for n in range(2)]
    return path, times


def test_history_lists_instants_newest_first(lake, capsys):
    path, times = lake
    told = json.loads(said(capsys, "history", path, "--format", "json"))["instants"]
    assert [row["instant"] for row in told] == times[::-1]
    assert told[0]["rows_added"] == 6
    assert told[0]["operation"] == "INSERT"
    assert len(json.loads(said(capsys, "history", path, "--format", "json", "--limit", "1"))["instants"]) == 1
    text = said(capsys, "history", path)
    assert times[0] in text
    assert re.search(r"operation\s+added\s+updated\s+deleted\s+files\s+size", text)


def test_files_lists_what_readers_see_now_or_then(lake, capsys):
    path, times = lake
    told = json.loads(said(capsys, "files", path, "--format", "json"))["files"]
    assert [row["partition_path"] for row in told] == ["p0", "p1", "p2"]
    assert {row["base_instant"] for row in told} == {times[1]}
    then = json.loads(said(capsys, "files", path, "--as-of", times[0], "--format", "json"))["files"]
    assert {row["base_instant"] for row in then} == {times[0]}
    assert then[0]["path"] in said(capsys, "files", path, "--as-of", times[0])
    assert "before the first active commit" in said(capsys, "files", path, "--as-of", "2020-01-01", code=1)


def test_query_answers(lake, capsys):
    require("duckdb")
    path, times = lake
    sql = "select p, count(*) as n, [max(ts)] as l from t group by p order by p"
    told = json.loads(said(capsys, "query", path, sql, "--format", "json"))
    assert told == {"columns": ["p", "n", "l"], "rows": [[f"p{n}", 4, [0]] for n in range(3)]}
    told = json.loads(said(capsys, "query", path, "select count(*) from t", "--as-of", times[0], "--format", "json"))
    assert told["rows"] == [[6]]
    text = said(capsys, "query", path, "select '[b]' as mark, null as nothing from t limit 1")
    assert "mark" in text
    assert "[b]" in text
    assert "Parser" in said(capsys, "query", path, "selec", code=1)


def test_what_json_does_not_have_is_text(lake, capsys):
    require("duckdb")
    sql = "select 'nan'::double a, '-inf'::double b, 'ab'::blob c, [1.5, 'inf'::double] d from t limit 1"
    text = said(capsys, "query", lake[0], sql, "--format", "json")
    [row] = json.loads(text, parse_constant=pytest.fail)["rows"]
    assert row == ["NaN", "-Infinity", "YWI=", [1.5, "Infinity"]]


@pytest.mark.parametrize("sql", ["", "-- a comment"])
def test_a_query_without_a_statement_answers_nothing(lake, capsys, sql):
    require("duckdb")
    assert json.loads(said(capsys, "query", lake[0], sql, "--format", "json")) == {"columns": [], "rows": []}


def test_a_query_of_a_table_without_a_commit_says_so(tmp_path, capsys):
    require("duckdb")
    path = str(tmp_path / "t")
    with ArrowSink(path, key="id") as sink, pytest.raises(InvalidRecordError):
        sink.write(pa.table({"id": pa.array([None], pa.string())}))
    assert "has no commit yet" in said(capsys, "query", path, "select 1 from t", code=1)


def test_query_shows_meta_columns_that_it_names(lake, capsys):
    path, *_ = lake
    plain = json.loads(said(capsys, "query", path, "select * from t limit 1", "--format", "json"))
    assert not any(name.startswith("_hoodie_") for name in plain["columns"])
    sql = "select * from t where _hoodie_commit_time > '0' limit 1"
    asked = json.loads(said(capsys, "query", path, sql, "--format", "json"))
    assert asked["columns"][0] == "_hoodie_commit_time"
    assert asked["columns"][5:] == plain["columns"]


def test_a_query_of_another_table_is_told_the_name(lake, capsys):
    require("duckdb")
    path, _ = lake
    told = said(capsys, "query", path, "select * from events", code=2)
    assert told == "hudistream: there is no table 'events' in this query: write t, which is the table at PATH\n"
    assert "nothing_of_that_name" in said(capsys, "query", path, "select nothing_of_that_name() from t", code=1)


def test_query_without_duckdb_names_the_extra(lake, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert "pip install 'duckdb" in said(capsys, "query", lake[0], "select 1", code=1)


def test_schema_lists_the_columns(lake, capsys):
    path, _ = lake
    told = {
        one["column"]: one["type"] for one in json.loads(said(capsys, "schema", path, "--format", "json"))["columns"]
    }
    assert list(told)[:2] == ["_hoodie_commit_time", "_hoodie_commit_seqno"]
    assert told["ts"] == "int64"
    assert "int64" in said(capsys, "schema", path)


def test_changes_show_what_a_range_of_commits_wrote(lake, capsys):
    path, (first, second) = lake
    every = json.loads(said(capsys, "changes", path, "--format", "json"))
    assert (len(every["rows"]), every["is_cut"]) == (12, False)
    later = json.loads(said(capsys, "changes", path, "--since", first, "--format", "json"))["rows"]
    assert [row["_hoodie_commit_time"] for row in later] == [second] * 6
    text = said(capsys, "changes", path, "--limit", "2")
    assert "the first 2 rows" in text
    assert "_hoodie_file_name" not in text
    assert "lies in the future" in said(capsys, "changes", path, "--since", "2999-01-01", code=1)


def test_changes_show_deletes_and_the_rows_before(tmp_path, capsys):
    path = str(tmp_path / "t")
    with ArrowSink(path, key="id", order_by="ts", operation="upsert") as sink:
        first = sink.write(pa.table({"id": ["a", "b"], "ts": [1, 1]})).instant_time
        sink.write(pa.table({"id": ["a", "c"], "ts": [2, 2]}))
        sink.delete(pa.table({"id": ["b"]}))
    told = ("changes", path, "--since", first, "--format", "json")
    found = {row["id"]: row for row in json.loads(said(capsys, *told, "--deletes"))["rows"]}
    assert {key: row["_change_operation"] for key, row in found.items()} == {"a": "u", "b": "d", "c": "i"}
    assert "_change_before" not in found["a"]
    found = {row["id"]: row for row in json.loads(said(capsys, *told, "--before"))["rows"]}
    assert found["a"]["_change_before"]["ts"] == 1
    assert found["c"]["_change_before"] is None
    cut = json.loads(said(capsys, *told, "--each-commit", "--limit", "2"))
    assert (len(cut["rows"]), cut["is_cut"]) == (2, True)
    assert "_change_operation" in said(capsys, "changes", path, "--deletes")


@pytest.mark.parametrize("version", ["6", "9"])
def test_one_commit_shows_what_it_changed_and_no_other(tmp_path, capsys, version):
    path, options = str(tmp_path / "t"), {"hoodie.write.table.version": version}
    with ArrowSink(path, options, key="id", order_by="ts", operation="upsert") as sink:
        times = [sink.write(pa.table({"id": ["a", f"k{ts}"], "ts": [ts, ts]})).instant_time for ts in range(3)]
        times.append(sink.delete(pa.table({"id": ["k0"]})).instant_time)
    expected = [{"a": "i", "k0": "i"}, {"a": "u", "k1": "i"}, {"a": "u", "k2": "i"}, {"k0": "d"}]
    for time, changes in zip(times, expected, strict=True):
        told = json.loads(said(capsys, "changes", path, "--commit", time, "--deletes", "--format", "json"))
        assert {row["id"]: row["_change_operation"] for row in told["rows"]} == changes
    if version == "6":  # commits from before an upgrade, too
        said(capsys, "upgrade", path, "--to", "9")
        told = json.loads(said(capsys, "changes", path, "--commit", times[1], "--deletes", "--format", "json"))
        assert {row["id"]: row["_change_operation"] for row in told["rows"]} == expected[1]
    told = json.loads(said(capsys, "changes", path, "--commit", times[2], "--format", "json"))
    assert [(row["id"], row["ts"]) for row in told["rows"]] == [("a", 2), ("k2", 2)]
    assert "`hudistream history` lists them" in said(capsys, "changes", path, "--commit", "20200101000000000", code=1)
    assert "give one of the two" in said(capsys, "changes", path, "--commit", times[0], "--since", times[0], code=2)
