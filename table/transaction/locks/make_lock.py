"""Makes the lock of a table that its options select."""

from table.config.properties import parse_properties
from table.errors import InvalidConfigError
from table.files.xxh64 import hash_of_address
from table.options.lock_settings import LockProvider, LockSettings
from table.storage.interface import METAFOLDER, Storage, join
from table.transaction.locks.dynamodb_lock import DynamodbLock
from table.transaction.locks.filesystem_lock import FilesystemLock
from table.transaction.locks.in_process import InProcessLock
from table.transaction.locks.provider import SharedLock
from table.transaction.locks.storage_lock import StorageLock
from table.transaction.locks.zookeeper_lock import ZookeeperLock

_PROPERTIES = join(METAFOLDER, "hoodie.properties")


def make_lock(storage: Storage, settings: LockSettings, table_name: str = "") -> SharedLock:
    """The lock of a table. It connects to its provider only when it is taken.

    Args:
        settings: the lock's provider, and how long to wait. Without a provider the lock works within this process.
        table_name: name of the table, from which the key in ZooKeeper or DynamoDB may follow; "": read from the table.

    Raises:
        InvalidConfigError: the provider cannot keep the lock of this table; says what to do instead.
        StorageError: the table's name could not be read.
    """
    provider = settings.provider or LockProvider.IN_PROCESS
    if provider in (LockProvider.ZOOKEEPER, LockProvider.ZOOKEEPER_IMPLICIT):
        return ZookeeperLock(_zookeeper_path(storage, settings, table_name), settings)
    if provider in (LockProvider.DYNAMODB, LockProvider.DYNAMODB_IMPLICIT):
        return DynamodbLock(_dynamodb_key(storage, settings, table_name), settings)
    if provider is LockProvider.STORAGE:
        return _storage_lock(storage, settings)
    if provider is LockProvider.FILESYSTEM:
        return FilesystemLock(storage, settings)
    return InProcessLock(storage.base_uri, settings)


def _zookeeper_path(storage: Storage, settings: LockSettings, table_name: str) -> str:
    if settings.provider is LockProvider.ZOOKEEPER_IMPLICIT:
        return f"/tmp/{hash_of_address(storage.base_uri)}/lock_key"  # noqa: S108 a node of ZooKeeper
    key = settings.zookeeper_lock_key or _name_of(storage, table_name, "hoodie.write.lock.zookeeper.lock_key")
    return f"{settings.zookeeper_base_path}/{key}"


def _dynamodb_key(storage: Storage, settings: LockSettings, table_name: str) -> str:
    if settings.provider is LockProvider.DYNAMODB_IMPLICIT:
        return hash_of_address(storage.base_uri)
    return settings.dynamodb_partition_key or _name_of(storage, table_name, "hoodie.write.lock.dynamodb.partition_key")


def _name_of(storage: Storage, given: str, key: str) -> str:
    """The table's name.

    Raises:
        InvalidConfigError: no name was given, and the table does not exist yet.
    """
    if given:
        return given
    try:
        found = parse_properties(storage.read(_PROPERTIES)).get("hoodie.table.name")
    except FileNotFoundError:
        found = None
    if not found:
        raise InvalidConfigError(
            f"the lock of {storage.base_uri!r} goes by the table's name, and there is no table yet: set {key}"
        )
    return str(found)


def _storage_lock(storage: Storage, settings: LockSettings) -> SharedLock:
    """The storage-based lock: on S3 Hudi's, on a local disk one for hudistream's writers, as Hudi has no client for it.

    Raises:
        InvalidConfigError: the store cannot replace a file on the condition that no other writer has replaced it.
    """
    if not storage.has_versions:
        raise InvalidConfigError(
            f"hoodie.write.lock.provider=storage: the store of {storage.base_uri!r} cannot replace a file on the "
            "condition that no other writer has done so; use a table on S3 or on a local disk, or the lock provider "
            "zookeeper or dynamodb"
        )
    return StorageLock(storage, settings)
