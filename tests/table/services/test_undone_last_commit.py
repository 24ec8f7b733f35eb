"""The last commit before an archive: without one on the timeline, the archived rows would be invisible, then gone."""

import os

import pyarrow as pa
import pytest

from hudistream import ArchiveSettings, CorruptFileError, HudiTable, InvalidConfigError, write_hudi
from table.hudi_table import HudiTable as Bare

QUIET = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}


def put(path, key, **more):
    write_hudi(path, pa.table({"id": [key], "v": [1]}), key="id", options={**QUIET, **more})


def ids(path):
    return sorted(HudiTable.open(path).scan(["id"]).to_arrow()["id"].to_pylist())


@pytest.fixture(params=["6", "8", "9"])
def archived(request, tmp_path):
    """Path of a table of five commits, of which two are left on the timeline."""
    path = str(tmp_path / "t")
    for number in range(5):
        put(path, f"k{number}", **{"hoodie.write.table.version": request.param})
    assert HudiTable.open(path).archive(ArchiveSettings(min_commits=2, max_commits=3)).instants
    return path


def newest(path):
    return Bare.open(path).load_timeline().completed_writes[-1].time


def test_it_is_not_rolled_back(archived):
    HudiTable.open(archived).roll_back(newest(archived))
    with pytest.raises(InvalidConfigError, match="is the last commit that is not archived.*nothing was undone"):
        HudiTable.open(archived).roll_back(newest(archived))
    put(archived, "new")
    assert ids(archived) == ["k0", "k1", "k2", "k3", "new"]


def test_where_it_is_gone_all_the_same_no_file_is_deleted(archived, monkeypatch):
    """As after a rollback by an earlier version, or by another engine."""
    monkeypatch.setattr(type(Bare.open(archived).archived_timeline), "read_files", lambda _: iter(()))
    for _ in range(2):
        HudiTable.open(archived).roll_back(newest(archived))
    monkeypatch.undo()
    files = sorted(name for name in os.listdir(archived) if name.endswith(".parquet"))
    with pytest.raises(CorruptFileError, match="has archived commits, and no commit on its timeline"):
        put(archived, "new")
    assert sorted(name for name in os.listdir(archived) if name.endswith(".parquet") and name in files) == files


def test_the_first_commit_of_a_table_without_an_archive_may_go(tmp_path):
    path = str(tmp_path / "t")
    put(path, "a")
    HudiTable.open(path).roll_back(newest(path))
    put(path, "b")
    assert ids(path) == ["b"]
