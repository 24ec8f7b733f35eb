"""The lock in ZooKeeper: the line, sessions that end, and requests without an answer."""

import builtins
import threading

import pytest
from fake_zookeeper import FakeZookeeper
from needs import require

from table.config.properties import parse_properties
from table.errors import CommitConflictError, InvalidConfigError, StorageError
from table.files.xxh64 import hash_of_address, xxh64
from table.storage.local import LocalStorage
from table.transaction.locks import LockProvider, LockSettings, make_lock
from table.transaction.locks.line import in_order, name_in_line, who_is_before
from table.transaction.locks.zookeeper_lock import ZookeeperLock
from table.transaction.locks.zookeeper_session import ZookeeperSession

GIVEN = {"provider": "zookeeper", "zookeeper_url": "zk:2181", "zookeeper_base_path": "/hudi"}
AT_ONCE = LockSettings(**GIVEN, wait_ms=1, attempts_more=0)
PATIENT = LockSettings(**GIVEN, wait_ms=10_000, attempts_more=0)
CURATORS = "_c_8f1c1f2e-0000-4000-8000-000000000000-lock-0000000003"


@pytest.fixture(autouse=True)
def _kazoo_is_there():
    require("kazoo")


@pytest.fixture
def servers():
    return FakeZookeeper()


def lock_of(servers, settings=AT_ONCE):
    return ZookeeperLock("/hudi/t", settings, servers.open_session)


def test_the_name_of_a_node_is_curators():
    assert name_in_line("8f1c1f2e-0000-4000-8000-000000000000") + "0000000003" == CURATORS


def test_the_line_is_ordered_by_number_whoever_stands_in_it():
    ours = "_c_00000000-aaaa-lock-0000000002"
    plain = "lock-0000000001"
    assert in_order([CURATORS, ours, plain]) == [plain, ours, CURATORS]
    assert [who_is_before([CURATORS, ours, plain], node) for node in (plain, ours, CURATORS)] == [None, plain, ours]
    with pytest.raises(KeyError):
        who_is_before([CURATORS], ours)


@pytest.mark.parametrize(
    ("text", "hashed"),
    [
        ("", 0xEF46DB3751D8E999),
        ("a", 0xD24EC4F1A98C6E5B),
        ("abc", 0x44BC2CF5AD770999),
        ("Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
    ],
)
def test_the_hash_of_some_texts_is_that_of_the_specification(text, hashed):
    assert xxh64(text.encode()) == hashed


def test_one_table_has_one_hash_whatever_its_scheme_is_called():
    assert hash_of_address("s3a://b/t") == hash_of_address("s3://b/t") == hash_of_address("S3A://b/t")
    assert hash_of_address("/t") != hash_of_address("file:///t")


def test_it_is_held_by_who_is_first_and_left_by_its_node(servers):
    lock = lock_of(servers)
    assert lock.is_shared_between_processes
    with lock.hold() as held:
        held.check()
        (path,) = servers.nodes
        assert path.startswith("/hudi/t/_c_")
        assert path.endswith("-lock-0000000000")
    assert servers.nodes == {}
    with lock.hold():
        assert len(servers.sessions) == 1
    for _ in range(2):
        lock.close()
        assert servers.sessions[0].is_over
    with lock.hold():
        assert len(servers.sessions) == 2


def test_others_wait_and_are_told_who_holds_it(servers):
    with lock_of(servers).hold(), pytest.raises(CommitConflictError, match=r"hudistream .*session 0x1"):
        lock_of(servers).hold().__enter__()
    assert servers.nodes == {}


def test_a_node_of_curators_is_waited_for(servers):
    theirs = servers.open_session(None)
    node = theirs.join_line("/hudi/t", "_c_00-lock-", b"10.0.0.1")
    with pytest.raises(CommitConflictError, match="10.0.0.1"):
        lock_of(servers).hold().__enter__()
    assert [path.rpartition("/")[2] for path in servers.nodes] == [node]
    got = []

    def wait():
        with lock_of(servers, PATIENT).hold():
            got.append(sorted(servers.nodes))

    waiting = threading.Thread(target=wait)
    waiting.start()
    waiting.join(0.1)
    assert waiting.is_alive()
    theirs.delete(f"/hudi/t/{node}")
    waiting.join(5)
    assert len(got[0]) == 1


def test_a_holder_whose_session_ended_finds_out_and_deletes_nothing(servers, logs):
    lock = lock_of(servers)
    with lock.hold() as held:
        (path,) = servers.nodes
        servers.remove(path)
        with lock_of(servers).hold() as next_one:
            for _ in range(2):
                with pytest.raises(CommitConflictError, match="ended the session, or another client deleted"):
                    held.check()
            next_one.check()
    with lock.hold() as held:
        held.check()
        (path,) = servers.nodes
        servers.remove(path)
    assert "lock_was_taken_over" in [entry["event"] for entry in logs]


def test_a_holder_that_cannot_ask_is_told_that_nobody_knows(servers):
    with lock_of(servers).hold() as held:
        servers.failing = [("look", False)]
        with pytest.raises(StorageError, match="no answer"):
            held.check()
        held.check()


@pytest.mark.parametrize("had_effect", [True, False])
@pytest.mark.parametrize("what", ["ensure", "join_line", "line", "watch"])
def test_a_request_without_an_answer_ends_the_session_and_leaves_no_node(servers, what, had_effect):
    theirs = servers.open_session(None)
    node = theirs.join_line("/hudi/t", "_c_00-lock-", b"")
    servers.failing = [(what, had_effect)]
    lock = lock_of(servers)
    with pytest.raises(StorageError, match="could not be taken"):
        lock.hold().__enter__()
    assert [path.rpartition("/")[2] for path in servers.nodes] == [node]
    theirs.close()
    with lock.hold() as held:
        held.check()


def test_a_release_without_an_answer_ends_the_session_and_the_node_with_it(servers, logs):
    lock = lock_of(servers)
    with lock.hold():
        servers.failing = [("delete", False)]
    assert servers.nodes == {}
    assert [entry["event"] for entry in logs if entry["log_level"] == "warning"] == ["lock_not_released"]
    with lock.hold():
        assert len(servers.sessions) == 2


def test_a_session_that_ends_while_it_waits_is_no_reason_to_believe_that_the_lock_is_held(servers):
    theirs = servers.open_session(None)
    node = theirs.join_line("/hudi/t", "_c_00-lock-", b"")
    lock = lock_of(servers, PATIENT)
    raised = []

    def wait():
        try:
            lock.hold().__enter__()
        except StorageError as error:
            raised.append(str(error))

    waiting = threading.Thread(target=wait)
    waiting.start()
    while len(servers.nodes) < 2 or not servers.watches:
        waiting.join(0.01)
    ours = max(servers.nodes)
    del servers.nodes[ours]
    theirs.delete(f"/hudi/t/{node}")
    waiting.join(5)
    assert "ended the session" in raised[0]


def test_it_tells_people_what_it_is_and_can_be_broken(servers):
    lock = lock_of(servers)
    assert lock.describe() is None
    assert lock.break_lock() is None
    with lock.hold() as held:
        state = lock_of(servers).describe()
        assert (state.provider, state.is_held, state.since_ms) == (LockProvider.ZOOKEEPER, True, servers.now_ms)
        assert state.place == "/hudi/t in ZooKeeper at zk:2181"
        assert lock_of(servers).break_lock() == state
        with pytest.raises(CommitConflictError):
            held.check()


def test_the_path_of_the_lock_follows_from_options_and_table(tmp_path):
    table = tmp_path / "t"
    named = LockSettings(**GIVEN, zookeeper_lock_key="k")
    assert make_lock(LocalStorage(str(table)), named).path == "/hudi/k"
    assert make_lock(LocalStorage(str(table)), AT_ONCE, "given").path == "/hudi/given"
    with pytest.raises(InvalidConfigError, match=r"hoodie.write.lock.zookeeper.lock_key"):
        make_lock(LocalStorage(str(table)), AT_ONCE)
    (table / ".hoodie").mkdir(parents=True)
    properties = "hoodie.table.name=orders\nhoodie.table.version=6\n"
    assert parse_properties(properties.encode())["hoodie.table.name"] == "orders"
    (table / ".hoodie" / "hoodie.properties").write_text(properties)
    assert make_lock(LocalStorage(str(table)), AT_ONCE).path == "/hudi/orders"
    implicit = LockSettings(provider="zookeeper_implicit", zookeeper_url="zk:2181")
    assert make_lock(LocalStorage("/t"), implicit).path == f"/tmp/{hash_of_address('/t')}/lock_key"


def test_the_options_of_a_connection_reach_kazoo(monkeypatch):
    import kazoo.client

    given = {}

    class Client:
        def __init__(self, **arguments):
            given.update(arguments)

        def start(self, timeout):
            given["start"] = timeout

        def __getattr__(self, name):
            raise RuntimeError

    monkeypatch.setattr(kazoo.client, "KazooClient", Client)
    ZookeeperSession(
        LockSettings(
            **GIVEN,
            zookeeper_session_ms=7_000,
            zookeeper_connection_ms=3_000,
            connection_retries=4,
            connection_pause_ms=200,
            connection_pause_most_ms=900,
        )
    )
    assert given == {
        "hosts": "zk:2181",
        "timeout": 7.0,
        "connection_retry": {"max_tries": 5, "delay": 0.2, "max_delay": 0.9},
        "start": 3.0,
    }


def test_without_kazoo_it_says_what_to_install(monkeypatch):
    original = builtins.__import__

    def missing(name, *given, **more):
        if name.startswith("kazoo"):
            raise ImportError(name)
        return original(name, *given, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(InvalidConfigError, match=r"pip install 'kazoo"):
        make_lock(LocalStorage("/t"), AT_ONCE, "t")
