"""All tables below a folder: found, judged, the worst first, for people, programs and browsers."""

import json

import pytest
from command_line import said
from engine import Engine, rows

from table.cli.health import minutes
from table.inspect.health_facts import Verdict
from table.inspect.report.page import tables_page
from table.inspect.tables_below import find_tables, load_glances
from table.storage.local import LocalStorage


@pytest.fixture
def lake(tmp_path):
    """Three tables at different depths: one well, one with a lost file, one whose properties are empty."""
    for name in ("a/well", "a/deep/lost", "damaged"):
        engine = Engine(str(tmp_path / name))
        engine.write(0, rows(range(3), partition=lambda _: "p"))
        engine.writer.stop()
    [file] = (tmp_path / "a/deep/lost").rglob("*.parquet")
    file.unlink()
    (tmp_path / "damaged/.hoodie/hoodie.properties").write_bytes(b"")
    (tmp_path / "a/raw/2024").mkdir(parents=True)
    (tmp_path / ".hidden/.hoodie").mkdir(parents=True)
    return tmp_path


def test_tables_are_found_at_any_depth_and_nothing_within_them_or_hidden(lake):
    found = [table.base_uri for table in find_tables(LocalStorage(str(lake)))]
    assert sorted(found) == [str(lake / name) for name in ("a/deep/lost", "a/well", "damaged")]
    assert [table.base_uri for table in find_tables(LocalStorage(str(lake / "a/well")))] == [str(lake / "a/well")]


def test_the_worst_comes_first_and_one_that_cannot_be_read_stops_nothing(lake):
    found = {one.path.removeprefix(f"{lake}/"): one for one in load_glances(LocalStorage(str(lake)))}
    assert list(found) == ["a/deep/lost", "damaged", "a/well"]
    assert [one.verdict for one in found.values()] == [Verdict.BROKEN, Verdict.BROKEN, Verdict.WELL]
    assert [finding.code.value for finding in found["a/deep/lost"].findings] == ["lost_file"]
    assert [finding.code.value for finding in found["damaged"].findings] == ["unreadable"]


def test_the_command_says_it_for_people_and_for_programs(lake, capsys):
    text = said(capsys, "health", str(lake), code=2)
    assert "3 tables: 2 broken, 1 well" in text
    assert "[lost_file]" in text
    told = json.loads(said(capsys, "health", str(lake), "--format", "json", code=2))
    assert [table["verdict"] for table in told["tables"]] == ["broken", "broken", "well"]
    assert "[stale]" not in text
    assert "a look: " in said(capsys, "health", str(lake / "a/well"), "--stale-after", "0", code=1)
    assert said(capsys, "health", str(lake), "--stale-after", "0", code=2).count("[stale]") == 2
    assert said(capsys, "health", str(lake / "a/well"), "--stale-after", "60").startswith("WELL")
    assert "there is no Hudi table" in said(capsys, "health", str(lake / "a/raw"), code=1)


@pytest.mark.parametrize("text", ["nan", "-1", "inf", "soon"])
def test_minutes_are_a_number(text):
    with pytest.raises(ValueError, match=text):
        minutes(text)


def test_a_page_about_all_of_them(lake, capsys):
    page = lake / "lake.html"
    said(capsys, "report", str(lake), "-o", str(page))
    text = page.read_text()
    assert text.index("a/deep/lost") < text.index("a/well")
    assert "<script" not in text
    assert "&lt;b&gt;" in tables_page("<b>", load_glances(LocalStorage(str(lake))), "now")
