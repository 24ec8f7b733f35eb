"""The client of DynamoDB's locks with which Hudi works, and ours, exclude each other."""

import threading
import time
import uuid
from dataclasses import asdict

import pytest
from held_elsewhere import held_elsewhere
from needs import require
from oracles.hudi import Hudi
from s3_server import serve_s3

from table.errors import CommitConflictError
from table.storage.local import LocalStorage
from table.transaction.locks import LockSettings, make_lock

pytestmark = [pytest.mark.hudi, pytest.mark.slow]

CLIENT = "com.amazonaws:dynamodb-lock-client:1.2.0"
LEASE_MS = 3_000


@pytest.fixture(scope="module")
def dynamodb():
    require("boto3")
    with serve_s3() as address:  # moto serves both
        yield address


@pytest.fixture(scope="module")
def aws():
    jvm = Hudi(packages=(CLIENT,))
    yield jvm
    jvm.stop()


@pytest.fixture(autouse=True)
def _credentials(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")


@pytest.fixture
def settings(dynamodb):
    return LockSettings(
        provider="dynamodb",
        dynamodb_table=f"locks-{uuid.uuid4()}",
        dynamodb_partition_key="t",
        dynamodb_endpoint_url=dynamodb,
        wait_ms=LEASE_MS,
        attempts_more=0,
    )


def make_theirs(aws, settings):
    given = {"endpoint": settings.dynamodb_endpoint_url, "table": settings.dynamodb_table, "lease_ms": LEASE_MS}
    aws.aws_lock("theirs", "make", **given)


def test_each_excludes_the_other_and_waits_for_it(aws, settings):
    make_theirs(aws, settings)
    ours = make_lock(LocalStorage("/t"), settings)
    with ours.hold():  # makes the table, as Hudi would
        answers = []
        waits = threading.Thread(target=lambda: answers.append(aws.aws_lock("theirs", "try", key="t", wait_ms=20_000)))
        waits.start()
        waits.join(2 * LEASE_MS / 1000 + 1)  # longer than the lease: we renew
        assert waits.is_alive()
    waits.join(10)
    assert answers == [True]
    row = ours.table.read()
    assert row.lease_ms == LEASE_MS
    assert row.owner != ours.owner
    with pytest.raises(CommitConflictError, match=row.owner), ours.hold():
        pass  # for twice the lease: they renew, too
    assert ours.table.read().number != row.number
    got = []

    def wait():
        with make_lock(LocalStorage("/t"), settings).hold() as held:
            held.check()
            got.append(True)

    waiting = threading.Thread(target=wait)
    waiting.start()
    waiting.join(1)
    assert waiting.is_alive()
    assert aws.aws_lock("theirs", "unlock")
    waiting.join(3)
    assert got == [True]
    aws.aws_lock("theirs", "close")


def test_a_lock_of_a_process_that_stands_still_goes_to_them_and_its_holder_finds_out(aws, settings):
    make_theirs(aws, settings)
    with held_elsewhere("/t", asdict(settings)) as holder:
        holder.stand_still()
        began = time.monotonic()
        assert aws.aws_lock("theirs", "try", key="t", wait_ms=10_000)
        assert LEASE_MS / 1000 - 1 < time.monotonic() - began < LEASE_MS / 1000 + 2.5
        holder.go_on()
        assert holder.ask().startswith("TableHeldError: ")
        assert not make_lock(LocalStorage("/t"), settings).table.read().is_released
    assert aws.aws_lock("theirs", "unlock")
    aws.aws_lock("theirs", "close")


def test_a_lock_of_theirs_that_is_renewed_no_more_goes_to_us(aws, settings):
    lock = make_lock(LocalStorage("/t"), settings)
    with lock.hold():
        pass
    make_theirs(aws, settings)
    assert aws.aws_lock("theirs", "try", key="t", wait_ms=100)
    row = lock.table.read()
    aws.aws_lock("theirs", "close")
    # as if it had died: its last row, without the release
    lock.table._client.put_item(TableName=settings.dynamodb_table, Item=row.encode("t"))
    began = time.monotonic()
    with lock.hold() as held:
        held.check()
        assert LEASE_MS / 1000 < time.monotonic() - began < LEASE_MS / 1000 + 2
