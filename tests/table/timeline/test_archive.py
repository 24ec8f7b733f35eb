"""The archive that real Hudi writes, and a sink's last batch that only it still knows."""

import pytest
from engine import Engine, key_set, rows

from table import CorruptFileError, read_table
from table.hudi_table import HudiTable
from table.storage.local import LocalStorage
from table.timeline.archive_log import LogArchive, read_log_records
from table.timeline.archived_timeline import read_archived_commits


def test_hudis_archive_is_read(golden):
    path, _ = golden("cow_archived")
    storage = LocalStorage(path)
    files = LogArchive(storage, ".hoodie/history").list_files()
    assert [name.rsplit(".", 1)[-1] for name in files] == [
        "2_1-0-1",
        "1_1-0-1",
    ]
    commits = list(read_archived_commits(HudiTable.open(path).archived_timeline))
    active = HudiTable.open(path).load_timeline().completed_writes
    assert len(commits) + len(active) == 12
    assert {commit.action for commit in commits} == {"commit"}
    assert all("cow_archived_record" in commit.metadata.extra["schema"] for commit in commits)
    assert max(commit.time for commit in commits) < active[0].time


@pytest.mark.parametrize("cut", [1, 5, 13, 20, 100, -1])
def test_a_damaged_archive_is_named(golden, cut):
    path, _ = golden("cow_archived")
    storage = LocalStorage(path)
    file = LogArchive(storage, ".hoodie/history").list_files()[0]
    with pytest.raises(CorruptFileError, match="archive"):
        list(read_log_records(storage.read(file)[:cut], file))
    with pytest.raises(CorruptFileError, match="no block begins"):
        list(read_log_records(b"x" + storage.read(file), file))


@pytest.mark.slow
@pytest.mark.hudi
def test_a_batch_whose_commit_hudi_archived_is_still_skipped(hudi, tmp_path):
    path = str(tmp_path / "t")
    Engine(path).write(3, rows(range(30)))
    theirs = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.clean.commits.retained": "1",
    }
    ours = HudiTable.open(path).load_timeline().completed_writes[0].time
    for number in range(5):
        hudi.write(path, rows([1000 + number]), theirs)
    timeline = HudiTable.open(path).load_timeline()
    assert ours < timeline.completed_writes[0].time
    wanted = key_set(rows([*range(30), *range(1000, 1005)]))
    assert Engine(path).write(3, rows(range(30))).skipped
    assert key_set(read_table(path)) == wanted
    engine = Engine(path)
    assert not engine.write(4, rows(range(30, 40))).skipped
    assert Engine(path).write(4, rows(range(30, 40))).skipped
    assert key_set(read_table(path)) == sorted([*wanted, *key_set(rows(range(30, 40)))])


@pytest.mark.parametrize("version", ["6", "8"])
def test_an_archived_compaction_is_known_as_one(tmp_path, version):
    """The check asks: a write beside a compaction may have folded the same slice."""
    path = str(tmp_path / "t")
    options = {
        "hoodie.write.table.version": version,
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "2",
        "hoodie.clean.automatic": "true",
        "hoodie.clean.commits.retained": "1",
        "hoodie.archive.automatic": "true",
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
    }
    engine = Engine(path, options)
    for number in range(14):
        engine.write(number, rows(range(10), ts=number))
        engine.writer.services.wait()
    engine.writer.stop()
    changes = [one for one in HudiTable.open(path).archived_timeline.read_changes() if one.metadata is not None]
    assert {one.metadata.compacted for one in changes if one.metadata.operation == "COMPACT"} == {True}
    assert {one.metadata.compacted for one in changes if one.metadata.operation == "UPSERT"} == {False}
