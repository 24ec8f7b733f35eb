"""The record of a storage-based lock, and the rules that follow from it (pure; StorageBasedLockProvider).

::

    .hoodie/.locks/table_lock.json      {"expired":false,"validUntil":1795343212345,"owner":"…"}

The file is never deleted. A writer that takes, renews or releases the lock replaces the file, on the condition that it
still has the version that the writer has read. ``expired`` is true once the lock was released.
"""

import json
from dataclasses import dataclass, replace

from table.errors import StorageError
from table.storage.interface import METAFOLDER, join
from table.transaction.locks.provider import CLOCK_DRIFT_MS

LOCK_PATH = join(METAFOLDER, ".locks", "table_lock.json")


@dataclass(frozen=True, slots=True)
class LockRecord:
    """The holder of a lock, and the end of its validity (StorageLockData).

    Attributes:
        expired: whether the lock was released.
        valid_until_ms: end of validity without a renewal, in milliseconds since the epoch.
        owner: identity of one lock object in one process.
    """

    expired: bool
    valid_until_ms: int
    owner: str

    def encode(self) -> bytes:
        """JSON as Jackson writes it."""
        document = {"expired": self.expired, "validUntil": self.valid_until_ms, "owner": self.owner}
        return json.dumps(document, separators=(",", ":")).encode()

    def released(self) -> "LockRecord":
        """The record of the same lock after its release."""
        return replace(self, expired=True)


def decode_record(data: bytes) -> LockRecord:
    """The inverse of `LockRecord.encode`; unknown fields are ignored.

    Raises:
        StorageError: the bytes are not the record of a lock.
    """
    try:
        document = json.loads(data)
        expired, valid_until_ms, owner = document["expired"], document["validUntil"], document["owner"]
    except (ValueError, KeyError, TypeError) as error:
        raise _unreadable(data) from error
    if not isinstance(expired, bool) or type(valid_until_ms) is not int or not isinstance(owner, str):
        raise _unreadable(data)
    return LockRecord(expired, valid_until_ms, owner)


def _unreadable(data: bytes) -> StorageError:
    return StorageError(
        f"{LOCK_PATH} does not hold the record of a lock but {data[:80]!r}: `hudistream lock break` replaces it"
    )


def free_from_ms(record: LockRecord | None, me: str) -> int:
    """The time from which a writer may take a lock, in milliseconds since the epoch.

    Args:
        record: the record on the store; None if no writer ever took the lock.
        me: the owner that asks. It may take its own record, which it left if the store's answer was lost.

    Returns:
        0 if the lock is free; else the first millisecond that is certainly past the record's validity, whatever the
        difference between two clocks.
    """
    if record is None or record.expired or record.owner == me:
        return 0
    return record.valid_until_ms + CLOCK_DRIFT_MS + 1


def is_trusted(valid_until_ms: int, now_ms: int) -> bool:
    """Whether the owner of a lock may still rely on it: its validity has not ended by any machine's clock.

    Args:
        valid_until_ms: the validity that the owner wrote.
        now_ms: the present time by the owner's clock.
    """
    return now_ms < valid_until_ms - CLOCK_DRIFT_MS
