"""What a batch asks of S3, counted at the client: requests cost money, and each waits for the one before it."""

import asyncio
import time
from collections import Counter
from contextlib import contextmanager
from itertools import pairwise
from unittest import mock

import pyarrow as pa
import pytest
from aiobotocore.client import AioBaseClient
from needs import require
from s3_server import s3_options

from hudistream import ArrowSink, HudiTable, write_hudi
from table import StorageError, read_table
from table.catalog.delta.delta_log import DeltaLog
from table.catalog.manifest import write_manifest
from table.options.catalog_settings import ManifestFor
from table.storage.opening import open_storage

# of a steady batch that rewrites one file; each with the rule of docs/concepts/safety.md or the service that needs it
MOST = {
    "insert": {"ListObjectsV2": 9, "GetObject": 3, "PutObject": 7, "HeadObject": 3, "DeleteObject": 2, "upload": 3},
    "upsert": {"ListObjectsV2": 9, "GetObject": 3, "PutObject": 7, "HeadObject": 3, "DeleteObject": 2, "upload": 3},
}
STEPS = 15  # until its rows are visible
UPLOAD = ("CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload")


@pytest.fixture(scope="module")
def s3():
    with s3_options() as options:
        yield options


@contextmanager
def counted():
    """Yields the requests that are made: (call, key or prefix)."""
    seen, call = [], AioBaseClient._make_api_call

    async def noted(self, name, parameters):
        seen.append((name, parameters.get("Key") or parameters.get("Prefix") or ""))
        return await call(self, name, parameters)

    with mock.patch.object(AioBaseClient, "_make_api_call", noted):
        yield seen


def batch(operation, number):
    first = number * (2000 if operation == "insert" else 1000)
    ids = range(first, first + 2000)
    columns = {"id": [f"k{i}" for i in ids], "p": ["p0"] * 2000, "ts": pa.array([number] * 2000, pa.int64())}
    return pa.table(columns)


@pytest.mark.parametrize("operation", MOST)
def test_a_steady_batch_makes_so_many_requests(s3, operation):
    options = {
        "hoodie.datasource.write.operation": operation,
        "hoodie.clean.automatic": "false",
        "hoodie.archive.automatic": "false",
    }
    path = f"s3://lake/requests/{operation}"
    with ArrowSink(path, options, s3, key="id", partition_by="p", order_by="ts", workers=2) as sink:
        for number in range(4):
            with counted() as seen:
                sink.write(batch(operation, number), number)
                sink._writer._cleanup.wait()  # deletes the markers beside the next batch
    kinds = Counter("upload" if name in UPLOAD else name for name, _ in seen)
    assert kinds.pop("DeleteObjects") == 1  # markers
    assert {name: count for name, count in kinds.items() if count > MOST[operation].get(name, 0)} == {}
    assert [b for a, b in pairwise(seen) if a[0] == "HeadObject" and b == ("GetObject", a[1])] == []
    assert len(read_table(path, storage_options=s3)) == {"insert": 8000, "upsert": 5000}[operation]


def test_a_steady_batch_is_visible_after_so_many_steps(s3, monkeypatch):
    """A step is a request that waits for the one before it. Requests that need no order are made together."""
    seen, call = [], AioBaseClient._make_api_call

    async def slow(self, name, parameters):
        begun = time.perf_counter()
        await asyncio.sleep(0.05)  # longer than a busy machine needs to begin the others of a step
        try:
            return await call(self, name, parameters)
        finally:
            seen.append((begun, time.perf_counter(), name, parameters.get("Key") or parameters.get("Prefix") or ""))

    monkeypatch.setattr(AioBaseClient, "_make_api_call", slow)
    steps = []
    options = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
    with ArrowSink("s3://lake/requests/steps", options, s3, key="id", partition_by="p", order_by="ts") as sink:
        for number in range(5):
            seen.clear()
            sink.write(batch("upsert", number), number)
            now, count = next(one for one in seen if one[2] == "PutObject" and one[3].endswith(".commit")), 0
            while now is not None:
                before = [one for one in seen if one[1] <= now[0]]
                now, count = max(before, key=lambda one: one[1], default=None), count + 1
            steps.append(count)
            sink._writer._cleanup.wait()
    assert 0 < min(steps[2:]) <= STEPS


def test_a_bucket_that_is_not_there_is_named_by_an_error_of_ours(s3):
    rows = batch("insert", 0)
    for act in (
        lambda: write_hudi("s3://nowhere/t", rows, key="id", storage_options=s3),
        lambda: read_table("s3://nowhere/t", storage_options=s3),
        lambda: HudiTable.open("s3://nowhere/t", s3),
    ):
        with pytest.raises(
            StorageError,
            match="in bucket 'nowhere' at http.* as access key test: there is no such bucket: create it",
        ):
            act()


def test_a_folder_is_listed_by_one_request_be_it_empty_or_not(s3):
    storage = open_storage("s3://lake/listed", s3)
    storage.put("full/a/b", b"1")
    storage.put("full/c", b"23")
    for path, wanted in (("full", [("a", True, 0), ("c", False, 2)]), ("empty", []), ("full/c", [])):
        with counted() as seen:
            assert [(e.name, e.is_dir, e.size_bytes) for e in storage.list_dir(path)] == wanted
        assert [name for name, _ in seen] == ["ListObjectsV2"]
    storage.put("full/aside", b"456")
    for path, prefix, wanted in (
        ("full", "a", [("aside", 3)]),
        ("full", "x", []),
        ("", "full", []),
        ("empty", "a", []),
    ):
        with counted() as seen:
            assert [(e.name, e.size_bytes) for e in storage.list_prefix(path, prefix)] == wanted
        assert [name for name, _ in seen] == ["ListObjectsV2"]
    storage.delete("full/aside")
    with counted() as seen:
        assert sorted(storage.list_tree("full")) == ["a/b", "c"]
        assert storage.list_tree("empty") == {}
    assert len(seen) == 2


def test_a_file_is_read_by_one_request_and_so_is_a_small_one_of_a_known_size(s3):
    storage = open_storage("s3://lake/read", s3)
    storage.put("file", b"0123456789")
    with counted() as seen:
        assert storage.read("file") == b"0123456789"
        with storage.open_input("file", 10) as source:
            source.seek(7)
            assert source.read(3) == b"789"
            source.seek(0)
            assert source.read(2) == b"01"
    assert [name for name, _ in seen] == ["GetObject", "GetObject"]
    with pytest.raises(FileNotFoundError):
        storage.read("gone")
    with pytest.raises(FileNotFoundError):
        storage.open_input("gone", 10)


@pytest.mark.slow
def test_a_delta_log_costs_two_requests_beside_the_look_at_the_table(s3):
    library = require("deltalake")
    path = "s3://lake/requests/delta"
    with ArrowSink(path, {"hoodie.clean.automatic": "false"}, s3, key="id", partition_by="p", order_by="ts") as sink:
        for number in range(12):
            sink.write(batch("upsert", number))
            if number == 0:
                log = DeltaLog(HudiTable.open(path, s3))
            with counted() as seen:
                write_manifest(HudiTable.open(path, s3), ManifestFor.DELTA, log)
    # the look at the table lists the folder as it lists each other one, to find partitions
    assert [name for name, key in seen if "_delta_log" in key] == ["ListObjectsV2", "HeadObject", "PutObject"]
    options = {
        "AWS_ENDPOINT_URL": s3["client_kwargs"]["endpoint_url"], "AWS_ALLOW_HTTP": "true", "AWS_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": s3["key"], "AWS_SECRET_ACCESS_KEY": s3["secret"],
    }  # fmt: skip
    theirs = library.DeltaTable(path, storage_options=options).to_pyarrow_table()
    assert sorted(theirs["id"].to_pylist()) == sorted(read_table(path, ["id"], s3)["id"].to_pylist())


# requests that a steady batch of version 8 makes more, beside the upkeep of the metadata table in the background
LISTS, STATISTICS = {"hoodie.metadata.enable": "true"}, {"hoodie.metadata.index.column.stats.enable": "true"}
MORE = {"lists": 8, "statistics": 11}


@pytest.mark.slow
def test_a_metadata_table_costs_so_many_requests(s3):
    """Lists of files, and statistics of columns beside them."""
    totals = {}
    for name, more in {"none": {}, "lists": LISTS, "statistics": {**LISTS, **STATISTICS}}.items():
        options = {
            "hoodie.datasource.write.operation": "insert",
            "hoodie.write.table.version": "8",
            "hoodie.clean.automatic": "false",
            "hoodie.archive.automatic": "false",
            "hoodie.metadata.compact.max.delta.commits": "100",
            **more,
        }
        with ArrowSink(
            f"s3://lake/lists/{name}", options, s3, key="id", partition_by="p", order_by="ts", workers=2
        ) as sink:
            for number in range(4):  # the second makes the metadata table, the third reads what it has
                with counted() as seen:
                    sink.write(batch("insert", number), number)
                    sink._writer._cleanup.wait()
        totals[name] = Counter(call for call, _ in seen)
    for name, most in MORE.items():
        more = totals[name] - totals["none"]
        assert 0 < more.total() <= most, more


@pytest.mark.slow
@pytest.mark.parametrize("groups", [10, 4])
def test_a_record_index_costs_so_many_requests(s3, groups):
    """The look at the index, its files, and the records that it gets."""
    totals = {}
    least = {"hoodie.metadata.record.index.min.filegroup.count": str(groups)}
    indexed = {**LISTS, "hoodie.metadata.record.index.enable": "true", **least}
    for index, more in {"GLOBAL_BLOOM": LISTS, "RECORD_INDEX": indexed}.items():
        options = {
            "hoodie.index.type": index,
            "hoodie.bloom.index.update.partition.path": "false",
            "hoodie.write.table.version": "8",
            "hoodie.clean.automatic": "false",
            "hoodie.archive.automatic": "false",
            "hoodie.metadata.compact.max.delta.commits": "100",
            **more,
        }
        path = f"s3://lake/indexed/{index}-{groups}"
        with ArrowSink(path, options, s3, key="id", partition_by="p", order_by="ts", workers=1) as sink:
            for number in range(4):
                with counted() as seen:
                    sink.write(batch("upsert", number), number)
                    sink._writer._cleanup.wait()
            totals[index] = Counter(call for call, _ in seen)
    more = totals["RECORD_INDEX"] - totals["GLOBAL_BLOOM"]
    # look: timeline, files twice, properties. Then of each file group the log file of the last batch, and one that is
    # written: what a worker has decoded before it remembers
    assert more["PutObject"] <= groups
    assert more["ListObjectsV2"] <= 3
    assert more["GetObject"] <= 1 + groups
    assert more.total() == more["PutObject"] + more["ListObjectsV2"] + more["GetObject"]
