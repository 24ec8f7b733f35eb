"""Clusters a table for an operator: holds the table alone, or joins the writers that share it."""

from table.errors import InvalidConfigError
from table.hudi_table import HudiTable
from table.options.clustering_settings import ClusteringSettings, Layout, check_layout
from table.options.groups import BaseFileSettings, HeartbeatSettings
from table.options.lock_settings import LockSettings
from table.options.write_options import WriteOptions
from table.services.clustering.clustering import ClusteringOutcome, cluster_held
from table.services.clustering.execution import carry_out_planned
from table.services.clustering.scheduling import schedule_clustering
from table.services.held_to_write import held_to_write, joined
from table.services.runner import PieceRunner
from table.snapshot import Snapshot
from table.takes_path import takes_path
from table.timeline.instant import Instant
from table.transaction.lease import COMMANDS

_NAME = f"{COMMANDS}cluster"


@takes_path
def cluster(
    table: HudiTable,
    settings: ClusteringSettings | None = None,
    base_file: BaseFileSettings | None = None,
    heartbeat: HeartbeatSettings | None = None,
    *,
    shared: bool = False,
    lock: LockSettings | None = None,
) -> ClusteringOutcome | None:
    """Rewrites small files and unsorted rows of a table, so that rows lie where queries look.

    Args:
        table: the table, or its path.
        settings: which files, and in which order their rows lie; None: small files are put together.
        base_file: how base files are encoded; None: as a sink does by default.
        heartbeat: how long the table is held after the process has died.
        shared: whether other writers write the table meanwhile, in the mode of several writers. The clustering gives
            way to a writer that changes one of its file groups.
        lock: the lock that the other writers take; writers of other makes know no other way to keep apart.

    Returns:
        What was done; None if nothing would change.

    Raises:
        CommitConflictError: a writer holds the table, a write is pending, or another writer changed one of the file
            groups.
        UnsupportedTableError: tables of this kind are not clustered.
        InvalidConfigError: a sort column is not in the table, or has no order; a curve has too few or too many; the
            table has no such partition path.
    """
    settings = settings or ClusteringSettings()
    check_layout(settings.layout, settings.sort_columns)
    for path in settings.partitions:
        if not table.listing.list_files(path):
            raise InvalidConfigError(f"the table has no partition path {path!r}: `hudistream show` lists those it has")
    with held_to_write(table, _NAME, heartbeat or HeartbeatSettings(), lock, shared=shared) as (held, lease, identity):
        return cluster_held(held, settings, base_file or WriteOptions().file_settings, lease, identity)


def cluster_as_member(
    table: HudiTable,
    settings: ClusteringSettings,
    base_file: BaseFileSettings,
    heartbeat: HeartbeatSettings,
    runner: PieceRunner,
) -> ClusteringOutcome | None:
    """Clusters a table beside the writers that share it, as one more of them.

    Args:
        table: with the lock that the writers share.
        settings: which files, and in which order their rows lie.
        base_file: how base files are encoded.
        heartbeat: how long this writer is taken for alive after it has died.
        runner: runs the groups of the plan.

    Returns:
        What was done; None if nothing was due, or if nothing would change.

    Raises:
        CommitConflictError: a writer changed one of the file groups meanwhile: nothing was done.
        HudiError: as `cluster`.
    """
    with joined(table, _NAME, heartbeat, shared=True) as (lease, identity):
        return cluster_held(table, settings, base_file, lease, identity, only_due=True, runner=runner)


def schedule(
    table: HudiTable,
    settings: ClusteringSettings,
    heartbeat: HeartbeatSettings | None = None,
    *,
    shared: bool = False,
    lock: LockSettings | None = None,
) -> Instant | None:
    """Requests a clustering, which another process carries out. Until then no writer changes the rows of its files.

    Args:
        settings: which files, and by which columns their rows are sorted.
        heartbeat: how long the table is held after the process has died.
        shared: whether other writers write the table meanwhile, in the mode of several writers.
        lock: the lock that the other writers take.

    Returns:
        The requested clustering; None if nothing would change.

    Raises:
        CommitConflictError: a writer holds the table, or a write is pending.
        HudiError: as `cluster`.
    """
    with held_to_write(table, _NAME, heartbeat or HeartbeatSettings(), lock, shared=shared) as (held, lease, _):
        return schedule_clustering(Snapshot.load(held), settings, lease)


def execute_planned(
    table: HudiTable,
    base_file: BaseFileSettings,
    layout: Layout | None = None,
    heartbeat: HeartbeatSettings | None = None,
    *,
    shared: bool = False,
    lock: LockSettings | None = None,
) -> list[ClusteringOutcome]:
    """Carries out the clusterings that were requested and not carried out.

    Another engine must not carry them out at the same time.

    Args:
        base_file: how base files are encoded.
        layout: the order of several sort columns; None: as the plan says. Plans of other engines do not name it.
        heartbeat: how long the table is held after the process has died.
        shared: whether other writers write the table meanwhile, in the mode of several writers. They leave the file
            groups of the plans alone.
        lock: the lock that the other writers take.

    Raises:
        CommitConflictError: a writer holds the table, a file group was changed since it was planned, or another engine
            is carrying the clustering out.
        HudiError: a clustering could not be carried out; it can be tried again.
    """
    life = heartbeat or HeartbeatSettings()
    # the hold began with a recovery, which ended what was decided and withdrew the plans that lack it
    with held_to_write(table, _NAME, life, lock, shared=shared) as (held, lease, identity):
        return carry_out_planned(Snapshot.load(held), layout, base_file, lease, identity, life)
