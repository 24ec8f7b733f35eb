"""What the jobs of the cluster tests read, and what their tables hold at the end."""

import os
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from table import read_table

JOB = Path(__file__).with_name("cluster_job.py")


def write_source(folder, batches, rows=400, keys=1500):
    """Files of one batch each; and what the table holds at the end."""
    luck, held = random.Random(5), {}
    folder.mkdir()
    for number in range(batches):
        chosen = luck.sample(range(keys), rows)
        table = pa.table(
            {
                "id": [f"k{n}" for n in chosen],
                "p": [f"p{n % 3}" for n in chosen],
                "ts": pa.array([number] * rows, pa.int64()),
                "v": [f"{number}-{n}" for n in chosen],
            }
        )
        held.update({f"k{n}": f"{number}-{n}" for n in chosen})
        file = folder / f"{number:05d}.parquet"
        pq.write_table(table, file)
        os.utime(file, (1e9 + number, 1e9 + number))
    return held


def values(table):
    """The value of each key; a key that is there twice is a failure."""
    found = read_table(table).select(["id", "v"]).to_pylist()
    assert len({row["id"] for row in found}) == len(found), "a key is there twice"
    return {row["id"]: row["v"] for row in found}
