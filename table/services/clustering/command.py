"""Clusters a table for an operator: holds the table alone, or joins the writers that share it."""

from collections.abc import Iterator
from contextlib import contextmanager

from table.errors import InvalidConfigError
from table.hudi_table import HudiTable
from table.options.clustering_settings import ClusteringSettings
from table.options.groups import BaseFileSettings, HeartbeatSettings
from table.services.clustering.clustering import ClusteringOutcome, cluster_held
from table.services.clustering.execution import carry_out_planned
from table.services.rollback.rollback import roll_back_failed_writes
from table.snapshot import Snapshot
from table.transaction.heartbeat import WriterIdentity
from table.transaction.lease import COMMANDS, Lease
from table.transaction.liveness import Beside
from table.transaction.membership import Membership

_NAME = f"{COMMANDS}cluster"


def cluster(
    table: HudiTable,
    settings: ClusteringSettings,
    base_file: BaseFileSettings,
    heartbeat: HeartbeatSettings | None = None,
    *,
    shared: bool = False,
) -> ClusteringOutcome | None:
    """Rewrites small files and unsorted rows of a table, so that rows lie where queries look.

    Args:
        settings: which files, and in which order their rows lie.
        base_file: how base files are encoded.
        heartbeat: how long the table is held after the process has died.
        shared: whether other writers write the table meanwhile, in the mode of several writers. The clustering gives
            way to a writer that changes one of its file groups.

    Returns:
        What was done; None if nothing would change.

    Raises:
        CommitConflictError: a writer holds the table, a write is pending, or another writer changed one of the file
            groups.
        UnsupportedTableError: tables of this kind are not clustered.
        InvalidConfigError: a sort column is not in the table, or has no order; the table has no such partition path.
    """
    paths = Snapshot.load(table).list_partition_paths() if settings.partitions else []
    unknown = sorted(set(settings.partitions) - set(paths))
    if unknown:
        raise InvalidConfigError(
            f"the table has no partition path {unknown[0]!r}; one that it has: {min(paths, default='')!r}"
        )
    with _held(table, heartbeat or HeartbeatSettings(), shared=shared) as (lease, identity):
        return cluster_held(table, settings, base_file, lease, identity)


def execute_planned(
    table: HudiTable,
    settings: ClusteringSettings,
    base_file: BaseFileSettings,
    heartbeat: HeartbeatSettings | None = None,
) -> list[ClusteringOutcome]:
    """Carries out the clusterings that another engine planned but did not carry out. Writers wait for their end.

    The other engine must not carry them out at the same time.

    Args:
        settings: only the layout is used, because plans do not name it.
        base_file: how base files are encoded.
        heartbeat: how long the table is held after the process has died.

    Raises:
        CommitConflictError: a writer holds the table, or changed one of the file groups.
        HudiError: a clustering could not be carried out; it can be tried again.
    """
    lease = Lease(table.storage, heartbeat or HeartbeatSettings())
    identity = WriterIdentity(_NAME, None, lease.owner)
    lease.hold(identity)
    try:
        return carry_out_planned(Snapshot.load(table), settings, base_file, lease, identity)
    finally:
        lease.release()


@contextmanager
def _held(table: HudiTable, heartbeat: HeartbeatSettings, *, shared: bool) -> Iterator[tuple[Lease, WriterIdentity]]:
    """Holds the table, alone or as one of several writers, and ends the writes that dead writers left."""
    lease = (Membership if shared else Lease)(table.storage, heartbeat)
    identity = WriterIdentity(_NAME, None, lease.owner)
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
