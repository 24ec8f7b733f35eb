"""Hudi's lock provider for ZooKeeper, which is Curator's mutex, and ours exclude each other at a real ZooKeeper."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict

import pytest
from held_elsewhere import ROOT, held_elsewhere
from needs import require
from oracles.hudi import HudiError
from zookeeper_server import serve_zookeeper

from table.errors import CommitConflictError, StorageError
from table.storage.local import LocalStorage
from table.transaction.locks import LockSettings, make_lock

pytestmark = [pytest.mark.hudi, pytest.mark.slow]

PROVIDER = "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider"
IMPLICIT = "org.apache.hudi.client.transaction.lock.ZookeeperBasedImplicitBasePathLockProvider"
SESSION_MS = 2_000


@pytest.fixture(scope="module", autouse=True)
def _kazoo_is_there():
    require("kazoo")


@pytest.fixture
def zookeeper(tmp_path):
    with serve_zookeeper(tmp_path) as (address, process):
        yield address, process


def settings_of(address, wait_ms=200, attempts_more=0, provider="zookeeper"):
    return LockSettings(
        provider=provider,
        zookeeper_url=address,
        zookeeper_base_path="/hudi/locks",
        zookeeper_lock_key="t",
        zookeeper_session_ms=SESSION_MS,
        zookeeper_connection_ms=5_000,
        wait_ms=wait_ms,
        attempts_more=attempts_more,
        pause_ms=100,
    )


def hudis(hudi, address, provider=PROVIDER):
    options = {
        "hoodie.base.path": "/t",
        "hoodie.write.lock.provider": provider,
        "hoodie.write.lock.zookeeper.url": address,
        "hoodie.write.lock.zookeeper.base_path": "/hudi/locks",
        "hoodie.write.lock.zookeeper.lock_key": "t",
        "hoodie.write.lock.zookeeper.session_timeout_ms": str(SESSION_MS),
        "hoodie.write.lock.zookeeper.connection_timeout_ms": "5000",
        "hoodie.write.lock.zookeeper.port": address.rpartition(":")[2],
        "hoodie.write.lock.wait_time_ms_between_retry": "100",
        "hoodie.write.lock.max_wait_time_ms_between_retry": "500",
        "hoodie.write.lock.num_retries": "3",
    }
    hudi.make_lock("zookeeper", options)


def gets(hudi, wait_ms=200):
    """Whether Hudi gets the lock in that time; its provider raises where it does not."""
    try:
        return hudi.try_lock("zookeeper", wait_ms)
    except HudiError as error:
        if "FAILED_TO_ACQUIRE" not in str(error):
            raise
        return False


@pytest.mark.parametrize(("ours", "theirs"), [("zookeeper", PROVIDER), ("zookeeper_implicit", IMPLICIT)])
def test_each_excludes_the_other_and_waits_for_it(hudi, zookeeper, ours, theirs):
    address, _ = zookeeper
    hudis(hudi, address, theirs)
    table = LocalStorage("/t")
    at_once = make_lock(table, settings_of(address, provider=ours))
    assert hudi.try_lock("zookeeper", 1_000)
    with pytest.raises(CommitConflictError, match="ZooKeeper at"), at_once.hold():
        pass
    state = at_once.describe()
    assert state.is_held
    assert "session 0x" in state.holder
    got = []

    def wait():
        with make_lock(table, settings_of(address, 20_000, provider=ours)).hold() as held:
            held.check()
            got.append(gets(hudi))

    waiting = threading.Thread(target=wait)
    waiting.start()
    waiting.join(0.5)
    assert waiting.is_alive()
    released = time.monotonic()
    hudi.unlock("zookeeper")
    waiting.join(10)
    assert got == [False]
    assert time.monotonic() - released < 3

    with at_once.hold() as held:
        assert not gets(hudi)
        answers = []
        theirs_waits = threading.Thread(target=lambda: answers.append(gets(hudi, 20_000)))
        theirs_waits.start()
        theirs_waits.join(0.5)
        assert theirs_waits.is_alive()
        held.check()
    theirs_waits.join(10)
    assert answers == [True]
    with pytest.raises(CommitConflictError), at_once.hold():
        pass
    hudi.unlock("zookeeper")
    hudi.close_lock("zookeeper")
    with at_once.hold() as held:
        held.check()


def test_a_lock_of_a_process_that_stands_still_goes_to_hudi_and_its_holder_finds_out(hudi, zookeeper):
    address, _ = zookeeper
    hudis(hudi, address)
    with held_elsewhere("/t", asdict(settings_of(address, 5_000))) as holder:
        assert not gets(hudi, 500)
        holder.stand_still()
        began = time.monotonic()
        assert hudi.try_lock("zookeeper", 15_000)
        assert time.monotonic() - began < SESSION_MS / 1000 + 2
        holder.go_on()
        assert holder.ask().startswith("TableHeldError: ")
    with pytest.raises(CommitConflictError), make_lock(LocalStorage("/t"), settings_of(address)).hold():
        pytest.fail("the release of who had lost it released Hudi's")
    hudi.unlock("zookeeper")
    hudi.close_lock("zookeeper")


def test_a_lock_of_a_process_that_dies_goes_to_hudi(hudi, zookeeper):
    address, _ = zookeeper
    hudis(hudi, address)
    with held_elsewhere("/t", asdict(settings_of(address, 5_000))) as holder:
        holder.die()
        assert hudi.try_lock("zookeeper", SESSION_MS + 3_000)
    hudi.close_lock("zookeeper")


def test_a_server_that_stands_still_is_no_lock_and_one_that_goes_on_is(zookeeper):
    address, server = zookeeper
    settings = settings_of(address)
    with make_lock(LocalStorage("/t"), settings).hold() as held:
        os.kill(server.pid, signal.SIGSTOP)
        try:
            with pytest.raises(StorageError):
                held.check()
        finally:
            os.kill(server.pid, signal.SIGCONT)
    with make_lock(LocalStorage("/t"), settings_of(address, 10_000)).hold() as held:
        held.check()


def test_breaking_the_lock_of_hudi(hudi, zookeeper):
    address, _ = zookeeper
    hudis(hudi, address)
    assert hudi.try_lock("zookeeper", 1_000)
    lock = make_lock(LocalStorage("/t"), settings_of(address))
    assert lock.break_lock() is not None
    with lock.hold() as held:
        held.check()
    hudi.close_lock("zookeeper")


def test_a_server_that_is_not_there_is_named(tmp_path):
    settings = LockSettings(
        provider="zookeeper",
        zookeeper_url="127.0.0.1:1",
        zookeeper_base_path="/hudi",
        zookeeper_lock_key="t",
        zookeeper_connection_ms=300,
        attempts_more=0,
    )
    with pytest.raises(StorageError, match=r"connect to 127.0.0.1:1"), make_lock(LocalStorage("/t"), settings).hold():
        pass


def test_the_command_line_shows_and_breaks_the_lock_and_ends(zookeeper):
    address, _ = zookeeper
    options = {"provider": "zookeeper", "zookeeper.url": address, "zookeeper.base_path": "/hudi/locks"}
    options |= {"zookeeper.lock_key": "t"}
    given = [f"--set=hoodie.write.lock.{name}={value}" for name, value in options.items()]

    def ran(what):
        program = "import sys; from table.cli.main import main; sys.exit(main(sys.argv[1:]))"
        command = [sys.executable, "-c", program, "lock", what, "/t", *given]
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True, cwd=ROOT).stdout

    with make_lock(LocalStorage("/t"), settings_of(address)).hold() as held:
        assert "held   zookeeper lock /hudi/locks/t in ZooKeeper" in ran("show")
        assert "its node was deleted" in ran("break")
        with pytest.raises(CommitConflictError):
            held.check()
    assert ran("show").startswith("no lock is held")
