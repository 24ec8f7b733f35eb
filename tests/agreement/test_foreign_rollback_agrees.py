"""A dead delta commit of ours that Hudi rolled back without markers, hudi-cli's default: its rows stay dead."""

import pyarrow as pa
import pytest
from engine import OPTIONS, Engine, leave_a_dead_batch

from table import check, read_table
from table.hudi_table import HudiTable
from table.timeline.instant import Action

pytestmark = pytest.mark.hudi

TABLE = {
    **OPTIONS,
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.compaction.async.enable": "false",
    "hoodie.compact.inline": "false",
    "hoodie.parquet.small.file.limit": "0",
}
UPKEEP = {
    "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1",
    "hoodie.archive.automatic": "true", "hoodie.clean.automatic": "true", "hudistream.clean.grace.ms": "0",
}  # fmt: skip


def rows(value, ts, numbers=range(20)):
    found = [{"id": f"k{number:04}", "p": "p1", "ts": ts, "v": value} for number in numbers]
    return pa.Table.from_pylist(
        found, pa.schema([(n, pa.string()) for n in ("id", "p")] + [("ts", pa.int64()), ("v", pa.string())])
    )


def write_ours(path, options, number, table):
    engine = Engine(path, options, batch_rows=1000)
    engine.write(number, table)
    engine.writer.services.wait()
    engine.writer.stop()


def shown(hudi, path):
    """The values of `v`, by our reader and by Hudi's."""
    ours = [row["v"] for row in read_table(path, ["v"]).to_pylist()]
    return ours, [row["v"] for row in hudi.read(path, {}, columns=["v"])]


@pytest.mark.slow
@pytest.mark.parametrize("index", ["BLOOM", "BUCKET"])
def test_rows_of_a_dead_batch_that_hudi_rolled_back_by_listing_stay_dead(hudi, tmp_path, utc, index):
    path = str(tmp_path / "t")
    options = {**TABLE, "hoodie.index.type": index, "hoodie.bucket.index.num.buckets": "2"}
    write_ours(path, options, 0, rows("first", 1))
    leave_a_dead_batch(Engine(path, options), 1, rows("DEAD", 50, range(5)))
    hudi.write(path, rows("second", 2, [10]), {**options, "hoodie.rollback.using.markers": "false"})
    table = HudiTable.open(path)
    assert table.load_timeline().completed_of(Action.ROLLBACK)
    assert not table.load_timeline().pending
    write_ours(path, options, 100, rows("ours", 3, [12]))
    assert not check(table).findings
    for number in range(8):
        write_ours(path, {**options, **UPKEEP}, 101 + number, rows(f"ours{number}", 4 + number, [12]))
    assert min(table.load_timeline().committed_times) > table.load_timeline().completed_of(Action.ROLLBACK)[0].time
    for values in shown(hudi, path):
        assert len(values) == 20
        assert "DEAD" not in values
