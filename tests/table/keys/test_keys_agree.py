"""Record keys and partition paths, text by text, against what Hudi 1.0.2 makes of the same rows."""

import glob
import shutil
from collections import Counter

import pyarrow.parquet as pq
import pytest
from key_cases import CASES, CUSTOM, ROWS

from streaming import ArrowSink, HudiSink

pytestmark = [pytest.mark.hudi, pytest.mark.spark, pytest.mark.usefixtures("utc")]


def keys_of(path):
    """Number of the row -> (record key, partition path), from the files alone."""
    found = {}
    for file in glob.glob(f"{path}/**/*.parquet", recursive=True):
        columns = ["n", "_hoodie_record_key", "_hoodie_partition_path"]
        for row in pq.ParquetFile(file).read(columns).to_pylist():
            found[row["n"]] = (row["_hoodie_record_key"], row["_hoodie_partition_path"])
    return found


def properties_of(path):
    with open(f"{path}/.hoodie/hoodie.properties") as file:
        lines = [line.strip().replace("\\:", ":") for line in file if not line.startswith("#")]
    wanted = ("keygen.timebased", "recordkey.fields", "partition.fields", "keygenerator.type")
    return sorted(line for line in lines if any(name in line for name in wanted))


def with_times(properties, keygen, options):
    """Hudi keeps no times for the custom key generator. Tables of ours keep them, as those of its timestamp one do."""
    times = (f"{key}={value}" for key, value in options.items() if ".keygen.timebased." in key and keygen == CUSTOM)
    return sorted({*properties, *times})


def quick_first(cases):
    """The first cases of two generators are quick: each case writes four tables."""
    seen, chosen = Counter(), []
    for case in cases:
        seen[case[0]] += 1
        is_quick = seen[case[0]] == 1 and case[0] in ("SimpleKeyGenerator", "NonpartitionedKeyGenerator")
        marks = () if is_quick else pytest.mark.slow
        chosen.append(pytest.param(*case, id=f"{case[0]}-{case[1]}-{case[2]}", marks=marks))
    return chosen


@pytest.mark.parametrize(("keygen", "key", "partition", "options"), quick_first(CASES))
def test_keys_and_paths_are_spelled_as_hudi_does(hudi, spark, tmp_path, keygen, key, partition, options):
    given = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": key,
        "hoodie.datasource.write.partitionpath.field": partition,
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.keygenerator.class": f"org.apache.hudi.keygen.{keygen}",
        "hoodie.datasource.write.operation": "insert",
        **options,
    }
    theirs, ours, rows = str(tmp_path / "theirs"), str(tmp_path / "ours"), str(tmp_path / "rows.parquet")
    hudi.write(theirs, ROWS, given)
    pq.write_table(ROWS, rows)
    HudiSink(ours, given)(spark.read.parquet(rows), 0)
    assert keys_of(ours) == keys_of(theirs)
    assert len(keys_of(ours)) == 3
    ArrowSink(tmp_path / "arrow", given).write(ROWS, batch_id=0)
    assert keys_of(tmp_path / "arrow") == keys_of(theirs)
    assert properties_of(tmp_path / "arrow") == with_times(properties_of(theirs), keygen, options)
    assert properties_of(ours) == with_times(properties_of(theirs), keygen, options)
    # and in their table we go on, with the fields it says
    HudiSink(theirs, {k: v for k, v in given.items() if keygen == CUSTOM or "field" not in k})(
        spark.read.parquet(rows), 0
    )
    assert keys_of(theirs) == keys_of(ours)
    shutil.rmtree(tmp_path)
