"""Memory of a process that writes more rows than it may hold (`make test-all`)."""

import os
import subprocess
import sys

import pytest

from hudistream import HudiTable

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


LARGE_VALUES = """
import resource
import sys

import numpy as np
import pyarrow as pa

from streaming import ArrowSink
from hudistream import HudiTable

ROWS, WIDTH, AT_ONCE = 560, 4 * 2**20, 20  # 2.2 GiB of text, where an array of Arrow ends at 2 GiB
OFFSETS = pa.py_buffer(np.arange(AT_ONCE + 1, dtype=np.int32) * WIDTH)


def text(number, ts):
    return (f"{number}-{ts}-" * (WIDTH // 4))[:WIDTH]


def batches(ts):
    for first in range(0, ROWS, AT_ONCE):
        numbers = range(first, first + AT_ONCE)
        values = pa.py_buffer("".join(text(number, ts) for number in numbers).encode())
        yield pa.record_batch({"id": pa.array([f"k{number}" for number in numbers]), "ts": pa.array([ts] * AT_ONCE),
                               "v": pa.StringArray.from_buffers(AT_ONCE, OFFSETS, values)})


path, *given = sys.argv[1:]
options = dict(pair.split("=") for pair in given)
with ArrowSink(path, options, key="id", order_by="ts", workers=1) as sink:
    for ts in (1, 2):
        sink.write(pa.RecordBatchReader.from_batches(next(batches(1)).schema, batches(ts)))
found = wrong = 0
for batch in HudiTable.open(path).scan(["id", "v"]).to_batches():
    for key, value in zip(batch["id"].to_pylist(), batch["v"].to_pylist()):
        found, wrong = found + 1, wrong + (value != text(int(key[1:]), 2))
print(found, wrong, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""
LARGE_FILES = ["hoodie.parquet.max.file.size=21474836480"]
LOGS = ["hoodie.datasource.write.table.type=MERGE_ON_READ", "hoodie.bucket.index.num.buckets=1"]


@pytest.mark.parametrize("options", [[], LOGS], ids=["copy-on-write", "merge-on-read"])
def test_more_text_than_an_array_can_hold_goes_into_one_file_group(tmp_path, options):
    command = [sys.executable, "-c", LARGE_VALUES, str(tmp_path / "t"), *LARGE_FILES, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found, wrong, peak = map(int, done.stdout.split())
    print(f"\n{peak / GIB:.2f} GiB at most")
    assert (found, wrong) == (560, 0)
    assert len(set(HudiTable.open(tmp_path / "t").files()["file_id"].to_pylist())) == 1
    assert peak < 5 * GIB
