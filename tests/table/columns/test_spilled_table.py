"""Rows as one table, in memory or on local disk."""

import os

import pyarrow as pa
import pytest

from table.columns.spilled_table import table_of

ROWS = pa.table({"id": [f"k{n}" for n in range(1000)], "v": [None, *range(999)]})


@pytest.mark.parametrize("memory_bytes", [0, 10_000, 10**9])
def test_the_rows_are_the_same_wherever_they_lie_and_no_file_stays(tmp_path, monkeypatch, memory_bytes):
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    found = table_of(ROWS.to_batches(max_chunksize=100), ROWS.schema, memory_bytes)
    assert found == ROWS
    assert os.listdir(tmp_path) == []
    assert table_of([], ROWS.schema, memory_bytes) == ROWS.slice(0, 0)


def test_what_does_not_fit_into_memory_takes_none(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    before = pa.total_allocated_bytes()
    found = table_of((batch for batch in [pa.record_batch({"v": range(100_000)})] * 5), pa.schema({"v": pa.int64()}), 1)
    assert pa.total_allocated_bytes() - before < 100_000
    assert len(found) == 500_000


def test_a_reader_that_fails_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))

    def failing():
        yield from ROWS.to_batches(max_chunksize=100)
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        table_of(failing(), ROWS.schema, 1)
    assert os.listdir(tmp_path) == []
