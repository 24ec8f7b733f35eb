"""One micro-batch, step by step, without Spark: the workers that distribute the rows are passed in.

The guarantees depend on the order of the steps. Failed writes are rolled back before anything is written, a file is
announced before it is opened, and one file at the end makes the batch visible.
"""

import weakref
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from streaming.batch.begin_batch import BatchJob, BatchPlanner
from streaming.batch.commit_batch import BatchCommitter
from streaming.batch.conflict_retries import ConflictRetries
from streaming.batch.earlier_attempt import look_for_earlier_attempt, may_be_visible
from streaming.batch.exactly_once import check_name, find_turn
from streaming.batch.failed_batch import BatchProgress, Explainer
from streaming.batch.inline_clustering import cluster_if_due
from streaming.batch.ledger import BatchLedger
from streaming.batch.marker_cleanup import MarkerCleanup
from streaming.batch.opening import TableOpener, settle_metadata_table, with_lists
from streaming.batch.partition_advice import PartitionAdvice
from streaming.batch.profile_cache import Profiles
from streaming.batch.progress import Listener, Progress
from streaming.batch.recovery import Recovery
from streaming.batch.services import TableServices
from streaming.batch.summary import BatchSummary, PhaseClock, logged, summarize
from streaming.batch.unmatched_deletes import UnmatchedDeletes
from streaming.batch.workers import Batch, Workers
from streaming.plan.task_result import TaskResult, sum_results
from streaming.validators import Validator
from table import threads
from table.errors import BatchOrderError, CommitOutcomeUnknownError
from table.hudi_table import HudiTable
from table.log import get_logger
from table.metadata_table.known_lists import KnownLists
from table.options.write_options import WriteOptions
from table.services.rollback.rollback import Marks
from table.snapshot import Snapshot
from table.storage.at_once import together
from table.storage.interface import Storage
from table.timeline.commit_cache import CommitCache
from table.transaction.heartbeat import WriterIdentity
from table.transaction.lease import Lease
from table.transaction.lock import lock_for
from table.transaction.membership import Membership

log = get_logger("hudistream.sink")


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
        self._commits, self._known_lists = CommitCache(storage, keeps_large=True), KnownLists()
        self._profiles = Profiles(storage, in_order=not options.concurrency.is_shared)
        self._ledger, self._cleanup = BatchLedger(), MarkerCleanup(storage)
        self.lock = lock_for(storage, options.lock)
        self.lease = (Membership if options.concurrency.is_shared else Lease)(storage, options.heartbeat)
        self.services = TableServices(storage, options, self.lock, self.lease)
        self._planner = BatchPlanner(storage, self._opener, self._profiles, self.services, quarantine)
        self._committer = BatchCommitter(storage, self._ledger, self._commits, validators, quarantine, self._cleanup)
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
        """Waits for the services under way, and releases the table. No services are started afterwards."""
        self.services.start_no_more()
        self.leave()
        self.lock.close()

    @property
    def is_busy(self) -> bool:
        """Whether something runs that a batch began: services, or the deletion of markers."""
        return self.services.is_cleaning or bool(self._cleanup.under_way)

    def leave(self) -> None:
        """Waits for the services under way, and releases the table. The next batch takes it again."""
        self.services.wait()
        self._cleanup.wait()
        self.lease.release()

    def note_refused(self, batch_id: int, error: Exception) -> None:
        """Notes of a batch that was refused before `write` whether an earlier attempt at it may be visible."""
        me = WriterIdentity(self._options.sink.id, None, self.lease.owner)
        self.progress.is_new = not may_be_visible(self._storage, self._ledger, batch_id, me, error)

    def write(self, batch: Batch) -> BatchSummary:
        """Writes one batch, or finds that it was committed before.

        Raises:
            HudiError: nothing of the batch is visible, unless the message says otherwise.
        """
        timing = PhaseClock()
        options = self._options if batch.operation is None else replace(self._options, operation=batch.operation)
        if batch.index is not None:
            options = replace(options, index=replace(options.index, type=batch.index, global_keys=None))
        of_stream = batch.batch_id is not None and batch.query_id is not None and batch.sink_id is None
        held = self.lease.is_held
        keeps_table = of_stream or batch.keeps_table or held  # a stream does until its next batch
        retries = ConflictRetries(self.table, batch, self.lease, self.services, self._options.concurrency)
        self.progress.reset()
        try:
            with Progress(self.table, batch.batch_id, self.progress, self.running_listeners):
                return retries.run(lambda: self._write_once(batch, options, timing), self._explain, self.progress)
        except Exception as error:
            if isinstance(error, BatchOrderError):
                keeps_table = held  # the query ends: its retry under another identifier must not find the table held
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
        turn = find_turn(self._ledger, snapshot, batch, options.effective_operation, (identity, self.lease))
        if turn is None:
            log.info("batch_skipped", table=self.table, batch_id=batch.batch_id, sink_id=identity.sink_id)
            return BatchSummary(self.table, batch.batch_id, None, skipped=True)
        self.progress.is_new, self.progress.phase = True, "plan"
        snapshot = with_lists(snapshot, options, self.lease)
        try:
            with ExitStack() as stack:
                job = self._planner.begin(snapshot, batch, options, turn, self.lease, stack)
                self.progress.instant_time = job.pending.time
                timing.end("prepare")
                result = self._write_and_commit(job, batch.workers, timing)
        except BaseException as error:
            self._profiles.forget()
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
            self._profiles.forget()  # the commit may have replaced small files that they list
        else:
            self._profiles.of(options).advance(job.agreed.profile, job.pending.time, result)
        self._advice.note(self.table, result.stats)
        upkeep_errors = self._committer.clean_up(job, result)
        self.services.after_commit(snapshot, batch.spread)
        clustered, failed = cluster_if_due(snapshot.table, options, turn.identity, self.lease, batch.spread)
        if clustered is not None:
            self._profiles.forget()  # other files are small now
        timing.end("after")
        summary = summarize(self.table, batch.batch_id, job.pending.time, result, timing, upkeep_errors + failed)
        return logged(replace(summary, schema_changes=job.agreed.schema_changes, driver_bytes=batch.driver_bytes))

    def _write_and_commit(self, job: BatchJob, workers: Workers, timing: PhaseClock) -> TaskResult | None:
        """Lets the workers write the rows, and makes them visible; None where there was nothing to commit."""
        self.progress.phase = "write"
        result = sum_results(workers.write(job.agreed.keys, job.plan)) if job.leaving is None else TaskResult()
        timing.end("write")
        self.progress.note_written(result.stats, result.deletes_unmatched)
        committed = self._committer.complete(job, result, self.lease)
        if committed is None:
            self._profiles.of(job.options).learn(job.agreed.profile, result)
            return None
        self.progress.is_visible, self.progress.phase = True, "after"
        return committed
