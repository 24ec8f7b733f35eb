"""Batches with ids from plain Python, without Spark: run it twice, and the second run skips what is there."""

import tempfile

import pyarrow as pa

from hudistream import ArrowSink, HudiTable

PATH = tempfile.gettempdir() + "/hudistream-arrow-writer"


def orders(number: int) -> pa.Table:
    """What a consumer would take from a queue: the same rows for the same number."""
    keys = range(number * 500, number * 500 + 1000)  # half of them are in the batch before
    return pa.table({"id": [f"o-{key}" for key in keys], "day": [f"d{key % 3}" for key in keys], "ts": [number] * 1000})


with ArrowSink(PATH, key="id", partition_by="day", order_by="ts") as sink:
    for number in range(5):
        summary = sink.write(orders(number), batch_id=number)
        print(f"batch {number}: {'skipped' if summary.skipped else summary.short}")

print(f"{HudiTable.open(PATH).scan(['id']).to_arrow().num_rows} orders at {PATH}")
