"""The holder of a table's lease, and whether it is alive: for check, doctor and health, which write nothing."""

from dataclasses import dataclass

from table.options.groups import HeartbeatSettings
from table.storage.interface import Storage
from table.transaction.lease import find_holder
from table.transaction.lease_record import LeaseRecord, is_dead_here
from table.transaction.signs import read_age_ms, still_counts


@dataclass(frozen=True)
class Holder:
    """The holder of the table, before the caller itself holds it.

    Attributes:
        record: the lease; None if no writer ever held it.
        age_ms: age of the newest sign that the holder is alive; None: there is none, or the lease was released.
        is_alive: whether it counts.
    """

    record: LeaseRecord | None = None
    age_ms: int | None = None
    is_alive: bool = False

    @property
    def has_expired(self) -> bool:
        """Whether the lease has a holder that is not alive any more."""
        return self.record is not None and self.record.identity is not None and not self.is_alive


def find_standing_holder(storage: Storage, settings: HeartbeatSettings) -> Holder:
    """The holder of the table, and whether it is alive.

    Args:
        storage: the table's store.
        settings: how long a lease lasts.
    """
    record = find_holder(storage)
    if record is None or record.is_released:
        return Holder(record)
    age_ms = read_age_ms(storage, record.identity.owner if record.identity is not None else None)
    counts = still_counts(age_ms, settings.expiry_ms, storage.time_granularity_ms)
    return Holder(record, age_ms, counts and not is_dead_here(record))
