"""What a query reads of a table that was clustered, by layout: `python benchmarks/clustering.py`.

20 batches of new rows in the order of chance lie in one partition path. Then the table is clustered by (x, y), a copy
for each layout. A query takes 1 % of the values of one column. Its share is what `explain` leaves: row groups that the
statistics do not rule out, of all row groups.
"""

import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from hudistream import ArrowSink, ClusteringSettings, HudiTable
from table.options.groups import BaseFileSettings

BATCHES, ROWS, MOST = 20, 100_000, 1_000_000
RESULT = Path(__file__).parent / "results" / "clustering.json"
MB = 1024 * 1024


def write(path):
    """The table, as batches of chance leave it."""
    luck = np.random.default_rng(1)
    options = {"hoodie.parquet.small.file.limit": "0", "hoodie.clean.automatic": "false",
               "hoodie.parquet.block.size": str(MB)}  # fmt: skip
    with ArrowSink(path, options, key="id", operation="insert") as sink:
        for batch in range(BATCHES):
            numbers = {name: luck.integers(0, MOST, ROWS) for name in ("x", "y", "z")}
            ids = [f"{batch}-{n}" for n in range(ROWS)]
            text = [f"{a:07d}-{b:07d}" for a, b in zip(numbers["x"].tolist(), numbers["z"].tolist(), strict=True)]
            sink.write(pa.table({"id": ids, **numbers, "text": text}), batch)


def measure(path):
    """Shares and seconds of the two queries."""
    found = {}
    for column in ("x", "y"):
        scan = HudiTable.open(path).scan(["id", "z"], where=[(column, ">=", 400_000), (column, "<", 410_000)])
        told = scan.explain()
        began = time.perf_counter()
        rows = scan.to_arrow().num_rows
        seconds = time.perf_counter() - began
        table = HudiTable.open(path).scan(["id"], where=[("z", ">=", 0)]).explain()
        left = told.row_groups - told.row_groups_pruned
        found[column] = {"rows": rows, "share": round(left / table.row_groups, 4), "seconds": round(seconds, 3)}
    return found


def main():
    """Writes, clusters, measures, and writes benchmarks/results/clustering.json."""
    folder = Path(tempfile.mkdtemp())
    try:
        first = folder / "first"
        write(str(first))
        size = sum(file.stat().st_size for file in first.rglob("*.parquet"))
        result = {"rows": BATCHES * ROWS, "MB": round(size / MB, 1), "as batches leave it": measure(str(first))}
        for layout in ("linear", "z-order", "hilbert"):
            path = str(folder / layout)
            shutil.copytree(first, path)
            began = time.perf_counter()
            done = HudiTable.open(path).cluster(
                ["x", "y"], layout, settings=ClusteringSettings(target_bytes=8 * MB),
                base_file=BaseFileSettings(row_group_bytes=MB),
            )  # fmt: skip
            seconds = round(time.perf_counter() - began, 2)
            result[layout] = {"clustered_in_s": seconds, "files": done.files_after, **measure(path)}
            print(layout, result[layout], file=sys.stderr)
        RESULT.write_text(json.dumps(result, indent=1) + "\n")
        print(json.dumps(result, indent=1))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
