"""How many requests a steady batch sends to S3, by kind, against moto: `python benchmarks/s3_requests.py`."""

import logging
import sys
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tests" / "support")]

import s3fs
import structlog
from engine import Engine, rows
from moto.server import ThreadedMotoServer

from table.storage.opening import open_storage

BATCHES = 8


def count(options, storage, operation):
    """Requests of one steady batch: the fewest of the last three, which have the same work to do."""
    asked = Counter()
    fs = storage._fs
    call = fs._call_s3

    async def counted(method, *args, **kwargs):
        asked[method] += 1
        return await call(method, *args, **kwargs)

    original = s3fs.S3FileSystem._call_s3

    async def everywhere(self, method, *args, **kwargs):
        asked[method] += 1
        return await original(self, method, *args, **kwargs)

    s3fs.S3FileSystem._call_s3 = everywhere
    s3fs.S3FileSystem.call_s3 = s3fs.core.sync_wrapper(everywhere)
    engine = Engine(storage, {"hoodie.datasource.write.operation": operation})
    seen = []
    for number in range(BATCHES):
        asked.clear()
        engine.write(number, rows(range(10 * number, 10 * number + 20) if operation == "upsert" else range(20)))
        seen.append(dict(asked))
    s3fs.S3FileSystem._call_s3 = original
    return min(seen[-3:], key=lambda one: sum(one.values()))


def main():
    """Prints the figures."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    options = {
        "key": "test",
        "secret": "test",
        "client_kwargs": {"endpoint_url": f"http://{host}:{port}", "region_name": "eu-west-1"},
    }
    s3fs.S3FileSystem(**options).mkdir("lake")
    for operation in ("insert", "upsert"):
        found = count(options, open_storage(f"s3a://lake/{operation}", options), operation)
        print(operation, sum(found.values()), dict(sorted(found.items())))
    server.stop()


if __name__ == "__main__":
    main()
