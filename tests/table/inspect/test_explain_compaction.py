"""Explain and show know slices: base file, log files, and when a compaction takes them."""

import json

import pytest
from command_line import said
from engine import Engine, rows

from table.hudi_table import HudiTable
from table.inspect.explain import explain_files
from table.inspect.explain_compaction import tell_when
from table.options.choices import CompactionTrigger
from table.options.groups import BaseFileSettings, CompactionSettings
from table.options.write_options import parse_options
from table.services.compaction.compaction import compact, request_compaction
from table.timeline.instant import Action, Instant, State
from table.timeline.timeline import build_timeline

OPTIONS = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.datasource.compaction.async.enable": "false",
}
SOON, FILES = CompactionSettings(delta_commits=1), BaseFileSettings()
NO_LOGS = "no: its slice has no log files"


def write(path, first, last):
    engine = Engine(path, OPTIONS)
    for number in range(first, last):
        engine.write(number, rows([0, 1] if number else range(3), ts=number))
    engine.writer.stop()


def told(path, **options):
    parsed = parse_options({"hoodie.clean.commits.retained": "1", **options}).options
    return {one.file.name: one for one in explain_files(HudiTable.open(path), parsed)}


def by_kind(path, **options):
    """What is said of compaction: of base files, and of log files."""
    found = told(path, **options)
    bases = {one.compaction for name, one in found.items() if name.endswith(".parquet")}
    return bases, {one.compaction for name, one in found.items() if ".log." in name}


def test_a_slice_is_folded_when_enough_commits_were_made(tmp_path):
    path = str(tmp_path / "t")
    write(path, 0, 3)
    when = "3 delta commits since the last compaction: the next one takes it after 5"
    assert by_kind(path) == ({when, NO_LOGS}, {when})
    due = "a compaction is due, and takes it"
    assert by_kind(path, **{"hoodie.compact.inline.max.delta.commits": "3"}) == ({due, NO_LOGS}, {due})
    packed = {one.packing for one in told(path, **{"hoodie.parquet.small.file.limit": "1000"}).values()}
    assert "its slice has log files, which go on where its rows change" in packed
    [pending] = request_compaction(HudiTable.open(path), SOON)
    write(path, 3, 4)
    folds = f"the compaction {pending.time} is requested, and folds it"
    behind = f"it was written after the compaction {pending.time}: a later one folds it"
    assert by_kind(path) == ({folds, NO_LOGS}, {folds, behind})
    compact(HudiTable.open(path), SOON, FILES, schedules=False)
    again = "1 delta commits since the last compaction: the next one takes it after 5"
    assert by_kind(path) == ({again, "", NO_LOGS}, {again, ""})  # "": older versions


def test_a_copy_on_write_table_has_none(tmp_path):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(3)))
    assert {one.compaction for one in told(path).values()} == {""}


@pytest.mark.pure
def test_when_a_compaction_is_requested():
    line = build_timeline([Instant(f"2026010100000000{n}", Action.DELTA_COMMIT, State.COMPLETED) for n in range(2)])
    said_so = "2 delta commits since the last compaction: the next one takes it "
    assert tell_when(line, CompactionSettings()) == said_so + "after 5"
    by_time = CompactionSettings(trigger=CompactionTrigger.TIME_ELAPSED)
    assert tell_when(line, by_time) == said_so + "when it is due (TIME_ELAPSED: 5 commits, 3600 seconds)"


def test_the_command_shows_slices(tmp_path, capsys):
    path = str(tmp_path / "t")
    write(path, 0, 3)
    shown = said(capsys, "show", path)
    assert "3 live files" in shown
    assert "4 log files" in shown
    groups = json.loads(said(capsys, "show", path, "--format", "json"))["file_groups"]
    assert sorted(group["log_files"] for group in groups) == [0, 2, 2]
    for group in groups:
        [only] = group["slices"]
        assert only["base_file"]
        assert len(only["log_files"]) == group["log_files"]
    assert "compaction: 3 delta commits since the last compaction" in said(capsys, "explain", path)
