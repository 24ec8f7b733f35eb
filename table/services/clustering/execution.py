"""Carries out clusterings that were planned earlier: by another engine, or by a stream for its services."""

from contextlib import suppress

from table.config.writable import check_can_write, check_has_meta_fields
from table.errors import (
    CommitOutcomeUnknownError,
    HudiError,
    InstantEndedError,
    StorageError,
    TableHeldError,
    WriteConflictError,
)
from table.log import get_logger
from table.options.clustering_settings import LAYOUT, Layout
from table.options.groups import BaseFileSettings, HeartbeatSettings
from table.references.losses import check_inputs
from table.services.clustering.clustering import LOCALLY, ClusteringOutcome, complete, conclude, write_groups
from table.services.rewriting import Rewriting
from table.services.rollback.rollback import end_pending
from table.services.runner import PieceRunner
from table.snapshot import Snapshot
from table.timeline.active_timeline import begin_instant, delete_instant_file, find_instant, read_instant
from table.timeline.end_record import find_end
from table.timeline.instant import Action, Instant, State
from table.timeline.metadata.clustering import OPERATION, ClusteringPlan, decode_clustering_plan
from table.transaction.commit import carry_out_commit
from table.transaction.commit_facts import PendingCommit
from table.transaction.heartbeat import WriterIdentity, begin_heartbeat, delete_heartbeat, find_live_writer
from table.transaction.lease import Lease
from table.transaction.planned_clusterings import find_changed_since, is_foreign_clustering
from table.transaction.signs import measure_now_ms

log = get_logger("hudistream.clustering")


def find_planned_elsewhere(snapshot: Snapshot) -> list[Instant]:
    """The pending clusterings that another engine planned, oldest first."""
    pending = snapshot.timeline.pending_of(Action.REPLACE_COMMIT, Action.CLUSTERING)
    return [instant for instant in pending if is_foreign_clustering(snapshot, instant)]


def carry_out_planned(
    snapshot: Snapshot,
    layout: Layout | None,
    base_file: BaseFileSettings,
    lease: Lease,
    identity: WriterIdentity,
    heartbeat: HeartbeatSettings,
) -> list[ClusteringOutcome]:
    """Carries out the clusterings that another engine planned, each from its own plan. Can be repeated.

    The caller holds the table, alone or as one of several writers. Another engine must not carry them out at the same
    time. A live heartbeat is looked for, but an engine may have none.

    Args:
        snapshot: the table.
        layout: the order of several sort columns; None: as the plan says. Plans of other engines do not name it.
        base_file: how base files are encoded.
        lease: the caller's hold on the table.
        identity: the caller.
        heartbeat: when another engine's heartbeat counts as expired.

    Raises:
        CommitConflictError: a file group was changed since it was planned, the clustering was undone, or another engine
            is carrying it out.
        HudiError: a clustering could not be carried out; it can be tried again.
    """
    check_can_write(snapshot.config)
    done = []
    for planned in find_planned_elsewhere(snapshot):
        check_has_meta_fields(snapshot.config, "clustered")
        _check_left_alone(snapshot, planned, identity, heartbeat, shared=lease.is_shared)
        lease.beat_for(planned.time, identity, snapshot.timeline.unseen_from)
        try:
            done.append(_carry_out(snapshot, planned, layout, base_file, lease, identity))
        except HudiError:
            lease.beat_for(None)
            with suppress(StorageError):  # else the next attempt would wait until it expires
                delete_heartbeat(snapshot.storage, planned.time)
            raise
        finally:
            lease.beat_for(None)
    return done


def _check_left_alone(
    snapshot: Snapshot, planned: Instant, identity: WriterIdentity, heartbeat: HeartbeatSettings, *, shared: bool
) -> None:
    """Refuses a clustering that another process carries out now.

    If the caller holds the table alone, a heartbeat of this command is of a dead attempt.
    """
    now_ms = measure_now_ms(snapshot.storage, identity.owner)
    writer = find_live_writer(snapshot.storage, planned.time, heartbeat, now_ms)
    if writer is not None and (shared or writer.sink_id != identity.sink_id):
        raise TableHeldError(
            f"the clustering {planned.time} has a live heartbeat: another process carries it out. Wait for its end, or "
            f"{heartbeat.expiry_ms / 1000:.0f} s after its process has died"
        )


def _check_not_outdated(seen: Snapshot, plan: ClusteringPlan, time: str) -> None:
    """Refuses a plan that does not name all that its file groups hold now: the rest would be lost.

    Another engine may let updates through while a clustering is pending (SparkAllowUpdateStrategy).

    Raises:
        WriteConflictError: names the file group and the way out.
    """
    one = find_changed_since(seen, plan)
    if one is not None:
        raise WriteConflictError(
            f"file group {one.file_id} in {one.partition_path!r} was changed after the clustering {time} was planned, "
            f"so that the plan would lose rows: `hudistream rollback PATH {time}`, and plan anew"
        )


def carry_out_scheduled(
    snapshot: Snapshot,
    base_file: BaseFileSettings,
    lease: Lease,
    identity: WriterIdentity,
    runner: PieceRunner,
) -> list[ClusteringOutcome]:
    """Carries out the clusterings that this sink planned, beside its batches. Can be repeated.

    One that cannot be carried out is rolled back, so that it stops no batch any more.

    Args:
        snapshot: the table, with the clusterings on its timeline.
        base_file: how base files are encoded.
        lease: the sink's hold on the table.
        identity: the sink.
        runner: runs the groups of a plan.

    Raises:
        CommitOutcomeUnknownError: the store did not say whether a clustering is visible. The next call finds out.
        CommitConflictError: a batch changed the table's schema meanwhile, or the sink lost the table.
        HudiError: a clustering could not be carried out.
    """
    done = []
    for planned in find_scheduled(snapshot, identity.sink_id):
        try:
            done.append(_carry_out(snapshot, planned, None, base_file, lease, identity, runner))
        except CommitOutcomeUnknownError:
            raise
        except BaseException:
            _give_up(snapshot, planned, lease.owner)
            raise
    return done


def find_scheduled(snapshot: Snapshot, sink_id: str) -> list[Instant]:
    """The pending clusterings that a sink planned and carries out itself, oldest first."""
    found = []
    for instant in find_planned_elsewhere(snapshot):
        request = instant.at(State.REQUESTED)
        data = find_instant(snapshot.storage, request)
        plan = decode_clustering_plan(data, request.file_name) if data else None
        if plan is not None and plan.scheduled_by == sink_id:
            found.append(instant)
    return found


def _layout_of(plan: ClusteringPlan, time: str) -> Layout:
    return Layout.LINEAR if plan.layout is None else LAYOUT.read(f"the layout of the clustering {time}", plan.layout)


def _give_up(snapshot: Snapshot, planned: Instant, owner: str) -> None:
    now = snapshot.again()
    found = now.timeline.find(planned.time, planned.action)
    if found is None or found.is_completed:
        return
    try:
        end_pending(now, found, owner)
    except HudiError as error:
        log.warning(
            "clustering_not_rolled_back", table=snapshot.storage.base_uri, instant_time=planned.time, error=str(error)
        )


def _carry_out(
    snapshot: Snapshot,
    planned: Instant,
    layout: Layout | None,
    base_file: BaseFileSettings,
    lease: Lease,
    identity: WriterIdentity,
    runner: PieceRunner = LOCALLY,
) -> ClusteringOutcome:
    """Carries out one plan.

    What an attempt wrote stays if it fails, until the next one commits, or the clustering is rolled back. To delete it
    would be wrong: an attempt that was paused may have lost the table, and the files may be those of another attempt.
    """
    storage, time, request = snapshot.storage, planned.time, planned.at(State.REQUESTED)
    plan = decode_clustering_plan(read_instant(storage, request), request.file_name)
    assert plan is not None
    end = find_end(storage, time, planned.action)
    if end is not None:  # an earlier attempt had decided it
        if not end.is_commit:
            raise InstantEndedError(f"the clustering {time} was undone")
        carry_out_commit(snapshot.table, end)
        return conclude(snapshot.table, time, plan, end.metadata.stats)
    delete_heartbeat(storage, time)  # of an attempt that died
    begin_heartbeat(storage, time, identity, snapshot.timeline.unseen_from)
    storage.open_staging(time)
    inflight = begin_instant(storage, request)
    if find_instant(storage, request) is None:  # it was withdrawn, or carried out and archived, since it was read
        delete_instant_file(storage, inflight)
        raise InstantEndedError(f"the clustering {time} has ended meanwhile")
    seen = snapshot.again()
    _check_not_outdated(seen, plan, time)
    check_inputs(seen, plan.file_groups)
    pending = PendingCommit(inflight, OPERATION, seen, sight=seen.timeline.unseen_from)
    rewriting = Rewriting.of(seen, time, base_file, "clustered")
    stats = write_groups(rewriting, plan, layout or _layout_of(plan, time), runner)
    lease.confirm()
    complete(pending, rewriting, plan, stats, lease)
    return conclude(snapshot.table, time, plan, stats)
