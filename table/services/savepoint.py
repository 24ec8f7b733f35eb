"""Savepoints, and going back to one (SavepointActionExecutor, CopyOnWriteRestoreActionExecutor)."""

from collections.abc import Mapping

import structlog

from table import clock
from table.errors import CommitConflictError, InvalidConfigError
from table.files.file_names import parse_base_file
from table.hudi_table import HudiTable, check_copy_on_write
from table.services.rollback import WRITES, end_pending, undo_decided
from table.services.undo_checks import check_batches, check_not_held, check_predecessors, decide_undo
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
from table.timeline.end_record import COMMIT, ROLLBACK, EndRecord, decide_end
from table.timeline.instant import Action, Instant, State
from table.timeline.restore_metadata import (
    RestorePlan,
    decode_restore_plan,
    encode_restore_metadata,
    encode_restore_plan,
)
from table.timeline.savepoint_metadata import SavepointMetadata, decode_savepoint, encode_savepoint
from table.timeline.service_metadata import (
    RollbackPlan,
    RollbackRequest,
    decode_record,
    decode_rollback_plan,
    encode_rollback_plan,
    read_as,
)
from table.timeline.timeline import Timeline, requested
from table.transaction.commit import load_cleaned, load_rolled_back_time
from table.transaction.lease import Lease, hold_table
from table.view.file_group import CommittedInstants, build_file_groups
from table.view.file_system_view import list_partition_paths

log = structlog.get_logger("hudistream.savepoint")


def create_savepoint(table: HudiTable, time: str | None = None, user: str = "", comment: str = "") -> str:
    """Holds the files that readers of a commit see: cleaning leaves them, archival stops before them.

    It is durable first, and verified then (rule 10): a clean that was planned before it was durable does not
    know of it. Cleans look for savepoints after their plan is durable, so one of the two sees the other.

    Args:
        table: the table.
        time: instant time of a completed commit; None means the newest.
        user: who wants it.
        comment: why.

    Returns:
        The instant time of the commit.

    Raises:
        InvalidConfigError: there is no such commit, or some of its files may have been cleaned.
        CommitConflictError: a clean that is under way deletes some of its files; the savepoint was withdrawn.
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
    if timeline.contains(Instant(chosen.time, Action.SAVEPOINT, State.COMPLETED)):
        return chosen.time
    _check_not_cleaned(table, timeline, chosen)
    files = _held_files(table, timeline, chosen.time)
    begun = Instant(chosen.time, Action.SAVEPOINT, State.INFLIGHT)
    storage.create_exclusive(join(METAFOLDER, begun.file_name), b"", durable=True)
    complete_instant(storage, begun, encode_savepoint(SavepointMetadata(user, clock.now_ms(), comment, files)))
    problem = _find_hole(table, timeline, chosen, files)
    if problem is not None:
        for file in reversed(load_timeline(storage).files_of(chosen.time, Action.SAVEPOINT)):
            delete_instant_file(storage, file)
        raise CommitConflictError(
            f"{problem} while the savepoint of {chosen.time} was made: it was withdrawn; finish the clean "
            "(`hudistream clean`) or the undoing, then make it again, of a later commit if need be"
        )
    log.info("savepoint_created", table=storage.base_uri, instant_time=chosen.time, files=sum(map(len, files.values())))
    return chosen.time


def _held_files(table: HudiTable, timeline: Timeline, time: str) -> dict[str, tuple[str, ...]]:
    """Partition path -> names of the files that readers of a commit see."""
    seen = CommittedInstants(
        frozenset(i.time for i in timeline.completed_writes if i.time <= time),
        timeline.first_active_time,
        {},
    )
    until = Timeline(tuple(i for i in timeline.instants if i.time <= time), timeline.files)
    replaced = table.load_committed(until).replaced
    files = {}
    for path in list_partition_paths(table.storage):
        groups = build_file_groups(path, table.storage.list_dir(path), seen)
        held = [g.latest.name for g in groups if g.latest is not None and g.file_id not in replaced.get(path, ())]
        if held:
            files[path] = tuple(held)
    return files


def _find_hole(
    table: HudiTable, before: Timeline, chosen: Instant, files: Mapping[str, tuple[str, ...]]
) -> str | None:
    """Why a savepoint that is durable does not hold, or None."""
    storage = table.storage
    now = load_timeline(storage)
    if now.find(chosen.time, chosen.action) is None:
        return f"commit {chosen.time} was undone or archived"
    undoing = [*now.pending_of(Action.RESTORE), *now.pending_of(Action.ROLLBACK)]
    if any(i.action is Action.RESTORE or load_rolled_back_time(storage, now, i) == chosen.time for i in undoing):
        return f"commit {chosen.time} is, or may be, about to be undone"
    known = {i.time for i in before.completed_of(Action.CLEAN)}
    for instant in now:
        if instant.action is Action.CLEAN and instant.time not in known:
            taken = load_cleaned(storage, now, instant)
            lost = [join(path, name) for path, names in files.items() for name in names if join(path, name) in taken]
            if lost:
                return f"the clean {instant.time} deletes {lost[0]}"
    gone = _find_missing(table, files)
    return f"{gone} was deleted" if gone is not None else None


def _find_missing(table: HudiTable, files: Mapping[str, tuple[str, ...]]) -> str | None:
    """A file of a savepoint that is not there, or None."""
    there = {path: {entry.name for entry in table.storage.list_dir(path)} for path in files}
    return next((join(path, name) for path, names in files.items() for name in names if name not in there[path]), None)


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


def restore_to_savepoint(table: HudiTable, time: str, *, force: bool = False) -> RestorePlan:
    """Takes the table back to a savepoint: every later commit is undone, newest first.

    It holds the table meanwhile. A restore that was begun is finished first, from its own plan.

    Args:
        table: the table.
        time: the savepoint's.
        force: also undo batches of streams, whose checkpoints go on taking them for done.

    Returns:
        What was undone.

    Raises:
        InvalidConfigError: there is no such savepoint, or batches of streams would be lost.
        CommitConflictError: a live writer holds the table, or a write is pending.
    """
    check_copy_on_write(table.config, "restore")
    with hold_table(table.storage, "hudistream savepoint restore") as lease:
        for pending in load_timeline(table.storage).pending_of(Action.RESTORE):
            if _is_to_be_finished(table, pending, lease.owner):
                return _finish_restore(table, pending, lease)
        return _restore(table, time, lease, force=force)


def _is_to_be_finished(table: HudiTable, pending: Instant, owner: str) -> bool:
    """Whether a restore that was begun is carried out; else it is withdrawn, and nothing was undone.

    One that was requested when its process had lost the table leaves out what others committed meanwhile: it was
    not decided, and to undo the commits before those would tear the table.
    """
    storage = table.storage
    if pending.state is not State.REQUESTED:
        return True
    timeline = load_timeline(storage)
    plan = decode_restore_plan(read_instant(storage, pending), pending.file_name)
    known = {time for time, _ in plan.instants}
    others = [i for i in timeline.completed_writes if i.time > plan.savepoint and i.time not in known]
    wanted = ROLLBACK if others or timeline.pending_of(*WRITES) else COMMIT
    if decide_end(storage, EndRecord(pending.time, Action.RESTORE, wanted, owner)).is_commit:
        return True
    delete_instant_file(storage, pending)
    log.warning("restore_withdrawn", table=storage.base_uri, instant_time=pending.time, savepoint=plan.savepoint)
    return False


def _restore(table: HudiTable, time: str, lease: Lease, *, force: bool) -> RestorePlan:
    storage, timeline = table.storage, load_timeline(table.storage)
    savepoint = Instant(time, Action.SAVEPOINT, State.COMPLETED)
    if not timeline.contains(savepoint):
        known = ", ".join(i.time for i in timeline.completed_of(Action.SAVEPOINT)) or "none"
        raise InvalidConfigError(f"there is no savepoint {time}; there are: {known}")
    check_not_held(timeline, time)
    gone = _find_missing(table, decode_savepoint(read_instant(storage, savepoint), savepoint.file_name).files)
    if gone is not None:
        raise InvalidConfigError(f"the savepoint {time} does not hold any more: {gone} is gone; nothing was undone")
    writes = timeline.pending_of(Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)
    if writes:
        raise CommitConflictError(
            f"{writes[0].file_name} is pending: stop its writer, or `hudistream rollback` it first"
        )
    undone = [i for i in reversed(timeline.completed_writes) if i.time > time]
    if not force:
        check_batches(table, undone)
    plan = RestorePlan(time, tuple((i.time, i.action.value) for i in undone))
    request = request_instant(storage, timeline, Action.RESTORE, table.config.timezone, encode_restore_plan(plan))
    decide_undo(table, request, lease, lambda: check_not_held(load_timeline(storage), time))
    return _finish_restore(table, request, lease)


def _finish_restore(table: HudiTable, pending: Instant, lease: Lease) -> RestorePlan:
    storage, started_ms = table.storage, clock.now_ms()
    request = requested(pending.time, Action.RESTORE)
    plan = decode_restore_plan(read_instant(storage, request), request.file_name)
    begun = begin_instant(storage, request)
    for time, action in plan.instants:
        timeline = load_timeline(storage)
        # versions between the savepoint and now may have been cleaned: what it holds is what readers see in the end
        try:
            undo_commit(table, timeline, time, Action(action), lease, to_savepoint=True)
        except CommitConflictError as error:
            hint = f"the restore {pending.time} is under way: run the command again"
            raise CommitConflictError(f"{error}; {hint}") from error
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


def undo_commit(
    table: HudiTable, timeline: Timeline, time: str, action: Action, lease: Lease, *, to_savepoint: bool = False
) -> None:
    """Rolls back one commit, completed or not, by a listing of its files (ListingBasedRollbackStrategy).

    It is decided once the plan is durable, and checked: until then the plan is dropped by whoever finds it, from then
    on it is carried out.

    Args:
        table: the table, held by the caller.
        timeline: as loaded.
        time: the commit's.
        action: the commit's.
        lease: the caller's.
        to_savepoint: it is one of several, down to a savepoint; else readers see the version before it.

    Raises:
        InvalidConfigError, CommitConflictError: a file that readers need then was cleaned, or is about to be, or
            the table was taken over; nothing was undone.
    """
    rollback = next((i for i in timeline.pending_of(Action.ROLLBACK) if _undoes(table, timeline, i, time)), None)
    if rollback is None:
        if not any(i.time == time for i in timeline if i.action is action):
            return  # undone before a crash
        rollback, plan = _request_undo(table, timeline, time, action)
    else:
        plan = _plan_of(table, rollback)
    if rollback.state is State.REQUESTED:
        checks = () if to_savepoint else (lambda: check_predecessors(table, time, action),)
        decide_undo(table, rollback, lease, *checks)
    undo_decided(table, requested(rollback.time, Action.ROLLBACK), plan, lease.owner)


def _request_undo(
    table: HudiTable, timeline: Timeline, time: str, action: Action
) -> tuple[Instant, RollbackPlan]:
    storage, requests = table.storage, []
    for path in list_partition_paths(storage):
        for entry in storage.list_dir(path):
            base = parse_base_file(entry.name)
            if base is not None and base.instant_time == time:
                file = storage.absolute(join(path, entry.name))
                requests.append(RollbackRequest(path, base.file_id, time, (file,)))
    plan = RollbackPlan(time, action.value, tuple(requests))
    content = encode_rollback_plan(plan)
    return request_instant(storage, timeline, Action.ROLLBACK, table.config.timezone, content), plan


def _plan_of(table: HudiTable, rollback: Instant) -> RollbackPlan:
    request = requested(rollback.time, Action.ROLLBACK)
    return decode_rollback_plan(read_instant(table.storage, request), request.file_name)


def _undoes(table: HudiTable, timeline: Timeline, rollback: Instant, time: str) -> bool:
    plan = requested(rollback.time, Action.ROLLBACK)
    return timeline.contains(plan) and _plan_of(table, rollback).instant_time == time


def roll_back(table: HudiTable, time: str, *, force: bool = False) -> None:
    """Rolls back one commit: a pending one, or the newest completed one. Holds the table meanwhile.

    Args:
        table: the table.
        time: the commit's instant time.
        force: also a batch of a stream, whose checkpoint goes on taking it for done.

    Raises:
        InvalidConfigError: there is no such commit, others came after it, a savepoint holds it, it is a stream's
            batch, or what readers would see without it was cleaned.
        CommitConflictError: a live writer holds the table, or a clean is under way.
    """
    check_copy_on_write(table.config, "roll back")
    with hold_table(table.storage, "hudistream rollback") as lease:
        _roll_back(table, time, lease, force=force)
    log.info("commit_rolled_back", table=table.storage.base_uri, instant_time=time)


def _roll_back(table: HudiTable, time: str, lease: Lease, *, force: bool) -> None:
    timeline = load_timeline(table.storage)
    writes = [i for i in timeline if i.action in (Action.COMMIT, Action.REPLACE_COMMIT)]
    chosen = next((i for i in writes if i.time == time), None)
    if chosen is None:
        known = ", ".join(i.time for i in writes[-3:]) or "none"
        raise InvalidConfigError(f"there is no commit {time} on the active timeline; the newest: {known}")
    if any(i.time == time for i in timeline.completed_of(Action.SAVEPOINT)):
        raise InvalidConfigError(f"a savepoint holds {time}: delete the savepoint first")
    if not chosen.is_completed:
        end_pending(table, timeline, chosen, lease.owner)
        return
    later = [i.time for i in timeline.completed_writes if i.time > time]
    if later:
        raise InvalidConfigError(
            f"{len(later)} commits came after {time}: roll back the newest ({later[-1]}) first, or restore a savepoint"
        )
    pending = timeline.pending_of(*WRITES)
    if pending:
        raise CommitConflictError(f"{pending[0].file_name} is pending: `hudistream rollback` it first")
    if not force:
        check_batches(table, [chosen])
    undo_commit(table, timeline, time, chosen.action, lease)
