"""Real Hudi 1.0.2's lock providers and ours exclude each other, and each waits for the other."""

import threading
import time
from itertools import pairwise

import pytest
from engine import Engine, key_set, rows
from oracles.hudi import JVM, HudiError

from table import read_table
from table.errors import CommitConflictError
from table.files.xxh64 import hash_of_address
from table.storage.local import LocalStorage
from table.transaction.locks import LockSettings, make_lock

pytestmark = pytest.mark.hudi

FILESYSTEM = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
AT_ONCE = LockSettings(provider="filesystem", attempts_more=0)
PATIENT = LockSettings(provider="filesystem", attempts_more=100, pause_ms=50)


@pytest.fixture
def table(tmp_path):
    (tmp_path / "t" / ".hoodie").mkdir(parents=True)
    return tmp_path / "t"


def make_hudis(hudi, table, **options):
    given = {"hoodie.base.path": str(table), "hoodie.write.lock.provider": FILESYSTEM, **options}
    hudi.make_lock("theirs", {"hoodie.write.lock.filesystem.expire": "0", **given})


def test_while_hudi_holds_the_lock_file_we_do_not_get_it_and_wait(hudi, table):
    make_hudis(hudi, table)
    assert hudi.try_lock("theirs")
    ours = make_lock(LocalStorage(str(table)), AT_ONCE)
    with pytest.raises(CommitConflictError, match="another engine"), ours.hold():
        pass
    assert ours.describe().holder == "a writer of another engine (the file names no writer)"
    got = []

    def wait():
        with make_lock(LocalStorage(str(table)), PATIENT).hold() as held:
            held.check()
            got.append(hudi.try_lock("theirs"))

    waiting = threading.Thread(target=wait)
    waiting.start()
    waiting.join(0.3)
    assert waiting.is_alive()
    hudi.unlock("theirs")
    waiting.join(10)
    assert got == [False]
    assert hudi.try_lock("theirs")
    hudi.unlock("theirs")
    assert not (table / ".hoodie" / "lock").exists()


def test_while_we_hold_the_lock_file_hudi_does_not_get_it(hudi, table):
    make_hudis(hudi, table)
    with make_lock(LocalStorage(str(table)), AT_ONCE).hold() as held:
        assert not hudi.try_lock("theirs", 100)
        held.check()
    assert hudi.try_lock("theirs")
    hudi.unlock("theirs")


def test_hudi_takes_a_lock_file_of_ours_once_it_has_expired(hudi, table):
    import os

    make_hudis(hudi, table, **{"hoodie.write.lock.filesystem.expire": "1"})
    settings = LockSettings(provider="filesystem", attempts_more=0, filesystem_expiry_min=1)
    with make_lock(LocalStorage(str(table)), settings).hold() as held:
        assert not hudi.try_lock("theirs")
        long_ago = time.time() - 61
        os.utime(table / ".hoodie" / "lock", (long_ago, long_ago))
        assert hudi.try_lock("theirs")
        with pytest.raises(CommitConflictError, match="another engine"):
            held.check()
    assert (table / ".hoodie" / "lock").exists()  # it is theirs
    hudi.unlock("theirs")


def test_we_take_a_lock_file_of_hudis_once_it_has_expired(hudi, table):
    import os

    make_hudis(hudi, table, **{"hoodie.write.lock.filesystem.expire": "1"})
    assert hudi.try_lock("theirs")
    settings = LockSettings(provider="filesystem", attempts_more=0, filesystem_expiry_min=1)
    lock = make_lock(LocalStorage(str(table)), settings)
    with pytest.raises(CommitConflictError), lock.hold():
        pass
    long_ago = time.time() - 61
    os.utime(table / ".hoodie" / "lock", (long_ago, long_ago))
    with lock.hold() as held:
        held.check()
        assert not hudi.try_lock("theirs")


def test_a_client_of_hudi_that_closes_deletes_our_lock_file_and_we_find_out(hudi, table):
    make_hudis(hudi, table)
    with make_lock(LocalStorage(str(table)), AT_ONCE).hold() as held:
        hudi.close_lock("theirs")
        with pytest.raises(CommitConflictError, match="the file was deleted"):
            held.check()


SHARED = {
    **JVM,
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.write.lock.provider": FILESYSTEM,
    "hoodie.write.lock.client.wait_time_ms_between_retry": "100",
}


@pytest.mark.slow
def test_a_writer_of_hudi_waits_for_us(hudi, tmp_path):
    path = tmp_path / "t"
    Engine(str(path)).write(0, rows(range(5)))
    patient = {**SHARED, "hoodie.write.lock.client.num_retries": "600"}
    writes = threading.Thread(target=lambda: hudi.write(path, rows(range(5, 10)), patient))
    with make_lock(LocalStorage(str(path)), AT_ONCE).hold() as held:
        writes.start()
        writes.join(8)
        assert writes.is_alive()
        assert key_set(read_table(path)) == key_set(rows(range(5)))
        held.check()
    writes.join(60)
    assert key_set(read_table(path)) == key_set(rows(range(10)))
    assert not (path / ".hoodie" / "lock").exists()


@pytest.mark.slow
def test_a_writer_of_hudi_that_gives_up_deletes_our_lock_file_and_we_find_out(hudi, tmp_path):
    path = tmp_path / "t"
    Engine(str(path)).write(0, rows(range(5)))
    impatient = {**SHARED, "hoodie.write.lock.client.num_retries": "3"}
    with make_lock(LocalStorage(str(path)), AT_ONCE).hold() as held:
        with pytest.raises(HudiError, match=r"Unable to acquire the lock.*lockOwner"):
            hudi.write(path, rows(range(5, 10)), impatient)
        with pytest.raises(CommitConflictError, match="the file was deleted"):
            held.check()


@pytest.mark.slow
def test_what_we_did_under_a_lock_that_we_looked_at_did_not_overlap_with_hudi(hudi, table):
    """On a local disk Hudi may create the file over ours; we find out by its content, and take back what we did."""
    make_hudis(hudi, table)
    theirs, ours, stop = [], [], time.monotonic() + 10

    def run_hudi():
        while time.monotonic() < stop:
            if hudi.try_lock("theirs"):
                began = time.monotonic()
                time.sleep(0.002)
                theirs.append((began, time.monotonic()))
                hudi.unlock("theirs")

    running = threading.Thread(target=run_hudi)
    running.start()
    lock, lost = make_lock(LocalStorage(str(table)), AT_ONCE), 0
    while time.monotonic() < stop:
        try:
            with lock.hold() as held:
                began = time.monotonic()
                time.sleep(0.005)
                ended = time.monotonic()
                held.check()
                ours.append((began, ended))
        except CommitConflictError as error:
            lost += "not held any more" in str(error)
        time.sleep(0.001)
    running.join()
    assert min(len(theirs), len(ours)) > 20, (theirs, ours, lost)
    spans = sorted(theirs + ours)
    assert all(before[1] <= after[0] for before, after in pairwise(spans)), lost


@pytest.mark.parametrize(
    "address", ["/tmp/t", "s3a://lake/tables/t", "s3://lake/tables/t", "file:///a", "gs://b/" + "long/" * 20, "/ü/é"]
)
def test_the_name_of_a_tables_lock_in_zookeeper_follows_from_its_address_as_with_hudi(hudi, address):
    assert hudi.lock_base_path(address) == f"/tmp/{hash_of_address(address)}"
