"""`HudiSink.write` takes a Spark DataFrame; of anything else it says what to make of it."""

import os

import pyarrow as pa
import pytest

from streaming import HudiSink
from table.errors import InvalidConfigError

OPTIONS = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.operation": "upsert"}


@pytest.mark.parametrize("kind", ["pandas", "arrow", "list", "none"])
def test_what_is_no_spark_dataframe_is_named_with_the_way_out(tmp_path, kind):
    import pandas as pd

    rows, name = {
        "pandas": (pd.DataFrame({"id": ["a"]}), "DataFrame"),
        "arrow": (pa.table({"id": ["a"]}), "pyarrow.lib.Table"),
        "list": ([("a",)], "list"),
        "none": (None, "NoneType"),
    }[kind]
    failures = []
    sink = HudiSink(str(tmp_path / "t"), OPTIONS, on_failure=[failures.append])
    with pytest.raises(InvalidConfigError, match=rf"not a .*{name}: .*spark\.createDataFrame\(rows\)"):
        sink.write(rows)
    assert not os.path.exists(tmp_path / "t")
    assert failures == []
    if kind == "pandas":
        with pytest.raises(InvalidConfigError, match=r"not a pandas\."):
            sink.write(rows)


@pytest.mark.spark
def test_a_streaming_dataframe_is_named_with_the_way_out(spark, tmp_path):
    stream = spark.readStream.format("rate").load().selectExpr("CAST(value AS STRING) id")
    with pytest.raises(InvalidConfigError, match="not streaming: .*foreachBatch"):
        HudiSink(str(tmp_path / "t"), OPTIONS).write(stream)
    assert not os.path.exists(tmp_path / "t")
