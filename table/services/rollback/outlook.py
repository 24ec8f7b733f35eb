"""Looks for what becomes of pending instants, for commands that say it. Changes nothing."""

from table.clock import now_ms
from table.errors import CorruptFileError
from table.options.groups import HeartbeatSettings
from table.services.rollback.fate import WRITES, Fate, Outlook, judge_pending
from table.snapshot import Snapshot
from table.storage.interface import Storage
from table.timeline.end_record import find_end
from table.timeline.instant import Instant
from table.transaction.heartbeat import WriterIdentity, find_live_writer
from table.transaction.holder import Holder
from table.transaction.membership import is_open
from table.transaction.planned_clusterings import is_foreign_clustering


def load_outlook(
    snapshot: Snapshot, holder: Holder, settings: HeartbeatSettings, *, may_live: bool = True
) -> tuple[Outlook, ...]:
    """What the next batch does with each pending instant, oldest first.

    Args:
        snapshot: the table.
        holder: of its lease.
        settings: when a heartbeat counts as expired.
        may_live: whether a live writer that knows no leases may write beside the batch.

    Raises:
        StorageError: the store fails.
    """
    found = []
    for instant in snapshot.timeline.pending:
        if instant.action not in WRITES:
            fate = judge_pending(instant.action, lives=holder.is_alive)
            found.append(Outlook(instant, fate))
            continue
        try:
            end = find_end(snapshot.storage, instant.time, instant.action)
            planned = end is None and is_foreign_clustering(snapshot, instant)
        except CorruptFileError as error:
            found.append(Outlook(instant, Fate.REFUSED, damage=str(error)))
            continue
        writer = find_writer(snapshot.storage, instant, holder, settings)
        fate = judge_pending(
            instant.action,
            lives=writer is not None,
            may_live=may_live or (writer is not None and bool(writer.owner)),
            is_planned=planned,
            is_decided=end is not None and end.is_commit,
        )
        found.append(Outlook(instant, fate, writer, planned, end))
    return tuple(found)


def find_writer(
    storage: Storage, instant: Instant, holder: Holder, settings: HeartbeatSettings
) -> WriterIdentity | None:
    """The live writer of a pending write; None if it is dead, or for another action.

    A writer that knows leases is alive while it holds the table. If several writers hold the table, the heartbeat of
    each one counts.

    Args:
        storage: of the table.
        instant: requested or inflight.
        holder: of the table's lease.
        settings: when a heartbeat counts as expired.
    """
    writer = find_live_writer(storage, instant.time, settings, now_ms()) if instant.action in WRITES else None
    if writer is None or not writer.owner or is_open(holder.record):
        return writer
    owner = holder.record.identity.owner if holder.is_alive and holder.record and holder.record.identity else None
    return writer if writer.owner == owner else None
