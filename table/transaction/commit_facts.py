"""Reads the facts from which `conflicts` decides whether a commit may become visible."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from table.config.table_config import TableConfig
from table.errors import InvalidConfigError, TimelineMovedError, WriteConflictError
from table.files.names import parse_log_file
from table.references.undone import load_rolled_back_time
from table.snapshot import Snapshot
from table.storage.interface import Storage, join
from table.timeline.active_timeline import find_instant, read_instant
from table.timeline.change import Change
from table.timeline.end_record import find_end
from table.timeline.instant import Action, Instant, State
from table.timeline.metadata.clean import decode_clean_metadata, decode_clean_plan
from table.timeline.metadata.commit import CommitMetadata, WriteStat
from table.timeline.metadata.compaction import decode_compaction_plan
from table.timeline.timeline import Timeline
from table.transaction.conflicts import CommitFacts
from table.transaction.planned_clusterings import load_clustered


@dataclass(frozen=True)
class PendingCommit:
    """A commit that was begun.

    Attributes:
        instant: the inflight instant.
        operation: Hudi's name of the operation, such as ``INSERT``.
        seen: the table that the batch is planned from; its timeline was listed after the request.
        looks: whether the batch searches for rows of the table, to change or to replace them.
        sight: the value in the commit's heartbeat: the least time of a write that the batch may not have seen.
        widens_order: whether the commit widens an ordering column: logs must hold no deletes with older values.
    """

    instant: Instant
    operation: str
    seen: Snapshot
    looks: bool = True
    sight: str | None = None
    widens_order: bool = False

    @property
    def time(self) -> str:
        """The instant time of the commit."""
        return self.instant.time

    @property
    def compactions(self) -> tuple[Instant, ...]:
        """The compactions that were pending when the commit began."""
        return self.seen.timeline.pending_of(Action.COMPACTION)


def load_facts(
    snapshot: Snapshot, config: TableConfig | None, pending: PendingCommit, metadata: CommitMetadata, schema: str
) -> CommitFacts:
    """Loads the facts about a commit that is about to be completed.

    Args:
        snapshot: the table as it is now.
        config: its properties as they are now; None: they are gone.
        pending: the commit.
        metadata: metadata of the commit.
        schema: the Avro schema that the commit was written with.
    """
    storage, timeline, seen = snapshot.storage, snapshot.timeline, pending.seen.timeline
    passed = _load_passed(snapshot, pending, metadata)
    fresh = timeline.files - seen.files
    change = Change.between(seen.committed_times, timeline.committed_times)
    # those that were not completed when the commit began
    rollbacks, restores, cleans = (
        [i for i in timeline if i.action is action and not (i.is_completed and i not in fresh)]
        for action in (Action.ROLLBACK, Action.RESTORE, Action.CLEAN)
    )
    # a clean that was pending when the commit began, and still is, checks the snapshot before it deletes
    waiting = {i.time for i in seen.pending_of(Action.CLEAN)} & {i.time for i in timeline.pending_of(Action.CLEAN)}
    cleaned: set[str] = set()
    for instant in cleans:
        if instant.time not in waiting:
            cleaned.update(load_cleaned(storage, instant))
    return CommitFacts(
        instant_time=pending.time,
        file_groups=metadata.file_groups,
        inputs=frozenset(join(stat.partition_path, name) for stat in metadata.stats if (name := _base_file_of(stat))),
        schema=schema,
        inflight_exists=timeline.contains(pending.instant.at(State.INFLIGHT)),
        rolled_back=frozenset(_load_undone(snapshot, i) for i in rollbacks),
        restored=bool(restores),
        seen=seen.committed_times,
        missing=change.undone,
        cleaned=frozenset(cleaned),
        compactions=frozenset(instant.time for instant in pending.compactions) | passed,
        scheduled=_load_scheduled(snapshot, pending) - passed,
        clustered=load_clustered(snapshot, apart_from=pending.time),
        withdrawn=frozenset(i.time for i in pending.compactions if not _is_there(timeline, i)),
        decided=_load_decided(snapshot, pending),
        others={i.time: snapshot.commits.read(i) for i in timeline.completed_writes if i.time in change.came},
        config_before=pending.seen.config,
        config_now=config,
        looks=pending.looks,
        widens_order=pending.widens_order,
        unseen_from=seen.unseen_from,
        line_then=seen.first_active_time,
        line_now=timeline.first_active_time,
    )


def _load_decided(snapshot: Snapshot, pending: PendingCommit) -> frozenset[str]:
    """Other writes that are decided to be committed, although the timeline does not show them as completed.

    A writer decides and completes under the lock, or in its place of the commit order. So such a write was left by a
    dead writer, or somebody deleted its completed file.
    """
    waiting = snapshot.timeline.pending_of(Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT, Action.CLUSTERING)
    ends = {i.time: find_end(snapshot.storage, i.time, i.action) for i in waiting if i.time != pending.time}
    return frozenset(time for time, end in ends.items() if end is not None and end.is_commit)


def _load_passed(snapshot: Snapshot, pending: PendingCommit, metadata: CommitMetadata) -> frozenset[str]:
    """Compactions that were requested since a commit began, pending or completed, and do not concern it (layout 2).

    A log file belongs to the newest slice that was requested before its commit was completed. So log files of the
    commit lie above what such a compaction makes (Hudi's non-blocking concurrency control, RFC-66). A base file of the
    commit does not: it is a version of its own, and so is the compaction's.
    """
    if not snapshot.layout.completes_in_order:
        return frozenset()
    known = {instant.time for instant in pending.seen.timeline} | {pending.time}
    rewritten = {
        (stat.partition_path, stat.file_id)
        for stat in metadata.stats
        if parse_log_file(stat.path.rpartition("/")[2]) is None
    }
    found = {one.time: _load_compacted(snapshot, one) for one in snapshot.timeline if one.time not in known}
    return frozenset(time for time, groups in found.items() if groups is not None and not groups & rewritten)


def _load_compacted(snapshot: Snapshot, instant: Instant) -> frozenset[tuple[str, str]] | None:
    """The file groups that a compaction folds; None for another instant.

    Raises:
        TimelineMovedError: the compaction was withdrawn since the timeline was listed.
    """
    if instant.is_completed:
        metadata = snapshot.commits.read(instant) if instant.action is Action.COMMIT else CommitMetadata()
        return metadata.file_groups if metadata.compacted else None
    if instant.action is not Action.COMPACTION:
        return None
    request = instant.at(State.REQUESTED)
    plan = decode_compaction_plan(read_instant(snapshot.storage, request), request.file_name)
    return frozenset((one.partition_path, one.file_id) for one in plan.operations)


def _load_scheduled(snapshot: Snapshot, pending: PendingCommit) -> frozenset[str]:
    """Compactions that were requested since a commit began, and are pending."""
    timeline, known = snapshot.timeline, {i.time for i in pending.seen.timeline} | {pending.time}
    compactions = timeline.pending_of(Action.COMPACTION, Action.LOG_COMPACTION)
    return frozenset(i.time for i in compactions if i.time not in known)


def _is_there(timeline: Timeline, compaction: Instant) -> bool:
    """Whether a compaction is pending or completed. An archived one has a time before the timeline's first instant."""
    found = timeline.find(compaction.time, Action.COMPACTION)
    return found is not None or compaction.time < (timeline.first_active_time or "")


def _base_file_of(stat: WriteStat) -> str | None:
    """The base file that a stat's file continues, or that its log records change."""
    return stat.prev_base_file or stat.extra.get("baseFile")


def load_cleaned(storage: Storage, clean: Instant) -> frozenset[str]:
    """Paths that a clean deletes or has deleted, relative to the table.

    Args:
        clean: the clean, in any state.

    Raises:
        TimelineMovedError: a pending clean was completed or withdrawn since the timeline was listed.
        CommitConflictError: a completed clean was archived since, or its file does not list the deleted files.
    """
    if clean.is_completed:
        data = find_instant(storage, clean)
        if not data:
            gone = "was archived" if data is None else "is empty"
            raise WriteConflictError(
                f"{clean.file_name} {gone}, so that it is not known what the clean deleted while the batch ran; the "
                "batch can be run again"
            )
        deleted = decode_clean_metadata(data, clean.file_name).deleted
        return frozenset(join(path, name) for path, names in deleted.items() for name in names)
    contents = (find_instant(storage, clean.at(state)) for state in (State.REQUESTED, State.INFLIGHT))
    found = [data for data in contents if data is not None]
    if not found:
        raise TimelineMovedError(f"{clean.file_name} ended while the timeline was read: run the batch again")
    plan = next((data for data in found if data), None)  # a clean that died before it had a plan deletes nothing
    files = decode_clean_plan(plan, clean.file_name).files if plan is not None else {}
    return frozenset(_inside(storage, ((path, file) for path, names in files.items() for file in names)))


def _inside(storage: Storage, files: Iterable[tuple[str, str]]) -> Iterator[str]:
    for path, file in files:
        with suppress(InvalidConfigError):  # no batch continues a file outside of the table
            yield storage.relative(file, path)


def _load_undone(snapshot: Snapshot, rollback: Instant) -> str:
    """As `load_rolled_back_time`, for a rollback that the batch has not seen: the batch must know the undone instant.

    Raises:
        TimelineMovedError: the rollback ended since the timeline was listed.
    """
    time, files = load_rolled_back_time(snapshot, rollback), snapshot.timeline.files_of(rollback.time, Action.ROLLBACK)
    if not time and not any(snapshot.storage.exists(file.path) for file in files):
        raise TimelineMovedError(f"{rollback.file_name} ended while the timeline was read: run the batch again")
    return time
