"""Going back to a savepoint: every later commit is undone, newest first (CopyOnWriteRestoreActionExecutor)."""

from table import clock
from table.config.writable import check_version_written
from table.errors import ActionPendingError, CommitConflictError, InvalidConfigError
from table.hudi_table import HudiTable
from table.log import get_logger
from table.services.rollback.fate import WRITES
from table.services.rollback.undo_checks import (
    check_batches,
    check_not_held,
    check_written_alone,
    decide_undo,
    written_logs,
)
from table.services.rollback.undo_commit import undo_commit
from table.services.savepoint.savepoint import find_missing_file
from table.snapshot import Snapshot
from table.takes_path import takes_path
from table.timeline.active_timeline import (
    begin_instant,
    delete_instant_file,
    read_instant,
    request_instant,
)
from table.timeline.end_record import COMMIT, ROLLBACK, EndRecord, decide_end
from table.timeline.instant import Action, Instant, State
from table.timeline.metadata.avro_record import decode_record, read_as
from table.timeline.metadata.restore import (
    RestorePlan,
    decode_restore_plan,
    encode_restore_metadata,
    encode_restore_plan,
)
from table.timeline.metadata.savepoint import decode_savepoint
from table.transaction.completion import complete_service, completion_now
from table.transaction.lease import Lease, hold_table
from table.transaction.lock import Step, guarded

log = get_logger("hudistream.restore")


@takes_path
def restore_to_savepoint(table: HudiTable, time: str, *, force: bool = False) -> RestorePlan:
    """Takes the table back to a savepoint: every later commit is undone, newest first.

    It holds the table meanwhile. A restore that was begun is finished first, from its own plan.

    Args:
        table: the table, or its path.
        time: the savepoint's.
        force: also undo batches of streams, although the streams' checkpoints count them as done.

    Returns:
        What was undone.

    Raises:
        InvalidConfigError: there is no such savepoint, or batches of streams would be lost.
        UnsupportedTableError: a commit to be undone wrote into log files of other commits.
        CommitConflictError: a live writer holds the table, or a write is pending.
    """
    check_version_written(table.config, "restore")
    with hold_table(table.storage, "hudistream savepoint restore") as lease:
        with guarded(table, Step.SCHEDULE):
            pending = table.load_timeline().pending_of(Action.RESTORE)
            begun = next((i for i in pending if _is_to_be_finished(table, i, lease.owner)), None)
            begun = begun or _request_restore(table, time, lease, force=force)
        return _finish_restore(table, begun, lease)


def _is_to_be_finished(table: HudiTable, pending: Instant, owner: str) -> bool:
    """Whether a restore that was begun is carried out. If not, it is withdrawn, and nothing was undone.

    If a process had lost the table when it requested the restore, its plan leaves out commits that other writers made
    meanwhile. Such a restore was not decided. Undoing only the commits before those would tear the table.
    """
    storage = table.storage
    if pending.state is not State.REQUESTED:
        return True
    timeline = table.load_timeline()
    plan = decode_restore_plan(read_instant(storage, pending), pending.file_name)
    known = {time for time, _ in plan.instants}
    others = [i for i in timeline.completed_writes if i.time > plan.savepoint and i.time not in known]
    wanted = ROLLBACK if others or timeline.pending_of(*WRITES) else COMMIT
    at = completion_now(table, pending) if wanted == COMMIT else None
    if decide_end(storage, EndRecord(pending.time, Action.RESTORE, wanted, owner, completion_time=at)).is_commit:
        return True
    delete_instant_file(storage, pending)
    log.warning("restore_withdrawn", table=storage.base_uri, instant_time=pending.time, savepoint=plan.savepoint)
    return False


def _request_restore(table: HudiTable, time: str, lease: Lease, *, force: bool) -> Instant:
    snapshot = Snapshot.load(table)
    storage, timeline = snapshot.storage, snapshot.timeline
    savepoint = timeline.completed_file(time, Action.SAVEPOINT)
    if not timeline.contains(savepoint):
        known = ", ".join(i.time for i in timeline.completed_of(Action.SAVEPOINT)) or "none"
        raise InvalidConfigError(f"there is no savepoint {time}; there are: {known}")
    check_not_held(timeline, time)
    gone = find_missing_file(table, decode_savepoint(read_instant(storage, savepoint), savepoint.file_name).files)
    if gone is not None:
        raise InvalidConfigError(f"the savepoint {time} cannot be restored: {gone} does not exist; nothing was undone")
    writes = timeline.pending_of(*WRITES)
    if writes:
        raise ActionPendingError(
            f"{writes[0].file_name} is pending: stop its writer, or `hudistream rollback` it first"
        )
    undone = [i for i in reversed(timeline.writes_by_time) if i.time > time]
    for instant in undone:
        check_written_alone(storage, instant.time, [stat.path for stat in written_logs(snapshot, instant)])
    if not force:
        check_batches(snapshot, undone)
    undone += [i for i in timeline.pending_of(Action.COMPACTION) if i.time > time]
    undone.sort(key=lambda instant: instant.time, reverse=True)
    plan = RestorePlan(time, tuple((i.time, i.action.value) for i in undone))
    request = request_instant(storage, timeline, Action.RESTORE, table.instant_clock, encode_restore_plan(plan))
    decide_undo(table, request, lease, lambda: check_not_held(table.load_timeline(), time))
    return request


def _finish_restore(table: HudiTable, pending: Instant, lease: Lease) -> RestorePlan:
    storage, started_ms = table.storage, clock.now_ms()
    request = pending.at(State.REQUESTED)
    plan = decode_restore_plan(read_instant(storage, request), request.file_name)
    begun = begin_instant(storage, request)
    for time, action in plan.instants:
        # versions between the savepoint and now may have been cleaned: in the end readers see only what it holds
        try:
            undo_commit(Snapshot.load(table), time, Action(action), lease, to_savepoint=True)
        except CommitConflictError as error:
            hint = f"the restore {pending.time} is under way: run the command again"
            raise ActionPendingError(f"{error}; {hint}") from error
    timeline = table.load_timeline()
    rollbacks = {}
    for rollback in timeline.completed_of(Action.ROLLBACK):
        if rollback.time > pending.time:
            record = decode_record("rollback_metadata", read_instant(storage, rollback), rollback.file_name)
            with read_as("rollback_metadata", rollback.file_name):
                rollbacks[record["commitsRollback"][0]] = record
    duration_ms = clock.now_ms() - started_ms
    complete_service(table, begun, encode_restore_metadata(pending.time, duration_ms, plan, rollbacks), lease.owner)
    log.info("table_restored", table=storage.base_uri, savepoint=plan.savepoint, undone=len(plan.instants))
    return plan
