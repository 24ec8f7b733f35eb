"""One micro-batch, step by step, without Spark: whoever distributes the rows is handed in.

The order of the steps is the order of `README`'s promise: what failed is undone before anything is
written, a file is announced before it is opened, and one file at the end makes the batch visible.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import structlog

from streaming.batch_ledger import BatchLedger
from streaming.bucket_assigner import find_small_files
from streaming.checkpoint import Verdict, already_committed
from streaming.profile_cache import ProfileCache
from streaming.routes import Routes, plan_routes
from streaming.write_profile import WriteProfile, assign_rules
from streaming.write_task import TaskPlan, TaskResult, combine_results
from table import clock
from table.config import OVERWRITE_PAYLOAD, TableConfig, load_table_config
from table.errors import CommitOutcomeUnknownError, HudiError, InvalidRecordError
from table.hudi_table import HudiTable, check_can_write, create_table, find_stored_key
from table.keygen import KeyExpressions, build_key_expressions, check_key_encoding
from table.options import WriteOptions, check_options_agree, new_table_config
from table.schema import reconcile_schema, relaxed, required_columns, schema_json, with_meta_columns
from table.services.metadata_table import drop_metadata_table
from table.services.rollback import roll_back_failed_writes, roll_back_pending
from table.storage import Storage
from table.timeline.active_timeline import load_timeline
from table.timeline.commit_metadata import total_rows
from table.timeline.instant import Action
from table.timeline.timeline import Timeline
from table.transaction.commit import (
    PendingCommit,
    begin_commit,
    clean_up_commit,
    complete_commit,
    withdraw_commit,
)
from table.transaction.heartbeat import HeartbeatThread, WriterIdentity
from table.write.context import WriteContext

# rows of the batch to their tasks, and what they wrote: Spark in production, a loop in tests
Distribute = Callable[[KeyExpressions, TaskPlan], list[TaskResult]]

log = structlog.get_logger("hudistream.sink")


@dataclass(frozen=True)
class BatchSummary:
    """What became of a batch.

    Attributes:
        table: the table's address.
        batch_id: Spark's id, or None for a write outside a stream.
        instant_time: the commit, or None when nothing was committed (skipped, or empty).
        skipped: whether it had been committed before.
        rows: rows added.
        files_created: new file groups.
        files_topped_up: file groups that got a new version.
        bytes_written: size of all new files.
        seconds: wall time.
    """

    table: str
    batch_id: int | None
    instant_time: str | None
    skipped: bool = False
    rows: int = 0
    files_created: int = 0
    files_topped_up: int = 0
    bytes_written: int = 0
    seconds: float = 0.0


class MicroBatchWriter:
    """Writes micro-batches into one table, one after another, and remembers what the last one taught.

    Args:
        storage: the table's.
        options: how to write.
        default_name: name of the table if it has to be created.
    """

    def __init__(self, storage: Storage, options: WriteOptions, default_name: str) -> None:
        self._storage, self._options, self._default_name = storage, options, default_name
        self._profiles = ProfileCache(storage, options.small_file_limit_bytes)
        self._ledger = BatchLedger()

    def write(
        self, batch_id: int | None, schema: pa.Schema, query_id: str | None, parallelism: int, distribute: Distribute
    ) -> BatchSummary:
        """Writes one batch, or finds that it was written.

        Args:
            batch_id: Spark's id; None outside a stream: such a write is never taken for one seen before.
            schema: the batch's columns (Arrow).
            query_id: the streaming query, or None.
            parallelism: most tasks.
            distribute: moves the rows to tasks and has them written.

        Raises:
            HudiError: nothing of the batch is visible, unless the message says otherwise.
        """
        started_s = clock.monotonic_s()
        options, storage = self._options, self._storage
        identity = WriterIdentity(options.sink_id, query_id)
        table = self._open_table(schema)
        timeline = table.load_timeline()
        if batch_id is not None:
            last = self._ledger.find_last_batch(table, timeline, options.sink_id)
            if already_committed(last, batch_id, query_id, options.sink_id) is Verdict.SKIP:
                log.info("batch_skipped", table=storage.base_uri, batch_id=batch_id, sink_id=options.sink_id)
                return BatchSummary(storage.base_uri, batch_id, None, skipped=True)
        timeline = roll_back_failed_writes(table, timeline, identity, options.heartbeat)
        check_key_encoding(table.config, find_stored_key(table, timeline))
        write_schema = reconcile_schema(schema, table.load_schema(timeline))
        keys = self._build_keys(table.config, schema)
        profile = self._profiles.load(timeline)

        pending = begin_commit(table, timeline, options.operation.upper(), identity)
        try:
            with HeartbeatThread(storage, pending.time, identity, options.heartbeat):
                plan = self._plan_tasks(table, timeline, profile, write_schema, pending, parallelism)
                result = combine_results(distribute(keys, plan))
                _refuse_bad_rows(result, table)
                if not result.stats:
                    withdraw_commit(storage, pending)
                    return BatchSummary(storage.base_uri, batch_id, None)

                def build_extra(now: Timeline) -> Mapping[str, str]:
                    return self._ledger.build_extra(table, now, options.sink_id, batch_id, query_id)

                schema_text = schema_json(write_schema, table.config.name)
                complete_commit(table, pending, result.stats, schema_text, build_extra)
        except CommitOutcomeUnknownError:
            # the commit file may yet appear: deleting what it names would be worse than waiting
            self._profiles.drop()
            raise
        except BaseException:
            self._undo(table, pending)
            raise
        self._profiles.advance(profile, pending.time, result)
        self._after_commit(pending)
        return self._summarize(batch_id, pending, result, clock.monotonic_s() - started_s)

    def _open_table(self, schema: pa.Schema) -> HudiTable:
        """Opens the table, or creates it for the first batch; everything wrong with either is said here."""
        config = load_table_config(self._storage)
        if config is None:
            config = new_table_config(self._options, self._default_name)
            reconcile_schema(schema, None)
            self._build_keys(config, schema)
            table = create_table(self._storage, config)
        else:
            table = HudiTable(self._storage, config)
        check_options_agree(self._options, table.config)
        if table.config.metadata_partitions.strip() and self._options.metadata_enabled is False:
            # Hudi's own writers make one by default: it is looked for before every batch
            check_can_write(replace(table.config, metadata_partitions=""))
            table = drop_metadata_table(table)
        check_can_write(table.config)
        return table

    def _build_keys(self, config: TableConfig, schema: pa.Schema) -> KeyExpressions:
        options = self._options
        return build_key_expressions(config, schema, options.partition_kinds, dict(options.timebased))

    def _plan_tasks(
        self,
        table: HudiTable,
        timeline: Timeline,
        profile: WriteProfile,
        schema: pa.Schema,
        pending: PendingCommit,
        parallelism: int,
    ) -> TaskPlan:
        options = self._options
        rules = assign_rules(profile, options)
        context = WriteContext(
            storage=self._storage,
            instant_time=pending.time,
            schema=relaxed(schema),
            required=required_columns(schema),
            avro_schema=schema_json(with_meta_columns(schema), table.config.name),
            settings=options.base_file,
            ordering_field=table.config.ordering_field,
            event_time_order=table.config.payload_class != OVERWRITE_PAYLOAD,
            allow_duplicates=options.allow_duplicates,
            combine_before_insert=options.combine_before_insert,
        )
        if options.operation == "bulk_insert":
            # every task opens files of its own; none is topped up
            rules = replace(rules, small_file_limit_bytes=0)
            routes = Routes(options.bulk_parallelism or parallelism)
        else:
            routes = plan_routes(profile, rules, options.parallelism or parallelism, options.slots_per_partition)
        small_files = {
            path: find_small_files(known.files, rules)
            for path, known in profile.paths.items()
            if known.files is not None
        }
        sort_mode = options.sort_mode if options.operation == "bulk_insert" else None
        return TaskPlan(context, routes, rules, small_files, table.load_committed(timeline), sort_mode)

    def _undo(self, table: HudiTable, pending: PendingCommit) -> None:
        """Rolls back at once what the batch began; if that fails, the next batch does it."""
        self._profiles.drop()
        try:
            timeline = load_timeline(self._storage)
            found = timeline.find(pending.time, Action.COMMIT)
            if found is not None and not found.is_completed:
                roll_back_pending(table, timeline, found)
        except HudiError as error:
            log.warning(
                "rollback_left_to_next_batch",
                table=self._storage.base_uri,
                instant_time=pending.time,
                error=str(error),
            )

    def _after_commit(self, pending: PendingCommit) -> None:
        """What is left to do once the batch is visible must not fail it."""
        try:
            clean_up_commit(self._storage, pending.time)
        except HudiError as error:
            log.warning("markers_left", table=self._storage.base_uri, instant_time=pending.time, error=str(error))

    def _summarize(
        self, batch_id: int | None, pending: PendingCommit, result: TaskResult, seconds: float
    ) -> BatchSummary:
        topped_up = sum(stat.prev_base_file is not None for stat in result.stats)
        summary = BatchSummary(
            table=self._storage.base_uri,
            batch_id=batch_id,
            instant_time=pending.time,
            rows=total_rows(result.stats),
            files_created=len(result.stats) - topped_up,
            files_topped_up=topped_up,
            bytes_written=sum(stat.file_size_bytes for stat in result.stats),
            seconds=seconds,
        )
        log.info(
            "batch_committed",
            table=summary.table,
            batch_id=batch_id,
            instant_time=pending.time,
            rows=summary.rows,
            files_created=summary.files_created,
            files_topped_up=summary.files_topped_up,
            bytes_written=summary.bytes_written,
            seconds=round(seconds, 3),
        )
        return summary


def _refuse_bad_rows(result: TaskResult, table: HudiTable) -> None:
    if result.bad_rows:
        keys = ", ".join(table.config.record_key_fields)
        raise InvalidRecordError(
            f"{result.bad_rows} rows cannot be stored (record key {keys}), for example {'; '.join(result.examples)}: "
            "filter them out or mend them; nothing of the batch was written"
        )
