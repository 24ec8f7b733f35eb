"""How several writers take the lock of a shared table: ``hoodie.write.lock.*`` (pure)."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from table.columns.near_name import did_you_mean
from table.config.choice import Choice
from table.errors import InvalidConfigError
from table.options.numbers import Whole
from table.options.settings import Settings, option
from table.options.values import (
    Names,
    OneOf,
    Text,
    refuse,
)

_PACKAGES = ("org.apache.hudi.client.transaction.lock.", "org.apache.hudi.aws.transaction.lock.")
_LEAST_VALIDITY_S = 10
_RENEWALS_PER_VALIDITY = 10


class LockProvider(Choice):
    """The service that keeps the lock. All but the first two are Hudi's classes, and exclude writers that use them."""

    IN_PROCESS = "in_process"
    FILESYSTEM = "filesystem"
    STORAGE = "storage"
    ZOOKEEPER = "zookeeper"
    ZOOKEEPER_IMPLICIT = "zookeeper_implicit"
    DYNAMODB = "dynamodb"
    DYNAMODB_IMPLICIT = "dynamodb_implicit"


# Hudi's classes in org.apache.hudi.client.transaction.lock and org.apache.hudi.aws.transaction.lock
LOCK_PROVIDER_CLASSES: Mapping[str, LockProvider] = MappingProxyType(
    {
        "InProcessLockProvider": LockProvider.IN_PROCESS,
        "FileSystemBasedLockProvider": LockProvider.FILESYSTEM,
        "StorageBasedLockProvider": LockProvider.STORAGE,
        "ZookeeperBasedLockProvider": LockProvider.ZOOKEEPER,
        "ZookeeperBasedImplicitBasePathLockProvider": LockProvider.ZOOKEEPER_IMPLICIT,
        "DynamoDBBasedLockProvider": LockProvider.DYNAMODB,
        "DynamoDBBasedImplicitPartitionKeyLockProvider": LockProvider.DYNAMODB_IMPLICIT,
    }
)


@dataclass(frozen=True)
class LockProviderName:
    """A lock provider, given as its short name or as the name of Hudi's class with or without its package."""

    allowed: str = ", ".join(LockProvider)

    def read(self, name: str, value: Any) -> LockProvider:
        """The provider."""
        if isinstance(value, LockProvider):
            return value
        text = value.strip() if isinstance(value, str) else ""
        simple = text
        for package in _PACKAGES:
            simple = simple.removeprefix(package)
        known = {each.value: each for each in LockProvider} | dict(LOCK_PROVIDER_CLASSES)
        for spelled, provider in known.items():
            if simple.lower() == spelled.lower():
                return provider
        hint = did_you_mean(simple.rsplit(".", 1)[-1], known)
        return refuse(name, value, f"this lock provider is not supported; use one of {self.allowed}{hint}")


class BillingMode(Choice):
    """``hoodie.write.lock.dynamodb.billing_mode``: how AWS bills a lock table that this project creates."""

    PAY_PER_REQUEST = "PAY_PER_REQUEST"
    PROVISIONED = "PROVISIONED"


@dataclass(frozen=True)
class LockSettings(Settings):
    """How several writers take the lock of a shared table (HoodieLockConfig).

    Attributes:
        provider: who keeps the lock; every writer of the table must name the same. None: it keeps out no other process.
        wait_ms: milliseconds that one attempt waits for the lock.
        attempts_more: attempts after the first.
        pause_ms: milliseconds between two attempts.
        clock_skew_ms: how far the clocks of the writers are apart, in milliseconds. A writer keeps the lock
            until the time of its instant (timeline layout 2) is so old. So the next writer's time is greater.
        connection_retries: how often a request to ZooKeeper is tried again while there is no connection.
        connection_pause_ms: milliseconds before the first of these; each further pause is longer.
        connection_pause_most_ms: the longest of these pauses in milliseconds.
        storage_validity_s: seconds that a lock in ``.hoodie/.locks`` is valid after it was taken or renewed.
        storage_renewal_s: seconds between two renewals.
        filesystem_path: folder of the file ``lock``; None: the table's ``.hoodie``.
        filesystem_expiry_min: minutes after which the file ``lock`` counts as abandoned; 0: never.
        filesystem_schemes: further schemes of which it is known that they create a file only if it is absent.
        zookeeper_url: servers as ``host:port``, separated by commas.
        zookeeper_port: not read by Hudi; it may repeat the port of ``zookeeper_url``.
        zookeeper_base_path: node under which the locks of tables stand.
        zookeeper_lock_key: node of this table's lock below it; None: the table's name.
        zookeeper_session_ms: milliseconds without contact after which ZooKeeper gives the lock to others.
        zookeeper_connection_ms: milliseconds to wait for a connection.
        dynamodb_table: DynamoDB table of the locks; it is made if there is none.
        dynamodb_partition_key: key of this table's lock in it; None: the table's name.
        dynamodb_region: AWS region; None: that of the variable AWS_REGION, else us-east-1.
        dynamodb_endpoint_url: address of a service that speaks as DynamoDB does; None: AWS.
        dynamodb_billing_mode: how a lock table that is made here is paid for.
        dynamodb_read_capacity: units of reading of a lock table that is made here, if PROVISIONED.
        dynamodb_write_capacity: units of writing of it.
        dynamodb_creation_ms: milliseconds to wait until a lock table that is made here can be used.
    """

    provider: LockProvider | None = option(None, LockProviderName())
    wait_ms: int = option(60_000, Whole(1))
    attempts_more: int = option(50, Whole(0))
    pause_ms: int = option(5_000, Whole(0))
    clock_skew_ms: int = option(200, Whole(0))
    connection_retries: int = option(15, Whole(0))
    connection_pause_ms: int = option(1_000, Whole(1))
    connection_pause_most_ms: int = option(16_000, Whole(1))
    storage_validity_s: int = option(300, Whole(1))
    storage_renewal_s: int = option(30, Whole(1))
    filesystem_path: str | None = option(None, Text("a folder"))
    filesystem_expiry_min: int = option(0, Whole(0))
    filesystem_schemes: tuple[str, ...] = option((), Names("schemes, separated by commas"))
    zookeeper_url: str | None = option(None, Text("host:port, separated by commas"))
    zookeeper_port: int | None = option(None, Whole(1))
    zookeeper_base_path: str | None = option(None, Text("a path such as /hudi"))
    zookeeper_lock_key: str | None = option(None, Text())
    zookeeper_session_ms: int = option(60_000, Whole(1))
    zookeeper_connection_ms: int = option(15_000, Whole(1))
    dynamodb_table: str | None = option(None, Text())
    dynamodb_partition_key: str | None = option(None, Text())
    dynamodb_region: str | None = option(None, Text())
    dynamodb_endpoint_url: str | None = option(None, Text("an address"))
    dynamodb_billing_mode: BillingMode = option(BillingMode.PAY_PER_REQUEST, OneOf(BillingMode, what="billing mode"))
    dynamodb_read_capacity: int = option(20, Whole(1))
    dynamodb_write_capacity: int = option(10, Whole(1))
    dynamodb_creation_ms: int = option(600_000, Whole(1))

    def _check(self) -> None:
        """Checks the rules of Hudi's own builders, and that the provider's required settings are given."""
        self._check_validity()
        if self.provider in (LockProvider.ZOOKEEPER, LockProvider.ZOOKEEPER_IMPLICIT):
            self._check_zookeeper()
        if self.provider in (LockProvider.DYNAMODB, LockProvider.DYNAMODB_IMPLICIT) and self.dynamodb_table is None:
            raise InvalidConfigError(
                f"hoodie.write.lock.provider={self.provider} needs hoodie.write.lock.dynamodb.table: name the DynamoDB "
                "table of the locks"
            )

    def _check_validity(self) -> None:
        """StorageBasedLockConfig: a lock must stay valid through several failed renewals."""
        least = max(_LEAST_VALIDITY_S, _RENEWALS_PER_VALIDITY * self.storage_renewal_s)
        if self.storage_validity_s < least:
            raise InvalidConfigError(
                f"hoodie.write.lock.storage.validity.timeout.secs={self.storage_validity_s} is too short for "
                f"hoodie.write.lock.storage.renew.interval.secs={self.storage_renewal_s}: a lock must be valid for at "
                f"least {_LEAST_VALIDITY_S} s and {_RENEWALS_PER_VALIDITY} renewals; set it to {least} or more, or "
                "renew more often"
            )

    def _check_zookeeper(self) -> None:
        """BaseZookeeperBasedLockProvider connects to the address, and reads no port."""
        key = "hoodie.write.lock.zookeeper"
        if self.zookeeper_url is None:
            raise InvalidConfigError(
                f"hoodie.write.lock.provider={self.provider} needs {key}.url: give the servers as host:port"
            )
        if self.provider is LockProvider.ZOOKEEPER and self.zookeeper_base_path is None:
            raise InvalidConfigError(
                f"hoodie.write.lock.provider={self.provider} needs {key}.base_path: name the node under which the "
                "locks stand, the same for all writers of the table"
            )
        base_path = self.zookeeper_base_path or "/"
        if not base_path.startswith("/") or (len(base_path) > 1 and base_path.endswith("/")):
            raise InvalidConfigError(
                f"{key}.base_path={base_path}: a path of ZooKeeper begins with a slash and does not end with one"
            )
        port = self.zookeeper_port
        ports = {server.rpartition(":")[2] for server in _servers(self.zookeeper_url) if ":" in server} or {"2181"}
        if port is not None and ports != {str(port)}:
            raise InvalidConfigError(
                f"{key}.port={port} contradicts {key}.url={self.zookeeper_url}: Hudi connects to the address alone, "
                f"and to port 2181 where it has none; write the port into the address, as host:{port}"
            )


def _servers(url: str) -> list[str]:
    return url.partition("/")[0].split(",")


# key -> field of LockSettings
LOCK_KEYS: Mapping[str, str] = MappingProxyType(
    {
        "hoodie.write.lock.provider": "provider",
        "hoodie.write.lock.wait_time_ms": "wait_ms",
        "hoodie.write.lock.client.num_retries": "attempts_more",
        "hoodie.write.lock.client.wait_time_ms_between_retry": "pause_ms",
        "hoodie.time.generator.max_expected_clock_skew_ms": "clock_skew_ms",
        "hoodie.write.lock.num_retries": "connection_retries",
        "hoodie.write.lock.wait_time_ms_between_retry": "connection_pause_ms",
        "hoodie.write.lock.max_wait_time_ms_between_retry": "connection_pause_most_ms",
        "hoodie.write.lock.storage.validity.timeout.secs": "storage_validity_s",
        "hoodie.write.lock.storage.renew.interval.secs": "storage_renewal_s",
        "hoodie.write.lock.filesystem.path": "filesystem_path",
        "hoodie.write.lock.filesystem.expire": "filesystem_expiry_min",
        "hoodie.fs.atomic_creation.support": "filesystem_schemes",
        "hoodie.write.lock.zookeeper.url": "zookeeper_url",
        "hoodie.write.lock.zookeeper.port": "zookeeper_port",
        "hoodie.write.lock.zookeeper.base_path": "zookeeper_base_path",
        "hoodie.write.lock.zookeeper.lock_key": "zookeeper_lock_key",
        "hoodie.write.lock.zookeeper.session_timeout_ms": "zookeeper_session_ms",
        "hoodie.write.lock.zookeeper.connection_timeout_ms": "zookeeper_connection_ms",
        "hoodie.write.lock.dynamodb.table": "dynamodb_table",
        "hoodie.write.lock.dynamodb.partition_key": "dynamodb_partition_key",
        "hoodie.write.lock.dynamodb.region": "dynamodb_region",
        "hoodie.write.lock.dynamodb.endpoint_url": "dynamodb_endpoint_url",
        "hoodie.write.lock.dynamodb.billing_mode": "dynamodb_billing_mode",
        "hoodie.write.lock.dynamodb.read_capacity": "dynamodb_read_capacity",
        "hoodie.write.lock.dynamodb.write_capacity": "dynamodb_write_capacity",
        "hoodie.write.lock.dynamodb.table_creation_timeout": "dynamodb_creation_ms",
    }
)
LOCK_ALIASES: Mapping[str, str] = MappingProxyType(
    {"hoodie.write.lock.storage.heartbeat.poll.secs": "hoodie.write.lock.storage.renew.interval.secs"}
)
