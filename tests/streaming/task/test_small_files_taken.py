"""Which small files a batch opens: one of a path beside log files, and none where the limit is 0."""

import pytest
from counting import Counting
from engine import Engine, rows

SMALL_LIMIT = "hoodie.parquet.small.file.limit"
MERGE_ON_READ = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.compaction.async.enable": "false",
    "hoodie.index.type": "BLOOM",
}


def write(path, options, number, batch):
    engine = Engine(path, options)
    try:
        return engine.write(number, batch, parallelism=1)
    finally:
        engine.writer.stop()


def in_one_path(keys):
    return rows(keys, partition=lambda number: "p")


@pytest.mark.parametrize(("kind", "topped_up"), [("MERGE_ON_READ", 1), ("COPY_ON_WRITE", 2)])
def test_a_batch_fills_one_small_file_of_a_path_in_a_merge_on_read_table(tmp_path, kind, topped_up):
    path, options = str(tmp_path / "t"), {**MERGE_ON_READ, "hoodie.datasource.write.table.type": kind}
    for number in range(2):
        keys = range(10 * number, 10 * number + 10)
        assert write(path, {**options, SMALL_LIMIT: "0"}, number, in_one_path(keys)).files_created == 1
    # a file is full at a few rows more than it has: both would be needed, and new ones
    full = max(file.stat().st_size for file in (tmp_path / "t" / "p").glob("*.parquet")) + 1000
    limits = {"hoodie.parquet.max.file.size": str(full), SMALL_LIMIT: str(full - 1)}
    summary = write(path, {**options, **limits}, 2, in_one_path(range(100, 400)))
    assert summary.files_topped_up == topped_up


@pytest.mark.parametrize(("limit", "listed"), [("0", []), ("104857600", ["p"])])
def test_no_folder_is_listed_for_small_files_where_the_limit_is_0(tmp_path, limit, listed):
    path = str(tmp_path / "t")
    write(path, {}, 0, in_one_path(range(5)))
    engine = Counting(path, {SMALL_LIMIT: limit, "hoodie.datasource.write.operation": "insert"})
    engine.write(1, in_one_path(range(5, 9)))
    engine.writer.stop()
    on_driver, on_workers = engine.take_listed()
    assert sorted({*on_driver, *on_workers}) == listed
