"""Savepoints, and going back to one (SavepointActionExecutor, CopyOnWriteRestoreActionExecutor)."""

import structlog

from table import clock
from table.errors import CommitConflictError, InvalidConfigError
from table.files.file_names import parse_base_file
from table.hudi_table import HudiTable, check_copy_on_write
from table.services.rollback import execute_rollback
from table.storage import METAFOLDER, join
from table.timeline.active_timeline import (
    begin_instant,
    complete_instant,
    delete_instant_file,
    load_timeline,
    read_instant,
    request_instant,
)
from table.timeline.clean_metadata import decode_clean_metadata
from table.timeline.instant import Action, Instant, State
from table.timeline.restore_metadata import (
    RestorePlan,
    decode_restore_plan,
    encode_restore_metadata,
    encode_restore_plan,
)
from table.timeline.savepoint_metadata import SavepointMetadata, encode_savepoint
from table.timeline.service_metadata import (
    RollbackPlan,
    RollbackRequest,
    decode_record,
    decode_rollback_plan,
    encode_rollback_plan,
    read_as,
)
from table.timeline.timeline import Timeline, requested
from table.view.file_group import CommittedInstants, build_file_groups
from table.view.file_system_view import list_partition_paths

log = structlog.get_logger("hudistream.savepoint")


def create_savepoint(table: HudiTable, time: str | None = None, user: str = "", comment: str = "") -> str:
    """Holds the files that readers of a commit see: cleaning leaves them, archival stops before them.

    Args:
        table: the table.
        time: instant time of a completed commit; None means the newest.
        user: who wants it.
        comment: why.

    Returns:
        The instant time of the commit.

    Raises:
        InvalidConfigError: there is no such commit, or some of its files may have been cleaned.
    """
    check_copy_on_write(table.config, "make a savepoint of")
    storage, timeline = table.storage, load_timeline(table.storage)
    commits = timeline.completed_writes
    chosen = next((i for i in reversed(commits) if time is None or i.time == time), None)
    if chosen is None:
        known = ", ".join(i.time for i in commits[-5:]) or "none"
        raise InvalidConfigError(
            f"there is no completed commit {time or ''}on the active timeline; the newest: {known}"
        )
    _check_not_cleaned(table, timeline, chosen)
    if timeline.contains(Instant(chosen.time, Action.SAVEPOINT, State.COMPLETED)):
        return chosen.time
    seen = CommittedInstants(
        frozenset(i.time for i in commits if i.time <= chosen.time),
        timeline.first_active_time,
        {},
    )
    replaced = table.load_committed(_until(timeline, chosen.time)).replaced
    files = {}
    for path in list_partition_paths(storage):
        groups = build_file_groups(path, storage.list_dir(path), seen)
        held = [g.latest.name for g in groups if g.latest is not None and g.file_id not in replaced.get(path, ())]
        if held:
            files[path] = tuple(held)
    begun = Instant(chosen.time, Action.SAVEPOINT, State.INFLIGHT)
    storage.create_exclusive(join(METAFOLDER, begun.file_name), b"", durable=True)
    complete_instant(storage, begun, encode_savepoint(SavepointMetadata(user, clock.now_ms(), comment, files)))
    log.info("savepoint_created", table=storage.base_uri, instant_time=chosen.time, files=sum(map(len, files.values())))
    return chosen.time


def _until(timeline: Timeline, time: str) -> Timeline:
    return Timeline(tuple(i for i in timeline.instants if i.time <= time), timeline.files)


def _check_not_cleaned(table: HudiTable, timeline: Timeline, chosen: Instant) -> None:
    cleans = timeline.completed_of(Action.CLEAN)
    if not cleans:
        return
    plan = decode_clean_metadata(read_instant(table.storage, cleans[-1]), cleans[-1].file_name).plan
    bound = plan.earliest[0] if plan.earliest else timeline.completed_writes[-1].time
    if chosen.time < bound:
        raise InvalidConfigError(
            f"files of {chosen.time} may have been cleaned: a savepoint can be made of {bound} and later commits"
        )


def delete_savepoint(table: HudiTable, time: str) -> None:
    """Lets go of a savepoint; the next clean may take its files.

    Raises:
        InvalidConfigError: there is none at that commit.
    """
    timeline = load_timeline(table.storage)
    files = timeline.files_of(time, Action.SAVEPOINT)
    if not files:
        known = ", ".join(i.time for i in timeline.completed_of(Action.SAVEPOINT)) or "none"
        raise InvalidConfigError(f"there is no savepoint {time}; there are: {known}")
    for file in reversed(files):
        delete_instant_file(table.storage, file)
    log.info("savepoint_deleted", table=table.storage.base_uri, instant_time=time)


def restore_to_savepoint(table: HudiTable, time: str) -> RestorePlan:
    """Takes the table back to a savepoint: every later commit is undone, newest first.

    No writer may run meanwhile. A restore that was begun is finished first, from its own plan.

    Returns:
        What was undone.

    Raises:
        InvalidConfigError: there is no such savepoint.
        CommitConflictError: a write is pending.
    """
    check_copy_on_write(table.config, "restore")
    storage, timeline = table.storage, load_timeline(table.storage)
    pending = timeline.pending_of(Action.RESTORE)
    if pending:
        return _finish_restore(table, timeline, pending[0])
    if not timeline.contains(Instant(time, Action.SAVEPOINT, State.COMPLETED)):
        known = ", ".join(i.time for i in timeline.completed_of(Action.SAVEPOINT)) or "none"
        raise InvalidConfigError(f"there is no savepoint {time}; there are: {known}")
    writes = timeline.pending_of(Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)
    if writes:
        raise CommitConflictError(
            f"{writes[0].file_name} is pending: stop its writer, or `hudistream rollback` it first"
        )
    undone = [(i.time, i.action.value) for i in reversed(timeline.completed_writes) if i.time > time]
    plan = RestorePlan(time, tuple(undone))
    request_instant(storage, timeline, Action.RESTORE, table.config.timezone, encode_restore_plan(plan))
    timeline = load_timeline(storage)
    return _finish_restore(table, timeline, timeline.pending_of(Action.RESTORE)[0])


def _finish_restore(table: HudiTable, timeline: Timeline, pending: Instant) -> RestorePlan:
    storage, started_ms = table.storage, clock.now_ms()
    request = requested(pending.time, Action.RESTORE)
    plan = decode_restore_plan(read_instant(storage, request), request.file_name)
    begun = begin_instant(storage, request)
    for time, action in plan.instants:
        timeline = load_timeline(storage)
        undo_commit(table, timeline, time, Action(action))
    timeline = load_timeline(storage)
    rollbacks = {}
    for rollback in timeline.completed_of(Action.ROLLBACK):
        if rollback.time > pending.time:
            record = decode_record("rollback_metadata", read_instant(storage, rollback), rollback.file_name)
            with read_as("rollback_metadata", rollback.file_name):
                rollbacks[record["commitsRollback"][0]] = record
    duration_ms = clock.now_ms() - started_ms
    complete_instant(storage, begun, encode_restore_metadata(pending.time, duration_ms, plan, rollbacks))
    log.info("table_restored", table=storage.base_uri, savepoint=plan.savepoint, undone=len(plan.instants))
    return plan


def undo_commit(table: HudiTable, timeline: Timeline, time: str, action: Action) -> None:
    """Rolls back one commit, completed or not, by a listing of its files (ListingBasedRollbackStrategy).

    The completed file goes before any data file: what is half undone is not visible.
    """
    storage = table.storage
    rollback = next((i for i in timeline.pending_of(Action.ROLLBACK) if _undoes(table, timeline, i, time)), None)
    if rollback is None:
        if not any(i.time == time for i in timeline if i.action is action):
            return  # undone before a crash
        requests = []
        for path in list_partition_paths(storage):
            for entry in storage.list_dir(path):
                base = parse_base_file(entry.name)
                if base is not None and base.instant_time == time:
                    file = storage.absolute(join(path, entry.name))
                    requests.append(RollbackRequest(path, base.file_id, time, (file,)))
        plan = RollbackPlan(time, action.value, tuple(requests))
        content = encode_rollback_plan(plan)
        rollback = request_instant(storage, timeline, Action.ROLLBACK, table.config.timezone, content)
    else:
        plan = _plan_of(table, rollback)
    delete_instant_file(storage, Instant(time, action, State.COMPLETED))
    execute_rollback(table, requested(rollback.time, Action.ROLLBACK), plan)


def _plan_of(table: HudiTable, rollback: Instant) -> RollbackPlan:
    request = requested(rollback.time, Action.ROLLBACK)
    return decode_rollback_plan(read_instant(table.storage, request), request.file_name)


def _undoes(table: HudiTable, timeline: Timeline, rollback: Instant, time: str) -> bool:
    plan = requested(rollback.time, Action.ROLLBACK)
    return timeline.contains(plan) and _plan_of(table, rollback).instant_time == time


def roll_back(table: HudiTable, time: str) -> None:
    """Rolls back one commit: a pending one, or the newest completed one.

    Raises:
        InvalidConfigError: there is no such commit, others came after it, or a savepoint holds it.
    """
    check_copy_on_write(table.config, "roll back")
    timeline = load_timeline(table.storage)
    writes = [i for i in timeline if i.action in (Action.COMMIT, Action.REPLACE_COMMIT)]
    chosen = next((i for i in writes if i.time == time), None)
    if chosen is None:
        known = ", ".join(i.time for i in writes[-3:]) or "none"
        raise InvalidConfigError(f"there is no commit {time} on the active timeline; the newest: {known}")
    if any(i.time == time for i in timeline.completed_of(Action.SAVEPOINT)):
        raise InvalidConfigError(f"a savepoint holds {time}: delete the savepoint first")
    later = [i.time for i in timeline.completed_writes if i.time > time]
    if chosen.is_completed and later:
        raise InvalidConfigError(
            f"{len(later)} commits came after {time}: roll back the newest ({later[-1]}) first, or restore a savepoint"
        )
    undo_commit(table, timeline, time, chosen.action)
    log.info("commit_rolled_back", table=table.storage.base_uri, instant_time=time)
