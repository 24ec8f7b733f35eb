"""Carries out clusterings that another engine planned, while the caller holds the table alone."""

from contextlib import suppress

from table.config.writable import check_can_write, check_has_meta_fields
from table.errors import CommitOutcomeUnknownError, HudiError, InstantEndedError, TableHeldError, WriteConflictError
from table.options.clustering_settings import Layout
from table.options.groups import BaseFileSettings, HeartbeatSettings
from table.references.strays import delete_strays
from table.services.clustering.clustering import ClusteringOutcome, complete, conclude, write_groups
from table.services.rewriting import Rewriting
from table.snapshot import Snapshot
from table.timeline.active_timeline import begin_instant, read_instant
from table.timeline.end_record import find_end
from table.timeline.instant import Action, Instant, State
from table.timeline.metadata.clustering import OPERATION, ClusteringPlan, decode_clustering_plan
from table.transaction.commit import carry_out_commit
from table.transaction.commit_facts import PendingCommit
from table.transaction.heartbeat import WriterIdentity, begin_heartbeat, delete_heartbeat, find_live_writer
from table.transaction.lease import Lease
from table.transaction.planned_clusterings import find_changed_since, is_foreign_clustering
from table.transaction.signs import measure_now_ms


def find_planned_elsewhere(snapshot: Snapshot) -> list[Instant]:
    """The pending clusterings that another engine planned, oldest first."""
    pending = snapshot.timeline.pending_of(Action.REPLACE_COMMIT, Action.CLUSTERING)
    return [instant for instant in pending if is_foreign_clustering(snapshot, instant)]


def carry_out_planned(
    snapshot: Snapshot,
    layout: Layout,
    base_file: BaseFileSettings,
    lease: Lease,
    identity: WriterIdentity,
    heartbeat: HeartbeatSettings,
) -> list[ClusteringOutcome]:
    """Carries out the clusterings that another engine planned, each from its own plan. Can be repeated.

    The caller holds the table alone. The other engine must not carry them out at the same time. A live heartbeat of it
    is looked for, but an engine may have none.

    Args:
        snapshot: the table.
        layout: the order of several sort columns; plans do not name it.
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
        _check_left_alone(snapshot, planned, identity, heartbeat)
        done.append(_carry_out(snapshot, planned, layout, base_file, lease, identity))
    return done


def _check_left_alone(
    snapshot: Snapshot, planned: Instant, identity: WriterIdentity, heartbeat: HeartbeatSettings
) -> None:
    """Refuses a clustering that another engine carries out now.

    A heartbeat of ours is of a dead attempt: the caller has the lease.
    """
    now_ms = measure_now_ms(snapshot.storage, identity.owner)
    writer = find_live_writer(snapshot.storage, planned.time, heartbeat, now_ms)
    if writer is not None and writer.sink_id != identity.sink_id:
        raise TableHeldError(
            f"the clustering {planned.time} has a live heartbeat: another engine carries it out. Wait for its end, or "
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


def _carry_out(
    snapshot: Snapshot,
    planned: Instant,
    layout: Layout,
    base_file: BaseFileSettings,
    lease: Lease,
    identity: WriterIdentity,
) -> ClusteringOutcome:
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
    try:
        inflight = begin_instant(storage, request)
        seen = snapshot.again()
        _check_not_outdated(seen, plan, time)
        pending = PendingCommit(inflight, OPERATION, seen, sight=seen.timeline.unseen_from)
        rewriting = Rewriting.of(seen, time, base_file, "clustered")
        stats = write_groups(rewriting, plan, layout)
        complete(pending, rewriting, plan, stats, lease)
    except CommitOutcomeUnknownError:
        raise
    except BaseException:
        decided = find_end(storage, time, planned.action)
        if decided is not None and decided.is_commit:
            raise  # the next attempt, or a batch's recovery, carries it out
        storage.fence(time)
        with suppress(HudiError):  # the next attempt deletes what is left
            delete_strays(storage, time, frozenset())
            delete_heartbeat(storage, time)
        raise
    return conclude(snapshot.table, time, plan, stats)
