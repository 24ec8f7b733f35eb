"""`hudistream watch --verify`: a line a commit, counters, an exit code; and what goes with it alone."""

import json
import os

import pytest
from command_line import said
from engine import Engine, rows
from prometheus_client.parser import text_string_to_metric_families

from table import clock
from table.cli.main import main
from table.cli.watch import Totals, report_lines
from table.services.check.commits import CommitReport
from table.services.check.finding import Finding, Kind, Repair, Severity


@pytest.fixture
def table(tmp_path):
    engine = Engine(str(tmp_path / "t"))
    engine.write(0, rows(range(10)))
    yield engine
    engine.writer.stop()


@pytest.fixture
def between_looks(monkeypatch):
    """What happens while the command waits for its next look."""
    steps = []
    monkeypatch.setattr(clock, "sleep_s", lambda _: steps.pop(0)())
    return steps


def watch(table, *given):
    return main(["watch", table.writer.table, "--verify", *given])


def test_each_commit_gets_a_line_and_counters(table, tmp_path, between_looks, capsys):
    between_looks.append(lambda: table.write(1, rows(range(10, 30))))
    file = tmp_path / "t.prom"
    assert watch(table, "--commits", "2", "--metrics", str(file)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[17:44] for line in lines[:2]] == ["  sound: insert, 3 files, 3 read"[:27]] * 2
    assert "20 rows" in lines[1]
    assert lines[2:] == ["2 commits verified, 0 of them not sound"]
    assert f'hudistream_commits_verified_total{{table="{table.writer.table}"}} 2' in file.read_text().splitlines()


def test_damage_is_told_and_gives_exit_code_1(table, tmp_path, between_looks, capsys):
    def damage():
        summary = table.write(1, rows(range(10, 30)))
        path = next(entry for entry in (tmp_path / "t" / "p0").glob(f"*{summary.instant_time}.parquet"))
        os.truncate(path, 100)

    def stop():
        raise KeyboardInterrupt

    between_looks += [damage, stop]
    assert watch(table, "--format", "json", "--metrics", str(tmp_path / "m")) == 1
    reports = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [report["sound"] for report in reports] == [True, False]
    assert {one["kind"] for one in reports[1]["findings"]} == {"wrong_size", "unreadable_file"}
    assert 'kind="wrong_size"} 1' in (tmp_path / "m").read_text()


def test_a_look_that_fails_is_counted_and_the_next_one_goes_on(table, tmp_path, between_looks, capsys):
    properties = tmp_path / "t" / ".hoodie" / "hoodie.properties"
    whole = properties.read_bytes()

    def lose():
        properties.unlink()

    def bring_back():
        properties.write_bytes(whole)
        table.write(1, rows(range(3)))

    between_looks += [lose, bring_back]
    assert watch(table, "--commits", "2") == 0
    shown = capsys.readouterr()
    assert "hoodie.properties" in shown.err
    assert shown.out.splitlines()[-1] == "2 commits verified, 0 of them not sound; 1 look failed"


@pytest.mark.parametrize("option", [["--commits", "1"], ["--metrics", "m"]])
def test_options_of_verify_alone_are_refused_without_it(table, option, capsys):
    assert main(["watch", table.writer.table, *option]) == 2
    assert f"{option[0]} goes with --verify" in capsys.readouterr().err


def test_a_table_that_is_not_there_is_told_at_once(tmp_path, capsys):
    assert "there is no Hudi table" in said(capsys, "watch", str(tmp_path / "no"), "--verify", code=1)


def test_findings_stand_below_their_commit():
    finding = Finding(Kind.WRONG_COUNT, Severity.ERROR, "p/a.parquet", "it has 3 rows", Repair.REFUSED)
    note = Finding(Kind.NO_HUDI_FOOTER, Severity.NOTE, "p/b.parquet", "no filter", Repair.REFUSED)
    report = CommitReport("20260101000000000", "UPSERT", 2, 2, 1, 5, 4, 1, (finding, note))
    first = "20260101000000000  NOT SOUND: upsert, 2 files, 2 read, 5 rows, 1 superseded and gone"
    assert report_lines(report) == [
        f"{first}, 25% of the chunks with checksums",
        "  error wrong_count: p/a.parquet: it has 3 rows",
        "  note no_hudi_footer: p/b.parquet: no filter",
    ]
    totals = Totals("/t")
    totals.add(report)
    totals.looked_s = 1.6e9
    assert dict(totals.kinds) == {"wrong_count": 1}
    assert 'hudistream_last_look_timestamp_seconds{table="/t"} 1600000000' in totals.as_metrics().splitlines()


def test_counters_are_read_by_prometheus_whatever_the_path():
    path = 'C:\\lake\\a "table"'
    totals = Totals(path, commits=3, looked_s=1.6e9)
    totals.kinds["missing_file"] = 2
    read = {one.name: one for family in text_string_to_metric_families(totals.as_metrics()) for one in family.samples}
    assert {one.labels["table"] for one in read.values()} == {path}
    assert read["hudistream_commits_verified_total"].value == 3
    assert read["hudistream_findings_total"].labels["kind"] == "missing_file"


def test_without_a_terminal_each_look_is_written_at_once(table, between_looks, capsys):
    shown = []

    def stop():
        raise KeyboardInterrupt

    between_looks += [lambda: shown.append(capsys.readouterr().out), stop]
    main(["watch", table.writer.table])
    assert table.writer.table in shown[0]
    assert table.writer.table in capsys.readouterr().out
