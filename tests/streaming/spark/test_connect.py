"""Sink and reader unchanged under Spark Connect: a local Spark 4 Connect server, in an environment of its own."""

import os

import pytest
from environments import SPARK_4, make_environment, run_program
from stream import write_batches

from hudistream import HudiTable
from table import read_table
from table.snapshot import Snapshot
from table.timeline.instant import Action


@pytest.fixture(scope="module", params=["4.2", pytest.param("4.0", marks=pytest.mark.slow)])
def python(request):
    """A Python with Spark 4 and Connect; made once beside this one."""
    return make_environment(*SPARK_4[request.param])


def run(python, *folders, program="connect_stream.py"):
    said = run_program(python, program, *folders)
    return dict(line.split(" ", 1) for line in said.splitlines() if line.split(" ", 1)[0].isupper())


@pytest.mark.spark
def test_the_sink_unchanged_under_spark_connect(python, tmp_path):
    folder, table, checkpoint = (str(tmp_path / name) for name in ("in", "t", "c"))
    write_batches(folder, 3)
    said = run(python, folder, table, checkpoint)
    assert said["SESSION"].startswith("pyspark.sql.connect")
    assert said["QUERY"].endswith("None")
    assert (said["WRITE"], said["COUNT"]) == ("10", "160")
    assert said["FORMAT"] == "160 1"
    assert said["DRIVER"] == "10"
    assert said["WHERE"] == "k7 k7 k7 10"
    # ten of the twenty move to another partition path: two exchanges
    assert said["UPSERT"] == "20 10"
    assert said["COLLATED"] == "0"  # both partition paths are deleted
    assert said["FAILED"] == "p9 True PythonException"
    assert "checkpoint.location is empty" in said["EMPTY"]
    assert "not at batch 2: the batch is of another query" in said["OTHER"]
    assert "hudistream.checkpoint.location" in said["WITHOUT"]
    keys = read_table(table).column("id").to_pylist()
    assert sorted(key for key in keys if int(key[1:]) < 1000) == sorted(f"k{n}" for n in range(150))


@pytest.mark.slow
@pytest.mark.spark
def test_a_batch_replayed_under_spark_connect_is_there_once(python, tmp_path):
    folder, table, checkpoint = (str(tmp_path / name) for name in ("in", "t", "c"))
    write_batches(folder, 3)
    run(python, folder, table, checkpoint)
    # the last batch is replayed, two new ones follow
    for name in ("2", ".2.crc"):
        os.remove(os.path.join(checkpoint, "commits", name))
    write_batches(folder, 2, first=3)
    assert run(python, folder, table, checkpoint)["COUNT"] == str(5 * 50 + 20 + 10)
    keys = read_table(table).column("id").to_pylist()
    assert sorted(key for key in keys if int(key[1:]) < 1000) == sorted(f"k{n}" for n in range(250))


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("inline", ["true", "false"])
def test_a_merge_on_read_stream_compacts_on_the_executors_of_spark_connect(python, tmp_path, inline):
    folder, table, checkpoint = (str(tmp_path / name) for name in ("in", "t", "c"))
    write_batches(folder, 5)
    assert run(python, folder, table, checkpoint, inline, program="connect_compaction.py")["QUERY"] == "None"
    timeline = HudiTable.open(table).load_timeline()
    compactions = timeline.completed_of(Action.COMMIT)
    assert len(compactions) >= 2
    assert all(len(Snapshot.load(HudiTable.open(table)).commits.read(one).stats) == 3 for one in compactions)
    assert not timeline.pending
    newest = {f"k{number % 70}": number for number in range(250)}
    assert {row["id"]: row["ts"] for row in read_table(table, ["id", "ts"]).to_pylist()} == newest
