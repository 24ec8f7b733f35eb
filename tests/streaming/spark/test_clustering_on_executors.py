"""A stream's clustering runs on the executors if its plan is large."""

import pytest

from streaming import HudiSink
from streaming.spark import spread
from table import read_table
from table.user_table import HudiTable

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
