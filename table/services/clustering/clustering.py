"""Clusters a table: plan, request, execution and commit in one turn of the process that holds the table.

A clustering is a commit like those of batches. Other writers find it by its heartbeat. If its process dies, it is
undone by its markers. If another writer changed one of its file groups meanwhile, it gives way. Its request holds the
plan in Hudi's form.
"""

from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from table import clock
from table.config.writable import check_version_written
from table.errors import (
    ActionPendingError,
    CommitOutcomeUnknownError,
    HudiError,
    InvalidConfigError,
    UnsupportedTableError,
    WriteConflictError,
)
from table.hudi_table import HudiTable
from table.index.bucket import are_buckets
from table.keys.keygen import find_key_column
from table.log import get_logger
from table.notebook import ShownInNotebooks
from table.options.clustering_settings import ClusteringSettings
from table.options.groups import BaseFileSettings
from table.scan.merge_slice import SliceReading, rules_of
from table.schema.avro_schema import relaxed, schema_json, with_meta_columns
from table.services.clustering.cluster_group import cluster_group
from table.services.clustering.order import check_sortable
from table.services.clustering.plan import choose_partitions, order_number, plan_clustering
from table.services.clustering.sorted_rows import Ordering
from table.services.compaction.compacted_file import SAME_IN_ALL_ROWS
from table.services.rollback.rollback import end_pending
from table.services.service import Spread, Stats
from table.snapshot import Snapshot
from table.timeline.instant import WRITE_ACTIONS, Action, Instant
from table.timeline.metadata.clustering import ClusteringGroup, ClusteringPlan, encode_clustering_plan
from table.timeline.metadata.commit import CommitMetadata, WriteStat
from table.transaction.commit import begin_commit, clean_up_commit, complete_commit
from table.transaction.commit_facts import PendingCommit
from table.transaction.heartbeat import WriterIdentity
from table.transaction.lease import Lease
from table.transaction.outcome import LostCommit
from table.view.file_group import FileSlice
from table.view.file_system_view import walk_file_groups
from table.view.pending_compactions import load_compacting
from table.write.context import WriteContext

OPERATION = "CLUSTER"

log = get_logger("hudistream.clustering")


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Elsewhere:
    """Other machines for the groups of a plan.

    Attributes:
        spread: clusters groups there; None: there are no other machines.
        from_mb: a plan that reads at least this many MB is carried out there.
    """

    spread: Spread | None = None
    from_mb: int = 0


NOWHERE_ELSE = Elsewhere()


def cluster_held(
    table: HudiTable,
    settings: ClusteringSettings,
    base_file: BaseFileSettings,
    lease: Lease,
    identity: WriterIdentity,
    *,
    only_due: bool = False,
    elsewhere: Elsewhere = NOWHERE_ELSE,
) -> ClusteringOutcome | None:
    """Clusters the slices that the settings choose.

    The caller holds the table by this lease, and writes nothing meanwhile.

    Args:
        settings: which slices, and in which order.
        base_file: how base files are encoded.
        lease: the caller's hold on the table, alone or as one of several writers.
        identity: the caller.
        only_due: whether to do nothing until enough commits have come since the last clustering.
        elsewhere: other machines, for a large plan.

    Returns:
        What was done; None if nothing was due, or if nothing would change.

    Raises:
        UnsupportedTableError: tables of this kind are not clustered.
        InvalidConfigError: a sort column is not in the table, or has no order.
        CommitConflictError: a write is pending, or another writer changed one of the file groups meanwhile.
    """
    check_version_written(table.config, "cluster")
    snapshot = Snapshot.load(table)
    if only_due and commits_since(snapshot, find_clusterings(snapshot)) < settings.max_commits:
        return None
    plan = plan_now(snapshot, settings)
    if not plan.groups:
        return None
    if not lease.is_shared:
        _check_nothing_pending(snapshot)
    request = encode_clustering_plan(plan, table.storage.base_uri)
    pending = begin_commit(snapshot, OPERATION, identity, lease, Action.REPLACE_COMMIT, request)
    lease.beat_for(pending.time, identity, pending.sight)
    try:
        _check_nothing_came(snapshot, pending)
        stats = write_groups(pending, plan, settings, base_file, elsewhere)
        complete(pending, plan, stats, lease)
    except CommitOutcomeUnknownError:
        lease.beat_for(None)  # the commit may yet appear: the next writer finds out
        raise
    except BaseException:
        _undo(pending, lease)
        raise
    lease.beat_for(None)
    clean_up_commit(table.storage, pending.time, stats)
    outcome = outcome_of(pending.time, plan, stats)
    log.info(
        "clustering_committed",
        table=table.storage.base_uri,
        instant_time=outcome.instant_time,
        files_before=outcome.files_before,
        files_after=outcome.files_after,
        rows=outcome.rows,
    )
    return outcome


def find_clusterings(snapshot: Snapshot) -> tuple[Instant, ...]:
    """The completed clusterings on the active timeline, oldest first."""
    replaced = snapshot.timeline.completed_of(Action.REPLACE_COMMIT)
    return tuple(instant for instant in replaced if snapshot.commits.read(instant).operation == OPERATION)


def commits_since(snapshot: Snapshot, clustered: tuple[Instant, ...]) -> int:
    """The number of completed writes since the last clustering."""
    last = max((instant.time for instant in clustered), default="")
    return sum(instant.time > last for instant in snapshot.timeline.completed_writes)


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
    hour = clock.to_datetime(clock.now_ms(), snapshot.config.timezone).hour
    paths = choose_partitions(snapshot.list_partition_paths(), settings, hour)
    return plan_clustering(_candidates(snapshot, frozenset(paths)), settings)


def _candidates(snapshot: Snapshot, paths: frozenset[str]) -> list[FileSlice]:
    pending = snapshot.timeline.pending_of(Action.COMPACTION, Action.LOG_COMPACTION)
    compacting = load_compacting(snapshot.storage, pending)
    walked = walk_file_groups(snapshot.listing, snapshot.slicing)
    newest = [group.slices[0] for path, groups in walked if path in paths for group in groups]
    if are_buckets(one.file_id for one in newest):
        raise UnsupportedTableError(
            f"the table {snapshot.config.name!r} has a bucket index: the key of a row decides in which file group it "
            "lies, so that clustering cannot move it"
        )
    return [one for one in newest if (one.partition_path, one.file_id) not in compacting]


def _check_nothing_pending(snapshot: Snapshot) -> None:
    for pending in snapshot.timeline.pending_of(*WRITE_ACTIONS, Action.CLUSTERING, Action.RESTORE, Action.ROLLBACK):
        raise ActionPendingError(
            f"{pending.file_name} is pending: let its writer finish it, or roll it back where its writer is dead "
            "(`hudistream clean`), and cluster then"
        )


def _check_nothing_came(planned_from: Snapshot, pending: PendingCommit) -> None:
    if pending.seen.timeline.committed_times != planned_from.timeline.committed_times:
        raise WriteConflictError("commits came while the clustering was planned: it can be run again")


def complete(pending: PendingCommit, plan: ClusteringPlan, stats: tuple[WriteStat, ...], lease: Lease) -> None:
    """Makes a clustering visible.

    Args:
        pending: the clustering's commit.
        plan: what was planned.
        stats: the stats of the files that were written.
        lease: the caller's hold on the table.

    Raises:
        CommitConflictError: another writer changed one of the file groups meanwhile.
        CommitOutcomeUnknownError: the store did not say whether the commit is visible.
    """
    schema = pending.seen.load_schema()
    assert schema is not None
    text = schema_json(schema, pending.seen.config.name)
    written = CommitMetadata(stats, OPERATION, {}, plan.replaced)
    done = complete_commit(pending, written, text, lambda _now: {}, lease)
    if isinstance(done, LostCommit):
        raise done.error()


def write_groups(
    pending: PendingCommit,
    plan: ClusteringPlan,
    settings: ClusteringSettings,
    base_file: BaseFileSettings,
    elsewhere: Elsewhere = NOWHERE_ELSE,
) -> tuple[WriteStat, ...]:
    """Writes the file groups of a plan: one group after another, or on other machines if the plan is large.

    Args:
        pending: the clustering's commit.
        plan: what is rewritten, and by which columns rows are sorted.
        settings: only the layout is used, because the plan does not name it.
        base_file: how base files are encoded.
        elsewhere: other machines.

    Returns:
        The stats of the files.
    """
    snapshot = pending.seen
    schema = snapshot.load_schema()
    if schema is None:
        raise UnsupportedTableError(f"the table {snapshot.config.name!r} has no schema: it cannot be clustered")
    stored = with_meta_columns(schema)
    rules = rules_of(snapshot.config, stored)
    context = WriteContext(
        snapshot.storage,
        pending.time,
        relaxed(schema),
        schema_json(stored, snapshot.config.name),
        base_file,
        merge=rules,
        key_column=find_key_column(snapshot.config, schema),
    )
    names = tuple(name for name in stored.names if name not in SAME_IN_ALL_ROWS)
    reading = SliceReading(relaxed(stored), names, rules, snapshot.committed)
    order = replace(settings, sort_columns=plan.sort_columns)
    ordering = Ordering(order.sort_columns, order.layout, order_number(order))
    piece = partial(_cluster_numbered, context, reading, ordering, plan.groups)
    count, read_mb = len(plan.groups), sum(group.metrics.get("TOTAL_IO_READ_MB", 0.0) for group in plan.groups)
    if elsewhere.spread is not None and read_mb >= elsewhere.from_mb:
        return tuple(chain.from_iterable(elsewhere.spread(piece, count)))
    return tuple(chain.from_iterable(map(piece, range(count))))


def _cluster_numbered(
    context: WriteContext, reading: SliceReading, ordering: Ordering, groups: tuple[ClusteringGroup, ...], number: int
) -> Stats:
    return cluster_group(context, reading, ordering, groups[number], number)


def _undo(pending: PendingCommit, lease: Lease) -> None:
    """Rolls the clustering back at once. If that fails, the next writer rolls it back."""
    lease.beat_for(None)
    try:
        now = pending.seen.again()
        found = now.timeline.find(pending.time, pending.instant.action)
        if found is not None and not found.is_completed:
            end_pending(now, found, lease.owner)
    except HudiError as error:
        log.warning(
            "rollback_left_to_next_batch",
            table=pending.seen.storage.base_uri,
            instant_time=pending.time,
            error=str(error),
        )


def outcome_of(time: str, plan: ClusteringPlan, stats: tuple[WriteStat, ...]) -> ClusteringOutcome:
    """What a clustering did."""
    before = sum(len(group.slices) for group in plan.groups)
    rows, size = sum(stat.num_writes for stat in stats), sum(stat.file_size_bytes for stat in stats)
    return ClusteringOutcome(time, before, len(stats), rows, size)
