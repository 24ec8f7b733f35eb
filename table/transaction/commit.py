"""One commit among others: request, begin, complete. The order of these calls is what safety rests on.

A batch is visible exactly when the one file that `complete_commit` creates exists.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import structlog

from table.config import TableConfig, load_table_config
from table.errors import BrokenInvariantError, CommitConflictError
from table.files.markers import delete_markers, list_markers
from table.hudi_table import HudiTable
from table.storage import Storage
from table.timeline.active_timeline import (
    begin_instant,
    complete_instant,
    delete_instant_file,
    load_timeline,
    read_instant,
    request_instant,
)
from table.timeline.commit_metadata import CommitMetadata, WriteStat, decode_commit, encode_commit
from table.timeline.instant import Action, Instant, State
from table.timeline.service_metadata import decode_rollback_metadata, decode_rollback_plan
from table.timeline.timeline import Timeline, inflight
from table.transaction.conflicts import CommitFacts, find_conflict
from table.transaction.heartbeat import WriterIdentity, delete_heartbeat, write_heartbeat

WRITER_KEY = "hudistream.writer"

log = structlog.get_logger("hudistream.commit")


@dataclass(frozen=True)
class PendingCommit:
    """A commit that was begun.

    Attributes:
        instant: inflight.
        operation: ``INSERT`` …
        seen: instants that were completed when it began.
        config: the table's properties when it began.
    """

    instant: Instant
    operation: str
    seen: frozenset[str]
    config: TableConfig

    @property
    def time(self) -> str:
        """Its instant time."""
        return self.instant.time


def begin_commit(
    table: HudiTable,
    timeline: Timeline,
    operation: str,
    identity: WriterIdentity,
    action: Action = Action.COMMIT,
) -> PendingCommit:
    """Requests a commit, starts its heartbeat, and moves it to inflight with the writer's name in it.

    Args:
        table: the table.
        timeline: loaded after failed writes were rolled back.
        operation: Hudi's name, upper case.
        identity: who writes.
        action: REPLACE_COMMIT for what takes file groups out of sight.

    Raises:
        BrokenInvariantError: when a pending compaction is later than the new instant.
    """
    storage = table.storage
    instant = request_instant(storage, timeline, action, table.config.timezone)
    for pending in timeline.pending_of(Action.COMPACTION, Action.LOG_COMPACTION):
        if pending.time >= instant.time:
            raise BrokenInvariantError(f"pending compaction {pending.time} is not earlier than {instant.time}")
    write_heartbeat(storage, instant.time, identity)
    profile = CommitMetadata(operation=operation, extra={WRITER_KEY: identity.encode().decode()})
    begun = begin_instant(storage, instant, encode_commit(profile))
    log.info("commit_begun", table=storage.base_uri, instant_time=instant.time, operation=operation)
    return PendingCommit(begun, operation, timeline.committed_times, table.config)


def withdraw_commit(storage: Storage, pending: PendingCommit) -> None:
    """Takes back a commit for which nothing was written: an empty batch leaves no instant."""
    delete_heartbeat(storage, pending.time)
    delete_markers(storage, pending.time)
    delete_instant_file(storage, pending.instant)
    delete_instant_file(storage, Instant(pending.time, pending.instant.action, State.REQUESTED))


def complete_commit(
    table: HudiTable,
    pending: PendingCommit,
    stats: tuple[WriteStat, ...],
    schema: str,
    build_extra: Callable[[Timeline], Mapping[str, str]],
    replaced: Mapping[str, tuple[str, ...]] | None = None,
) -> Instant:
    """Makes a commit visible, or raises and leaves it invisible.

    Files of failed or repeated attempts are removed by the markers, everything is checked once more,
    then the completed file is created if absent.

    Args:
        table: the table.
        pending: the commit.
        stats: files that belong to it.
        schema: the table's Avro schema without meta columns.
        build_extra: makes ``extraMetadata`` from the timeline as it is now.
        replaced: partition path -> file ids that a replace commit takes out of sight.

    Raises:
        CommitConflictError: another writer got in between; run the batch again.
        CommitOutcomeUnknownError: the store does not say; run the batch again.
    """
    storage = table.storage
    remove_unreferenced_files(storage, pending.time, stats)
    timeline = load_timeline(storage)
    metadata = CommitMetadata(stats, pending.operation, {}, dict(replaced or {}))
    facts = _load_facts(storage, timeline, pending, metadata.file_groups, schema)
    conflict = find_conflict(facts)
    if conflict is not None:
        raise CommitConflictError(f"{conflict}; the batch is not visible and can be run again")
    extra = {**build_extra(timeline), "schema": schema}
    completed = complete_instant(storage, pending.instant, encode_commit(replace(metadata, extra=extra)))
    log.info("commit_completed", table=storage.base_uri, instant_time=pending.time, files=len(stats))
    return completed


def clean_up_commit(storage: Storage, instant_time: str) -> None:
    """Removes heartbeat and markers of a completed commit, markers last: their sweep finds what is left."""
    delete_heartbeat(storage, instant_time)
    delete_markers(storage, instant_time)


def remove_unreferenced_files(storage: Storage, instant_time: str, stats: tuple[WriteStat, ...]) -> None:
    """Deletes files that markers announce and no stat names (HoodieTable.reconcileAgainstMarkers).

    Raises:
        BrokenInvariantError: when a stat's file has no marker: a rollback would not find it.
    """
    marked = {marker.data_file for marker in list_markers(storage, instant_time)}
    referenced = {stat.path for stat in stats}
    missing = referenced - marked
    if missing:
        raise BrokenInvariantError(f"{min(missing)} of instant {instant_time} was written without a marker")
    for path in sorted(marked - referenced):
        if storage.delete(path):
            log.warning("unreferenced_file_deleted", table=storage.base_uri, instant_time=instant_time, path=path)


def _load_facts(
    storage: Storage,
    timeline: Timeline,
    pending: PendingCommit,
    file_groups: frozenset[tuple[str, str]],
    schema: str,
) -> CommitFacts:
    newer = [i for i in timeline.completed_writes if i.time not in pending.seen]
    rolled_back = set()
    for instant in timeline:
        if instant.action is Action.ROLLBACK and instant.time > pending.time:
            rolled_back.add(load_rolled_back_time(storage, timeline, instant))
    return CommitFacts(
        instant_time=pending.time,
        file_groups=file_groups,
        schema=schema,
        inflight_exists=timeline.contains(inflight(pending.time, pending.instant.action)),
        rolled_back=frozenset(rolled_back),
        others={i.time: decode_commit(read_instant(storage, i), i.file_name) for i in newer},
        config_before=pending.config,
        config_now=load_table_config(storage),
    )


def load_rolled_back_time(storage: Storage, timeline: Timeline, rollback: Instant) -> str:
    """The instant that a rollback on the timeline undoes, or "" when its file does not say."""
    if rollback.is_completed:
        return decode_rollback_metadata(read_instant(storage, rollback), rollback.file_name).instant_time
    plan = Instant(rollback.time, Action.ROLLBACK, State.REQUESTED)
    data = read_instant(storage, plan) if timeline.contains(plan) else b""
    return decode_rollback_plan(data, plan.file_name).instant_time if data else ""
