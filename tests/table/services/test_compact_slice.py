"""What a compaction makes of base file and log records: the rows of the snapshot before it, by copying what stays."""

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engine import Engine

from hudistream import HudiTable
from table.config.merge_mode import MergeMode
from table.options.groups import BaseFileSettings, CompactionSettings
from table.scan.merge_slice import SliceReading
from table.services.compaction import execution
from table.services.compaction.compaction import compact

ROWS = 3000
SMALL = BaseFileSettings(row_group_bytes=64 * 1024)
SCHEMA = pa.schema(
    [("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.string()), ("w", pa.float64())]
)
MARKED = SCHEMA.append(pa.field("_hoodie_is_deleted", pa.bool_()))


def options_of(mode, index):
    return {
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.datasource.write.payload.class": mode.payload_class,
        "hoodie.datasource.write.partitionpath.field": "",
        "hoodie.datasource.compaction.async.enable": "false",
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.index.type": index,
        "hoodie.bucket.index.num.buckets": "1",
        "hoodie.parquet.block.size": str(SMALL.row_group_bytes),
    }


def rows(rng, numbers, most_ts, schema, deleted=0.0):
    found = [
        {
            "id": f"k{number:05}",
            "p": "",
            "ts": rng.randint(0, most_ts),
            "v": rng.choice([None, f"v{number}", "w" * 40]),
            "w": rng.choice([None, 0.5]),
            "_hoodie_is_deleted": rng.random() < deleted or rng.choice([False, None]),
        }
        for number in numbers
    ]
    return pa.Table.from_pylist(found, schema)


def contents(path):
    found = HudiTable.open(path).scan(meta_columns=True).to_arrow().drop_columns(["_hoodie_file_name"]).to_pylist()
    return sorted(repr(row) for row in found)


def base_files(path):
    return [file["path"] for file in HudiTable.open(path).files().to_pylist() if file["kind"] == "base"]


@pytest.mark.parametrize("memory_bytes", [1 << 26, 0])
@pytest.mark.parametrize("deleted", [0.0, 0.02])
@pytest.mark.parametrize("mode", MergeMode)
def test_a_compaction_changes_no_row(tmp_path, monkeypatch, mode, deleted, memory_bytes):
    rng, path = random.Random(f"{mode} {deleted}"), str(tmp_path / "t")
    schema = MARKED if deleted else SCHEMA
    reading = lambda *args: SliceReading(*args, memory_bytes=memory_bytes)  # noqa: E731 the bound is not an option
    monkeypatch.setattr(execution, "SliceReading", reading)
    engine = Engine(path, options_of(mode, "BUCKET"), batch_rows=1000)
    engine.write(0, rows(rng, range(ROWS), 9, schema))
    for number in range(1, 4):
        numbers = sorted(rng.sample(range(ROWS + 200), 150))
        engine.write(number, rows(rng, numbers, 9 + number, schema, deleted))
    engine.writer.stop()
    before = contents(path)
    [done] = compact(HudiTable.open(path), CompactionSettings(tasks=1), SMALL)
    assert contents(path) == before
    [name] = base_files(path)
    assert done.time in name
    file = pq.ParquetFile(f"{path}/{name}")
    assert set(file.read(["_hoodie_file_name"]).column(0).to_pylist()) == {name}
    assert file.metadata.num_row_groups > 3


def chunks_of(path, name, column):
    """The bytes of a column's chunk in each row group."""
    metadata = pq.read_metadata(f"{path}/{name}")
    [at] = [n for n in range(metadata.num_columns) if metadata.schema.column(n).path == column]
    data, found = open(f"{path}/{name}", "rb").read(), []
    for number in range(metadata.num_row_groups):
        chunk = metadata.row_group(number).column(at)
        start = chunk.dictionary_page_offset or chunk.data_page_offset
        found.append(data[start : start + chunk.total_compressed_size])
    return found


def test_chunks_that_log_records_leave_alone_are_copied(tmp_path):
    rng, path = random.Random(1), str(tmp_path / "t")
    engine = Engine(path, options_of(MergeMode.EVENT_TIME, "BLOOM"), batch_rows=1000)
    first = rows(rng, range(ROWS), 9, SCHEMA)
    engine.write(0, first)
    [old] = base_files(path)
    changed = first.take([0, 1, 2])
    engine.write(1, changed.set_column(2, "ts", pa.array([20, 21, 22])))
    engine.writer.stop()
    compact(HudiTable.open(path), CompactionSettings(tasks=1), SMALL)
    [new] = base_files(path)
    for column in ("id", "_hoodie_record_key", "v", "w"):
        assert sorted(chunks_of(path, old, column)) == sorted(chunks_of(path, new, column))
    # the row group with the changed rows is written behind those that are copied whole
    assert chunks_of(path, old, "ts")[1:] == chunks_of(path, new, "ts")[:-1]
    assert chunks_of(path, old, "ts")[0] != chunks_of(path, new, "ts")[-1]
