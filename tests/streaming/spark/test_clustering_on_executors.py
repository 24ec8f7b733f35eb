"""A stream's clustering runs on the executors if its plan is large; and a stream beside a clustering of others."""

import pytest
from clustered_rows import plan_elsewhere
from tiers import quick

from hudistream import HudiTable
from streaming import HudiSink
from streaming.spark import spread
from table import WriteConflictError, read_table
from table.hudi_table import HudiTable as Bare
from table.options.write_options import WriteOptions
from table.services.clustering.command import execute_planned

pytestmark = pytest.mark.spark


def test_groups_are_clustered_by_tasks(spark, tmp_path, monkeypatch):
    asked, inner = [], spread._run
    monkeypatch.setattr(spread, "_run", lambda *given: asked.append(given[-1]) or inner(*given))
    path = str(tmp_path / "t")
    options = {
        "hoodie.clustering.inline": "true",
        "hoodie.clustering.inline.max.commits": "3",
        "hoodie.clustering.plan.strategy.sort.columns": "x,y",
        "hoodie.layout.optimize.strategy": "hilbert",
        "hoodie.parquet.small.file.limit": "0",
        "hudistream.clustering.executors.from.mb": "0",
    }
    sink = HudiSink(path, options, key="id", partition_by="p", order_by="ts")
    for batch in range(4):
        sink.write(
            spark.range(batch * 100, batch * 100 + 150).selectExpr(
                "id", "concat('p', id % 2) p", f"{batch} ts", "id * 7919 % 1000 x", "id * 31 % 97 y"
            )
        )
    sink.stop()
    assert asked == [2]  # a group for each partition path
    table = HudiTable.open(path)
    done = [row for row in table.history().to_pylist() if row["action"] == "replacecommit"]
    assert len(done) == 1
    assert sorted(read_table(path).column("id").to_pylist()) == list(range(450))
    assert table.check().is_sound


@pytest.mark.slow
@pytest.mark.parametrize("version", quick(1, ["9", "6"]))
def test_batches_go_on_beside_a_clustering_that_another_engine_planned(spark, tmp_path, version):
    path = str(tmp_path / "t")
    sink = HudiSink(path, {"hoodie.write.table.version": version}, key="id", partition_by="p", order_by="ts")

    def write(first, end, ts, **named):
        rows = spark.range(first, end).selectExpr("id", "concat('p', id % 2) p", f"{ts} ts", "id * 7919 % 1000 x")
        sink.write(rows, **named)

    write(0, 100, 0)
    planned = plan_elsewhere(path, "p0")
    write(100, 130, 1, operation="insert")
    write(130, 150, 2)
    with pytest.raises(WriteConflictError, match=f"pending clustering {planned.time} replaces"):
        write(90, 95, 3)
    execute_planned(Bare.open(path), WriteOptions().file_settings)
    write(90, 95, 4)
    sink.stop()
    found = {row["id"]: row["ts"] for row in read_table(path, columns=["id", "ts"]).to_pylist()}
    expected = dict.fromkeys(range(100), 0) | dict.fromkeys(range(90, 95), 4)
    assert found == expected | dict.fromkeys(range(100, 130), 1) | dict.fromkeys(range(130, 150), 2)
    assert HudiTable.open(path).check().is_sound
