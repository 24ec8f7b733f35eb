"""Buckets that have log files and no base file, as Flink's writer makes them (`tests/support/log_only_bucket.py`)."""

import pyarrow as pa
import pytest
from log_only_bucket import write_table

from hudistream import ArrowSink, HudiTable, check

OPTIONS = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.datasource.compaction.async.enable": "false",
}


@pytest.fixture
def path(tmp_path):
    write_table(tmp_path / "t")
    return str(tmp_path / "t")


def rows_of(path):
    rows = HudiTable.open(path).scan().to_arrow().to_pylist()
    return sorted((row["id"], row["ts"], row["v"]) for row in rows)


def rows(**values):
    columns = {
        "id": list(values),
        "p": ["p"] * len(values),
        "ts": pa.array([v[0] for v in values.values()], pa.int64()),
    }
    return pa.table({**columns, "v": [v[1] for v in values.values()]})


def groups(path):
    return set(HudiTable.open(path).files().column("file_id").to_pylist())


def test_their_rows_are_read_once(path, tmp_path):
    wanted = write_table(tmp_path / "again")
    assert rows_of(path) == sorted((key, *row) for key, row in wanted.items())
    found = HudiTable.open(path).lookup(["a", "d", "nobody"]).to_pylist()
    assert sorted((row["id"], row["v"]) for row in found) == [("a", "a2"), ("d", "d1")]
    assert check(HudiTable.open(path)).is_sound


@pytest.mark.parametrize("limit", ["0", "104857600"])
def test_changes_go_to_the_bucket_that_is_there(path, limit):
    before = groups(path)
    sink = ArrowSink(path, {**OPTIONS, "hoodie.parquet.small.file.limit": limit}, operation="upsert")
    sink.write(rows(a=(3, "a3"), b=(3, "b3"), new=(1, "n1"), other=(1, "o1")))
    sink.write(rows(a=(1, "late")))
    sink.stop()
    assert rows_of(path) == [
        ("a", 3, "a3"),
        ("b", 3, "b3"),
        ("c", 1, "c1"),
        ("d", 1, "d1"),
        ("new", 1, "n1"),
        ("other", 1, "o1"),
    ]
    assert groups(path) == before
    assert check(HudiTable.open(path)).is_sound


def test_a_compaction_gives_them_base_files(path):
    before = groups(path)
    HudiTable.open(path).compact()
    assert rows_of(path) == [("a", 2, "a2"), ("b", 1, "b1"), ("c", 1, "c1"), ("d", 1, "d1")]
    assert groups(path) == before
    sink = ArrowSink(path, OPTIONS, operation="upsert")
    sink.write(rows(c=(5, "c5")))
    sink.stop()
    assert rows_of(path) == [("a", 2, "a2"), ("b", 1, "b1"), ("c", 5, "c5"), ("d", 1, "d1")]
    assert groups(path) == before
