"""A lock that is one object in the table's own store (StorageBasedLockProvider, S3StorageLockClient).

Requests: two to take it, one to renew, check or release it. When a lock object takes it for the first time, two more
requests test that the server heeds conditions. If an answer was lost, or if the client retried the request by itself,
the answer does not show the outcome. Then the object is read, and its content decides.
"""

from table import clock
from table.errors import InvalidConfigError, StorageError, TableHeldError
from table.options.lock_settings import LockProvider, LockSettings
from table.storage.interface import Storage
from table.storage.versions import VersionedFile
from table.transaction.locks.patience import Deadline, Grip, PatientLock
from table.transaction.locks.provider import LockState
from table.transaction.locks.renewed_grip import RenewedGrip
from table.transaction.locks.storage_record import LOCK_PATH, LockRecord, decode_record, free_from_ms, is_trusted

_LOOKS_AGAIN_S = 1.0  # as Hudi does
_REQUESTS_PER_VALIDITY = 5
_NO_VERSION = '"00000000000000000000000000000000"'  # in the form of an ETag


class LockFile:
    """The object on the store.

    Args:
        timeout_s: seconds after which an answer no longer counts.
    """

    def __init__(self, storage: Storage, timeout_s: float) -> None:
        self._storage, self._timeout_s = storage, timeout_s

    def read(self) -> VersionedFile | None:
        """The content of the object; None if it does not exist.

        Raises:
            StorageError: the store fails.
        """
        return self._storage.read_versioned(LOCK_PATH, self._timeout_s)

    def replace(self, record: LockRecord, version: str | None) -> str | None:
        """Replaces the object if it still has that version.

        Returns:
            The new version; None if another writer has replaced the object.

        Raises:
            StorageError: the object was not replaced, as far as is known.
        """
        data = record.encode()
        failure: StorageError | None = None
        try:
            written = self._storage.replace_if(LOCK_PATH, data, version, self._timeout_s)
        except StorageError as error:
            failure, written = error, None
        if written is not None:
            return written
        found = self.read()
        if found is not None and found.data == data:
            return found.version
        if failure is not None and (found.version if found is not None else None) == version:
            raise failure
        return None

    def check_conditions(self, record: LockRecord) -> None:
        """Tests that the store refuses a write whose condition does not hold.

        The test writes the record that the object already holds.

        Raises:
            InvalidConfigError: the store ignores conditions: several writers could take the lock at the same time.
            StorageError: the store gave no answer.
        """
        data = record.encode()
        for version, header in ((_NO_VERSION, "If-Match"), (None, "If-None-Match")):
            if self._storage.replace_if(LOCK_PATH, data, version, self._timeout_s) is not None:
                raise InvalidConfigError(
                    f"hoodie.write.lock.provider=storage: the store of {self._storage.base_uri!r} passes over the "
                    f"header {header} of a request, and so would let several writers hold the lock at once; use the "
                    "lock provider zookeeper or dynamodb"
                )


class StorageLock(PatientLock):
    """The storage-based lock of one table.

    Args:
        storage: the table's store, which must have versions.
        settings: validity, renewals, and how long to wait.

    Attributes:
        owner: identity of this lock object.
    """

    def __init__(self, storage: Storage, settings: LockSettings) -> None:
        super().__init__(f"{LOCK_PATH} of {storage.base_uri!r}", settings)
        self.owner = clock.fresh_uuid()
        self.file = LockFile(storage, settings.storage_validity_s / _REQUESTS_PER_VALIDITY)
        self._is_checked = storage.keeps_conditions

    @property
    def is_shared_between_processes(self) -> bool:
        """True: the lock excludes writers of other processes."""
        return True

    def _take(self, deadline: Deadline) -> Grip | None:
        while True:
            failure: StorageError | None = None
            pause_s = _LOOKS_AGAIN_S
            try:
                found = self.file.read()
                record = decode_record(found.data) if found is not None else None
                ahead_ms = free_from_ms(record, self.owner) - clock.now_ms()
                if ahead_ms > 0:
                    pause_s = min(pause_s, ahead_ms / 1000)
                else:
                    grip = self._grip(found)
                    if grip is not None:
                        return grip
            except StorageError as error:
                failure = error
            if not deadline.pause(pause_s):
                if failure is not None:
                    raise failure
                return None

    def _grip(self, found: VersionedFile | None) -> "StorageGrip | None":
        grip = StorageGrip(self, found.version if found is not None else None)
        if not grip.renew():
            return None
        if not self._is_checked:
            try:
                self.file.check_conditions(grip.record)
            except BaseException:
                grip.release()
                raise
            self._is_checked = True
        grip.start()
        return grip

    def describe(self) -> LockState | None:
        """The holder of the lock, and the end of its validity."""
        found = self.file.read()
        if found is None:
            return None
        record = decode_record(found.data)
        is_held = free_from_ms(record, "") > clock.now_ms()
        note = "" if is_held else "released" if record.expired else "expired: its holder gave no sign"
        return LockState(
            LockProvider.STORAGE, self.place, is_held, f"owner {record.owner}", None, record.valid_until_ms, note
        )

    def break_lock(self) -> LockState | None:
        """Writes the record of a released lock, as its owner would."""
        found = self.file.read()
        if found is None:
            return None
        try:
            record = decode_record(found.data)
        except StorageError:
            state = LockState(LockProvider.STORAGE, self.place, True, note="the file could not be read")
            record = LockRecord(True, clock.now_ms(), self.owner)
        else:
            if free_from_ms(record, "") <= clock.now_ms():
                return None
            state = LockState(
                LockProvider.STORAGE, self.place, True, f"owner {record.owner}", None, record.valid_until_ms
            )
        if self.file.replace(record.released(), found.version) is None:
            raise TableHeldError(f"the lock {self.place} changed hands meanwhile: it was not broken")
        return state


class StorageGrip(RenewedGrip):
    """A storage-based lock while it is held.

    Args:
        lock: the lock that is held.
        version: version of the object that the new record replaces; None if there is no object.

    Attributes:
        record: the last written record.
    """

    def __init__(self, lock: StorageLock, version: str | None) -> None:
        settings = lock.settings
        super().__init__(lock.place, lock.describe, settings.storage_validity_s * 1000, settings.storage_renewal_s)
        self._file, self._version = lock.file, version
        self.record = LockRecord(True, 0, lock.owner)

    def _write_renewal(self) -> bool:
        return self._write(LockRecord(False, clock.now_ms() + self._validity_ms, self.record.owner))

    def _write_release(self) -> bool:
        return self._write(self.record.released())

    def _write(self, record: LockRecord) -> bool:
        version = self._file.replace(record, self._version)
        if version is None:
            ours = self._own_version()
            version = self._file.replace(record, ours) if ours is not None else None
        if version is None:
            return False
        self.record, self._version = record, version
        return True

    def _own_version(self) -> str | None:
        """The object's version, if it holds a record that this grip wrote and whose answer was lost."""
        found = self._file.read()
        if found is None:
            return None
        record = decode_record(found.data)
        return found.version if record.owner == self.record.owner and not record.expired else None

    def _has_ended(self) -> bool:
        return not is_trusted(self.record.valid_until_ms, clock.now_ms())
