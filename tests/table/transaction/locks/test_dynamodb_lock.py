"""The lock in DynamoDB: its row, who may take it when, renewals, lost answers; against moto's server."""

import builtins
import uuid

import pytest
from lock_time import lock_time
from needs import require
from s3_server import serve_s3

from table.errors import CommitConflictError, InvalidConfigError, StorageError
from table.files.xxh64 import hash_of_address
from table.storage.local import LocalStorage
from table.transaction.locks import LockProvider, LockSettings, make_lock
from table.transaction.locks.dynamodb_lock import DynamodbLock
from table.transaction.locks.dynamodb_row import LockRow, decode_row, may_take, watch
from table.transaction.locks.dynamodb_table import LockTable
from table.transaction.locks.patience import Deadline

THEIRS = LockRow("them", 10_000, "n1")
LEASE_MS, POLL_MS = 10_000, 1_000


@pytest.fixture(scope="module")
def dynamodb():
    require("boto3")
    with serve_s3() as address:  # moto serves both
        yield address


@pytest.fixture(autouse=True)
def _credentials(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")


@pytest.fixture
def time():
    with lock_time() as time:
        yield time


@pytest.fixture
def settings(dynamodb):
    name = f"locks-{uuid.uuid4()}"

    def made(wait_ms=LEASE_MS, attempts_more=0, **given):
        return LockSettings(
            provider="dynamodb",
            dynamodb_table=name,
            dynamodb_partition_key="t",
            dynamodb_endpoint_url=dynamodb,
            wait_ms=wait_ms,
            attempts_more=attempts_more,
            pause_ms=0,
            **given,
        )

    return made


def lock_of(settings):
    return make_lock(LocalStorage("/t"), settings)


def taken(lock):
    grip = lock._take(Deadline(lock.settings.wait_ms))
    assert grip is not None
    return grip


def test_a_row_is_written_as_the_lock_client_writes_it():
    assert LockRow("o", 60_000, "v").encode("orders") == {
        "key": {"S": "orders"},
        "ownerName": {"S": "o"},
        "leaseDuration": {"S": "60000"},
        "recordVersionNumber": {"S": "v"},
    }
    assert decode_row({**LockRow("o", 5, "v").encode("t"), "data": {"B": b"x"}}) == LockRow("o", 5, "v")
    assert decode_row({**LockRow("o", 5, "v").encode("t"), "isReleased": {"S": "1"}}) == LockRow("o", 5, "v", True)
    for broken in ({}, {"ownerName": {"S": "o"}}, {**THEIRS.encode("t"), "leaseDuration": {"S": "soon"}}):
        with pytest.raises(StorageError, match="row of a lock"):
            decode_row(broken)


@pytest.mark.parametrize(
    ("row", "since_s", "now_s", "taken"),
    [
        (None, None, 0, True),
        (LockRow("them", 10_000, "n", is_released=True), None, 0, True),
        (LockRow("me", 10_000, "n"), None, 0, True),  # left behind by an answer that was lost
        (THEIRS, None, 10**6, False),
        (THEIRS, 5.0, 15.0, False),
        (THEIRS, 5.0, 15.001, True),
        (LockRow("them", 10_000, "n2"), 5.0, 15.001, False),
    ],
)
def test_who_may_take_it_and_when(row, since_s, now_s, taken):
    watched = None if since_s is None else watch(None, THEIRS, since_s)
    assert may_take(row, "me", watched, now_s) is taken


def test_each_sign_of_the_holder_begins_the_time_anew():
    first = watch(None, THEIRS, 1.0)
    assert watch(first, THEIRS, 5.0) is first
    again = watch(first, LockRow("them", 10_000, "n2"), 5.0)
    assert (again.row.number, again.since_s) == ("n2", 5.0)


def test_it_is_taken_renewed_and_released(settings, time):
    lock = lock_of(settings())
    assert lock.is_shared_between_processes
    assert lock.describe() is None
    with lock.hold() as held:
        first = lock.table.read()
        assert (first.owner, first.lease_ms, first.is_released) == (lock.owner, LEASE_MS, False)
        held.check()
        assert lock.table.read().number != first.number
    assert lock.table.read().is_released
    with lock_of(settings()).hold():
        assert not lock.table.read().is_released


def test_others_wait_and_are_told_who_holds_it(settings, time):
    theirs = lock_of(settings())
    grip = taken(theirs)
    time.wakes = [(time.now_ms + at_ms, grip.renew) for at_ms in range(3_000, 40_000, 3_000)]
    with pytest.raises(CommitConflictError, match=theirs.owner):
        lock_of(settings(wait_ms=5_000)).hold().__enter__()


def test_a_lock_left_behind_is_taken_after_its_lease_and_not_before(settings, time):
    taken(lock_of(settings()))
    began_ms = time.now_ms
    with lock_of(settings(wait_ms=2_000)).hold():
        assert LEASE_MS < time.now_ms - began_ms <= LEASE_MS + POLL_MS


def test_a_paused_holder_that_was_overtaken_finds_out_and_changes_nothing(settings, time):
    slow = lock_of(settings())
    with slow.hold() as held:
        time.pass_ms(60_000)
        with lock_of(settings()).hold() as next_one:
            before = slow.table.read()
            for _ in range(2):
                with pytest.raises(CommitConflictError, match="not held any more"):
                    held.check()
            assert slow.table.read() == before
            next_one.check()
    assert slow.table.read().is_released


def test_a_paused_holder_whom_nobody_overtook_goes_on(settings, time):
    with lock_of(settings()).hold() as held:
        time.pass_ms(60_000)
        held.check()


class Unanswered(LockTable):
    """Answers to some writes are lost, after or instead of their effect; and those to readings."""

    lost, had_effect, blind = 0, True, False

    def __init__(self, settings, key):
        super().__init__(settings, key)
        client = self._client
        self._writes = {name: getattr(client, name) for name in ("put_item", "update_item")}
        client.put_item = lambda **given: self._write("put_item", given)
        client.update_item = lambda **given: self._write("update_item", given)

    def _write(self, name, given):
        if self.lost:
            self.lost -= 1
            if self.had_effect:
                self._writes[name](**given)
            raise TimeoutError("no answer")
        return self._writes[name](**given)

    def read(self):
        if self.blind:
            raise StorageError("no answer either")
        return super().read()


@pytest.mark.parametrize("had_effect", [True, False])
def test_lost_answers_are_settled_by_reading(settings, time, had_effect):
    lock = DynamodbLock("t", settings(), Unanswered)
    lock.table.had_effect = had_effect
    lock.table.lost = 1
    with lock.hold() as held:
        lock.table.lost = 1
        if had_effect:
            held.check()
        else:
            with pytest.raises(StorageError, match="no answer"):
                held.check()
        held.check()
        lock.table.lost = 2
    assert lock.table.read().is_released


def test_a_renewal_of_which_nothing_is_known_does_not_count_as_somebody_elses(settings, time):
    lock = DynamodbLock("t", settings(), Unanswered)
    table = lock.table
    with lock.hold() as held:
        table.lost, table.blind = 1, True
        with pytest.raises(StorageError):
            held.check()
        table.blind = False
        held.check()
        table.lost, table.blind = 1, True
        with pytest.raises(StorageError):
            held.check()
        table.blind = False
    assert table.read().is_released


def test_it_tells_people_what_it_is_and_can_be_broken(settings, time):
    lock = lock_of(settings())
    assert lock.break_lock() is None
    with lock.hold() as held:
        state = lock_of(settings()).describe()
        assert (state.provider, state.is_held, state.holder) == (LockProvider.DYNAMODB, True, f"owner {lock.owner}")
        assert "for 10 s" in state.note
        assert lock_of(settings()).break_lock() == state
        with pytest.raises(CommitConflictError):
            held.check()
    assert lock.describe().note == "released"
    assert lock.break_lock() is None


def test_the_table_is_made_as_the_options_say(settings, time):
    paid = settings(dynamodb_billing_mode="PROVISIONED", dynamodb_read_capacity=7, dynamodb_write_capacity=3)
    lock = lock_of(paid)
    with lock.hold():
        made = lock.table._client.describe_table(TableName=paid.dynamodb_table)["Table"]
    assert made["KeySchema"] == [{"AttributeName": "key", "KeyType": "HASH"}]
    units = made["ProvisionedThroughput"]
    assert (units["ReadCapacityUnits"], units["WriteCapacityUnits"]) == (7, 3)
    assert lock.table._client.meta.region_name == "us-east-1"


def test_the_region_is_that_of_the_options_or_of_the_environment(settings, monkeypatch):
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    assert lock_of(settings()).table._client.meta.region_name == "eu-north-1"
    assert lock_of(settings(dynamodb_region="eu-west-3")).table._client.meta.region_name == "eu-west-3"


def test_a_table_that_does_not_become_usable_is_named(settings, time, monkeypatch):
    monkeypatch.setattr(LockTable, "_status", lambda self: "CREATING")
    with pytest.raises(StorageError, match=r"cannot be used yet, after 3 s: it is CREATING"):
        lock_of(settings(dynamodb_creation_ms=3_000)).hold().__enter__()


def test_a_service_that_cannot_be_reached_is_named(time, monkeypatch):
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    settings = LockSettings(
        provider="dynamodb", dynamodb_table="l", dynamodb_endpoint_url="http://127.0.0.1:1", attempts_more=0
    )
    with pytest.raises(StorageError, match="DynamoDB could not describe the table 'l'"):
        make_lock(LocalStorage("/t"), settings, "t").hold().__enter__()


def test_the_key_of_the_lock_follows_from_options_and_table(tmp_path):
    given = {"dynamodb_table": "locks"}
    named = LockSettings(provider="dynamodb", dynamodb_partition_key="k", **given)
    assert make_lock(LocalStorage("/t"), named)._key == "k"
    assert make_lock(LocalStorage("/t"), LockSettings(provider="dynamodb", **given), "orders")._key == "orders"
    with pytest.raises(InvalidConfigError, match=r"hoodie.write.lock.dynamodb.partition_key"):
        make_lock(LocalStorage(str(tmp_path)), LockSettings(provider="dynamodb", **given))
    implicit = LockSettings(provider="dynamodb_implicit", **given)
    assert make_lock(LocalStorage("/t"), implicit)._key == hash_of_address("/t")


def test_without_boto3_it_says_what_to_install(monkeypatch):
    original = builtins.__import__

    def missing(name, *given, **more):
        if name == "boto3":
            raise ImportError(name)
        return original(name, *given, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(InvalidConfigError, match=r"pip install 'boto3"):
        make_lock(LocalStorage("/t"), LockSettings(provider="dynamodb", dynamodb_table="l"), "t")
