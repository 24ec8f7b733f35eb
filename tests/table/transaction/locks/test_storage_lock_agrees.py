"""Hudi's StorageBasedLockProvider and ours exclude each other at a server that speaks S3.

What stands between Hudi's provider and the server is not Hudi's: `tests/support/oracles/S3StorageLockClient.scala`.
"""

import json
import threading
import time
import uuid
from dataclasses import asdict

import pytest
from held_elsewhere import held_elsewhere
from oracles.hudi import Hudi
from oracles.hudi_on_s3 import with_s3_client
from s3_server import serve_s3

from table.errors import CommitConflictError
from table.storage.opening import open_storage
from table.transaction.locks import LockSettings, make_lock
from table.transaction.locks.storage_record import LOCK_PATH, decode_record

pytestmark = [pytest.mark.hudi, pytest.mark.slow]

PROVIDER = "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider"
VALIDITY_S = 10  # the least that Hudi takes


@pytest.fixture(scope="module")
def s3():
    with serve_s3() as address:
        yield address, {"key": "test", "secret": "test", "client_kwargs": {"endpoint_url": address}}


@pytest.fixture(scope="module")
def hudi_on_s3(tmp_path_factory):
    """Hudi 1.2.0: in 1.0.2, seconds of validity count as milliseconds."""
    later = Hudi("1.2.0")
    yield with_s3_client(later, tmp_path_factory.mktemp("scala"))
    later.stop()


@pytest.fixture
def table(s3):
    return open_storage(f"s3a://lake/{uuid.uuid4()}", s3[1])


def settings_of(wait_ms=1, renewal_s=1):
    return LockSettings(
        provider="storage",
        storage_validity_s=VALIDITY_S,
        storage_renewal_s=renewal_s,
        wait_ms=wait_ms,
        attempts_more=0,
        pause_ms=0,
    )


def make_hudis(hudi, s3, table, name="storage"):
    options = {
        "hoodie.base.path": table.base_uri,
        "hoodie.write.lock.provider": PROVIDER,
        "hoodie.write.lock.storage.heartbeat.poll.secs": "1",
        "test.s3.endpoint": s3[0],
    }
    hudi.make_lock(name, {**options, "hoodie.write.lock.storage.validity.timeout.secs": str(VALIDITY_S)})


def test_hudi_1_0_2_takes_seconds_of_validity_for_milliseconds(hudi, s3, table, tmp_path):
    """So between two of its renewals everybody may take its lock; the guide says which versions do not."""
    make_hudis(with_s3_client(hudi, tmp_path), s3, table)
    before_ms = time.time() * 1000
    assert hudi.try_lock("storage", 1_000)
    assert decode_record(table.read(LOCK_PATH)).valid_until_ms - before_ms < 2_000
    hudi.close_lock("storage")


def test_each_excludes_the_other_and_waits_for_it(hudi_on_s3, s3, table):
    hudi = hudi_on_s3
    make_hudis(hudi, s3, table)
    assert hudi.try_lock("storage", 1_000)
    theirs = hudi.held_lock("storage")
    record = decode_record(table.read(LOCK_PATH))
    assert (record.owner, record.valid_until_ms, record.expired) == (theirs["owner"], theirs["valid_until_ms"], False)
    assert record.encode() == table.read(LOCK_PATH)  # byte for byte what we would write
    with pytest.raises(CommitConflictError, match=theirs["owner"]), make_lock(table, settings_of()).hold():
        pass
    time.sleep(2.5)  # Hudi renews
    assert decode_record(table.read(LOCK_PATH)).valid_until_ms > record.valid_until_ms
    got = []

    def wait():
        with make_lock(table, settings_of(20_000)).hold() as held:
            held.check()
            got.append(hudi.try_lock("storage", 10))

    waiting = threading.Thread(target=wait)
    waiting.start()
    waiting.join(0.5)
    assert waiting.is_alive()
    released = time.monotonic()
    hudi.unlock("storage")
    waiting.join(10)
    assert got == [False]
    assert time.monotonic() - released < 3
    assert decode_record(table.read(LOCK_PATH)).expired

    ours = make_lock(table, settings_of(1_000))
    with ours.hold() as held:
        answers = []
        theirs_waits = threading.Thread(target=lambda: answers.append(hudi.try_lock("storage", 30_000)))
        theirs_waits.start()
        theirs_waits.join(VALIDITY_S + 2)  # longer than the validity: we renew
        assert theirs_waits.is_alive()
        held.check()
    theirs_waits.join(10)
    assert answers == [True]
    assert json.loads(table.read(LOCK_PATH))["owner"] == hudi.held_lock("storage")["owner"] != ours.owner
    hudi.close_lock("storage")
    with ours.hold() as held:
        held.check()


def test_a_lock_of_a_process_that_stands_still_goes_to_hudi_and_its_holder_finds_out(hudi_on_s3, s3, table):
    hudi = hudi_on_s3
    make_hudis(hudi, s3, table)
    with held_elsewhere(table.base_uri, asdict(settings_of(5_000)), s3[1]) as holder:
        holder.stand_still()
        valid_until_ms = decode_record(table.read(LOCK_PATH)).valid_until_ms
        assert hudi.try_lock("storage", 30_000)
        late_ms = time.time() * 1000 - valid_until_ms
        assert 500 < late_ms < 500 + 1_000 + 700  # Hudi looks once a second
        holder.go_on()
        assert holder.ask().startswith("TableHeldError: ")
        assert decode_record(table.read(LOCK_PATH)).owner == hudi.held_lock("storage")["owner"]
    hudi.close_lock("storage")


def test_a_lock_of_hudis_that_is_renewed_no_more_goes_to_us(hudi_on_s3, s3, table):
    hudi = hudi_on_s3
    make_hudis(hudi, s3, table)
    assert hudi.try_lock("storage", 1_000)
    hudi.close_lock("storage")
    # as if it had died: its last record, without the release
    record = table.read_versioned(LOCK_PATH)
    document = {**json.loads(record.data), "expired": False}
    assert table.replace_if(LOCK_PATH, json.dumps(document).encode(), record.version)
    with make_lock(table, settings_of(30_000)).hold() as held:
        late_ms = time.time() * 1000 - document["validUntil"]
        assert 500 < late_ms < 1_500
        held.check()


def test_hudi_takes_a_lock_that_was_broken(hudi_on_s3, s3, table):
    hudi = hudi_on_s3
    make_hudis(hudi, s3, table)
    with make_lock(table, settings_of(1_000, renewal_s=1)).hold() as held:
        make_lock(table, settings_of()).break_lock()
        assert hudi.try_lock("storage", 3_000)
        with pytest.raises(CommitConflictError):
            held.check()
    hudi.close_lock("storage")
