"""Memory of a process that writes more rows than it may hold (`make test-all`)."""

import os
import subprocess
import sys

import pytest

from table import HudiTable

pytestmark = pytest.mark.slow

GIB = 1024**3
WRITER = """
import resource
import sys

import numpy as np
import pyarrow as pa

from streaming import ArrowSink

ROWS, AT_ONCE, WIDTH = 1_500_000, 20_000, 1000


def batches():
    random = np.random.default_rng(1)
    offsets = pa.py_buffer(np.arange(AT_ONCE + 1, dtype=np.int32) * WIDTH)
    for first in range(0, ROWS, AT_ONCE):
        numbers = np.arange(first, first + AT_ONCE)
        random.shuffle(numbers)
        noise = random.integers(0, 128, AT_ONCE * WIDTH, np.uint8)  # nothing that compresses
        text = pa.StringArray.from_buffers(AT_ONCE, offsets, pa.py_buffer(noise))
        yield pa.record_batch({"id": pa.array(numbers).cast(pa.string()), "p": pa.array(numbers % 8).cast(pa.string()),
                               "ts": pa.array(np.full(AT_ONCE, 1)), "v": text})


path = sys.argv[1]
options = {"hoodie.clean.automatic": "false"}
with ArrowSink(path, options, key="id", partition_by="p", order_by="ts", operation="insert", workers=2) as sink:
    written = sink.write(pa.RecordBatchReader.from_batches(next(batches()).schema, batches()), batch_id=0)
print(written.rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def test_one_and_a_half_gigabytes_through_a_reader_stay_within_their_bound(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", WRITER, str(tmp_path / "t")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    written, peak = map(int, done.stdout.split())
    print(f"\n{written} rows, {peak / GIB:.2f} GiB at most")
    assert written == 1_500_000
    assert sum(batch.num_rows for batch in HudiTable.open(tmp_path / "t").scan(["id"]).to_batches()) == written
    assert peak < 1.3 * GIB
    assert os.listdir(tmp_path) == ["t"]
