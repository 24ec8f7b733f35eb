"""Tables with virtual keys, written by Spark's tasks, and read by Spark and hudi-rs."""

import pytest
from engine import OPTIONS, rows
from oracles import hudi_rs

from streaming import HudiSink
from streaming.spark.read_hudi import read_hudi
from table import UnsupportedTableError, read_table

pytestmark = pytest.mark.spark
UPSERT = {**OPTIONS, "hoodie.datasource.write.operation": "upsert"}


@pytest.mark.parametrize("index", ["BLOOM", "GLOBAL_SIMPLE"])
def test_rows_are_upserted_by_sparks_tasks_and_read_by_spark_and_hudi_rs(spark, tmp_path, index):
    path = str(tmp_path / "t")
    sink = HudiSink(path, {**UPSERT, "hoodie.populate.meta.fields": "false", "hoodie.index.type": index})
    sink.write(spark.createDataFrame(rows(range(20), v="old").to_pandas()))
    sink.write(spark.createDataFrame(rows(range(10, 30), ts=1, v="new").to_pandas()))
    wanted = sorted((f"k{n}", "old" if n < 10 else "new") for n in range(30))
    assert sorted(zip(*(read_table(path)[name].to_pylist() for name in ("id", "v")), strict=True)) == wanted
    assert sorted((row.id, row.v) for row in read_hudi(spark, path).where("p >= 'p0'").collect()) == wanted
    found = hudi_rs.read(path)
    assert sorted(zip(*(found[name].to_pylist() for name in ("id", "v")), strict=True)) == wanted


def test_spark_is_told_that_such_a_table_has_no_changes_since_a_commit(spark, tmp_path):
    path = str(tmp_path / "t")
    HudiSink(path, {**UPSERT, "hoodie.populate.meta.fields": "false"}).write(
        spark.createDataFrame(rows(range(3)).to_pandas())
    )
    with pytest.raises(UnsupportedTableError, match="do not say which commit wrote them"):
        read_hudi(spark, path, since="0").collect()
