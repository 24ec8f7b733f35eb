"""Partition paths that make many small files are told, once."""

from datetime import datetime, timezone
from unittest import mock

import pyarrow as pa
import pytest
from engine import Engine, rows

import hudistream
from streaming.batch import partition_advice
from streaming.batch.partition_advice import MANY_PATHS, find_time_fields, find_tiny_paths
from table.config.table_config import TableConfig
from table.timeline.metadata.commit import WriteStat

SCHEMA = pa.schema([("id", pa.string()), ("at", pa.timestamp("us", "UTC")), ("day", pa.date32()), ("p", pa.string())])


@pytest.fixture
def warn(monkeypatch):
    found = mock.Mock()
    monkeypatch.setattr(partition_advice.log, "warning", found)
    return found


@pytest.mark.parametrize(
    ("fields", "keygen", "found"),
    [
        (("at",), "SIMPLE", ("at",)),
        (("p", "at"), "COMPLEX", ("at",)),
        (("at",), "TIMESTAMP", ()),
        (("day",), "SIMPLE", ()),
        ((), "NON_PARTITION", ()),
        (("unknown",), "SIMPLE", ()),
    ],
)
def test_moments_as_partition_paths(fields, keygen, found):
    assert find_time_fields(TableConfig("t", ("id",), fields, keygen_type=keygen), SCHEMA) == found


@pytest.mark.parametrize(
    ("paths", "rows_each", "found"),
    [(MANY_PATHS, 3, (MANY_PATHS, 3)), (MANY_PATHS - 1, 3, None), (MANY_PATHS, 100, None), (0, 0, None)],
)
def test_many_paths_with_few_rows(paths, rows_each, found):
    stats = [WriteStat(f"f{n}", f"p{n}/f", f"p{n}", num_inserts=rows_each) for n in range(paths)]
    assert find_tiny_paths(stats) == found


def test_a_sink_tells_once(tmp_path, warn):
    engine = Engine(str(tmp_path / "t"))
    engine.write(0, rows(range(120), partition=lambda number: f"p{number}"))
    engine.write(1, rows(range(120), partition=lambda number: f"p{number}"))
    [call] = warn.call_args_list
    assert (call.args, call.kwargs["partition_paths"], call.kwargs["rows_per_path"]) == (
        ("many_small_partitions",),
        120,
        1,
    )


def test_a_table_by_moments_is_told_when_it_is_made(tmp_path, warn):
    moment = datetime(2026, 1, 1, tzinfo=timezone.utc)
    batch = pa.Table.from_pylist([{"id": "a", "ts": 1, "p": "x", "at": moment}])
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "at",
        "hoodie.datasource.write.precombine.field": "ts",
    }
    for _ in range(2):
        hudistream.write_hudi(str(tmp_path / "t"), batch, options=options)
    [call] = warn.call_args_list
    assert (call.args, call.kwargs["fields"]) == (("partition_by_timestamp",), ["at"])
