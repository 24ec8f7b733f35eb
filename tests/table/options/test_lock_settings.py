"""Options of locks: every key of Hudi, old and new spellings, and what they may not say."""

import pytest

from table.errors import InvalidConfigError
from table.options.lock_settings import LOCK_KEYS, LOCK_PROVIDER_CLASSES, BillingMode, LockProvider, LockSettings
from table.options.write_options import WriteOptions, parse_options

ZOOKEEPER = {
    "hoodie.write.lock.provider": "zookeeper",
    "hoodie.write.lock.zookeeper.url": "a:2181,b:2181",
    "hoodie.write.lock.zookeeper.base_path": "/hudi",
}


def lock_of(options):
    return parse_options(options).options.lock


@pytest.mark.parametrize(
    ("text", "provider"),
    [
        *((name, provider) for name, provider in LOCK_PROVIDER_CLASSES.items()),
        *((each.value, each) for each in LockProvider),
        ("org.apache.hudi.client.transaction.lock.StorageBasedLockProvider", LockProvider.STORAGE),
        ("org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider", LockProvider.DYNAMODB),
        (" STORAGE ", LockProvider.STORAGE),
    ],
)
def test_a_provider_goes_by_its_class_or_by_a_short_name(text, provider):
    needed = {"zookeeper_url": "a:1", "zookeeper_base_path": "/h", "dynamodb_table": "locks"}
    assert LockSettings(provider=text, **needed).provider is provider


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("StorageBasedLockProvidr", "did you mean StorageBasedLockProvider?"),
        (
            "org.apache.hudi.client.transaction.lock.ZookeperBasedLockProvider",
            "did you mean ZookeeperBasedLockProvider",
        ),
        ("storge", "did you mean storage?"),
        ("org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider", "use one of in_process, filesystem"),
    ],
)
def test_an_unknown_provider_is_refused_with_the_nearest_name(text, hint):
    with pytest.raises(InvalidConfigError, match="hoodie.write.lock.provider=") as refused:
        lock_of({"hoodie.write.lock.provider": text})
    assert hint in str(refused.value)
    assert text in str(refused.value)


def test_the_defaults_are_those_of_hudi():
    lock = WriteOptions().lock
    assert (lock.provider, lock.wait_ms, lock.attempts_more, lock.pause_ms) == (None, 60_000, 50, 5_000)
    assert (lock.connection_retries, lock.connection_pause_ms, lock.connection_pause_most_ms) == (15, 1_000, 16_000)
    assert (lock.storage_validity_s, lock.storage_renewal_s, lock.filesystem_expiry_min) == (300, 30, 0)
    assert (lock.zookeeper_session_ms, lock.zookeeper_connection_ms) == (60_000, 15_000)
    assert lock.dynamodb_billing_mode is BillingMode.PAY_PER_REQUEST


def test_every_key_fills_its_field():
    given = dict.fromkeys(LOCK_KEYS, "12")
    given |= {
        **ZOOKEEPER,
        "hoodie.write.lock.zookeeper.port": "2181",
        "hoodie.write.lock.storage.renew.interval.secs": "1",
    }
    given["hoodie.write.lock.dynamodb.billing_mode"] = "provisioned"
    lock = lock_of(given)
    unset = LockSettings()
    assert [field for field in LOCK_KEYS.values() if getattr(lock, field) == getattr(unset, field)] == []


def test_renewals_go_by_their_old_name_too():
    assert lock_of({"hoodie.write.lock.storage.heartbeat.poll.secs": "7"}).storage_renewal_s == 7
    with pytest.raises(InvalidConfigError, match="say different things"):
        lock_of(
            {
                "hoodie.write.lock.storage.heartbeat.poll.secs": "7",
                "hoodie.write.lock.storage.renew.interval.secs": "8",
            }
        )


@pytest.mark.parametrize(
    ("validity", "renewal", "least"), [("299", "30", 300), ("9", "1", 10), ("0", "1", None), ("10", "0", None)]
)
def test_a_lock_outlasts_ten_renewals_and_ten_seconds(validity, renewal, least):
    options = {
        "hoodie.write.lock.storage.validity.timeout.secs": validity,
        "hoodie.write.lock.storage.renew.interval.secs": renewal,
    }
    with pytest.raises(InvalidConfigError) as refused:
        lock_of(options)
    assert least is None or f"set it to {least} or more" in str(refused.value)


def test_what_hudi_takes_is_taken():
    options = {
        "hoodie.write.lock.storage.validity.timeout.secs": "10",
        "hoodie.write.lock.storage.renew.interval.secs": "1",
    }
    assert lock_of(options).storage_validity_s == 10


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"hoodie.write.lock.zookeeper.url": None}, "zookeeper.url"),
        ({"hoodie.write.lock.zookeeper.base_path": None}, "zookeeper.base_path"),
        ({"hoodie.write.lock.zookeeper.base_path": "hudi"}, "begins with a slash"),
        ({"hoodie.write.lock.zookeeper.base_path": "/hudi/"}, "does not end with one"),
        ({"hoodie.write.lock.zookeeper.port": "2182"}, "write the port into the address"),
        ({"hoodie.write.lock.zookeeper.url": "a", "hoodie.write.lock.zookeeper.port": "2182"}, "port 2181"),
        ({"hoodie.write.lock.provider": "dynamodb"}, "dynamodb.table"),
    ],
)
def test_a_provider_without_what_it_needs_is_refused(change, named):
    with pytest.raises(InvalidConfigError) as refused:
        lock_of({**ZOOKEEPER, **change})
    assert named in str(refused.value)


@pytest.mark.parametrize(("url", "port"), [("a:2181,b:2181", "2181"), ("a", "2181"), ("a:9,b:9/root", "9")])
def test_a_port_may_repeat_that_of_the_address(url, port):
    options = {**ZOOKEEPER, "hoodie.write.lock.zookeeper.url": url, "hoodie.write.lock.zookeeper.port": port}
    assert lock_of(options).zookeeper_url == url


def test_the_implicit_provider_needs_no_base_path():
    options = {**ZOOKEEPER, "hoodie.write.lock.provider": "ZookeeperBasedImplicitBasePathLockProvider"}
    del options["hoodie.write.lock.zookeeper.base_path"]
    assert lock_of(options).provider is LockProvider.ZOOKEEPER_IMPLICIT
