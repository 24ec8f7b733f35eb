"""Retired writes that a compaction passed: their log files lie above its base file, and the archive alone says so."""

import pyarrow as pa
import pytest
from by_hand import TableByHand, at, commit
from engine import Engine
from log_files import COLUMNS

from table.options.groups import KEEP_LATEST_FILE_VERSIONS, BaseFileSettings, CleanSettings, CompactionSettings
from table.services.clean.clean import clean
from table.services.compaction.compaction import compact
from table.snapshot import Snapshot
from table.timeline.commit_cache import CommitCache

WRITER = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.datasource.write.operation": "upsert",
}


@pytest.fixture
def lake(tmp_path, utc):
    """The write of 25 was completed while the compaction of 30 ran, and is retired; a and b are in the base file."""
    made = TableByHand(tmp_path / "t")
    made.history([(10, 12, "deltacommit", commit()), (25, 45, "deltacommit", commit())])
    made.log(25, b="25")
    made.completed(30, 50, "commit", commit("COMPACT"))
    made.base(30, a="base", b="base")
    return made


def test_the_archive_tells_when_they_were_completed(lake):
    table = lake.open()
    archive = table.archived_timeline
    assert archive.find_passed([at(30)]) == {at(25): at(45)}
    assert archive.find_passed([at(30)], since=at(26), known={"1": "2"}) == {"1": "2"}
    assert archive.find_passed([at(24), at(46)]) == {}
    assert Snapshot.load(table).slicing.completed_at(at(25)) == at(45)


def test_it_is_asked_once_until_archival_moves_on(lake, monkeypatch):
    table, asked = lake.open(), []
    kind = type(table.archived_timeline)
    inner = kind.find_passed
    monkeypatch.setattr(kind, "find_passed", lambda self, *a, **k: asked.append(k) or inner(self, *a, **k))
    commits = CommitCache(table.storage)
    for _ in range(3):
        assert Snapshot.load(table, commits=commits).slicing.completed_at(at(25)) == at(45)
    assert [each["since"] for each in asked] == [""]
    lake.history(
        [(10, 12, "deltacommit", commit()), (25, 45, "deltacommit", commit()), (30, 50, "commit", commit("COMPACT"))]
    )
    for state in ("compaction.requested", "compaction.inflight"):
        table.storage.delete_metafile(f".hoodie/timeline/{at(30)}.{state}")
    table.storage.delete_metafile(f".hoodie/timeline/{at(30)}_{at(50)}.commit")
    lake.completed(60, 62)
    assert Snapshot.load(table, commits=commits).slicing.completed_at(at(25)) == at(45)
    assert [each["since"] for each in asked] == ["", at(30)]


def test_a_compaction_takes_their_log_files(lake):
    assert lake.rows() == {"a": "base", "b": "25"}
    assert compact(lake.open(), CompactionSettings(), BaseFileSettings())
    assert lake.rows() == {"a": "base", "b": "25"}
    assert not lake.open().files().filter(pa.compute.field("kind") == "log").num_rows


def test_a_clean_leaves_their_log_files(lake):
    lake.base(10, a="old", b="old")
    settings = CleanSettings(policy=KEEP_LATEST_FILE_VERSIONS, versions_retained=1, grace_ms=0)
    assert clean(lake.open(), settings)
    assert lake.rows() == {"a": "base", "b": "25"}


def test_a_batch_does_not_fill_the_base_file_below_them(lake):
    Engine(lake.path, WRITER).write(0, pa.Table.from_pylist([{"id": "c", "ts": 1, "v": "new", "w": None}], COLUMNS))
    assert lake.rows() == {"a": "base", "b": "25", "c": "new"}
