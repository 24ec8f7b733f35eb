"""One stream and its reader on each PySpark that is supported, classic and Connect. `VERSIONS=4.2,4.3` chooses."""

import os

import pytest
from cluster import make_environment
from cluster_source import JOB, values, write_source
from environments import run_program
from stores import INSTALLED
from stream import write_batches

from hudistream import HudiTable
from table import read_table

pytestmark = [pytest.mark.slow, pytest.mark.places]
WITHOUT_SPARK = ["pyarrow", "pandas<3", "fastavro", "fsspec", "structlog", "numpy"]
CONNECTS_PACKAGES = ["grpcio", "grpcio-status", "googleapis-common-protos", "setuptools<81"]
VERSIONS = os.environ.get("VERSIONS", "3.5,4.0,4.1,4.2,4.3").split(",")
# Spark 3.5 brings Connect as a JAR of its own
CONNECT_OF_35 = {"PYSPARK_SUBMIT_ARGS": "--packages org.apache.spark:spark-connect_2.12:3.5.7 pyspark-shell"}


@pytest.fixture(scope="module", params=VERSIONS)
def pyspark(request):
    """(version, its Python)."""
    version = request.param
    # the extra of 3.5 wants a numpy that pyarrow of today does not take
    spark = [f"pyspark[connect]=={version}.*"] if version != "3.5" else ["pyspark==3.5.*", *CONNECTS_PACKAGES]
    folder = INSTALLED / f"pyspark-{version}"
    python = make_environment(folder, *spark, *WITHOUT_SPARK, constrained=False)
    return version, python


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_stream_of_upserts(pyspark, tmp_path, table_type):
    _, python = pyspark
    held = write_source(tmp_path / "in", 6)
    options = f'{{"hoodie.datasource.write.table.type": "{table_type}", "hoodie.clean.commits.retained": "2"}}'
    told = run_program(str(python), JOB, tmp_path / "in", tmp_path / "t", tmp_path / "c", "0", options)
    assert told.count("BATCH") == 6
    assert values(tmp_path / "t") == held
    assert HudiTable.open(tmp_path / "t").check().is_sound


def test_a_stream_under_connect(pyspark, tmp_path):
    version, python = pyspark
    folder, table, checkpoint = (str(tmp_path / name) for name in ("in", "t", "c"))
    write_batches(folder, 3)
    connects = CONNECT_OF_35 if version == "3.5" else {}
    told = run_program(str(python), "connect_stream.py", folder, table, checkpoint, **connects)
    said = dict(line.split(" ", 1) for line in told.splitlines() if line.split(" ", 1)[0].isupper())
    assert said["SESSION"].startswith("pyspark.sql.connect")
    assert (said["WRITE"], said["COUNT"], said["WHERE"]) == ("10", "160", "k7 k7 k7 10")
    keys = read_table(table).column("id").to_pylist()
    assert sorted(key for key in keys if int(key[1:]) < 1000) == sorted(f"k{n}" for n in range(150))
