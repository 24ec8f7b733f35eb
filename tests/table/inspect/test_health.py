"""Whether a table is well: facts at a glance, and a verdict that an exit code carries."""

import json
import os
import shutil
import time
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from command_line import said
from engine import Engine, leave_a_dead_batch, rows

from hudistream import ArrowSink, HudiTable, compact
from table import clock
from table.cli.main import main
from table.config.table_config import PROPERTIES_FILE, update_properties
from table.inspect.health import load_health, rows_per_minute
from table.inspect.health_facts import Verdict
from table.inspect.overview import CommitFigures
from table.options.groups import CleanSettings
from table.services.kept_settings import KeptSettings
from table.timeline.instant import Action, State
from table.timeline.layout import name_instant


def test_rows_a_minute_go_by_the_time_between_commits():
    figures = [CommitFigures("UPSERT", 100, 0, 0, 1, 1), CommitFigures("UPSERT", 3, 2, 1, 1, 1)]
    assert rows_per_minute(["20260101000000000", "20260101000030000"], figures) == 12
    assert rows_per_minute(["20260101000000000"], figures[:1]) is None
    assert rows_per_minute(["20260101000000000"] * 2, figures) is None


@pytest.fixture
def path(tmp_path):
    path = str(tmp_path / "t")
    engine = Engine(path, {"hoodie.datasource.write.operation": "upsert"})
    for number in range(4):
        engine.write(number, rows(range(6), ts=number))
    engine.writer.stop()
    return path


def test_the_facts_of_a_table(path):
    found = load_health(HudiTable.open(path))
    files = HudiTable.open(path).files()
    assert (found.live_files, found.live_bytes) == (files.num_rows, sum(files.column("size_bytes").to_pylist()))
    assert (found.small_files, found.log_files) == (found.live_files, 0)
    assert found.backlog.superseded_files == 3 * found.live_files
    assert found.backlog.commits_since_clean is None
    assert found.backlog.active_instants == 4
    assert (found.writer, found.writer_lives, found.pending, found.missing_files) == (None, None, (), ())
    assert found.last_commit_age_s < 60
    assert found.rows_per_minute > 0
    assert HudiTable.open(path).health().live_files == found.live_files


def test_log_files_and_compactions_are_counted(tmp_path):
    path = str(tmp_path / "t")
    options = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.datasource.write.operation": "upsert"}
    engine = Engine(path, {**options, "hoodie.datasource.compaction.async.enable": "false"})
    for number in range(3):
        engine.write(number, rows(range(6), ts=number))
    engine.writer.stop()
    found = load_health(HudiTable.open(path))
    assert found.log_files == 2 * found.live_files
    assert found.log_bytes > 0
    assert found.backlog.commits_since_compaction == 3


def test_the_command_carries_the_verdict_as_its_exit_code(path, capsys):
    said(capsys, "clean", path, "--set", "hoodie.clean.commits.retained=1", "--set", "hudistream.clean.grace.ms=0")
    text = said(capsys, "health", path)
    assert text.splitlines()[0].startswith(f"WELL: {path}")
    assert max(map(len, text.replace(path, "").splitlines())) <= 80
    assert json.loads(said(capsys, "health", path, "--format", "json"))["verdict"] == "well"


def test_a_table_of_a_version_that_nobody_here_reads_is_broken_with_the_way_back(path, capsys):
    storage = HudiTable.open(path).storage
    update_properties(storage, {"hoodie.table.version": "10", "hoodie.timeline.layout.version": "2"})
    text = said(capsys, "health", path, code=2)
    assert text.startswith("BROKEN")
    assert "downgrade table --toVersion 9" in text
    found = json.loads(said(capsys, "health", path, "--format", "json", code=2))
    assert [one["code"] for one in found["findings"]] == ["unreadable"]
    assert main(["downgrade", path, "--to", "9"]) == 1
    assert "downgrade table --toVersion 9" in capsys.readouterr().err


def test_small_files_that_a_clustering_would_put_together_are_counted(tmp_path):
    path = str(tmp_path / "t")
    with ArrowSink(path, {"hoodie.parquet.small.file.limit": "0"}, key="id", partition_by="p") as sink:
        for number, where in enumerate(("a", "a", "a", "b")):
            sink.write(pa.table({"id": [number], "p": [where]}), operation="insert")
    found = load_health(HudiTable.open(path), KeptSettings())
    assert (found.small_files, found.small_beside) == (4, 3)


def test_a_dead_writer_and_a_missing_file_are_told(path, capsys):
    engine = Engine(path, {"hoodie.client.heartbeat.interval_in_ms": "100"})
    leave_a_dead_batch(engine, 4, rows(range(6), ts=9))
    table = HudiTable.open(path)
    newest = table.load_timeline().completed_writes[-1]
    assert load_health(table).pending[0][1] == "commit"
    gone = table.files().column("path")[0].as_py()
    assert newest.time in gone
    table.storage.delete(gone)
    found = load_health(table)
    assert (found.verdict, found.missing_files) == (Verdict.BROKEN, (gone,))
    text = said(capsys, "health", path, code=2)
    assert text.startswith("BROKEN")
    assert "run `hudistream accept-loss PATH`" in text


def ahead(path):
    """The newest instant is of a machine whose clock is an hour ahead."""
    later = clock.format_instant_time(clock.now_ms() + 3_600_000)
    storage = HudiTable.open(path).storage
    storage.create_exclusive(name_instant(HudiTable.open(path).layout, later, Action.CLEAN, State.REQUESTED).path, b"")


def newest_commit(path):
    return os.path.join(path, HudiTable.open(path).load_timeline().completed_writes[-1].path)


def emptied(path):
    with open(newest_commit(path), "w"):
        pass


def torn(path):
    with open(newest_commit(path), "w") as file:
        file.write("{")


def lost_properties(path):
    with open(os.path.join(path, PROPERTIES_FILE), "w"):
        pass


def lost_metadata_table(path):
    Engine(path, {"hoodie.metadata.enable": "true", "hoodie.datasource.write.operation": "upsert"}).write(4, rows([1]))
    shutil.rmtree(os.path.join(path, ".hoodie", "metadata"))


def lost_list(path):
    Engine(path, {"hoodie.metadata.enable": "true", "hoodie.datasource.write.operation": "upsert"}).write(4, rows([1]))
    Engine(path, {"hoodie.metadata.enable": "true", "hoodie.datasource.write.operation": "upsert"}).write(5, rows([1]))
    logs = [file for file in Path(path, ".hoodie", "metadata", "files").iterdir() if ".log." in file.name]
    max(logs, key=lambda file: file.stat().st_mtime_ns).write_bytes(b"")


@pytest.mark.parametrize(
    ("damage", "code", "text"),
    [
        (ahead, 2, "s ahead of this machine's clock"),
        (emptied, 1, "is empty or torn"),
        (torn, 1, "is empty or torn"),
        (lost_properties, 2, "hoodie.properties"),
        (lost_metadata_table, 1, "promise a metadata table, and it is gone"),
        (lost_list, 2, "of the metadata table is gone or empty"),
    ],
)
def test_a_table_in_which_readers_or_batches_fail_is_not_well(path, capsys, damage, code, text):
    damage(path)
    assert text in said(capsys, "health", path, code=code)
    told = json.loads(said(capsys, "health", path, "--format", "json", code=code))
    assert told["verdict"] == {1: "look", 2: "broken"}[code]
    assert text in told["findings"][0]["text"]


def test_a_replaced_or_rewritten_file_is_not_missing(path):
    with_clean = Engine(path, {"hoodie.datasource.write.operation": "insert_overwrite"})
    with_clean.write(4, rows(range(2), ts=9))
    with_clean.writer.stop()
    table = HudiTable.open(path)
    table.clean(CleanSettings(commits_retained=1, grace_ms=0))
    assert load_health(table).missing_files == ()


def test_what_is_pending_for_long_is_told_where_no_writer_lives(path):
    table = HudiTable.open(path)
    early = name_instant(table.layout, "20200101000000000", Action.COMMIT, State.REQUESTED)
    table.storage.put(early.path, b"")
    found = load_health(table)
    assert found.verdict is Verdict.LOOK
    assert "more than an hour" in found.findings[0].text


def test_a_folder_without_rights_and_a_full_disk_are_told(path, capsys, monkeypatch):
    table = HudiTable.open(path)
    asked = os.access
    with monkeypatch.context() as rights:  # root may write everywhere
        rights.setattr(os, "access", lambda name, mode: not name.endswith("/.hoodie") and asked(name, mode))
        text = said(capsys, "health", path, code=1)
        assert f"this user may not write in '{path}/.hoodie'" in text
        assert "[not_writable]" in text
    found = os.statvfs(path)
    for read_only, free, code in ((True, 1 << 30, "not_writable"), (False, 100, "disk_full")):
        state = SimpleNamespace(f_flag=os.ST_RDONLY * read_only, f_bavail=free, f_frsize=1)
        with monkeypatch.context() as disk:
            disk.setattr(os, "statvfs", lambda _, state=state: state)
            told = json.loads(said(capsys, "health", path, "--format", "json", code=2))
        assert [one["code"] for one in told["findings"]] == [code]
    assert table.health().free_bytes == pytest.approx(found.f_bavail * found.f_frsize, rel=0.2)


def test_services_are_no_sign_of_a_stream_that_lives(tmp_path):
    """A compaction now hides no stream that ended before."""
    path = str(tmp_path / "t")
    options = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}
    with ArrowSink(path, options, key="id", order_by="ts", operation="upsert") as sink:
        for ts in range(2):
            sink.write(pa.table({"id": ["a"], "ts": [ts]}))
    time.sleep(1.5)
    assert compact(path) is not None
    found = HudiTable.open(path).health(stale_after_s=1.5)
    assert found.last_rows_age_s > found.last_commit_age_s + 1
    assert [one.code.value for one in found.findings] == ["stale"]
