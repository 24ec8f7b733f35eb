"""The sink on a directory bucket of S3 Express: no order, prefixes of whole folders, sessions."""

import random

import pyarrow as pa
import pytest
from directory_bucket import directory_bucket
from s3_server import race_of_creators

from hudistream import HudiTable
from streaming import ArrowSink
from table import check, read_table
from table.storage.opening import open_storage
from table.storage.s3_listing import is_directory_bucket

UPKEEP = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
    "hoodie.compact.inline.max.delta.commits": "2",
    "hoodie.clean.async": "false",
}


@pytest.fixture(scope="module")
def bucket():
    """Address of a bucket, options for fsspec, requests that were refused."""
    with directory_bucket() as served:
        yield served


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("lake--use1-az4--x-s3", True), ("lake--use1-az4--xa-s3", True), ("lake", False), ("lake--x-s3-more", False)],
)
def test_which_buckets_are_directory_buckets(name, is_one):
    assert is_directory_bucket(name) is is_one


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "table_type", "index"),
    [
        ("6", "COPY_ON_WRITE", "BLOOM"),
        ("9", "MERGE_ON_READ", "RECORD_INDEX"),
        ("9", "COPY_ON_WRITE", "RECORD_INDEX"),
        ("6", "MERGE_ON_READ", "BLOOM"),
        ("8", "MERGE_ON_READ", "BUCKET"),
    ],
)
def test_a_table_with_all_services(bucket, version, table_type, index):
    address, storage_options, refused = bucket
    path = f"{address}/{version}-{table_type}-{index}"
    options = {
        **UPKEEP,
        "hoodie.write.table.version": version,
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.index.type": index,
        "hoodie.metadata.enable": str(index == "RECORD_INDEX").lower(),
    }
    expected, chance = {}, random.Random(3)
    with ArrowSink(
        path, options, key="id", partition_by="p", order_by="ts", operation="upsert", storage_options=storage_options
    ) as sink:
        for ts in range(7):
            keys = chance.sample(range(40), 10)
            sink.write(
                pa.table({"id": [f"k{key}" for key in keys], "p": [f"p{key % 3}" for key in keys], "ts": [ts] * 10})
            )
            expected.update((f"k{key}", ts) for key in keys)
    rows = read_table(path, columns=["id", "ts"], storage_options=storage_options).to_pylist()
    assert {row["id"]: row["ts"] for row in rows} == expected
    assert len(rows) == len(expected)
    table = HudiTable.open(path, storage_options)
    table.delete([("id", "=", "k1")])
    assert read_table(path, storage_options=storage_options).num_rows == len(expected) - 1
    assert check(path, sample=None, storage_options=storage_options).findings == ()
    assert refused == []


def test_a_large_file_is_rewritten_by_parts_in_a_row(bucket):
    """The store copies the row groups that no row touches: parts of directory buckets have numbers without a gap."""
    address, storage_options, refused = bucket
    path = f"{address}/large"
    options = {"hoodie.parquet.block.size": str(6 << 20), "hoodie.clean.commits.retained": "1"}
    noise = random.Random(5)
    with ArrowSink(path, options, key="id", order_by="ts", operation="upsert", storage_options=storage_options) as sink:
        ids = [f"{number:06}" for number in range(12_000)]
        sink.write(pa.table({"id": ids, "ts": [0] * len(ids), "v": [noise.randbytes(1_500) for _ in ids]}))
        sink.write(pa.table({"id": ["011999"], "ts": [1], "v": [b"new"]}))
    rows = read_table(path, columns=["id", "ts"], storage_options=storage_options)
    assert rows.num_rows == len(ids)
    assert sum(rows["ts"].to_pylist()) == 1
    assert refused == []


def test_one_of_several_writers_creates_a_file_and_all_pages_are_listed(bucket):
    address, storage_options, refused = bucket
    storage = open_storage(f"{address}/raced", storage_options)
    [won] = race_of_creators(f"{address}/raced", storage_options, "f/one")
    assert storage.read("f/one") == won
    for number in range(50):
        storage.put(f"f/{number:02}", b"1")
    assert {entry.name for entry in storage.list_dir("f")} == {"one", *(f"{number:02}" for number in range(50))}
    assert {entry.name for entry in storage.list_prefix("f", "1")} == {str(number) for number in range(10, 20)}
    assert len(storage.list_tree("")) == 51
    assert refused == []
