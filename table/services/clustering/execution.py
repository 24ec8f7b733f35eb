"""Carries out clusterings that another engine planned. Its writers and ours wait until these clusterings end."""

from contextlib import suppress

from table.errors import CommitOutcomeUnknownError, HudiError, InstantEndedError
from table.log import get_logger
from table.options.clustering_settings import ClusteringSettings
from table.options.groups import BaseFileSettings
from table.services.clustering.clustering import ClusteringOutcome, complete, outcome_of, write_groups
from table.snapshot import Snapshot
from table.timeline.active_timeline import begin_instant, read_instant
from table.timeline.end_record import find_end
from table.timeline.instant import Action, Instant, State
from table.timeline.metadata.clustering import decode_clustering_plan
from table.transaction.commit import carry_out_commit, clean_up_commit, delete_strays
from table.transaction.commit_facts import PendingCommit, is_foreign_clustering
from table.transaction.heartbeat import WriterIdentity, begin_heartbeat, delete_heartbeat
from table.transaction.lease import Lease

log = get_logger("hudistream.clustering")


def find_planned_elsewhere(snapshot: Snapshot) -> list[Instant]:
    """The pending clusterings that another engine planned, oldest first."""
    pending = snapshot.timeline.pending_of(Action.REPLACE_COMMIT, Action.CLUSTERING)
    return [instant for instant in pending if is_foreign_clustering(snapshot, instant)]


def carry_out_planned(
    snapshot: Snapshot,
    settings: ClusteringSettings,
    base_file: BaseFileSettings,
    lease: Lease,
    identity: WriterIdentity,
) -> list[ClusteringOutcome]:
    """Carries out the clusterings that another engine planned, each from its own plan. Can be repeated.

    The caller holds the table, and knows that the other engine does not carry them out at the same time.

    Args:
        snapshot: the table.
        settings: only the layout is used, because plans do not name it.
        base_file: how base files are encoded.
        lease: the caller's hold on the table.
        identity: the caller.

    Raises:
        CommitConflictError: one of the clustering's file groups was changed meanwhile, or the clustering was undone.
        HudiError: a clustering could not be carried out; it can be tried again.
    """
    return [_carry_out(snapshot, one, settings, base_file, lease, identity) for one in find_planned_elsewhere(snapshot)]


def _carry_out(
    snapshot: Snapshot,
    planned: Instant,
    settings: ClusteringSettings,
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
        clean_up_commit(storage, time, end.metadata.stats)
        return outcome_of(time, plan, end.metadata.stats)
    delete_heartbeat(storage, time)  # of an attempt that died
    begin_heartbeat(storage, time, identity, snapshot.timeline.unseen_from)
    storage.open_staging(time)
    inflight = begin_instant(storage, request)
    seen = snapshot.again()
    pending = PendingCommit(inflight, "CLUSTER", seen, sight=seen.timeline.unseen_from)
    try:
        stats = write_groups(pending, plan, settings, base_file)
        complete(pending, plan, stats, lease)
    except CommitOutcomeUnknownError:
        raise
    except BaseException:
        storage.fence(time)
        with suppress(HudiError):  # the next attempt deletes what is left
            delete_strays(storage, time, frozenset())
            delete_heartbeat(storage, time)
        raise
    clean_up_commit(storage, time, stats)
    outcome = outcome_of(time, plan, stats)
    log.info(
        "clustering_committed",
        table=storage.base_uri,
        instant_time=time,
        files_before=outcome.files_before,
        files_after=outcome.files_after,
        rows=outcome.rows,
    )
    return outcome
