"""Connections that die without a sign: no request with a body waits for ever."""

import pytest
from bad_network import BadNetwork
from s3_server import s3_options

from table.errors import StorageError
from table.storage import backend
from table.storage.opening import open_storage


class Deaf(BadNetwork):
    """Answers come through, but for the next `left` ones."""

    left = 0

    def _draw(self, block, asks):
        if asks or not self.left:
            return None
        self.left -= 1
        return "half-open"


@pytest.fixture
def deaf(monkeypatch):
    monkeypatch.setattr(backend, "REQUEST_TIMEOUT_S", 1.0)
    with s3_options() as options:
        network = Deaf(int(options["client_kwargs"]["endpoint_url"].rpartition(":")[2]), 0, 0)
        client = {**options["client_kwargs"], "endpoint_url": f"http://127.0.0.1:{network.port}"}
        through = {**options, "client_kwargs": client, "config_kwargs": {"read_timeout": 60}}
        storage = open_storage("s3://lake/t", through)
        storage.create_exclusive(".hoodie/first", b"the store was tried")
        yield storage, network
        network.close()


@pytest.mark.parametrize("act", [
    lambda storage: storage.put(".hoodie/file", b"data"),
    lambda storage: storage.create_exclusive(".hoodie/file", b"data"),
], ids=["put", "create"])  # fmt: skip
def test_a_file_is_sent_once_more_and_then_given_up(deaf, act):
    storage, network = deaf
    network.left = 1
    assert act(storage) in (None, True)
    assert storage.read(".hoodie/file") == b"data"
    network.left = 2
    with pytest.raises(StorageError, match="no answer within 1 s"):
        act(storage)


@pytest.mark.parametrize(
    ("protocol", "given", "limit_s"), [("gs", {}, 60), ("gs", {"requests_timeout": 5}, 5), ("s3", {}, None)]
)
def test_the_client_of_google_gets_a_limit_which_it_has_not_of_its_own(monkeypatch, protocol, given, limit_s):
    opened = {}
    monkeypatch.setattr(backend.fsspec, "filesystem", lambda name, **options: opened.update(options, name=name))
    backend._open(protocol, given)
    limit = opened.get("requests_timeout")
    assert getattr(limit, "sock_read", limit) == limit_s
    assert getattr(limit, "total", None) is None  # a long transfer is no silence
