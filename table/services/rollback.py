"""Rollback: undo what a dead writer left, before anything else is written (BaseRollbackActionExecutor).

Three steps, as in every table service: the plan is pure, it is requested with itself as content, and
what is executed is read from that file. A rollback that died is resumed from its plan.
"""

import structlog

from table import clock
from table.errors import CommitConflictError
from table.files.markers import delete_markers, list_marked_instants, list_markers
from table.hudi_table import HudiTable
from table.services.rollback_plan import plan_rollback
from table.settings import HeartbeatSettings
from table.storage import Storage
from table.timeline.active_timeline import (
    begin_instant,
    complete_instant,
    delete_instant_file,
    load_timeline,
    read_instant,
    request_instant,
)
from table.timeline.commit_metadata import decode_commit
from table.timeline.instant import Action, Instant, State
from table.timeline.service_metadata import (
    RollbackMetadata,
    RollbackPlan,
    decode_record,
    decode_rollback_plan,
    encode_rollback_metadata,
    encode_rollback_plan,
)
from table.timeline.timeline import Timeline, inflight, requested
from table.transaction.commit import load_rolled_back_time
from table.transaction.heartbeat import WriterIdentity, delete_heartbeat, find_live_writer

log = structlog.get_logger("hudistream.rollback")


def roll_back_failed_writes(
    table: HudiTable, timeline: Timeline, identity: WriterIdentity, heartbeat: HeartbeatSettings
) -> Timeline:
    """Resumes rollbacks that died, rolls back writes that died, sweeps files of late tasks (EAGER).

    Args:
        table: the table.
        timeline: as just loaded.
        identity: who we are: our own dead instants go at once, whatever their heartbeat says.
        heartbeat: when another's heartbeat counts as dead.

    Returns:
        The timeline afterwards.

    Raises:
        CommitConflictError: when a pending instant belongs to a writer that is alive, or to a
            service that only its own writer can finish.
    """
    storage = table.storage
    pending = timeline.pending_of(Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)
    for instant in pending:
        _check_is_dead(storage, timeline, instant, identity, heartbeat)
    for restore in timeline.pending_of(Action.RESTORE):
        raise CommitConflictError(f"{restore.file_name} is pending: finish the restore with the writer that began it")
    changed = False
    for rollback in timeline.pending_of(Action.ROLLBACK):
        resume_rollback(table, timeline, rollback)
        changed = True
    if changed:
        timeline = load_timeline(storage)
    for instant in reversed(timeline.pending_of(Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)):
        roll_back_pending(table, timeline, instant)
        timeline = load_timeline(storage)
    sweep_zombies(table, timeline)
    return timeline


def _check_is_dead(
    storage: Storage, timeline: Timeline, instant: Instant, identity: WriterIdentity, heartbeat: HeartbeatSettings
) -> None:
    if instant.action is Action.REPLACE_COMMIT and _is_clustering(storage, timeline, instant):
        raise CommitConflictError(
            f"{instant.file_name} is a pending clustering of another writer: finish it there first"
        )
    writer = find_live_writer(storage, instant.time, heartbeat)
    if writer is not None and writer != identity:
        raise CommitConflictError(
            f"instant {instant.time} is being written by a live writer (sink {writer.sink_id!r}, query "
            f"{writer.query_id!r}); this is sink {identity.sink_id!r}, query {identity.query_id!r}: one stream a "
            f"table; stop the other one, or wait {heartbeat.expiry_ms / 1000:.0f} s after it has died"
        )


def _is_clustering(storage: Storage, timeline: Timeline, instant: Instant) -> bool:
    """Whether a replace commit's request holds a plan: those of overwrites hold none, or are empty."""
    request = requested(instant.time, instant.action)
    data = read_instant(storage, request) if timeline.contains(request) else b""
    return bool(data) and decode_record("requested_replace", data, request.file_name).get("clusteringPlan") is not None


def roll_back_pending(table: HudiTable, timeline: Timeline, instant: Instant) -> Instant:
    """Rolls back one pending commit, by its markers. Returns the completed rollback."""
    storage = table.storage
    markers = [] if instant.state is State.REQUESTED else list_markers(storage, instant.time)
    plan = plan_rollback(instant, markers, storage.absolute)
    rollback = request_instant(storage, timeline, Action.ROLLBACK, table.config.timezone, encode_rollback_plan(plan))
    now = load_timeline(storage).find(instant.time, instant.action)
    if now is None or now.is_completed:
        delete_instant_file(storage, rollback)
        raise CommitConflictError(f"instant {instant.time} was finished by its writer while it was to be rolled back")
    return execute_rollback(table, rollback, plan)


def resume_rollback(table: HudiTable, timeline: Timeline, rollback: Instant) -> None:
    """Finishes a rollback that died, from its own plan; one that died before it had a plan is dropped.

    Raises:
        CommitConflictError: when it undoes a completed commit: part of another writer's restore.
    """
    plan_file = requested(rollback.time, Action.ROLLBACK)
    data = read_instant(table.storage, plan_file) if timeline.contains(plan_file) else b""
    plan = decode_rollback_plan(data, plan_file.file_name) if data else None
    target = timeline.find(plan.instant_time, Action(plan.action)) if plan else None
    outlived = target is not None and target.is_completed
    if plan is not None and not outlived:
        execute_rollback(table, plan_file, plan)
    elif rollback.state is State.REQUESTED or plan is None:
        for file in reversed(timeline.files_of(rollback.time, Action.ROLLBACK)):
            delete_instant_file(table.storage, file)
    else:
        raise CommitConflictError(
            f"{rollback.file_name} is undoing a completed commit: finish that restore with the writer that began it"
        )


def execute_rollback(table: HudiTable, rollback: Instant, plan: RollbackPlan) -> Instant:
    """Deletes what the plan names, then the failed instant's files, and records it. Can be repeated.

    Args:
        table: the table.
        rollback: the requested rollback.
        plan: what it is to do.

    Returns:
        The completed rollback instant.
    """
    storage = table.storage
    started_ms = clock.now_ms()
    begun = begin_instant(storage, rollback)
    deleted: dict[str, list[str]] = {}
    for request in plan.requests:
        for path in request.files:
            storage.delete(storage.relative(path))
            deleted.setdefault(request.partition_path, []).append(path)
    action = Action(plan.action)
    for state in (inflight(plan.instant_time, action), requested(plan.instant_time, action)):
        delete_instant_file(storage, state)
    metadata = RollbackMetadata(
        rollback.time,
        clock.now_ms() - started_ms,
        plan.instant_time,
        plan.action,
        {path: tuple(files) for path, files in deleted.items()},
    )
    completed = complete_instant(storage, begun, encode_rollback_metadata(metadata))
    delete_heartbeat(storage, plan.instant_time)
    delete_markers(storage, plan.instant_time)
    # a task that still ran may have closed its file since we looked; from here on it finds its marker gone
    for request in plan.requests:
        for path in request.files:
            storage.delete(storage.relative(path))
    log.info(
        "write_rolled_back",
        table=storage.base_uri,
        instant_time=plan.instant_time,
        rollback_time=rollback.time,
        files=sum(map(len, deleted.values())),
    )
    return completed


def sweep_zombies(table: HudiTable, timeline: Timeline) -> None:
    """Deletes files that a late task wrote after its instant was over, then the markers that name them.

    Kept is what a commit references, and everything of an instant whose fate is not on the active
    timeline: deletion needs proof.
    """
    storage = table.storage
    pending = {instant.time for instant in timeline.pending}
    for time in list_marked_instants(storage):
        if time in pending:
            continue
        referenced = _referenced_files(storage, timeline, time)
        if referenced is None:
            continue
        for marker in list_markers(storage, time):
            if marker.data_file not in referenced and storage.delete(marker.data_file):
                log.warning("zombie_file_deleted", table=storage.base_uri, instant_time=time, path=marker.data_file)
        delete_heartbeat(storage, time)
        delete_markers(storage, time)
    for instant in timeline.completed_writes[-1:]:
        if instant.action is Action.REPLACE_COMMIT:
            delete_heartbeat(storage, instant.time)  # one that only took files away has no markers to be found by


def _referenced_files(storage: Storage, timeline: Timeline, time: str) -> frozenset[str] | None:
    """Files that the instant's commit names; none when it was undone; None when nobody can tell."""
    for instant in timeline.completed_writes:
        if instant.time == time:
            metadata = decode_commit(read_instant(storage, instant), instant.file_name)
            return frozenset(stat.path for stat in metadata.stats)
    for rollback in timeline.completed_of(Action.ROLLBACK):
        if rollback.time > time and load_rolled_back_time(storage, timeline, rollback) == time:
            return frozenset()
    first = timeline.first_active_time
    return frozenset() if first is None or time > first else None
