"""A batch begins: it agrees with the table about its columns, its commit is requested, and its tasks are planned."""

from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace

from streaming.batch.agreement import Agreement
from streaming.batch.exactly_once import Turn
from streaming.batch.opening import TableOpener
from streaming.batch.profile_cache import Profiles, tell_small_files
from streaming.batch.quarantine import finish_quarantine, now_us
from streaming.batch.record_index import index_as_of, see_index
from streaming.batch.replaced import find_leaving
from streaming.batch.services import TableServices
from streaming.batch.widening import agree_again, agree_settled
from streaming.batch.workers import Batch
from streaming.plan.plan_tasks import Scene, looks_everywhere, plan_logs, plan_tasks
from streaming.plan.quarantine import Quarantine
from streaming.plan.replacement import action_of
from streaming.plan.task_plan import TaskPlan
from streaming.plan.write_profile import WriteProfile
from streaming.validators import Validator
from table.config.table_config import ROWS_IN_LOGS, load_table_config, update_properties
from table.hudi_table import HudiTable
from table.metadata_table.read_record_index import SeenRecordIndex
from table.options.choices import TableType
from table.options.write_options import WriteOptions
from table.quarantine.place import table_key, table_keys
from table.services.rollback.under_way import under_way
from table.snapshot import Snapshot
from table.storage.interface import Storage
from table.timeline.change import Change
from table.transaction.commit import begin_commit
from table.transaction.commit_facts import PendingCommit
from table.transaction.heartbeat import WriterIdentity
from table.transaction.lease import Lease
from table.transaction.planned_clusterings import load_clustered
from table.view.pending_compactions import load_compacting


@dataclass(frozen=True)
class BatchJob:
    """One batch under way: its commit, the plan for its tasks, and the inputs of that plan.

    Attributes:
        batch_id: Spark's id, or None.
        options: how it is written.
        turn: its writer, and what its commit records about it.
        agreed: schema, keys and profile.
        leaving: partition paths that the batch deletes; None where it writes rows.
        pending: the commit.
        plan: the plan that each task gets.
        checks: as of `Batch`.
    """

    batch_id: int | None
    options: WriteOptions
    turn: Turn
    agreed: Agreement
    leaving: tuple[str, ...] | None
    pending: PendingCommit
    plan: TaskPlan
    checks: tuple[Validator, ...] = ()

    @property
    def table(self) -> HudiTable:
        """The table."""
        return self.pending.seen.table


class BatchPlanner:
    """Begins the batches of one writer.

    Args:
        storage: of the table.
        opener: counts the batches with coarse times.
        profiles: what the writer knows of the table.
        services: a clustering of theirs ends before a table is compacted for a widened column.
        quarantine: the folder for bad rows; None: bad rows fail the batch.
    """

    def __init__(
        self,
        storage: Storage,
        opener: TableOpener,
        profiles: Profiles,
        services: TableServices,
        quarantine: Storage | None,
    ) -> None:
        self._storage, self._opener, self._profiles = storage, opener, profiles
        self._services, self._quarantine = services, quarantine

    def begin(
        self, snapshot: Snapshot, batch: Batch, options: WriteOptions, turn: Turn, lease: Lease, stack: ExitStack
    ) -> BatchJob:
        """Agrees with the table about the batch, then begins its commit and plans its tasks.

        The commit is under way as long as the stack is open.

        Args:
            snapshot: the table; the writer holds it, and dead writers' instants have ended.
            batch: the batch.
            options: how it is written.
            turn: its writer, and what its commit records about it.
            lease: how the writer holds the table.
            stack: the commit is rolled back if it is closed by an error.

        Raises:
            HudiError: nothing of the batch is visible.
        """
        address, profiles = self._storage.base_uri, self._profiles.of(options)
        columns, operation = batch.workers.schema, options.effective_operation
        # raises the errors of the batch before any request
        snapshot, agreed = agree_settled(options, snapshot, columns, profiles, self._services, batch.spread)
        self._opener.coarse_times.note(address, operation, columns, agreed.schema)
        leaving = find_leaving(options, snapshot, agreed.keys, batch.workers)
        action = action_of(operation, snapshot.config.table_type)
        index = see_index(snapshot.table, options)  # before the timeline is listed from which the batch is planned
        pending = begin_commit(snapshot, operation.hudi_name, turn.identity, lease, action)
        stack.enter_context(self._under_way(pending, lease, turn.identity))
        # other writers may have committed or archived instants meanwhile
        before, now = snapshot.timeline.committed_times, pending.seen.timeline.committed_times
        is_alone = Change.between(before, now).is_none
        if not is_alone:
            agreed = agree_again(options, pending.seen, columns, profiles)
        scene = self._look_around(options, pending, agreed.profile, index, lease, is_alone=is_alone)
        plan = plan_tasks(options, snapshot.config, agreed.profile, agreed.schema, scene, batch.workers.parallelism)
        tell_small_files(address, plan)
        pending = replace(pending, looks=plan.changes is not None or operation.replaces, widens_order=agreed.widens)
        if self._quarantine is not None:
            key, sink_id = table_key(address, snapshot.config.name), turn.identity.sink_id
            aside = Quarantine(self._quarantine, key, pending.time, batch.batch_id, sink_id, now_us())
            plan = replace(plan, quarantine=aside)
        return BatchJob(batch.batch_id, options, turn, agreed, leaving, pending, plan, batch.checks)

    def _look_around(
        self,
        options: WriteOptions,
        pending: PendingCommit,
        profile: WriteProfile,
        seen: SeenRecordIndex | None,
        lease: Lease,
        *,
        is_alone: bool,
    ) -> Scene:
        snapshot = pending.seen
        index = index_as_of(snapshot.table, seen, snapshot.timeline)
        unknown = looks_everywhere(options) and not profile.is_complete and index is None
        paths = tuple(snapshot.list_partition_paths()) if unknown else ()
        logs = None
        if snapshot.config.table_type == TableType.MERGE_ON_READ:
            compacting = load_compacting(self._storage, pending.compactions)
            # the properties may have been read before the commits that were seen
            config = snapshot.config if is_alone else load_table_config(self._storage) or snapshot.config
            logs = plan_logs(options, config, compacting, knows_logs=index is not None)
            if logs.log_ratio is not None and not config.has_rows_in_logs:
                # before the first of them: writers with other indexes look into log files from then on
                update_properties(self._storage, {ROWS_IN_LOGS: "true"})
        table = self._storage, snapshot.listing, pending.time, snapshot.confirmed
        return Scene(*table, paths, logs, lease.find_share(), index, load_clustered(snapshot))

    def _under_way(
        self, pending: PendingCommit, lease: Lease, identity: WriterIdentity
    ) -> AbstractContextManager[None]:
        return under_way(pending, lease, identity, self._after_undoing)

    def _after_undoing(self, now: Snapshot) -> None:
        """Deletes the bad rows of a batch that was rolled back."""
        if self._quarantine is not None:
            finish_quarantine(self._quarantine, table_keys(self._storage.base_uri, now.config.name), now)
