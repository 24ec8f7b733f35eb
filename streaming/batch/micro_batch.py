"""One micro-batch, step by step, without Spark: the workers that distribute the rows are passed in.

The guarantees depend on the order of the steps. Failed writes are rolled back before anything is written, a file is
announced before it is opened, and one file at the end makes the batch visible.
"""

import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from functools import partial

from streaming.batch.agreement import Agreement
from streaming.batch.bad_rows import check_bad_rows
from streaming.batch.conflict_retries import ConflictRetries
from streaming.batch.earlier_attempt import look_for_earlier_attempt
from streaming.batch.exactly_once import Turn, check_name, find_turn
from streaming.batch.failed_batch import BatchProgress, Explainer
from streaming.batch.inline_clustering import cluster_if_due
from streaming.batch.ledger import BatchLedger
from streaming.batch.marker_cleanup import MarkerCleanup
from streaming.batch.opening import TableOpener, settle_metadata_table, with_lists
from streaming.batch.partition_advice import PartitionAdvice
from streaming.batch.profile_cache import ProfileCache, tell_small_files
from streaming.batch.progress import Listener, Progress
from streaming.batch.quarantine import encode_extra, finish_quarantine, now_us, publish
from streaming.batch.record_index import index_as_of, see_index
from streaming.batch.recovery import Recovery
from streaming.batch.replaced import find_leaving, list_replaced
from streaming.batch.services import TableServices
from streaming.batch.summary import BatchSummary, PhaseClock, logged, summarize
from streaming.batch.unmatched_deletes import UnmatchedDeletes
from streaming.batch.widening import agree_again, agree_settled
from streaming.batch.workers import Batch, Workers
from streaming.batch.write_apart import write_apart
from streaming.plan.plan_tasks import Scene, looks_everywhere, plan_logs, plan_tasks, remembered_below
from streaming.plan.quarantine import Quarantine
from streaming.plan.replacement import action_of
from streaming.plan.task_plan import TaskPlan
from streaming.plan.task_result import TaskResult, sum_results
from streaming.plan.write_profile import WriteProfile
from streaming.validators import PendingBatch, Validator, find_refusal
from table import threads
from table.errors import BatchRefusedError, CommitOutcomeUnknownError, HudiError
from table.hudi_table import HudiTable
from table.log import get_logger
from table.metadata_table.known_lists import KnownLists
from table.metadata_table.read_record_index import SeenRecordIndex
from table.options.choices import TableType
from table.options.write_options import WriteOptions
from table.quarantine.place import table_key
from table.references.strays import delete_before_first_commit
from table.schema.avro_schema import schema_json
from table.services.rollback.rollback import Marks
from table.services.rollback.under_way import under_way
from table.snapshot import Snapshot
from table.storage.at_once import together
from table.storage.interface import Storage
from table.timeline.change import Change
from table.timeline.commit_cache import CommitCache
from table.timeline.metadata.commit import CommitMetadata
from table.transaction.commit import begin_commit, complete_commit, withdraw_commit
from table.transaction.commit_facts import PendingCommit
from table.transaction.heartbeat import WriterIdentity
from table.transaction.lease import Lease
from table.transaction.lock import lock_for
from table.transaction.membership import Membership
from table.transaction.outcome import CompletedCommit, LostCommit
from table.transaction.planned_clusterings import load_clustered
from table.view.pending_compactions import load_compacting

log = get_logger("hudistream.sink")


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


class MicroBatchWriter:
    """Writes micro-batches into one table, one after another, and keeps what it learned about the table.

    Args:
        options: how to write.
        default_name: name of the table if it has to be created.
        validators: checks that run on a batch before its commit, and may refuse it.
        quarantine: the folder for bad rows; None: bad rows fail the batch.

    Attributes:
        services: cleaning and archival, started after each commit.
        lease: this writer's hold on the table, kept between the batches of a stream.
        lock: the table's lock, taken for moments only.
        progress: how far the batch is.
        running_listeners: are called about a batch that takes long, in a thread of its own.
    """

    def __init__(
        self,
        storage: Storage,
        options: WriteOptions,
        default_name: str,
        validators: Sequence[Validator] = (),
        quarantine: Storage | None = None,
    ) -> None:
        self._storage, self._options = storage, options
        self._opener = TableOpener(storage, default_name)
        self._validators, self._quarantine = tuple(validators), quarantine
        self._commits, self._known_lists = CommitCache(storage, keeps_large=True), KnownLists()
        self._profiles: dict[tuple[int | None, bool], ProfileCache] = {}
        self._ledger, self._cleanup = BatchLedger(), MarkerCleanup(storage)
        self.lock = lock_for(storage, options.lock)
        self.lease = (Membership if options.concurrency.is_shared else Lease)(storage, options.heartbeat)
        self.services = TableServices(storage, options, self.lock, self.lease)
        self._advice, self._unmatched = PartitionAdvice(), UnmatchedDeletes()
        self._recovery = Recovery(options, self._commits, quarantine, self._cleanup)
        self.progress, self._explain = BatchProgress(), Explainer(self._opener.reopen, self._commits)
        self.running_listeners: list[Listener] = []
        weakref.finalize(self, threads.run_apart, self.lease.release, "hudistream-release")  # at the end of all, too

    @property
    def table(self) -> str:
        """The table's address."""
        return self._storage.base_uri

    def stop(self) -> None:
        """Waits for the services under way, and releases the table."""
        self.services.stop()
        self._cleanup.wait()
        self.lease.release()
        self.lock.close()

    def write(self, batch: Batch) -> BatchSummary:
        """Writes one batch, or finds that it was committed before.

        Raises:
            HudiError: nothing of the batch is visible, unless the message says otherwise.
        """
        timing = PhaseClock()
        options = self._options if batch.operation is None else replace(self._options, operation=batch.operation)
        of_stream = batch.batch_id is not None and batch.query_id is not None and batch.sink_id is None
        keeps_table = of_stream or batch.keeps_table or self.lease.is_held  # a stream does until its next batch
        retries = ConflictRetries(self.table, batch, self.lease, self.services, self._options.concurrency)
        self.progress.reset()
        try:
            with Progress(self.table, batch.batch_id, self.progress, self.running_listeners):
                return retries.run(lambda: self._write_once(batch, options, timing), self._explain, self.progress)
        except Exception as error:
            me = WriterIdentity(batch.sink_id or self._options.sink.id, batch.query_id, self.lease.owner)
            if look_for_earlier_attempt(self.progress, self._storage, self._ledger, batch, me, error):
                return BatchSummary(self.table, batch.batch_id, None, skipped=True)
            raise
        finally:
            self.lease.end_turn()
            # Do not release between retries: that would withdraw our request for a turn.
            if not keeps_table:
                self.services.end_clustering()
                self.lease.release()

    def _write_once(self, batch: Batch, options: WriteOptions, timing: PhaseClock) -> BatchSummary:
        self.progress.reset()
        check_name(options, batch)
        self.services.check()
        identity = WriterIdentity(batch.sink_id or options.sink.id, batch.query_id, self.lease.owner)
        opens = partial(self._opener.open, options, batch.workers.schema, batch.batch_id)
        opened, seen, marks = self._look(opens)
        self.progress.phase = "lease"
        # a write outside the stream must not take over the lease of the stream
        self.lease.hold(identity if batch.sink_id is None else replace(identity, query_id=None), seen)
        self.lease.is_busy = True
        try:
            if seen is None:  # until this writer held the table, others may have changed its properties
                opened = opens()
            table = settle_metadata_table(replace(opened, lock=self.lock, known_lists=self._known_lists), options)
            # Wait before the timeline is read: another writer's commit ends the wait.
            self.lease.wait_for_turn()
            if not batch.workers.can_repeat:
                self.services.end_clustering()  # others are written again if they meet it
            self.progress.phase = "recover"
            # Recovery first: it finishes decided instants, and the ledger must see the result.
            snapshot = self._recovery.run(table, identity, self.lease, self.services, marks)
            return self._write_held(snapshot, batch, options, identity, timing)
        finally:
            self.lease.is_busy = False

    def _look(self, opens: Callable[[], HudiTable]) -> tuple[HudiTable, int | None, Marks | None]:
        """The table, the lease's last record, and the leftovers of instants.

        A writer that does not hold the table yet looks for the last two once it does.
        """
        if not self.lease.is_held:
            return opens(), None, None
        return together(self._storage, opens, self.lease.look, partial(self._recovery.list_marks, self._storage))

    def _write_held(
        self, snapshot: Snapshot, batch: Batch, options: WriteOptions, identity: WriterIdentity, timing: PhaseClock
    ) -> BatchSummary:
        """Writes the batch; the writer holds the table, and dead writers' instants have ended."""
        turn = find_turn(self._ledger, snapshot, batch, (identity, self.lease))
        if turn is None:
            log.info("batch_skipped", table=self.table, batch_id=batch.batch_id, sink_id=identity.sink_id)
            return BatchSummary(self.table, batch.batch_id, None, skipped=True)
        self.progress.is_new, self.progress.phase = True, "plan"
        snapshot = with_lists(snapshot, options, self.lease)
        try:
            with ExitStack() as stack:
                job = self._begin(snapshot, batch, options, turn, stack)
                self.progress.instant_time = job.pending.time
                timing.end("prepare")
                result = self._write_and_commit(job, batch.workers, timing)
        except BaseException as error:
            self._forget_profiles()
            if not isinstance(error, CommitOutcomeUnknownError):
                turn.forget(self.table)
            raise
        missed = self.progress.deletes_unmatched
        self._unmatched.note(job.table, options.index.type, missed)
        if result is None:
            self.services.after_empty_batch(snapshot, batch.spread)
            return logged(BatchSummary(self.table, batch.batch_id, None, deletes_unmatched=missed))
        timing.end("commit")
        if options.effective_operation.replaces:
            self._forget_profiles()  # the commit may have replaced small files that they list
        else:
            self._profiles_for(options).advance(job.agreed.profile, job.pending.time, result)
        self._advice.note(self.table, result.stats)
        upkeep_errors = self._after_commit(job, result)
        self.services.after_commit(snapshot, batch.spread)
        clustered, failed = cluster_if_due(snapshot.table, options, turn.identity, self.lease, batch.spread)
        if clustered is not None:
            self._forget_profiles()  # other files are small now
        timing.end("after")
        summary = summarize(self.table, batch.batch_id, job.pending.time, result, timing, upkeep_errors + failed)
        return logged(replace(summary, schema_changes=job.agreed.schema_changes, driver_bytes=batch.driver_bytes))

    def _write_and_commit(self, job: BatchJob, workers: Workers, timing: PhaseClock) -> TaskResult | None:
        """Lets the workers write the rows, and makes them visible; None where there was nothing to commit."""
        self.progress.phase = "write"
        result = sum_results(workers.write(job.agreed.keys, job.plan)) if job.leaving is None else TaskResult()
        timing.end("write")
        self.progress.note_written(result.stats, result.deletes_unmatched)
        return self._complete(job, result)

    def _complete(self, job: BatchJob, result: TaskResult) -> TaskResult | None:
        """Makes the rows visible. Returns the result that was committed; None where there was nothing to commit.

        If another writer changed a file group to which this batch only added rows, or planned its clustering, the rows
        get a new file group.
        """
        replaced = self._list_replaced(job, result)
        while isinstance(outcome := self._commit(job, result, replaced), LostCommit):
            is_expected = self.lease.is_shared or outcome.is_of_clustering
            apart = write_apart(job.plan, result, outcome.file_groups) if is_expected else None
            if apart is None:
                raise outcome.error()
            result = apart
            log.info("added_rows_written_apart", table=self.table, why=outcome.why)
        if outcome is None:
            self._profiles_for(job.options).learn(job.agreed.profile, result)
            return None
        return result

    def _profiles_for(self, options: WriteOptions) -> ProfileCache:
        """The profile cache for these options; operations with the same needs share one."""
        needs = remembered_below(options), looks_everywhere(options)
        if needs not in self._profiles:
            limit, everywhere = needs
            in_order = not options.concurrency.is_shared
            self._profiles[needs] = ProfileCache(self._storage, limit, everywhere=everywhere, in_order=in_order)
        return self._profiles[needs]

    def _forget_profiles(self) -> None:
        for profiles in self._profiles.values():
            profiles.drop()

    def _begin(self, snapshot: Snapshot, batch: Batch, options: WriteOptions, turn: Turn, stack: ExitStack) -> BatchJob:
        """Agrees with the table about the batch, then begins its commit and plans its tasks.

        The commit is under way as long as the stack is open.
        """
        identity = turn.identity
        columns, profiles = batch.workers.schema, self._profiles_for(options)
        # raises the errors of the batch before any request
        snapshot, agreed = agree_settled(options, snapshot, columns, profiles, self.services, batch.spread)
        self._opener.coarse_times.note(self.table, options.effective_operation, columns, agreed.schema)
        leaving = find_leaving(options, snapshot, agreed.keys, batch.workers)
        action = action_of(operation := options.effective_operation, snapshot.config.table_type)
        index = see_index(snapshot.table, options)  # before the timeline is listed from which the batch is planned
        pending = begin_commit(snapshot, operation.hudi_name, identity, self.lease, action)
        stack.enter_context(self._under_way(pending, identity))
        # other writers may have committed or archived instants meanwhile
        if not Change.between(snapshot.timeline.committed_times, pending.seen.timeline.committed_times).is_none:
            agreed = agree_again(options, pending.seen, columns, profiles)
        scene = self._look_around(options, pending, agreed.profile, index)
        plan = plan_tasks(options, snapshot.config, agreed.profile, agreed.schema, scene, batch.workers.parallelism)
        tell_small_files(self.table, plan)
        pending = replace(pending, looks=plan.changes is not None or operation.replaces, widens_order=agreed.widens)
        if self._quarantine is not None:
            key = table_key(self.table, snapshot.config.name)
            aside = Quarantine(self._quarantine, key, pending.time, batch.batch_id, identity.sink_id, now_us())
            plan = replace(plan, quarantine=aside)
        return BatchJob(batch.batch_id, options, turn, agreed, leaving, pending, plan, batch.checks)

    def _look_around(
        self, options: WriteOptions, pending: PendingCommit, profile: WriteProfile, seen: SeenRecordIndex | None
    ) -> Scene:
        snapshot = pending.seen
        index = index_as_of(snapshot.table, seen, snapshot.timeline)
        unknown = looks_everywhere(options) and not profile.is_complete and index is None
        paths = tuple(snapshot.list_partition_paths()) if unknown else ()
        logs = None
        if snapshot.config.table_type == TableType.MERGE_ON_READ:
            compacting = load_compacting(self._storage, pending.compactions)
            logs = plan_logs(options, compacting, knows_logs=index is not None)
        table = self._storage, snapshot.listing, pending.time, snapshot.confirmed
        return Scene(*table, paths, logs, self.lease.find_share(), index, load_clustered(snapshot))

    def _list_replaced(self, job: BatchJob, result: TaskResult) -> Mapping[str, tuple[str, ...]]:
        operation = job.options.effective_operation
        if not operation.replaces:
            return {}
        paths = [stat.partition_path for stat in result.stats] if job.leaving is None else job.leaving
        return list_replaced(job.table.listing, job.pending.seen.confirmed, operation, paths)

    def _commit(
        self, job: BatchJob, result: TaskResult, replaced: Mapping[str, tuple[str, ...]]
    ) -> CompletedCommit | LostCommit | None:
        """Makes the batch visible, if no other writer got in between. None where there was nothing to commit."""
        check_bad_rows(result, job.table.config, job.options.bad_rows)
        if not (result.stats or result.quarantined or replaced or job.options.sink.commits_empty):
            withdraw_commit(job.pending)
            return None
        schema = job.plan.context.schema
        populated = job.table.config.populate_meta_fields
        batch = PendingBatch(self.table, job.batch_id, job.pending.time, result.stats, schema, self._storage, populated)
        refusal = find_refusal((*self._validators, *job.checks), batch)
        if refusal is not None:
            raise BatchRefusedError(f"batch {job.batch_id} was refused by {refusal}; nothing of it is visible")

        sink_id = job.turn.identity.sink_id
        entry = job.turn.build_entry(result.query_id, job.options.effective_operation)

        def build_extra(now: Snapshot) -> Mapping[str, str]:
            if entry is not None and self.lease.is_shared:
                self._ledger.check_is_next(now, sink_id, entry)
            known = self._ledger.build_extra(now, sink_id, entry)
            return {**known, **encode_extra(result.quarantined)}

        schema_text = schema_json(job.agreed.schema, job.table.config.name)
        seen = job.pending.seen.timeline
        others = any(instant.time != job.pending.time for instant in seen)
        if others and not seen.completed_writes:  # this is the table's first commit, and an earlier writer failed
            delete_before_first_commit(job.table, job.pending.time)
        written = CommitMetadata(result.stats, job.pending.operation, {}, dict(replaced))
        job.turn.remember(self.table, entry, result.job_group)
        done = complete_commit(job.pending, written, schema_text, build_extra, self.lease)
        if isinstance(done, CompletedCommit):
            self._commits.keep(done.instant, done.metadata)
            self.progress.is_visible, self.progress.phase = True, "after"
        return done

    def _under_way(self, pending: PendingCommit, identity: WriterIdentity) -> AbstractContextManager[None]:
        return under_way(pending, self.lease, identity, self._after_undoing)

    def _after_undoing(self, now: Snapshot) -> None:
        """Deletes the bad rows of a batch that was rolled back."""
        if self._quarantine is not None:
            finish_quarantine(self._quarantine, table_key(self.table, now.config.name), now.again())

    def _after_commit(self, job: BatchJob, result: TaskResult) -> tuple[str, ...]:
        """Cleans up after the commit. A failure here does not fail the batch: it is logged and returned as text."""
        time = job.pending.time
        try:
            self._cleanup.run(time, result.stats)
            if self._quarantine is not None and result.quarantined:
                publish(self._quarantine, table_key(self.table, job.table.config.name), time, result.quarantined)
                log.warning("rows_quarantined", table=self.table, instant_time=time, rows=result.bad_rows)
        except HudiError as error:
            log.warning("upkeep_failed", table=self.table, instant_time=time, error=str(error))
            return (str(error),)
        return ()
