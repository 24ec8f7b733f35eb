"""Stateful operators upstream of a sink: the table holds what a query without a stop would have given."""

import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from environments import SPARK_4, make_environment, run_program

from hudistream import HudiSink, read_table

pytestmark = pytest.mark.spark


def add(folder, number, **columns):
    """One file, which is one micro-batch."""
    os.makedirs(folder, exist_ok=True)
    pq.write_table(pa.table(columns), f"{folder}/{number}.parquet")


def run(frame, sink, checkpoint):
    """One run of a query over what is there."""
    query = frame.writeStream.foreachBatch(sink).option("checkpointLocation", str(checkpoint))
    query.trigger(availableNow=True).start().awaitTermination()
    sink.stop()


def test_rows_that_were_dropped_as_duplicates_before_a_restart_stay_dropped(spark, tmp_path):
    events, path = str(tmp_path / "events"), str(tmp_path / "t")
    for number, ids in enumerate((["a", "b", "a"], ["b", "c"])):
        add(events, number, id=ids, n=[number] * len(ids))
        frame = spark.readStream.schema("id string, n long").parquet(events).dropDuplicates(["id"])
        run(frame, HudiSink(path, key="id", operation="insert"), tmp_path / "checkpoint")
    rows = read_table(path, columns=["id", "n"]).to_pylist()
    assert sorted((row["id"], row["n"]) for row in rows) == [("a", 0), ("b", 0), ("c", 1)]


def test_two_streams_are_joined_and_upserted(spark, tmp_path):
    orders, payments, path = str(tmp_path / "orders"), str(tmp_path / "payments"), str(tmp_path / "t")
    # the payment of an order comes a run later, and that of another one earlier
    for number, (ordered, paid) in enumerate(((["a", "b"], ["b", "c"]), (["c"], ["a"]))):
        add(orders, number, id=ordered, item=[f"item {one}" for one in ordered])
        add(payments, number, id=paid, cents=[100 * (number + 1)] * len(paid))
        left = spark.readStream.schema("id string, item string").parquet(orders)
        right = spark.readStream.schema("id string, cents long").parquet(payments)
        run(left.join(right, "id"), HudiSink(path, key="id"), tmp_path / "checkpoint")
    rows = read_table(path, columns=["id", "item", "cents"]).to_pylist()
    found = sorted((row["id"], row["item"], row["cents"]) for row in rows)
    assert found == [("a", "item a", 200), ("b", "item b", 100), ("c", "item c", 100)]


@pytest.mark.slow
def test_a_processor_with_state_counts_on_after_a_restart(tmp_path):
    said = run_program(make_environment(*SPARK_4["4.2"]), "spark4_state.py", tmp_path)
    assert json.loads(said.splitlines()[-1]) == [["a", 2], ["b", 2], ["c", 1]]
