"""A compaction that was planned before a column was widened: earlier snapshots and a restore show what they showed."""

import pyarrow as pa
import pytest

from hudistream import ArrowSink, HudiTable
from table.hudi_table import HudiTable as Bare
from table.options.groups import CompactionSettings
from table.services.compaction.compaction import schedule_compaction

QUIET = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.compaction.async.enable": "false",
    "hoodie.parquet.small.file.limit": "0",
    "hudistream.schema.integers.to.floats": "true",
    "hudistream.schema.numbers.to.text": "true",
}
WIDENED = [
    (pa.int64(), 2**53 + 1, pa.float64(), 1.5),
    (pa.int64(), 2**60 + 1, pa.float64(), 1.5),
    (pa.int32(), 2**31 - 1, pa.int64(), 2**40),
    (pa.float32(), 0.1, pa.float64(), 0.1),
    (pa.int64(), 2**53 + 1, pa.string(), "text"),
]


def put(path, options, key, value, arrow):
    with ArrowSink(path, options, key="id") as sink:
        sink.write(pa.table({"id": [key], "n": pa.array([value], arrow)}))


@pytest.mark.parametrize("statistics", ["false", "true"])
@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize(("narrow", "least", "wide", "most"), WIDENED, ids=lambda value: str(value)[:9])
def test_earlier_snapshots_keep_their_values(tmp_path, version, narrow, least, wide, most, statistics):
    path = str(tmp_path / "t")
    kept = {"hoodie.metadata.enable": statistics, "hoodie.metadata.index.column.stats.enable": statistics}
    options = {**QUIET, "hoodie.write.table.version": version, **kept}
    for _ in range(2):
        put(path, options, "a", least, narrow)
    schedule_compaction(Bare.open(path), CompactionSettings(delta_commits=1))
    put(path, options, "b", least, narrow)
    table = HudiTable.open(path)
    before, savepoint = table.scan().to_arrow().sort_by("id"), table.create_savepoint()
    put(path, options, "c", most, wide)
    after = HudiTable.open(path).scan().to_arrow().sort_by("id")
    assert HudiTable.open(path).compact()
    table = HudiTable.open(path)
    assert table.scan().to_arrow().sort_by("id").equals(after)
    assert table.scan(as_of=savepoint).to_arrow().sort_by("id").equals(before)
    assert table.count([("n", "=", most)]) == 1
    assert table.check().is_sound
    table.restore_to_savepoint(savepoint, force=True)
    assert HudiTable.open(path).scan().to_arrow().sort_by("id").equals(before)
