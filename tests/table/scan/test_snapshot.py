"""A snapshot: one timeline for schema, files and visibility; and the table as it was."""

import pyarrow as pa
import pytest
from engine import Engine, rows
from faults import FaultyStorage, Fuse
from snapshots import base_files_of, list_snapshot_files

from hudistream import HudiTable as UserTable
from table import InvalidConfigError, archive, read_table
from table.hudi_table import HudiTable
from table.options.groups import ArchiveSettings, CleanSettings
from table.snapshot import Snapshot
from table.storage.local import LocalStorage
from table.timeline.timeline import Timeline

OPERATION = "hoodie.datasource.write.operation"


def test_a_snapshot_as_of_a_commit_shows_what_was_seen_then(tmp_path):
    path = str(tmp_path / "t")
    steps = [
        ({OPERATION: "upsert"}, rows(range(30))),
        ({OPERATION: "insert"}, rows(range(30, 60))),
        ({OPERATION: "insert_overwrite"}, rows(range(60, 70), lambda number: "p1")),
        ({OPERATION: "upsert"}, rows(range(20), ts=1)),
        ({OPERATION: "insert_overwrite_table"}, rows(range(5))),
    ]
    seen = {}
    for options, batch in steps:
        time = Engine(path, options).write(None, batch).instant_time
        seen[time] = list_snapshot_files(HudiTable.open(path))
    table = HudiTable.open(path)
    timeline = table.load_timeline()
    for time, files in seen.items():
        snapshot = Snapshot(table, timeline, as_of=time)
        assert base_files_of(snapshot) == files
        assert snapshot.timeline.completed_writes[-1].time == time
        assert [file for p in snapshot.list_partition_paths() for group in snapshot.list_file_groups(p)
                for file in group.latest_slice.files] == files  # fmt: skip
    assert len({tuple(file.path for file in files) for files in seen.values()}) == len(steps)


def test_the_schema_is_the_one_of_then(tmp_path):
    path = str(tmp_path / "t")
    first = Engine(path).write(None, rows(range(3)))
    wider = rows(range(3, 6)).append_column("w", pa.array([1, 2, 3]))
    Engine(path).write(None, wider)
    table = HudiTable.open(path)
    assert Snapshot.load(table).load_schema().names == ["id", "p", "ts", "v", "w"]
    assert Snapshot.load(table, as_of=first.instant_time).load_schema().names == ["id", "p", "ts", "v"]


def test_what_was_archived_has_no_snapshot(tmp_path):
    path = str(tmp_path / "t")
    first = Engine(path).write(None, rows(range(3))).instant_time
    for number in range(6):
        Engine(path).write(None, rows(range(3), ts=number))
    table = HudiTable.open(path)
    archive(table, ArchiveSettings(min_commits=2, max_commits=3), CleanSettings(commits_retained=1, grace_ms=0))
    assert first not in table.load_timeline().committed_times
    with pytest.raises(InvalidConfigError, match=first):
        Snapshot.load(table, as_of=first)


def test_an_empty_timeline_shows_nothing_at_any_time(tmp_path):
    Engine(str(tmp_path / "t")).write(None, rows(range(3)))
    table = HudiTable.open(str(tmp_path / "t"))
    assert base_files_of(Snapshot(table, Timeline(), as_of="2020")) == []


def test_a_table_is_read_from_one_listing_of_its_timeline_and_another_one_after_its_folders(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    Engine(path).write(None, rows(range(30)))
    fuse = Fuse()
    monkeypatch.setattr("table.hudi_table.open_storage", lambda *_: FaultyStorage(LocalStorage(path), fuse))
    assert UserTable.open(path).scan().pinned_for(0).to_arrow().num_rows == 30
    listed = [call.removeprefix("list_dir").strip() for call in fuse.calls if call.startswith("list_dir")]
    assert (listed[0], *sorted(listed[1:-1]), listed[-1]) == (".hoodie", "", "p0", "p1", "p2", ".hoodie")
    del fuse.calls[:]
    assert read_table(path).num_rows == 30
    pinned = [call for call in fuse.calls if not call.startswith(("list_dir p", "open_input", "read "))]
    # behind the plan: is the table cleaned here; the pin; is a clean under way; the pin is deleted
    assert [call.split()[0] for call in pinned][-4:] == ["list_dir", "put", "list_dir", "_delete"]
