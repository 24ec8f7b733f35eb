"""Holds a table for a command that commits files: alone, or as one of the writers that share it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from table.hudi_table import HudiTable
from table.options.groups import HeartbeatSettings
from table.options.lock_settings import LockSettings
from table.services.rollback.rollback import roll_back_failed_writes
from table.transaction.heartbeat import WriterIdentity
from table.transaction.lease import Lease
from table.transaction.liveness import Beside
from table.transaction.lock import lock_for
from table.transaction.membership import Membership


@contextmanager
def held_to_write(
    table: HudiTable, name: str, heartbeat: HeartbeatSettings, lock: LockSettings | None, *, shared: bool
) -> Iterator[tuple[HudiTable, Lease, WriterIdentity]]:
    """Holds the table, and the lock that the options name.

    Args:
        name: of the command, as its lease and its heartbeats say it.
        heartbeat: how long the table is held after the process has died.
        lock: the lock that other writers take; None: as by default.
        shared: whether other writers write the table meanwhile, in the mode of several writers.

    Yields:
        The table with its lock, the hold on it, and the command as a writer.

    Raises:
        CommitConflictError: a writer holds the table.
    """
    with _locked(table, lock) as locked, joined(locked, name, heartbeat, shared=shared) as (lease, identity):
        yield locked, lease, identity


@contextmanager
def joined(
    table: HudiTable, name: str, heartbeat: HeartbeatSettings, *, shared: bool
) -> Iterator[tuple[Lease, WriterIdentity]]:
    """Holds the table, and ends the writes that dead writers left. The arguments are those of `held_to_write`."""
    lease = (Membership if shared else Lease)(table.storage, heartbeat)
    identity = WriterIdentity(name, None, lease.owner)
    lease.hold(identity)
    try:
        roll_back_failed_writes(table, identity, heartbeat, beside=lease.beside)
        if lease.beside is Beside.OTHER_ENGINES:  # the first of the writers that share the table
            lease.share()
        lease.wait_for_turn()
        yield lease, identity
    finally:
        lease.end_turn()
        lease.release()


@contextmanager
def _locked(table: HudiTable, settings: LockSettings | None) -> Iterator[HudiTable]:
    """The table with the lock that the options name."""
    lock = lock_for(table.storage, settings or LockSettings())
    try:
        yield replace(table, lock=lock)
    finally:
        lock.close()
