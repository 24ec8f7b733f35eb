"""How long a steady batch waits for a slow object store, and for what: `python benchmarks/waits.py [paths …]`.

Moto's S3 runs in a process of its own, and every request takes 20 ms more (`LATENCY_MS`). A step is a request that
waits for the one before it. Rows are visible with the request that puts the completed file; the batch ends a little
later. The program fails where a batch of one file needs more steps than `MOST_STEPS`.
"""

import asyncio
import logging
import os
import re
import socket
import subprocess
import sys
import time
from contextvars import ContextVar
from pathlib import Path
from statistics import median

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tests" / "support")]

import pyarrow as pa
import s3fs
import structlog

from hudistream import ArrowSink
from table import threads

LATENCY_S, BATCHES, ROWS = int(os.environ.get("LATENCY_MS", "20")) / 1000, 7, 2000
MOST_STEPS = 15  # until a batch of one file is visible
COMPLETED = re.compile(r"(?<!metadata/)\.hoodie/(timeline/)?\d{17}(_\d{17})?\.(commit|deltacommit)$")
KINDS = {
    "alone": {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"},
    "with services": {
        "hoodie.clean.commits.retained": "1",
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
    },
}
PATHS = tuple(map(int, sys.argv[1:])) or (1, 8, 100)
IS_BESIDE = ContextVar("IS_BESIDE", default=False)  # whether a thread asks that no batch waits for


class Watch:
    """Delays every request of this process, and notes when it began and ended."""

    def __init__(self):
        self.seen, self.beside = [], 0
        original, start = s3fs.S3FileSystem._call_s3, threads.start_thread

        async def slow(fs, method, *args, **kwargs):
            begun, is_beside = time.perf_counter(), IS_BESIDE.get()
            await asyncio.sleep(LATENCY_S)
            try:
                return await original(fs, method, *args, **kwargs)
            finally:
                key = kwargs.get("Key") or kwargs.get("Prefix") or ""
                self.beside += is_beside
                if not is_beside:
                    self.seen.append((begun, time.perf_counter(), method, key))

        def start_beside(target, name, *, daemon=False):
            return start(lambda: (IS_BESIDE.set(True), target()), name, daemon=daemon)

        threads.start_thread = start_beside
        s3fs.S3FileSystem._call_s3 = slow
        s3fs.S3FileSystem.call_s3 = s3fs.core.sync_wrapper(slow)

    def chain(self):
        """The requests that follow one another until the completed file is there."""
        return chain_to(self.seen, next(one for one in self.seen if COMPLETED.search(one[3]) and "put" in one[2]))


def chain_to(seen, last):
    """The requests that follow one another, ending with a certain one.

    Args:
        seen: (begun, ended, method, key) of each request.
        last: one of them.
    """
    found, now = [], last
    while now is not None:
        found.append(now)
        before = [one for one in seen if one[1] <= now[0] + 1e-4]
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


def measure(path, options, watch, operation, paths, settings):
    """Seconds of the steady batches, requests of the last one and those beside it, and the shortest chain of one."""
    seconds, chains = [], []
    columns = {"key": "id", "partition_by": "p", "order_by": "ts", "operation": operation}
    with ArrowSink(path, settings, options, workers=1, **columns) as sink:
        for number in range(BATCHES):
            rows = batch(number, paths, operation)
            watch.seen.clear()
            watch.beside = 0
            begun = time.perf_counter()
            sink.write(rows, batch_id=number)
            seconds.append(time.perf_counter() - begun)
            chains.append((watch.chain(), begun))
            sink._writer._cleanup.wait()  # deletes markers beside the next batch
            requests = len(watch.seen), watch.beside
    return seconds[2:], requests, *min(chains[2:], key=lambda one: len(one[0]))


def main():
    """Prints the figures. Returns 1 where a batch of one file needs more steps than it may."""
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
        watch, is_longer = Watch(), False
        asked = [(paths, operation, "alone") for paths in PATHS for operation in ("insert", "upsert")]
        for paths, operation, kind in [*asked, (min(PATHS), "upsert", "with services")]:
            path = f"s3a://lake/{operation}-{paths}-{kind.split()[0]}"
            seconds, requests, chain, begun = measure(path, options, watch, operation, paths, KINDS[kind])
            print(
                f"{operation} into {paths} paths {kind}: {median(seconds):.2f} s ({min(seconds):.2f} to "
                f"{max(seconds):.2f}), {requests[0]} requests and {requests[1]} beside, visible after "
                f"{len(chain)} steps",
                flush=True,
            )
            is_longer |= paths == 1 and len(chain) > MOST_STEPS
            if "SHOW" in os.environ:
                for start, end, method, key in chain:
                    print(f"  {(start - begun) * 1000:6.0f} {(end - begun) * 1000:6.0f} {method:24} {key[-80:]}")
    finally:
        server.kill()
    return int(is_longer)


if __name__ == "__main__":
    sys.exit(main())
