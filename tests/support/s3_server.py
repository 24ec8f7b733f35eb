"""A server that speaks S3, in this process."""

import functools
import threading
import urllib.request
from contextlib import contextmanager

from needs import require

_ONE_PUT = threading.Lock()


def _put_one_at_a_time():
    """Makes conditional writes of moto's server as exclusive as those of S3.

    It looks for the object and stores it in two steps, in a thread for each request.
    """
    responses = require("moto.s3.responses").S3Response
    put = responses.put_object
    if hasattr(put, "__wrapped__"):
        return

    @functools.wraps(put)
    def alone(self):
        with _ONE_PUT:
            return put(self)

    responses.put_object = alone


@contextmanager
def serve_s3():
    """Yields the address of a server with an empty bucket `lake` and nothing else: moto's servers share their state."""
    server = require("moto.server").ThreadedMotoServer(port=0, verbose=False)
    _put_one_at_a_time()
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    try:
        urllib.request.urlopen(urllib.request.Request(f"{address}/moto-api/reset", method="POST")).close()
        client = {"endpoint_url": address, "region_name": "eu-west-1"}
        s3 = require("s3fs").S3FileSystem(key="test", secret="test", client_kwargs=client, skip_instance_cache=True)
        s3.mkdir("lake")
        yield address
    finally:
        server.stop()


@contextmanager
def s3_options():
    """Serves S3 and yields what fsspec needs to reach it."""
    with serve_s3() as address:
        client = {"endpoint_url": address, "region_name": "eu-west-1"}
        yield {"key": "test", "secret": "test", "client_kwargs": client}


def race_of_creators(address, options, name):
    """The texts of those who created a file, of six that try at once, each with a client of its own."""
    from table.storage.opening import open_storage

    won = []

    def create(number):
        if open_storage(address, options).create_exclusive(name, str(number).encode()):
            won.append(str(number).encode())

    racing = [threading.Thread(target=create, args=(number,)) for number in range(6)]
    for thread in racing:
        thread.start()
    for thread in racing:
        thread.join()
    return won
