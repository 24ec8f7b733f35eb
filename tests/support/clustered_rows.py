"""Rows of tables that tests cluster: `x` and `y` lie in another order than the keys."""

import pyarrow as pa

BY_HAND = {
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.datasource.compaction.async.enable": "false",
    "hoodie.parquet.small.file.limit": "0",
}


def a_batch(numbers, ts, deleted=()):
    """Rows with these numbers as keys, in two partition paths; some of them are deletes."""
    numbers = list(numbers)
    return pa.table(
        {
            "id": [f"k{n}" for n in numbers],
            "p": [f"p{n % 2}" for n in numbers],
            "ts": pa.array([ts] * len(numbers), pa.int64()),
            "x": pa.array([n * 7919 % 1000 for n in numbers], pa.int64()),
            "y": [None if n % 11 == 0 else f"{n * 31 % 97:02d}" for n in numbers],
            "_hoodie_is_deleted": [n in deleted for n in numbers],
        }
    )
