"""Bulk inserts and writes outside a stream, on real local Spark."""

import itertools
import json

import pyarrow.parquet as pq
import pytest
from snapshots import list_snapshot_files
from stream import OPTIONS, expected, frame, keys, run, source
from tiers import quick

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


@pytest.mark.parametrize("mode", quick(2, SortMode))
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


SORT = "hoodie.bulkinsert.user.defined.partitioner.sort.columns"


def column_ranges(path, name):
    """partition path -> (least, greatest) value of a column in each of its files, in order."""
    found = {}
    for file in list_snapshot_files(HudiTable.open(path)):
        values = pq.read_table(f"{path}/{file.path}", columns=[name], partitioning=None).column(name).to_pylist()
        found.setdefault(file.partition_path, []).append((min(values), max(values)))
    return {partition: sorted(ranges) for partition, ranges in found.items()}


@pytest.mark.parametrize("sort_mode", ["NONE", "GLOBAL_SORT"])
def test_rows_are_sorted_by_columns(spark, tmp_path, sort_mode):
    path = str(tmp_path / "t")
    options = {**OPTIONS, SORT: "x,y", "hoodie.bulkinsert.shuffle.parallelism": "4",
               "hoodie.bulkinsert.sort.mode": sort_mode, "hoodie.parquet.max.file.size": "40960",
               "hoodie.copyonwrite.record.size.estimate": "1024"}  # fmt: skip
    rows = frame(spark, 0, 1000, 2).selectExpr("*", "hash(id) % 5000 x", "hash(ts, id) y").repartition(4, "id")
    HudiSink(path, options, key="id", partition_by="p").write(rows, operation="bulk_insert")
    assert keys(path) == expected(0, 1000)
    ranges = column_ranges(path, "x")
    assert {partition: len(files) > 10 for partition, files in ranges.items()} == {"p0": True, "p1": True}
    assert all(before[1] <= after[0] for files in ranges.values() for before, after in itertools.pairwise(files))
    for file in list_snapshot_files(HudiTable.open(path)):
        written = pq.read_table(f"{path}/{file.path}", columns=["x", "y"], partitioning=None)
        pairs = list(zip(*written.to_pydict().values(), strict=True))
        assert pairs == sorted(pairs)


def test_rows_lie_along_a_curve(spark, tmp_path):
    read = {}
    for layout in "linear", "hilbert":
        path = str(tmp_path / layout)
        options = {**OPTIONS, SORT: "x,y", "hoodie.layout.optimize.strategy": layout,
                   "hoodie.bulkinsert.shuffle.parallelism": "1", "hoodie.parquet.max.file.size": "40960",
                   "hoodie.copyonwrite.record.size.estimate": "256"}  # fmt: skip
        rows = frame(spark, 0, 8000, 1).selectExpr("*", "abs(hash(id)) % 9973 x", "abs(hash(ts, id)) % 9973 y")
        HudiSink(path, options, key="id", partition_by="p").write(rows, operation="bulk_insert")
        assert keys(path) == expected(0, 8000)
        read[layout] = {
            name: sum(low <= 5000 <= high for files in column_ranges(path, name).values() for low, high in files)
            for name in ("x", "y")
        }
    files = len(list_snapshot_files(HudiTable.open(path)))
    assert read["linear"]["x"] <= 2
    assert read["linear"]["y"] == files  # each file holds the whole range
    assert max(read["hilbert"].values()) < files * 0.6


@pytest.mark.parametrize(
    ("column", "said"), [("xx", "no such column; did you mean x?"), ("m", "type map<string, int32>")]
)
def test_a_column_that_is_no_order_is_refused_before_anything_is_visible(spark, tmp_path, column, said):
    path = str(tmp_path / "t")
    rows = frame(spark, 0, 10).selectExpr("*", "1 x", "map('a', 1) m")
    with pytest.raises(InvalidConfigError) as refused:
        HudiSink(path, {**OPTIONS, SORT: column}, key="id", partition_by="p").write(rows, operation="bulk_insert")
    assert said in str(refused.value)
    assert not HudiTable.open(path).load_timeline().completed_writes
