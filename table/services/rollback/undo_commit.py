"""Rolling back a commit that is completed, by hand or for a restore (ListingBasedRollbackStrategy)."""

from table.config.writable import check_version_written
from table.errors import ActionPendingError, InvalidConfigError
from table.hudi_table import HudiTable
from table.log import get_logger
from table.services.rollback.fate import WRITES
from table.services.rollback.rollback import end_pending, undo_decided
from table.services.rollback.undo_checks import (
    check_batches,
    check_predecessors,
    decide_undo,
)
from table.services.rollback.undone_files import plan_from_listing
from table.snapshot import Snapshot
from table.storage.interface import Storage
from table.takes_path import takes_path
from table.timeline.active_timeline import read_instant, request_instant
from table.timeline.instant import Action, Instant, State
from table.timeline.metadata.rollback import RollbackPlan, decode_rollback_plan, encode_rollback_plan
from table.transaction.lease import Lease, hold_table
from table.transaction.lock import Step, guarded

log = get_logger("hudistream.rollback")


def undo_commit(snapshot: Snapshot, time: str, action: Action, lease: Lease, *, to_savepoint: bool = False) -> None:
    """Rolls back one commit, completed or not, by a listing of its files (ListingBasedRollbackStrategy).

    The rollback is decided once its plan is durable and checked. A process that finds the plan before that drops it. A
    process that finds it afterwards carries it out.

    Args:
        snapshot: the table as it is now; the caller holds the table.
        time: the commit's.
        action: the commit's.
        lease: the caller's.
        to_savepoint: the commit is one of several that are undone, down to a savepoint; else readers see the version
            before it.

    Raises:
        InvalidConfigError, CommitConflictError: a file that readers need afterwards was cleaned, or is about to be, or
            the table was taken over; nothing was undone.
    """
    # completed, a compaction is on the timeline as a commit, and a clustering as a replace commit
    action = snapshot.timeline.pending_action(time, action)
    rollback = next((i for i in snapshot.timeline.pending_of(Action.ROLLBACK) if _undoes(snapshot, i, time)), None)
    if rollback is None and snapshot.timeline.find(time, action) is None:
        return  # undone before a crash
    with guarded(snapshot.table, Step.SCHEDULE):
        if rollback is None:
            plan = plan_from_listing(snapshot, time, action)
            content = encode_rollback_plan(plan)
            times = snapshot.table.instant_clock
            rollback = request_instant(snapshot.storage, snapshot.timeline, Action.ROLLBACK, times, content)
        else:
            plan = _plan_of(snapshot.storage, rollback)
        if rollback.state is State.REQUESTED:
            checks = () if to_savepoint else (lambda: check_predecessors(snapshot.table, time, action),)
            decide_undo(snapshot.table, rollback, lease, *checks)
    undo_decided(snapshot, rollback.at(State.REQUESTED), plan, lease.owner)


def _plan_of(storage: Storage, rollback: Instant) -> RollbackPlan:
    request = rollback.at(State.REQUESTED)
    return decode_rollback_plan(read_instant(storage, request), request.file_name)


def _undoes(snapshot: Snapshot, rollback: Instant, time: str) -> bool:
    plan = rollback.at(State.REQUESTED)
    return snapshot.timeline.contains(plan) and _plan_of(snapshot.storage, rollback).instant_time == time


@takes_path
def roll_back(table: HudiTable, time: str, *, force: bool = False) -> None:
    """Rolls back one commit: a pending one, or the newest completed one. Holds the table meanwhile.

    A pending compaction is withdrawn, as long as nothing was written after it.

    Args:
        table: the table, or its path.
        time: the commit's instant time.
        force: also a batch of a stream, although the stream's checkpoint counts it as done.

    Raises:
        InvalidConfigError: there is no such commit, there are later commits, a savepoint holds it, it is a stream's
            batch, it is a completed compaction, or the files that readers would see without it were cleaned.
        UnsupportedTableError: it wrote into log files of other commits.
        CommitConflictError: a live writer holds the table, a clean is under way, or a pending compaction reads what the
            commit wrote.
    """
    check_version_written(table.config, "roll back")
    with hold_table(table.storage, "hudistream rollback") as lease:
        _roll_back(table, time, lease, force=force)
    log.info("commit_rolled_back", table=table.storage.base_uri, instant_time=time)


def _roll_back(table: HudiTable, time: str, lease: Lease, *, force: bool) -> None:
    snapshot = Snapshot.load(table)
    timeline = snapshot.timeline
    writes = [i for i in timeline if i.action in (*WRITES, Action.COMPACTION)]
    chosen = next((i for i in writes if i.time == time), None)
    if chosen is None:
        known = ", ".join(i.time for i in writes[-3:]) or "none"
        raise InvalidConfigError(f"there is no commit {time} on the active timeline; the newest: {known}")
    if any(i.time == time for i in timeline.completed_of(Action.SAVEPOINT)):
        raise InvalidConfigError(f"a savepoint holds {time}: delete the savepoint first")
    if chosen.action in WRITES and not chosen.is_completed:
        end_pending(snapshot, chosen, lease.owner)
        return
    later = [i.time for i in timeline.writes_after(chosen)]
    if later:
        raise InvalidConfigError(
            f"{len(later)} commits came after {time}: roll back the newest ({later[-1]}) first, or restore a savepoint"
        )
    pending = timeline.pending_of(*WRITES)
    if pending:
        raise ActionPendingError(f"{pending[0].file_name} is pending: `hudistream rollback` it first")
    if chosen.is_completed and any(f.action is Action.COMPACTION for f in timeline.files_of(time, Action.COMMIT)):
        raise InvalidConfigError(
            f"{time} is a compaction, which changed no row: to undo it, restore a savepoint; nothing was undone"
        )
    if not force and chosen.is_completed:
        check_batches(snapshot, [chosen])
    undo_commit(snapshot, time, chosen.action, lease)
