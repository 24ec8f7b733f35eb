"""Log files that are gone when a reader comes: those that no write of its snapshot wrote are not missed."""

import os

import pytest
from engine import Engine, rows

from hudistream import HudiTable
from table import StorageError
from table.storage.local import LocalStorage

OPTIONS = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.datasource.compaction.async.enable": "false",
}


class FailsOnce(LocalStorage):
    """A task fails once, when one of its log files is published already."""

    published = 0

    def publish(self, path, stage, output):
        type(self).published += 1
        if type(self).published == 2:
            raise StorageError("the store fails")
        super().publish(path, stage, output)


def logs_of(parts):
    return {file.path for part in parts for file in part.found.log_files}


def test_a_reader_that_listed_the_log_of_a_failed_attempt_outlives_its_deletion(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    monkeypatch.setattr(FailsOnce, "published", 2)
    engine = Engine(path, OPTIONS, worker_storage=FailsOnce(path), retry=1)
    for number in range(2):
        engine.write(number, rows(range(12), ts=number, v=f"v{number}"))
    parts, inner = [], engine.distribute

    def listed_before_the_commit(plan, table):
        FailsOnce.published = 0
        done = inner(plan, table)
        parts.extend(HudiTable.open(path).scan().splits())
        return done

    engine.distribute = listed_before_the_commit
    engine.write(2, rows(range(12), ts=2, v="v2"))
    engine.writer.stop()
    assert [name for name in logs_of(parts) if not os.path.exists(f"{path}/{name}")]
    assert [row["v"] for part in parts for row in part.to_arrow().to_pylist()] == ["v1"] * 12
    assert set(HudiTable.open(path).scan(["v"]).to_arrow()["v"].to_pylist()) == {"v2"}


def test_a_log_file_that_a_commit_wrote_is_missed(tmp_path):
    path = str(tmp_path / "t")
    engine = Engine(path, OPTIONS)
    for number in range(2):
        engine.write(number, rows(range(12), ts=number))
    engine.writer.stop()
    parts = HudiTable.open(path).scan().splits()
    os.remove(f"{path}/{min(logs_of(parts))}")
    with pytest.raises(StorageError, match="deleted while it was read"):
        [part.to_arrow() for part in parts]
