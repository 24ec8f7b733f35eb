"""Published files are on the disk before their task reports them."""

import threading

import pyarrow as pa
import pytest

from hudistream import HudiTable
from streaming.arrow_sink import ArrowSink
from table.errors import StorageError
from table.storage.local import LocalStorage
from table.write import flushes
from table.write.flushes import Flushes

SIZES = (10, 5_000_000)


@pytest.mark.parametrize("size", SIZES)
def test_what_fails_on_the_way_to_the_disk_is_raised(tmp_path, size):
    begun = Flushes()

    def flush():  # a small file at once, a large one in its thread
        begun.begin(LocalStorage(str(tmp_path)), "missing", size)
        begun.wait()

    with pytest.raises(StorageError, match="flush.*missing"):
        flush()
    begun.wait()  # it is told once


def test_a_large_file_is_waited_for_at_the_end_alone(tmp_path):
    goes_on, flushed = threading.Event(), []

    class Slow(LocalStorage):
        def sync(self, path):
            assert goes_on.wait(10)
            flushed.append(path)

    begun = Flushes()
    for name in ("a", "b"):
        begun.begin(Slow(str(tmp_path)), name, SIZES[1])
    assert not flushed
    goes_on.set()
    begun.wait()
    assert flushed == ["a", "b"]


@pytest.mark.parametrize("operation", ["insert", "upsert"])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_batch_whose_files_did_not_reach_the_disk_is_not_committed(tmp_path, monkeypatch, operation, table_type):
    table = str(tmp_path / "t")
    options = {"hoodie.datasource.write.table.type": table_type, "hoodie.datasource.write.operation": operation}
    rows = pa.table({"id": ["a", "b"], "ts": [1, 2], "text": ["x", "y"]})
    sink = ArrowSink(table, {**options, "hoodie.index.type": "BLOOM"}, key="id", order_by="ts")
    sink.write(rows)
    monkeypatch.setattr(flushes, "_WORTH_A_THREAD_BYTES", 0)

    def fails(self, path):
        raise StorageError(f"{path} did not reach the disk")

    with monkeypatch.context() as broken:
        broken.setattr(LocalStorage, "sync", fails)
        with pytest.raises(StorageError, match="did not reach the disk"):
            sink.write(rows)
    assert HudiTable.open(table).scan().to_arrow().num_rows == 2
    sink.write(rows)
    assert HudiTable.open(table).scan().to_arrow().num_rows == (4 if operation == "insert" else 2)
