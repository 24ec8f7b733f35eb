"""The row of a lock in DynamoDB, and when a writer may take the lock (pure).

As AmazonDynamoDBLockClient and DynamoDBBasedLockProviderBase do it.

::

    key                  the partition key: which lock
    ownerName            the holder
    leaseDuration        milliseconds, as text
    recordVersionNumber  a new one with each taking and each renewal
    isReleased           "1" once it was released; else absent

No row holds a time. A writer that wants a lock which another writer holds watches its version number for the duration
of the lease, by its own clock. If the number stays the same for so long, the holder gave no sign.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from table.errors import StorageError

KEY = "key"
OWNER, LEASE, NUMBER, RELEASED = "ownerName", "leaseDuration", "recordVersionNumber", "isReleased"


@dataclass(frozen=True, slots=True)
class LockRow:
    """A row of the lock table.

    Attributes:
        owner: identity of one lock object in one process.
        lease_ms: milliseconds that the lock lasts after a renewal.
        number: version number, which each taking and each renewal changes.
        is_released: whether the owner has released the lock.
    """

    owner: str
    lease_ms: int
    number: str
    is_released: bool = False

    def encode(self, key: str) -> dict[str, Any]:
        """The attributes of a row that is not released."""
        texts = {KEY: key, OWNER: self.owner, LEASE: str(self.lease_ms), NUMBER: self.number}
        return {name: {"S": text} for name, text in texts.items()}


def decode_row(item: Mapping[str, Any]) -> LockRow:
    """The inverse of `LockRow.encode`; other attributes are ignored.

    Raises:
        StorageError: the item is not the row of a lock.
    """
    try:
        return LockRow(
            str(item[OWNER]["S"]), int(item[LEASE]["S"]), str(item[NUMBER]["S"]), is_released=RELEASED in item
        )
    except (KeyError, TypeError, ValueError) as error:
        raise StorageError(
            f"the lock table does not hold the row of a lock but {dict(item)!r}: delete the row if no writer is at work"
        ) from error


@dataclass(frozen=True, slots=True)
class Watched:
    """A row of another writer, and the time since which it is watched.

    Attributes:
        row: the row as first read with this version number.
        since_s: time of that read, after the answer had arrived, by a clock that never goes back.
    """

    row: LockRow
    since_s: float


def watch(watched: Watched | None, row: LockRow, now_s: float) -> Watched:
    """Continues the watch, or begins it anew if the row's version number changed."""
    if watched is not None and watched.row.number == row.number:
        return watched
    return Watched(row, now_s)


def may_take(row: LockRow | None, me: str, watched: Watched | None, now_s: float) -> bool:
    """Whether a lock may be taken.

    Args:
        row: the row in the table; None if no writer ever took the lock.
        me: the owner that asks. It may take its own row, which it left if DynamoDB's answer was lost.
        watched: the watched row.
        now_s: the present time, by the same clock.
    """
    if row is None or row.is_released or row.owner == me:
        return True
    if watched is None or watched.row.number != row.number:
        return False
    return (now_s - watched.since_s) * 1000 > watched.row.lease_ms
