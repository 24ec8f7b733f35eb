"""The memory that a slice with large log files takes: bounded, whatever the log files hold."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pyarrow as pa
import pytest
from engine import Engine

from table import HudiTable

BASE_ROWS, LOG_ROWS, LOGS = 1_000_000, 200_000, 8
OPTIONS = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.compact.inline": "false",
    "hoodie.datasource.compaction.async.enable": "false",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.parquet.max.file.size": str(1 << 30),
}
MOST_MIB = 512


def wide(numbers, ts):
    """Rows of about 280 bytes that do not compress."""
    noise = np.random.default_rng(ts)
    texts = [pa.array([noise.bytes(24).hex() for _ in range(len(numbers))]) for _ in range(5)]
    keys = pa.array([f"k{number:08d}" for number in numbers])
    columns = {"id": keys, "ts": pa.array([ts] * len(numbers), pa.int64())}
    return pa.table({**columns, **{f"c{n}": text for n, text in enumerate(texts)}})


@pytest.mark.slow
@pytest.mark.parametrize("form", ["avro", "parquet"])
def test_a_slice_of_120_mb_and_200_mb_of_logs_is_read_within_512_mib(tmp_path, form):
    path = str(tmp_path / "t")
    options = {**OPTIONS, "hoodie.logfile.data.block.format": form}
    engine = Engine(path, options, batch_rows=100_000)
    engine.write(None, wide(range(BASE_ROWS), 0))
    for number in range(LOGS):
        keys = range(number * 50_000, number * 50_000 + LOG_ROWS)
        engine.write(None, wide(keys, number + 1))
    engine.writer.stop()
    files = HudiTable.open(path).files().to_pylist()
    sizes = {kind: sum(file["size_bytes"] for file in files if file["kind"] == kind) for kind in ("base", "log")}
    assert len({file["file_id"] for file in files}) == 1
    assert sizes["base"] > 120e6
    assert sizes["log"] > 200e6
    program = f"""
        from pathlib import Path
        from table import HudiTable
        rows = sum(len(batch) for batch in HudiTable.open({path!r}).scan().to_batches())
        peak = int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) // 1024
        print(rows, peak)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True, env=os.environ
    )
    rows, peak_mib = map(int, done.stdout.split())
    assert rows == BASE_ROWS
    assert peak_mib < MOST_MIB
