"""How long a steady batch waits for a slow object store, and for what: `python benchmarks/waits.py [paths …]`.

Moto's S3 runs in a process of its own, and every request takes 20 ms more. The chain is the requests that follow one
another until the batch ends: a faster batch needs a shorter one.
"""

import asyncio
import logging
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tests" / "support")]

import pyarrow as pa
import s3fs
import structlog

from hudistream import ArrowSink

LATENCY_S, BATCHES, ROWS = 0.02, 7, 2000


class Watch:
    """Delays every request of this process, and notes when it began and ended."""

    def __init__(self):
        self.seen = []
        original = s3fs.S3FileSystem._call_s3

        async def slow(fs, method, *args, **kwargs):
            begun = time.perf_counter()
            await asyncio.sleep(LATENCY_S)
            try:
                return await original(fs, method, *args, **kwargs)
            finally:
                self.seen.append((begun, time.perf_counter(), method, kwargs.get("Key") or kwargs.get("Prefix") or ""))

        s3fs.S3FileSystem._call_s3 = slow
        s3fs.S3FileSystem.call_s3 = s3fs.core.sync_wrapper(slow)

    def chain(self):
        """The requests that follow one another, ending with the last one."""
        found, now = [], max(self.seen, key=lambda one: one[1], default=None)
        while now is not None:
            found.append(now)
            before = [one for one in self.seen if one[1] <= now[0] + 1e-4]
            now = max(before, key=lambda one: one[1], default=None)
        return found[::-1]


def batch(number, paths, operation):
    first = number * ROWS if operation == "insert" else number * ROWS // 2
    keys = range(first, first + ROWS)
    return pa.table(
        {
            "id": [f"k{key}" for key in keys],
            "p": [f"p{key % paths}" for key in keys],
            "ts": pa.array([number] * ROWS, pa.int64()),
            "v": [f"value {key}" for key in keys],
        }
    )


def measure(path, options, watch, operation, paths):
    """Seconds of the steady batches, and the requests and the chain of the last one."""
    seconds = []
    quiet = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
    columns = {"key": "id", "partition_by": "p", "order_by": "ts", "operation": operation}
    with ArrowSink(path, quiet, options, workers=1, **columns) as sink:
        for number in range(BATCHES):
            rows = batch(number, paths, operation)
            watch.seen.clear()
            begun = time.perf_counter()
            sink.write(rows, batch_id=number)
            seconds.append(time.perf_counter() - begun)
        requests, chain = len(watch.seen), watch.chain()  # before the sink gives the lease back
    return seconds[2:], requests, chain, begun


def main():
    """Prints the figures."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-m", "moto.server", "-p", str(port)], stdout=-3, stderr=-3)
    options = {
        "key": "test",
        "secret": "test",
        "client_kwargs": {"endpoint_url": f"http://127.0.0.1:{port}", "region_name": "eu-west-1"},
    }
    try:
        for _ in range(60):
            try:
                s3fs.S3FileSystem(**options, skip_instance_cache=True).mkdir("lake")
                break
            except Exception:
                time.sleep(0.5)
        watch = Watch()
        for paths in map(int, sys.argv[1:] or ("1", "8", "100")):
            for operation in ("insert", "upsert"):
                path = f"s3a://lake/{operation}-{paths}"
                seconds, requests, chain, begun = measure(path, options, watch, operation, paths)
                print(
                    f"{operation} into {paths} paths: {median(seconds):.2f} s ({min(seconds):.2f} to "
                    f"{max(seconds):.2f}), {requests} requests, {len(chain)} one after another"
                )
                if "SHOW" in os.environ:
                    for start, end, method, key in chain:
                        print(f"  {(start - begun) * 1000:6.0f} {(end - begun) * 1000:6.0f} {method:24} {key[-80:]}")
    finally:
        server.kill()


if __name__ == "__main__":
    main()
