"""Savepoints, and going back to one (SavepointActionExecutor, CopyOnWriteRestoreActionExecutor)."""

from collections.abc import Mapping

import structlog

from table import clock
from table.errors import CommitConflictError, HudiError, InvalidConfigError
from table.files.names import parse_base_file
from table.hudi_table import HudiTable, check_copy_on_write
from table.services.rollback.rollback import WRITES, end_pending, execute_rollback
from table.services.rollback.undo_checks import check_batches, check_predecessors
from table.snapshot import Snapshot
from table.storage.interface import METAFOLDER, join
from table.timeline.active_timeline import (
    begin_instant,
    complete_instant,
    delete_instant_file,
    find_instant,
    load_timeline,
    read_instant,
    request_instant,
)
from table.timeline.end_record import ROLLBACK, EndRecord, overrule_end
from table.timeline.instant import Action, Instant, State
from table.timeline.metadata.clean import decode_clean_metadata
from table.timeline.metadata.commit import decode_commit
from table.timeline.metadata.restore import (
    RestorePlan,
    decode_restore_plan,
    encode_restore_metadata,
    encode_restore_plan,
)
from table.timeline.metadata.savepoint import SavepointMetadata, decode_savepoint, encode_savepoint
from table.timeline.metadata.service import (
    RollbackPlan,
    RollbackRequest,
    decode_record,
    decode_rollback_plan,
    encode_rollback_plan,
    read_as,
)
from table.timeline.timeline import Timeline, requested
from table.transaction.checkpoint import batch_of_commit
from table.transaction.commit import load_cleaned
from table.transaction.lease import hold_table
from table.view.listing import StorageListing

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
            "(`hudistream clean`), then make it again, of a later commit if need be"
        )
    log.info("savepoint_created", table=storage.base_uri, instant_time=chosen.time, files=sum(map(len, files.values())))
    return chosen.time


def _held_files(table: HudiTable, timeline: Timeline, time: str) -> dict[str, tuple[str, ...]]:
    """Partition path -> names of the files that readers of a commit see."""
    snapshot = Snapshot(table, timeline, as_of=time)
    files = {}
    for path in snapshot.list_partition_paths():
        held = tuple(file.name for group in snapshot.list_file_groups(path) for file in group.latest_slice.files)
        if held:
            files[path] = held
    return files


def _find_hole(table: HudiTable, before: Timeline, chosen: Instant, files: Mapping[str, tuple[str, ...]]) -> str | None:
    """Why a savepoint that is durable does not hold, or None."""
    storage = table.storage
    now = load_timeline(storage)
    if now.find(chosen.time, chosen.action) is None:
        return f"commit {chosen.time} was undone or archived"
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
    there = {path: {entry.name for entry in table.listing.list_files(path)} for path in files}
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
        return _restore(table, time, lease.owner, force=force)


def _restore(table: HudiTable, time: str, owner: str, *, force: bool) -> RestorePlan:
    storage, timeline = table.storage, load_timeline(table.storage)
    pending = timeline.pending_of(Action.RESTORE)
    if pending:
        return _finish_restore(table, timeline, pending[0], owner)
    savepoint = Instant(time, Action.SAVEPOINT, State.COMPLETED)
    if not timeline.contains(savepoint):
        known = ", ".join(i.time for i in timeline.completed_of(Action.SAVEPOINT)) or "none"
        raise InvalidConfigError(f"there is no savepoint {time}; there are: {known}")
    later = [i.time for i in timeline.completed_of(Action.SAVEPOINT) if i.time > time]
    if later:
        raise InvalidConfigError(f"a savepoint holds {later[0]}, which is to be undone: delete it first")
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
    request_instant(storage, timeline, Action.RESTORE, table.config.timezone, encode_restore_plan(plan))
    timeline = load_timeline(storage)
    return _finish_restore(table, timeline, timeline.pending_of(Action.RESTORE)[0], owner)


def _finish_restore(table: HudiTable, timeline: Timeline, pending: Instant, owner: str) -> RestorePlan:
    storage, started_ms = table.storage, clock.now_ms()
    request = requested(pending.time, Action.RESTORE)
    plan = decode_restore_plan(read_instant(storage, request), request.file_name)
    begun = begin_instant(storage, request)
    for time, action in plan.instants:
        timeline = load_timeline(storage)
        # versions between the savepoint and now may have been cleaned: what it holds is what readers see in the end
        undo_commit(table, timeline, time, Action(action), owner, to_savepoint=True)
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
    table: HudiTable, timeline: Timeline, time: str, action: Action, owner: str, *, to_savepoint: bool = False
) -> None:
    """Rolls back one commit, completed or not, by a listing of its files (ListingBasedRollbackStrategy).

    The end record is overruled once the plan is durable: until then the plan is dropped by whoever finds it, from
    then on it is carried out. The completed file goes before any data file: what is half undone is not visible.

    Args:
        table: the table, held by the caller.
        timeline: as loaded.
        time: the commit's.
        action: the commit's.
        owner: who undoes it.
        to_savepoint: it is one of several, down to a savepoint; else readers see the version before it.

    Raises:
        InvalidConfigError, CommitConflictError: a file that readers need then was cleaned, or is about to be;
            nothing was undone.
    """
    storage = table.storage
    rollback = next((i for i in timeline.pending_of(Action.ROLLBACK) if _undoes(table, timeline, i, time)), None)
    if rollback is None:
        if not any(i.time == time for i in timeline if i.action is action):
            return  # undone before a crash
        requests = []
        there = StorageListing(storage)  # a rollback deletes what is there, whoever knows of it
        for path in there.list_partition_paths():
            for entry in there.list_files(path):
                base = parse_base_file(entry.name)
                if base is not None and base.instant_time == time:
                    file = storage.absolute(join(path, entry.name))
                    requests.append(RollbackRequest(path, base.file_id, time, (file,)))
        plan = RollbackPlan(time, action.value, tuple(requests))
        content = encode_rollback_plan(plan)
        rollback = request_instant(storage, timeline, Action.ROLLBACK, table.config.timezone, content)
        try:
            if not to_savepoint:
                check_predecessors(table, time, action)
        except HudiError:
            delete_instant_file(storage, rollback)
            raise
    else:
        plan = _plan_of(table, rollback)
    overrule_end(storage, EndRecord(time, action, ROLLBACK, owner, undone=_batch_of(table, timeline, time)))
    delete_instant_file(storage, Instant(time, action, State.COMPLETED))
    execute_rollback(table, requested(rollback.time, Action.ROLLBACK), plan)


def _batch_of(table: HudiTable, timeline: Timeline, time: str) -> tuple[str, int] | None:
    """Sink id and batch id of a completed commit that is a stream's batch."""
    done = next((i for i in timeline.completed_writes if i.time == time), None)
    data = find_instant(table.storage, done) if done is not None else None
    batch = batch_of_commit(decode_commit(data, time).extra) if data else None
    return (batch[0], batch[1].batch_id) if batch is not None else None


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
        _roll_back(table, time, lease.owner, force=force)
    log.info("commit_rolled_back", table=table.storage.base_uri, instant_time=time)


def _roll_back(table: HudiTable, time: str, owner: str, *, force: bool) -> None:
    timeline = load_timeline(table.storage)
    writes = [i for i in timeline if i.action in (Action.COMMIT, Action.REPLACE_COMMIT)]
    chosen = next((i for i in writes if i.time == time), None)
    if chosen is None:
        known = ", ".join(i.time for i in writes[-3:]) or "none"
        raise InvalidConfigError(f"there is no commit {time} on the active timeline; the newest: {known}")
    if any(i.time == time for i in timeline.completed_of(Action.SAVEPOINT)):
        raise InvalidConfigError(f"a savepoint holds {time}: delete the savepoint first")
    if not chosen.is_completed:
        end_pending(table, timeline, chosen, owner)
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
    undo_commit(table, timeline, time, chosen.action, owner)
