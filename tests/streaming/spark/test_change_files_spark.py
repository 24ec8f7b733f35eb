"""Change files that Spark's workers write: the settings travel with the plan of a task."""

from pathlib import Path

import pytest
from change_files import records_of

from hudistream import HudiSink, HudiTable

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_batch_of_spark_tells_what_it_changed(spark, tmp_path, kind):
    path = str(tmp_path / "t")
    options = {"hoodie.table.cdc.enabled": "true", "hoodie.datasource.write.table.type": kind}
    sink = HudiSink(path, options, key="id", order_by="ts")
    sink(spark.sql("SELECT 'k' || id id, 1L ts, 'old' v FROM range(4)"), 0)
    changed = spark.sql("SELECT 'k' || id id, 2L ts, 'new' v FROM range(3, 6)")
    sink(changed, 1)
    sink.stop()
    [file] = Path(path).rglob("*.cdc")
    found = sorted((one["op"], one["after"]["id"], one["before"] and one["before"]["v"]) for one in records_of(file))
    # new rows fill the small file, also of a merge-on-read table, and changed ones go into it with them
    assert found == [("i", "k4", None), ("i", "k5", None), ("u", "k3", "old")]
    assert HudiTable.open(path).check().is_sound
