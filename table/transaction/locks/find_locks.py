"""The locks that a table may have, if the settings do not say which provider its writers use."""

from dataclasses import replace

from table.errors import InvalidConfigError
from table.options.lock_settings import LockProvider, LockSettings
from table.storage.interface import Storage
from table.transaction.locks.make_lock import make_lock
from table.transaction.locks.provider import SharedLock

_IN_THE_TABLE = (LockProvider.STORAGE, LockProvider.FILESYSTEM)


def find_locks(storage: Storage, settings: LockSettings) -> list[SharedLock]:
    """The lock that the settings name; without a provider, the locks that leave a trace in the table's own folder.

    Args:
        settings: the settings of the table's writers.

    Raises:
        InvalidConfigError: the provider that was named cannot keep the lock of this table.
        StorageError: the table's name could not be read.
    """
    if settings.provider is not None:
        return [make_lock(storage, settings)]
    found = []
    for provider in _IN_THE_TABLE:
        try:
            found.append(make_lock(storage, replace(settings, provider=provider)))
        except InvalidConfigError:
            continue  # Hudi does not support this lock on this store
    return found
