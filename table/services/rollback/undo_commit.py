"""Rolling back a commit that is completed, by hand or for a restore (ListingBasedRollbackStrategy)."""

from table.config.writable import check_copy_on_write
from table.errors import CommitConflictError, InvalidConfigError
from table.files.names import parse_base_file
from table.hudi_table import HudiTable
from table.log import get_logger
from table.services.rollback.rollback import WRITES, end_pending, undo_decided
from table.services.rollback.undo_checks import check_batches, check_predecessors, decide_undo
from table.storage.interface import join
from table.timeline.active_timeline import read_instant, request_instant
from table.timeline.instant import Action, Instant, State
from table.timeline.metadata.rollback import RollbackPlan, RollbackRequest, decode_rollback_plan, encode_rollback_plan
from table.timeline.timeline import Timeline
from table.transaction.lease import Lease, hold_table
from table.transaction.lock import Step, guarded
from table.view.listing import StorageListing

log = get_logger("hudistream.rollback")


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
    if rollback is None and not any(i.time == time for i in timeline if i.action is action):
        return  # undone before a crash
    with guarded(table, Step.SCHEDULE):
        if rollback is None:
            plan = _plan_from_listing(table, time, action)
            content = encode_rollback_plan(plan)
            rollback = request_instant(table.storage, timeline, Action.ROLLBACK, table.config.timezone, content)
        else:
            plan = _plan_of(table, rollback)
        if rollback.state is State.REQUESTED:
            checks = () if to_savepoint else (lambda: check_predecessors(table, time, action),)
            decide_undo(table, rollback, lease, *checks)
    undo_decided(table, timeline, rollback.at(State.REQUESTED), plan, lease.owner)


def _plan_from_listing(table: HudiTable, time: str, action: Action) -> RollbackPlan:
    """Every base file of a commit: markers are not there any more."""
    storage, requests = table.storage, []
    there = StorageListing(storage)  # a rollback deletes what is there, whoever knows of it
    for path in there.list_partition_paths():
        for entry in there.list_files(path):
            base = parse_base_file(entry.name)
            if base is not None and base.instant_time == time:
                file = storage.absolute(join(path, entry.name))
                requests.append(RollbackRequest(path, base.file_id, time, (file,)))
    return RollbackPlan(time, action.value, tuple(requests))


def _plan_of(table: HudiTable, rollback: Instant) -> RollbackPlan:
    request = rollback.at(State.REQUESTED)
    return decode_rollback_plan(read_instant(table.storage, request), request.file_name)


def _undoes(table: HudiTable, timeline: Timeline, rollback: Instant, time: str) -> bool:
    plan = rollback.at(State.REQUESTED)
    return timeline.contains(plan) and _plan_of(table, rollback).instant_time == time


def roll_back(table: HudiTable, time: str, *, force: bool = False) -> None:
    """Rolls back one commit: a pending one, or the newest completed one. Holds the table meanwhile.

    Args:
        table: the table.
        time: the commit's instant time.
        force: also a batch of a stream, although the stream's checkpoint counts it as done.

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
    timeline = table.load_timeline()
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
    later = [i.time for i in timeline.writes_after(chosen)]
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
