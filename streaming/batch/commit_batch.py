"""What the tasks of a batch wrote becomes visible, or nothing of it does."""

from collections.abc import Mapping, Sequence

from streaming.batch.bad_rows import check_bad_rows
from streaming.batch.begin_batch import BatchJob
from streaming.batch.ledger import BatchLedger
from streaming.batch.marker_cleanup import MarkerCleanup
from streaming.batch.quarantine import encode_extra, publish
from streaming.batch.replaced import list_replaced
from streaming.batch.write_apart import write_apart
from streaming.plan.task_result import TaskResult
from streaming.validators import PendingBatch, Validator, find_refusal
from table.errors import BatchRefusedError, HudiError
from table.log import get_logger
from table.quarantine.place import table_key
from table.references.strays import delete_before_first_commit
from table.schema.avro_schema import schema_json
from table.snapshot import Snapshot
from table.storage.interface import Storage
from table.timeline.commit_cache import CommitCache
from table.timeline.metadata.commit import CommitMetadata
from table.transaction.commit import complete_commit, withdraw_commit
from table.transaction.lease import Lease
from table.transaction.outcome import CompletedCommit, LostCommit

log = get_logger("hudistream.sink")


class BatchCommitter:
    """Ends the batches of one writer.

    Args:
        storage: of the table.
        ledger: the batches that are committed.
        commits: decoded commits of the table.
        validators: checks that run on a batch before its commit, and may refuse it.
        quarantine: the folder for bad rows; None: bad rows fail the batch.
        cleanup: deletes the markers of a commit.
    """

    def __init__(
        self,
        storage: Storage,
        ledger: BatchLedger,
        commits: CommitCache,
        validators: Sequence[Validator],
        quarantine: Storage | None,
        cleanup: MarkerCleanup,
    ) -> None:
        self._storage, self._ledger, self._commits = storage, ledger, commits
        self._validators, self._quarantine, self._cleanup = tuple(validators), quarantine, cleanup

    def complete(self, job: BatchJob, result: TaskResult, lease: Lease) -> TaskResult | None:
        """Makes the rows visible. Returns the result that was committed; None where there was nothing to commit.

        If another writer changed a file group to which this batch only added rows, or planned its clustering, the rows
        get a new file group.

        Args:
            job: the batch.
            result: what its tasks wrote.
            lease: how the writer holds the table.

        Raises:
            CommitOutcomeUnknownError: it may be visible, or may become so.
            HudiError: nothing of the batch is visible.
        """
        replaced = self._list_replaced(job, result)
        while isinstance(outcome := self.commit(job, result, replaced, lease), LostCommit):
            is_expected = lease.is_shared or outcome.is_of_clustering
            apart = write_apart(job.plan, result, outcome.file_groups) if is_expected else None
            if apart is None:
                raise outcome.error()
            result = apart
            log.info("added_rows_written_apart", table=self._storage.base_uri, why=outcome.why)
        return None if outcome is None else result

    def _list_replaced(self, job: BatchJob, result: TaskResult) -> Mapping[str, tuple[str, ...]]:
        operation = job.options.effective_operation
        if not operation.replaces:
            return {}
        paths = [stat.partition_path for stat in result.stats] if job.leaving is None else job.leaving
        return list_replaced(job.table.listing, job.pending.seen.confirmed, operation, paths)

    def commit(
        self, job: BatchJob, result: TaskResult, replaced: Mapping[str, tuple[str, ...]], lease: Lease
    ) -> CompletedCommit | LostCommit | None:
        """Tries once to make the batch visible; None where there was nothing to commit."""
        check_bad_rows(result, job.table.config, job.options.bad_rows)
        is_kept = job.options.sink.commits_empty or job.turn.continues
        if not (result.stats or result.quarantined or replaced or is_kept):
            withdraw_commit(job.pending)
            return None
        self._validate(job, result)
        sink_id = job.turn.identity.sink_id
        has_rows = bool(result.stats or result.quarantined)
        entry = job.turn.build_entry(result.query_id, job.options.effective_operation, has_rows=has_rows)

        def build_extra(now: Snapshot) -> Mapping[str, str]:
            if entry is not None and lease.is_shared:
                self._ledger.check_is_next(now, sink_id, entry)
            known = self._ledger.build_extra(now, sink_id, entry)
            return {**known, **encode_extra(result.quarantined)}

        schema_text = schema_json(job.agreed.schema, job.table.config.name)
        seen = job.pending.seen.timeline
        others = any(instant.time != job.pending.time for instant in seen)
        if others and not seen.completed_writes:  # this is the table's first commit, and an earlier writer failed
            delete_before_first_commit(job.table, job.pending.time)
        written = CommitMetadata(result.stats, job.pending.operation, {}, dict(replaced))
        job.turn.remember(self._storage.base_uri, entry, result.job_group)
        done = complete_commit(job.pending, written, schema_text, build_extra, lease)
        if isinstance(done, CompletedCommit):
            self._commits.keep(done.instant, done.metadata)
        return done

    def _validate(self, job: BatchJob, result: TaskResult) -> None:
        address, schema = self._storage.base_uri, job.plan.context.schema
        populated = job.table.config.populate_meta_fields
        batch = PendingBatch(address, job.batch_id, job.pending.time, result.stats, schema, self._storage, populated)
        refusal = find_refusal((*self._validators, *job.checks), batch)
        if refusal is not None:
            raise BatchRefusedError(f"batch {job.batch_id} was refused by {refusal}; nothing of it is visible")

    def clean_up(self, job: BatchJob, result: TaskResult) -> tuple[str, ...]:
        """Cleans up after the commit. A failure here does not fail the batch: it is logged and returned as text."""
        time, address = job.pending.time, self._storage.base_uri
        try:
            self._cleanup.run(time, result.stats)
            if self._quarantine is not None and result.quarantined:
                publish(self._quarantine, table_key(address, job.table.config.name), time, result.quarantined)
                log.warning("rows_quarantined", table=address, instant_time=time, rows=result.bad_rows)
        except HudiError as error:
            log.warning("upkeep_failed", table=address, instant_time=time, error=str(error))
            return (str(error),)
        return ()
