"""A file group with a base file of more than 120 MB and large log files, none of which compresses."""

import numpy as np
import pyarrow as pa
from engine import Engine

from hudistream import HudiTable

BASE_ROWS, LOG_ROWS = 1_000_000, 200_000
OPTIONS = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.compact.inline": "false",
    "hoodie.datasource.compaction.async.enable": "false",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.parquet.max.file.size": str(1 << 30),
}


def wide(numbers, ts):
    """Rows of about 280 bytes that do not compress."""
    noise = np.random.default_rng(ts)
    texts = [pa.array([noise.bytes(24).hex() for _ in range(len(numbers))]) for _ in range(5)]
    keys = pa.array([f"k{number:08d}" for number in numbers])
    columns = {"id": keys, "ts": pa.array([ts] * len(numbers), pa.int64())}
    return pa.table({**columns, **{f"c{n}": text for n, text in enumerate(texts)}})


def write_large_slice(path, form, logs):
    """Writes the table; bytes of the base file and of all log files."""
    engine = Engine(path, {**OPTIONS, "hoodie.logfile.data.block.format": form}, batch_rows=100_000)
    engine.write(None, wide(range(BASE_ROWS), 0))
    for number in range(logs):
        keys = range(number * 50_000, number * 50_000 + LOG_ROWS)
        engine.write(None, wide(keys, number + 1))
    engine.writer.stop()
    files = HudiTable.open(path).files().to_pylist()
    assert len({file["file_id"] for file in files}) == 1
    base, log = (sum(file["size_bytes"] for file in files if file["kind"] == kind) for kind in ("base", "log"))
    assert base > 120e6
    return base, log
