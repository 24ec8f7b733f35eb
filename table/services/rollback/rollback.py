"""Rollback: undo what a dead writer left, before anything else is written (BaseRollbackActionExecutor).

Three steps, as in every table service: a pure function makes the plan, the request is created with the plan as its
content, and the execution reads the plan from that file. A rollback whose process died is resumed from its plan.
"""

from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial

from table import clock
from table.config.table_config import load_table_config
from table.errors import (
    ActionPendingError,
    CommitConflictError,
    CorruptFileError,
    InstantEndedError,
    StorageError,
    TableHeldError,
)
from table.files.log.instants import find_writers
from table.files.markers import APPEND, is_of_instant_alone, list_marked_instants, list_markers
from table.files.publication import delete_announced, forget_rolled_back, walk_markers
from table.hudi_table import HudiTable
from table.log import get_logger
from table.metadata_table.keep import drop_lists_with
from table.options.groups import HeartbeatSettings
from table.references.undone import goes_with
from table.services.rollback.fate import WRITES, Fate, judge_pending
from table.services.rollback.late_files import sweep_late_files
from table.services.rollback.plan import plan_rollback
from table.services.rollback.undone_files import list_undone
from table.snapshot import Snapshot
from table.storage.at_once import together
from table.storage.interface import Storage
from table.timeline.active_timeline import (
    begin_instant,
    delete_instant_file,
    find_instant,
    read_instant,
    request_instant,
)
from table.timeline.commit_cache import CommitCache
from table.timeline.end_record import ROLLBACK, EndRecord, decide_end, find_end, overrule_end
from table.timeline.instant import Action, Instant, State
from table.timeline.layout import name_instant
from table.timeline.metadata.commit import CommitMetadata
from table.timeline.metadata.rollback import (
    RollbackMetadata,
    RollbackPlan,
    decode_rollback_plan,
    encode_rollback_metadata,
    encode_rollback_plan,
)
from table.transaction.came_back import delete_returned
from table.transaction.checkpoint import batch_of_commit
from table.transaction.commit import carry_out_commit
from table.transaction.commit_facts import PendingCommit
from table.transaction.completion import complete_service, completed_past
from table.transaction.heartbeat import (
    WriterIdentity,
    delete_heartbeat,
    find_live_writer,
)
from table.transaction.liveness import Beside, Standing, judge_writer, may_write
from table.transaction.lock import Step, guarded
from table.transaction.planned_clusterings import is_foreign_clustering, is_left_alone, withdraw_clusterings_with
from table.transaction.signs import measure_now_ms

log = get_logger("hudistream.rollback")


@dataclass(frozen=True, slots=True)
class Marks:
    """Leftovers of instants. Listed before the timeline, which then shows the outcome of these instants.

    Attributes:
        marked: instants that have markers.
        staged: instants that are open, or whose closing was interrupted.
    """

    marked: tuple[str, ...]
    staged: tuple[str, ...]


def list_marks(storage: Storage, swept: frozenset[str] = frozenset()) -> Marks:
    """Lists leftovers of instants.

    Args:
        swept: completed instants whose markers the caller is deleting; they are left out.
    """
    marked, staged = together(storage, partial(list_marked_instants, storage), storage.staged_instants)
    return Marks(tuple(time for time in marked if time not in swept), tuple(staged))


def roll_back_failed_writes(
    table: HudiTable,
    identity: WriterIdentity,
    heartbeat: HeartbeatSettings,
    *,
    beside: Beside = Beside.NO_WRITER,
    commits: CommitCache | None = None,
    marks: Marks | None = None,
) -> Snapshot:
    """Ends what dead writers left: carries out ends that were decided, rolls back the rest, sweeps late files.

    The caller holds the table's lease. If it holds the lease alone (EAGER), every other writer that knows leases is
    dead, or will find its end decided. If it shares the lease (LAZY), a writer with a fresh heartbeat is left alone.

    Args:
        identity: this writer.
        heartbeat: when a heartbeat counts as dead. Only heartbeats of writers that know no leases are looked at; all
            are where the lease is shared.
        beside: which other writers may be writing.
        commits: decoded commits of the table, where the caller keeps them.
        marks: as the caller listed them; None: they are listed now.

    Returns:
        The table afterwards.

    Raises:
        CommitConflictError: when a pending instant belongs to a writer that is alive, or to a
            service that only its own writer can finish.
    """
    storage = table.storage
    marks = marks or list_marks(storage)
    shared = beside is not Beside.NO_WRITER
    snapshot = delete_returned(Snapshot.load(table, commits=commits))
    looked_at = frozenset(instant.time for instant in snapshot.timeline.pending_of(*WRITES))
    alive = _find_alive(snapshot, identity, heartbeat, beside) if looked_at else frozenset()
    # without this condition every batch would wait for the lock
    if looked_at - alive or snapshot.timeline.pending_of(Action.RESTORE, Action.ROLLBACK):
        with guarded(table, Step.RECOVER):
            snapshot = _end_pending_writes(snapshot, looked_at - alive, identity.owner, shared=shared)
        snapshot = _with_indexes_left(snapshot)
    sweep_late_files(snapshot, marks.marked, marks.staged, shared=shared)
    return snapshot


def _with_indexes_left(snapshot: Snapshot) -> Snapshot:
    """The same with the indexes that the metadata table has now: an end that was carried out may have dropped some."""
    config, now = snapshot.config, load_table_config(snapshot.storage) if snapshot.config.metadata_indexes else None
    if now is None or now.metadata_partitions == config.metadata_partitions:
        return snapshot
    changed = replace(config, metadata_partitions=now.metadata_partitions)
    return Snapshot(replace(snapshot.table, config=changed), snapshot.timeline, commits=snapshot.commits)


def _end_pending_writes(snapshot: Snapshot, dead: frozenset[str], owner: str, *, shared: bool) -> Snapshot:
    """Finishes rollbacks that were begun, and ends the writes in `dead` that are still pending."""
    for restore in snapshot.timeline.pending_of(Action.RESTORE):
        raise ActionPendingError(
            f"{restore.file_name} is pending: finish the restore (`hudistream savepoint restore`), or with the writer "
            "that began it"
        )
    for rollback in snapshot.timeline.pending_of(Action.ROLLBACK):
        resume_rollback(snapshot, rollback, owner)
    # also because a listing is not atomic: it may show the inflight file alone of an instant that was being archived
    snapshot = snapshot.again()
    pending = [i for i in snapshot.timeline.pending_of(*WRITES) if i.time in dead or not shared]
    for instant in reversed([i for i in pending if not is_left_alone(snapshot, i)]):
        # another holder of the lease may have ended it first, or the services of this writer, if it is a clustering
        beside = shared or is_foreign_clustering(snapshot, instant)
        with suppress(CommitConflictError) if beside else nullcontext():
            end_pending(snapshot, instant, owner)
        snapshot = snapshot.again()
    return snapshot


def _find_alive(
    snapshot: Snapshot, identity: WriterIdentity, heartbeat: HeartbeatSettings, beside: Beside
) -> frozenset[str]:
    """Pending writes that are left alone: of writers that are alive, and clusterings that another engine planned.

    If the caller holds the table alone, no other writer is alive.

    Raises:
        CommitConflictError: a writer is alive that must not be.
    """
    storage, alive = snapshot.storage, set()
    now_ms = measure_now_ms(storage, identity.owner)
    for instant in snapshot.timeline.pending_of(*WRITES):
        planned = is_left_alone(snapshot, instant)  # a process that is not there yet may carry it out
        writer = None if planned else find_live_writer(storage, instant.time, heartbeat, now_ms)
        lives = judge_writer(writer, identity, shared=beside is Beside.MEMBERS) is Standing.ALIVE
        fate = judge_pending(instant.action, lives=lives, may_live=may_write(writer, beside), is_planned=planned)
        if fate is Fate.REFUSED:
            assert writer is not None
            raise TableHeldError(
                f"instant {instant.time} is being written by a live writer (sink {writer.sink_id!r}, query "
                f"{writer.query_id!r}) that knows no leases; this is sink {identity.sink_id!r}, query "
                f"{identity.query_id!r}: one writer per table; stop the other one, or wait "
                f"{heartbeat.expiry_ms / 1000:.0f} s after it has died; or let both share the table: "
                "hoodie.write.concurrency.mode=OPTIMISTIC_CONCURRENCY_CONTROL"
            )
        if fate in (Fate.LEFT, Fate.UNDER_WAY):
            alive.add(instant.time)
    return frozenset(alive)


def end_pending(snapshot: Snapshot, instant: Instant, owner: str) -> Instant:
    """Ends a pending commit whose writer is dead: by the end that was decided, else by a rollback (rule 3).

    Args:
        snapshot: the table; its timeline with the instant in it.
        instant: requested or inflight.
        owner: identity of the writer that ends it.

    Returns:
        The completed commit, or the completed rollback.
    """
    with guarded(snapshot.table, Step.COMPLETE):
        end = decide_end(snapshot.storage, EndRecord(instant.time, instant.action, ROLLBACK, owner))
        if end.is_commit:
            address = snapshot.storage.base_uri
            log.info("commit_carried_out", table=address, instant_time=instant.time, decided_by=end.by)
            return carry_out_commit(snapshot.table, completed_past(snapshot.table, end))
    return _carry_out_rollback(snapshot, instant, owner)


def end_own(pending: PendingCommit, owner: str) -> Snapshot:
    """Ends a commit that its own writer gives up, unless it has ended. Returns the table as it was looked at.

    Args:
        pending: the commit.
        owner: identity of the writer.

    Raises:
        HudiError: it could not be ended; the next writer ends it.
    """
    now = pending.seen.again()
    found = now.timeline.find(pending.time, pending.instant.action)
    if found is not None and not found.is_completed:
        end_pending(now, found, owner)
    return now


def _carry_out_rollback(snapshot: Snapshot, instant: Instant, owner: str) -> Instant:
    """Rolls back one pending commit, by its markers. Returns the completed rollback."""
    storage = snapshot.storage
    with guarded(snapshot.table, Step.SCHEDULE):
        markers = list_markers(storage, instant.time)
        logs = (marker.data_file for marker in markers if marker.kind == APPEND)
        writers = {path: find_writers(storage, path) for path in logs}
        plan = plan_rollback(instant, markers, storage.absolute, writers)
        content = encode_rollback_plan(plan)
        rollback = request_instant(storage, snapshot.timeline, Action.ROLLBACK, snapshot.table.instant_clock, content)
    now = snapshot.table.load_timeline().find(instant.time, instant.action)
    if now is None or now.is_completed:
        delete_instant_file(storage, rollback)
        raise InstantEndedError(f"instant {instant.time} was finished by its writer while it was to be rolled back")
    return execute_rollback(snapshot.table, rollback, plan, owner)


def resume_rollback(snapshot: Snapshot, rollback: Instant, owner: str) -> None:
    """Finishes a rollback whose process died, from its own plan. Drops a rollback that was never decided.

    The end record of the rollback decides whether a completed commit is undone. Both the process that requested the
    rollback and the process that takes the table over try to create that record. A process that was paused since its
    request obeys what was decided meanwhile.

    Args:
        snapshot: the table; its timeline with the rollback in it.
        rollback: requested or inflight.
        owner: identity of the writer that resumes it.

    Raises:
        CommitConflictError: when it undoes a completed commit: part of another writer's restore.
    """
    storage = snapshot.storage
    plan_file = rollback.at(State.REQUESTED)
    data = read_instant(storage, plan_file) if snapshot.timeline.contains(plan_file) else b""
    plan = decode_rollback_plan(data, plan_file.file_name) if data else None
    if plan is None:
        _drop_rollback(snapshot, rollback)
        return
    action = Action(plan.action)
    target = snapshot.timeline.find(plan.instant_time, action)
    end = find_end(storage, plan.instant_time, action)
    if target is not None and target.is_completed and (end is None or end.is_commit):
        if rollback.state is not State.REQUESTED:
            raise ActionPendingError(
                f"{rollback.file_name} is undoing a completed commit: finish that restore with the writer that began it"
            )
        if not decide_end(storage, EndRecord(rollback.time, Action.ROLLBACK, ROLLBACK, owner)).is_commit:
            _drop_rollback(snapshot, rollback)
            return
    undo_decided(snapshot, plan_file, plan, owner)


def undo_decided(snapshot: Snapshot, rollback: Instant, plan: RollbackPlan, owner: str) -> None:
    """Carries out a rollback that is decided, also of a completed commit.

    Can be repeated, also by several processes at once. The commit's end record is overruled first. Then its completed
    file is deleted, and only then its data files: a half-undone commit is not visible. The end record keeps the batch
    that is taken back. A record that says "rollback" already stays as it is.

    Args:
        snapshot: the table before, with the commit on it unless it was undone already.
        rollback: requested.
        plan: what it is to do.
        owner: identity of the writer that carries it out.
    """
    storage = snapshot.storage
    # plans of earlier versions name a clustering as its completed file does: its pending files stayed, and its end
    action = snapshot.timeline.pending_action(plan.instant_time, Action(plan.action))
    plan = replace(plan, action=action.value)
    if action is Action.COMPACTION:
        plan = _end_compaction(snapshot.table, plan, owner)
    done = snapshot.timeline.completed_file(plan.instant_time, action)
    data = find_instant(storage, done)
    try:
        end = find_end(storage, plan.instant_time, action)
    except CorruptFileError:
        end = None  # a damaged record must not keep a person from undoing the commit
    if end is None or end.is_commit:  # also a foreign rollback of a commit that was decided and not yet carried out
        undone = _batch_of(snapshot.commits.decode(done, data) if data else end.metadata if end is not None else None)
        overrule_end(storage, EndRecord(plan.instant_time, action, ROLLBACK, owner, undone=undone))
    if action in (Action.CLUSTERING, Action.REPLACE_COMMIT):  # a conversion renames the files, and not the record
        _overrule_other(storage, plan.instant_time, action, owner)
    if data is not None:
        delete_instant_file(storage, done)
    execute_rollback(snapshot.table, rollback, plan, owner)


def _overrule_other(storage: Storage, time: str, action: Action, owner: str) -> None:
    """Overrules the end record of a clustering under its other name, where there is one."""
    other = Action.REPLACE_COMMIT if action is Action.CLUSTERING else Action.CLUSTERING
    with suppress(CorruptFileError):
        found = find_end(storage, time, other)
        if found is not None and found.is_commit:
            overrule_end(storage, EndRecord(time, other, ROLLBACK, owner))


def _end_compaction(table: HudiTable, plan: RollbackPlan, owner: str) -> RollbackPlan:
    """Decides that a compaction is not carried out any more. If it is decided to be committed, it is completed first.

    A compaction needs no lease: another process may be carrying it out, and may have written files since the plan was
    made.

    Returns:
        The plan, with every file of the compaction that there is now.
    """
    with suppress(CorruptFileError), guarded(table, Step.COMPLETE):
        end = decide_end(table.storage, EndRecord(plan.instant_time, Action.COMPACTION, ROLLBACK, owner))
        if end.is_commit:
            carry_out_commit(table, end)
    table.storage.fence(plan.instant_time)
    return replace(plan, requests=tuple(dict.fromkeys((*plan.requests, *list_undone(table, plan.instant_time)))))


def _batch_of(commit: CommitMetadata | None) -> tuple[str, int] | None:
    """Sink id and batch id of a commit that is a stream's batch."""
    batch = batch_of_commit(commit.extra) if commit is not None else None
    return (batch[0], batch[1].batch_id) if batch is not None else None


def _drop_rollback(snapshot: Snapshot, rollback: Instant) -> None:
    for file in reversed(snapshot.timeline.files_of(rollback.time, Action.ROLLBACK)):
        delete_instant_file(snapshot.storage, file)


def execute_rollback(table: HudiTable, rollback: Instant, plan: RollbackPlan, owner: str) -> Instant:
    """Undoes an instant whose end is decided, and records it. Can be repeated (rule 4).

    First the instant is fenced, so that no task can publish another file of it. Then the files that the plan and the
    markers name are deleted. Then the instant's own files are deleted.

    Args:
        rollback: the requested rollback.
        plan: what it is to do.
        owner: identity of the writer that carries it out.

    Returns:
        The completed rollback instant.

    Raises:
        InvalidConfigError: the plan names a path outside of the table: nothing is deleted.
    """
    storage, time = table.storage, plan.instant_time
    started_ms = clock.now_ms()
    named = {
        storage.relative(path, request.partition_path): request.partition_path
        for request in plan.requests
        for path in request.files
    }
    begun = begin_instant(storage, rollback)
    drop_lists_with(storage, time)
    storage.fence(time)
    for marker in walk_markers(storage, time):
        if is_of_instant_alone(storage, time, marker):
            delete_announced(storage, time, marker)
            named.setdefault(marker.data_file, marker.data_file.rpartition("/")[0])
    gone = [path for path in named if goes_with(storage, path, plan)]
    for path in gone:
        storage.delete(path)
    if gone:
        withdraw_clusterings_with(table, gone, time)
    action = Action(plan.action)
    for state in (State.INFLIGHT, State.REQUESTED):
        delete_instant_file(storage, name_instant(table.layout, time, action, state))
    deleted: dict[str, list[str]] = {}
    for path, partition_path in named.items():
        deleted.setdefault(partition_path, []).append(storage.absolute(path))
    metadata = RollbackMetadata(
        rollback.time,
        clock.now_ms() - started_ms,
        time,
        plan.action,
        {path: tuple(files) for path, files in deleted.items()},
    )
    completed = _complete(table, begun, encode_rollback_metadata(metadata), owner)
    delete_heartbeat(storage, time)
    forget_rolled_back(storage, time)
    log.info(
        "write_rolled_back",
        table=storage.base_uri,
        instant_time=time,
        rollback_time=rollback.time,
        files=len(named),
    )
    return completed


def _complete(table: HudiTable, begun: Instant, content: bytes, owner: str) -> Instant:
    try:
        return complete_service(table, begun, content, owner)
    except StorageError:
        # the writer that took the table over meanwhile has carried out the same plan
        now = table.load_timeline().find(begun.time, Action.ROLLBACK)
        if now is None or not now.is_completed:
            raise
        return now
