"""A lock in a table of DynamoDB (DynamoDBBasedLockProvider over AmazonDynamoDBLockClient).

Requests: two to take a lock that is free, one to renew, check or release it.
"""

import platform
from collections.abc import Callable
from dataclasses import replace

from table import clock, threads
from table.errors import StorageError, TableHeldError
from table.options.lock_settings import LockProvider, LockSettings
from table.transaction.locks.dynamodb_row import LockRow, Watched, may_take, watch
from table.transaction.locks.dynamodb_table import LockTable, check_boto3
from table.transaction.locks.patience import Deadline, Grip, PatientLock
from table.transaction.locks.provider import LockState
from table.transaction.locks.renewed_grip import RenewedGrip

_LOOKS_AGAIN_S = 1.0  # as the lock client does
_RENEWALS_PER_LEASE = 3  # as Hudi has it


class DynamodbLock(PatientLock):
    """The lock of one table in DynamoDB. Its lease is as long as one attempt waits, as with Hudi.

    Args:
        key: key of the lock's row.
        settings: lock table, region, and how long to wait.
        open_table: opens the lock table.

    Attributes:
        owner: identity of this lock object.

    Raises:
        InvalidConfigError: boto3 is not installed.
    """

    def __init__(
        self, key: str, settings: LockSettings, open_table: Callable[[LockSettings, str], LockTable] = LockTable
    ) -> None:
        check_boto3()
        super().__init__(f"{key!r} in the DynamoDB table {settings.dynamodb_table!r}", settings)
        self.owner = f"{platform.node()}-{clock.fresh_uuid()}"
        self._key, self._open_table = key, open_table
        self._table: LockTable | None = None
        self._is_made = False
        self._mutex = threads.make_lock()

    @property
    def is_shared_between_processes(self) -> bool:
        """True: the lock excludes writers of other processes."""
        return True

    @property
    def table(self) -> LockTable:
        """The lock table, opened at its first use."""
        with self._mutex:
            if self._table is None:
                self._table = self._open_table(self.settings, self._key)
            return self._table

    def _take(self, deadline: Deadline) -> Grip | None:
        table = self.table
        if not self._is_made:
            table.ensure()
            self._is_made = True
        watched: Watched | None = None
        while True:
            failure: StorageError | None = None
            try:
                row = table.read()
                now_s = clock.monotonic_s()
                if may_take(row, self.owner, watched, now_s):
                    grip = DynamodbGrip(self, row)
                    if grip.renew():
                        grip.start()
                        return grip
                elif row is not None:
                    if watched is None:
                        deadline.extend(row.lease_ms)  # the lock cannot be taken from its holder earlier
                    watched = watch(watched, row, now_s)
            except StorageError as error:
                failure = error
            if not deadline.pause(_LOOKS_AGAIN_S):
                if failure is not None:
                    raise failure
                return None

    def describe(self) -> LockState | None:
        """The writer that holds the lock or held it last."""
        row = self.table.read()
        return None if row is None else self._state(row)

    def _state(self, row: LockRow) -> LockState:
        note = (
            "released"
            if row.is_released
            else f"others take it once they have seen the same version number for {row.lease_ms / 1000:g} s"
        )
        return LockState(LockProvider.DYNAMODB, self.place, not row.is_released, f"owner {row.owner}", None, None, note)

    def break_lock(self) -> LockState | None:
        """Marks the holder's row as released, as its owner would."""
        row = self.table.read()
        if row is None or row.is_released:
            return None
        if not self.table.release(row):
            raise TableHeldError(f"the lock {self.place} changed hands or was renewed meanwhile: try it again")
        return self._state(row)


class DynamodbGrip(RenewedGrip):
    """A lock in DynamoDB while it is held.

    Args:
        lock: the lock that is held.
        seen: the row that the new row replaces; None if there is none.
    """

    def __init__(self, lock: DynamodbLock, seen: LockRow | None) -> None:
        lease_ms = lock.settings.wait_ms
        super().__init__(lock.place, lock.describe, lease_ms, lease_ms / 1000 / _RENEWALS_PER_LEASE)
        self._table, self._seen = lock.table, seen
        self._row: LockRow | None = None
        self._new = LockRow(lock.owner, lease_ms, "")

    def _write_renewal(self) -> bool:
        then = replace(self._new, number=clock.fresh_uuid())
        if self._row is None:
            done = self._table.take(then, self._seen)
        else:
            done = self._table.renew(self._row, then.number) or (
                self._find_own() and self._table.renew(self._row, then.number)
            )
        if done:
            self._row = then
        return done

    def _write_release(self) -> bool:
        if self._row is None:
            return False
        return self._table.release(self._row) or (self._find_own() and self._table.release(self._row))

    def _find_own(self) -> bool:
        """Whether the table holds a write of this grip whose answer was lost. If so, continues from that row."""
        found = self._table.read()
        if found is None or found.owner != self._new.owner or found.is_released:
            return False
        self._row = found
        return True
