"""Delta's own Spark library reads the log over a table's files, and refuses to write."""

import json
import subprocess
import sys

import pyarrow as pa
import pytest

from hudistream import ArrowSink, HudiTable

pytestmark = [pytest.mark.slow]

READS = """
import json, sys
from pyspark.sql import SparkSession
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.jars.packages", "io.delta:delta-spark_2.12:3.3.2")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .getOrCreate()
)
path, refused = sys.argv[1], []
for statement in ("VACUUM {}", "OPTIMIZE {}", "DELETE FROM {} WHERE id = 'k1'", "INSERT INTO {} VALUES ('x', 'd', 1)"):
    try:
        spark.sql(statement.format(f"delta.`{path}`"))
    except Exception as error:
        refused.append("DELTA_UNSUPPORTED_FEATURES_FOR_WRITE" in str(error))
rows = [row.asDict() for row in spark.read.format("delta").load(path).collect()]
print(json.dumps({"rows": rows, "refused": refused}))
"""


def test_delta_on_spark_reads_the_rows_and_writes_none(tmp_path):
    path = str(tmp_path / "t")
    # several files in each path: else OPTIMIZE has nothing to do
    options = {"hudistream.manifest.for": "delta", "hoodie.parquet.small.file.limit": "0"}
    with ArrowSink(path, options, key="id", partition_by="d", order_by="ts") as sink:
        for number in range(12):
            ids = range(number, number + 20)
            paths = [f"a b%{n % 3}" for n in ids]
            sink.write(pa.table({"id": [f"k{n}" for n in ids], "d": paths, "ts": [number] * 20}))
    done = subprocess.run([sys.executable, "-c", READS, path], capture_output=True, text=True, timeout=600, check=True)
    said = json.loads(done.stdout.splitlines()[-1])
    wanted = HudiTable.open(path).scan().to_arrow().to_pylist()
    assert sorted(map(repr, said["rows"])) == sorted(map(repr, wanted))
    assert said["refused"] == [True] * 4
