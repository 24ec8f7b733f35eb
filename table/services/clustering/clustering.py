"""Clusters a table: plan, request, execution and commit in one turn of the process that holds the table.

A clustering is a commit like those of batches. Other writers find it by its heartbeat. If its process dies, it is
undone by its markers. If another writer changed one of its file groups meanwhile, it gives way. Its request holds the
plan in Hudi's form.
"""

from dataclasses import dataclass
from functools import partial

from table import clock
from table.config.writable import check_can_write, check_has_meta_fields
from table.errors import (
    ActionPendingError,
    InvalidConfigError,
    UnsupportedTableError,
    WriteConflictError,
)
from table.hudi_table import HudiTable
from table.index.bucket import are_buckets
from table.log import get_logger
from table.notebook import ShownInNotebooks
from table.options.clustering_settings import ClusteringSettings, Layout
from table.options.groups import BaseFileSettings
from table.references.losses import check_inputs, with_second_look
from table.services.clustering.cluster_group import cluster_group
from table.services.clustering.plan import choose_partitions, order_number, plan_clustering
from table.services.rewriting import Rewriting
from table.services.rollback.under_way import under_way
from table.services.runner import PieceRunner
from table.snapshot import Snapshot
from table.timeline.change import Change
from table.timeline.instant import WRITE_ACTIONS, Action, Instant
from table.timeline.metadata.clustering import OPERATION, ClusteringPlan, encode_clustering_plan
from table.timeline.metadata.commit import CommitMetadata, WriteStat
from table.timeline.timeline import Timeline
from table.transaction.commit import begin_commit, clean_up_commit, complete_commit
from table.transaction.commit_facts import PendingCommit
from table.transaction.heartbeat import WriterIdentity
from table.transaction.lease import Lease
from table.transaction.outcome import LostCommit
from table.transaction.planned_clusterings import is_foreign_clustering, load_clustered
from table.view.file_group import CommittedInstants, FileSlice
from table.view.file_system_view import list_file_groups, walk_file_groups
from table.view.pending_compactions import load_compacting
from table.write.row_order import check_sortable
from table.write.sorted_rows import Ordering

log = get_logger("hudistream.clustering")


@dataclass(frozen=True, repr=False)
class ClusteringOutcome(ShownInNotebooks):
    """What a clustering did.

    Attributes:
        instant_time: the instant time of its commit.
        files_before: number of file groups that were replaced.
        files_after: number of file groups that replace them.
        rows: number of rows in the new files.
        bytes_written: size of the new files.
    """

    instant_time: str
    files_before: int
    files_after: int
    rows: int
    bytes_written: int


LOCALLY = PieceRunner()


def cluster_held(
    table: HudiTable,
    settings: ClusteringSettings,
    base_file: BaseFileSettings,
    lease: Lease,
    identity: WriterIdentity,
    *,
    only_due: bool = False,
    runner: PieceRunner = LOCALLY,
) -> ClusteringOutcome | None:
    """Clusters the slices that the settings choose.

    The caller holds the table by this lease, and writes nothing meanwhile.

    Args:
        settings: which slices, and in which order.
        base_file: how base files are encoded.
        lease: the caller's hold on the table, alone or as one of several writers.
        identity: the caller.
        only_due: whether to do nothing until enough commits have come since the last clustering.
        runner: runs the groups of the plan.

    Returns:
        What was done; None if nothing was due, or if nothing would change.

    Raises:
        UnsupportedTableError: tables of this kind are not clustered.
        InvalidConfigError: a sort column is not in the table, or has no order.
        CommitConflictError: a write is pending, or another writer changed one of the file groups meanwhile.
    """
    check_can_write(table.config)
    check_has_meta_fields(table.config, "clustered")
    snapshot = Snapshot.load(table)
    if only_due and not is_due(snapshot, settings):
        return None
    plan = plan_now(snapshot, settings)
    if not plan.groups:
        return None
    if not lease.is_shared:
        check_nothing_pending(snapshot)
    request = encode_clustering_plan(plan, table.storage.base_uri)
    pending = begin_commit(snapshot, OPERATION, identity, lease, Action.REPLACE_COMMIT, request)
    with under_way(pending, lease, identity):
        check_nothing_came(snapshot.timeline, pending.seen.timeline)
        check_inputs(pending.seen, plan.file_groups)
        rewriting = Rewriting.of(pending.seen, pending.time, base_file, "clustered")
        stats = write_groups(rewriting, plan, settings.layout, runner)
        complete(pending, rewriting, plan, stats, lease)
    return conclude(table, pending.time, plan, stats)


def is_due(snapshot: Snapshot, settings: ClusteringSettings) -> bool:
    """Whether enough commits have come since the last clustering.

    Reads the replace commits among them, and no other.
    """
    writes = snapshot.timeline.completed_writes
    if len(writes) < settings.max_commits:
        return False
    newest = writes[-settings.max_commits :]
    return not any(i.action is Action.REPLACE_COMMIT and _is_clustering(snapshot, i) for i in newest)


def _is_clustering(snapshot: Snapshot, replaced: Instant) -> bool:
    return snapshot.commits.read(replaced).operation == OPERATION


def plan_now(snapshot: Snapshot, settings: ClusteringSettings) -> ClusteringPlan:
    """Plans a clustering of the table in the state of the snapshot.

    Raises:
        InvalidConfigError: a sort column is not in the table, or has no order.
        UnsupportedTableError: the table has a bucket index.
    """
    schema = snapshot.load_schema()
    names = schema.names if schema is not None else []
    for name in settings.sort_columns:
        if schema is None or name not in names:
            raise InvalidConfigError(
                f"hoodie.clustering.plan.strategy.sort.columns: the table has no column {name!r}; it has "
                f"{', '.join(names)}"
            )
        check_sortable(name, schema.field(name).type)
    pending = snapshot.timeline.pending_of(Action.COMPACTION, Action.LOG_COMPACTION)
    compacting = load_compacting(snapshot.storage, pending)
    taken = {*compacting, *load_clustered(snapshot)}
    candidates = [one for one in _slices(snapshot, settings) if (one.partition_path, one.file_id) not in taken]
    return plan_clustering(candidates, settings)


def _slices(snapshot: Snapshot, settings: ClusteringSettings) -> list[FileSlice]:
    """The slices that readers see in the partition paths that the settings choose. No folder is listed twice.

    Raises:
        LostDataError: a file of a slice is gone or cut short.
    """
    return with_second_look(snapshot, partial(_confirmed_slices, snapshot, settings))


def _confirmed_slices(
    snapshot: Snapshot, settings: ClusteringSettings, confirmed: CommittedInstants
) -> list[FileSlice]:
    named = ((path, list_file_groups(snapshot.listing, path, confirmed)) for path in settings.partitions)
    walked = dict(named if settings.partitions else walk_file_groups(snapshot.listing, confirmed))
    hour = clock.to_datetime(clock.now_ms(), snapshot.config.timezone).hour
    chosen = choose_partitions(walked, settings, hour)
    slices = [group.merged_slice for path in chosen for group in walked[path]]
    if are_buckets(one.file_id for one in slices):
        raise UnsupportedTableError(
            f"the table {snapshot.config.name!r} has a bucket index: the key of a row decides in which file group it "
            "lies, so that clustering cannot move it"
        )
    return slices


def check_nothing_pending(snapshot: Snapshot, apart_from: str | None = None) -> None:
    """Refuses to plan beside a write that is pending, or beside another clustering.

    Args:
        apart_from: time of the caller's own instant.

    Raises:
        ActionPendingError: names the instant.
    """
    for pending in snapshot.timeline.pending_of(*WRITE_ACTIONS, Action.CLUSTERING, Action.RESTORE, Action.ROLLBACK):
        if pending.time == apart_from:
            continue
        if is_foreign_clustering(snapshot, pending):
            raise ActionPendingError(
                f"the clustering {pending.time} is pending: carry it out (`hudistream cluster --execute`), or "
                f"remove it (`hudistream rollback PATH {pending.time}`), and plan another one then"
            )
        raise ActionPendingError(
            f"{pending.file_name} is pending: let its writer finish it, or, where its writer is dead, start the stream "
            f"again or undo it (`hudistream rollback PATH {pending.time}`), and cluster then"
        )


def check_nothing_came(planned_from: Timeline, now: Timeline) -> None:
    """Refuses a plan if commits came while it was made.

    Raises:
        WriteConflictError: they did.
    """
    if not Change.between(planned_from.committed_times, now.committed_times).is_none:
        raise WriteConflictError("commits came while the clustering was planned: it can be run again")


def complete(
    pending: PendingCommit, rewriting: Rewriting, plan: ClusteringPlan, stats: tuple[WriteStat, ...], lease: Lease
) -> None:
    """Makes a clustering visible.

    Args:
        pending: the clustering's commit.
        rewriting: how its files were written.
        plan: what was planned.
        stats: the stats of the files that were written.
        lease: the caller's hold on the table.

    Raises:
        CommitConflictError: another writer changed one of the file groups meanwhile.
        CommitOutcomeUnknownError: the store did not say whether the commit is visible.
    """
    written = CommitMetadata(stats, OPERATION, {}, plan.replaced)
    done = complete_commit(pending, written, rewriting.schema, lambda _now: {}, lease)
    if isinstance(done, LostCommit):
        raise done.error()


def write_groups(
    rewriting: Rewriting, plan: ClusteringPlan, layout: Layout, runner: PieceRunner = LOCALLY
) -> tuple[WriteStat, ...]:
    """Writes the file groups of a plan.

    Args:
        rewriting: how rows are read and written.
        plan: what is rewritten, and by which columns rows are sorted.
        layout: the order of several sort columns; the plan does not name it.
        runner: runs the groups.

    Returns:
        The stats of the files.
    """
    ordering = Ordering(plan.sort_columns, layout, order_number(plan.sort_columns, layout))
    piece = partial(cluster_group, rewriting.context, rewriting.reading, ordering, plan.groups)
    read_mb = sum(group.metrics.get("TOTAL_IO_READ_MB", 0.0) for group in plan.groups)
    return runner.run(piece, len(plan.groups), read_mb)


def conclude(table: HudiTable, time: str, plan: ClusteringPlan, stats: tuple[WriteStat, ...]) -> ClusteringOutcome:
    """Cleans up after a clustering that is visible, and informs others of it.

    Args:
        time: the instant time of its commit.
        plan: what was planned.
        stats: the stats of its files.
    """
    clean_up_commit(table.storage, time, stats)
    before = sum(len(group.slices) for group in plan.groups)
    rows, size = sum(stat.num_writes for stat in stats), sum(stat.file_size_bytes for stat in stats)
    done = ClusteringOutcome(time, before, len(stats), rows, size)
    log.info(
        "clustering_committed",
        table=table.storage.base_uri,
        instant_time=time,
        files_before=done.files_before,
        files_after=done.files_after,
        rows=done.rows,
    )
    return done
