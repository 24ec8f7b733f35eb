"""Bulk inserts and writes outside a stream, on real local Spark."""

import itertools
import json

import pyarrow.parquet as pq
import pytest
from snapshots import list_snapshot_files
from stream import OPTIONS, expected, frame, keys, run, source

from streaming import HudiSink
from table import InvalidConfigError
from table.hudi_table import HudiTable
from table.options.choices import SortMode

pytestmark = pytest.mark.spark


def ranges(path, partition):
    """(least, greatest) key of each file of a partition, in order."""
    found = []
    for file in list_snapshot_files(HudiTable.open(path)):
        if file.partition_path == partition:
            metadata = pq.read_metadata(f"{path}/{file.path}").metadata
            found.append((metadata[b"hoodie_min_record_key"].decode(), metadata[b"hoodie_max_record_key"].decode()))
    return sorted(found)


def overlaps(found):
    return sum(before[1] >= after[0] for before, after in itertools.pairwise(found))


@pytest.mark.parametrize("mode", SortMode)
def test_sort_modes_by_hudis_names(spark, tmp_path, mode):
    path = str(tmp_path / "t")
    options = {**OPTIONS, "hoodie.bulkinsert.sort.mode": mode, "hoodie.bulkinsert.shuffle.parallelism": "4",
               "hoodie.datasource.write.operation": "bulk_insert", "hoodie.parquet.max.file.size": "40960",
               "hoodie.copyonwrite.record.size.estimate": "1024"}  # fmt: skip
    rows = frame(spark, 0, 1000, 2).repartition(4, "id")
    summary = HudiSink(path, options).write(rows)
    assert keys(path) == expected(0, 1000)
    assert summary.rows == 1000
    assert summary.files_topped_up == 0
    timeline = HudiTable.open(path).load_timeline()
    with open(f"{path}/.hoodie/{timeline.completed_writes[0].file_name}") as file:
        assert json.load(file)["operationType"] == "BULK_INSERT"
    by_partition = {partition: ranges(path, partition) for partition in ("p0", "p1")}
    if mode == "GLOBAL_SORT":
        # 500 rows a path at 40 rows a file: sorted, no two files share a key range
        assert all(overlaps(found) == 0 and len(found) > 10 for found in by_partition.values())
    elif mode == "NONE":
        assert all(overlaps(found) > 0 for found in by_partition.values())
    elif mode == "PARTITION_PATH_REPARTITION_AND_SORT":
        assert all(overlaps(found) == 0 for found in by_partition.values())
    if mode == "PARTITION_PATH_REPARTITION":
        assert all(len(found) == 13 for found in by_partition.values())


def test_a_backfill_that_a_stream_continues(spark, tmp_path):
    path = str(tmp_path / "t")
    sink = HudiSink(path, OPTIONS)
    sink.write(frame(spark, 1000, 2000), operation="bulk_insert")
    sink.write(frame(spark, 2000, 2010))
    run(source(spark, str(tmp_path / "in"), 3), sink, str(tmp_path / "c"))
    assert keys(path) == sorted([*expected(0, 150), *expected(1000, 2010)])
    # the stream tops up what the backfill wrote
    assert sink.last_batch.files_topped_up == 3
    # a write later on does not make the stream forget where it is
    sink.write(frame(spark, 3000, 3010))
    run(source(spark, str(tmp_path / "in"), 4), HudiSink(path, OPTIONS), str(tmp_path / "c"))
    assert keys(path) == sorted([*expected(0, 200), *expected(1000, 2010), *expected(3000, 3010)])


def test_a_write_is_not_taken_for_a_batch(spark, tmp_path):
    path = str(tmp_path / "t")
    sink = HudiSink(path, OPTIONS)
    sink.write(frame(spark, 0, 10))
    sink.write(frame(spark, 0, 10))
    assert len(keys(path)) == 20


def test_an_operation_that_is_not_supported_is_named(spark, tmp_path):
    with pytest.raises(InvalidConfigError, match="operation=overwrite"):
        HudiSink(str(tmp_path / "t"), OPTIONS).write(frame(spark, 0, 10), operation="overwrite")
