"""Clusterings that are planned apart from their execution: writers leave their file groups alone (rule 17)."""

from collections.abc import Collection, Iterator
from contextlib import suppress

from table.errors import ActionPendingError, CorruptFileError, TimelineMovedError
from table.files.publication import forget_rolled_back
from table.hudi_table import HudiTable
from table.log import get_logger
from table.references.strays import delete_strays
from table.snapshot import Snapshot
from table.storage.interface import Storage, join
from table.timeline.active_timeline import delete_instant_file, find_instant
from table.timeline.end_record import ROLLBACK, EndRecord, decide_end, find_end
from table.timeline.instant import Action, Instant, State
from table.timeline.metadata.clustering import (
    ClusteredSlice,
    ClusteringPlan,
    decode_clustering_plan,
    is_of_others,
)
from table.transaction.heartbeat import delete_heartbeat
from table.transaction.lock import Step, guarded
from table.view.file_system_view import list_file_groups

log = get_logger("hudistream.clustering")


def is_foreign_clustering(snapshot: Snapshot, instant: Instant) -> bool:
    """Whether a pending write is a clustering that another engine planned.

    In timeline layout 1 it is a replace commit whose request holds a plan; requests of overwrites hold no plan, or are
    empty. In layout 2 a clustering is an action of its own. Our own clusterings are replace commits in both, and they
    give way to other writers as a batch does: no writer waits for their end.
    """
    if instant.action is not Action.REPLACE_COMMIT:
        return instant.action is Action.CLUSTERING
    request = instant.at(State.REQUESTED)
    data = find_instant(snapshot.storage, request) if snapshot.timeline.contains(request) else b""
    return is_of_others(data or b"", request.file_name)


def is_left_alone(snapshot: Snapshot, instant: Instant) -> bool:
    """Whether a writer that recovers leaves a pending write alone: a foreign clustering whose end is not decided."""
    return is_foreign_clustering(snapshot, instant) and find_end(snapshot.storage, instant.time, instant.action) is None


def load_clustered(snapshot: Snapshot, apart_from: str | None = None) -> dict[tuple[str, str], str]:
    """(partition path, file id) -> the pending clustering of another engine that replaces the file group.

    Such a clustering is carried out later, maybe by a process that has not begun yet, and does not look at what was
    written meanwhile. So no batch writes to its file groups (SparkRejectUpdateStrategy).

    Args:
        apart_from: time of a clustering that is left out, because the caller carries it out.

    Raises:
        TimelineMovedError: a clustering ended since the timeline was listed.
        CorruptFileError: a plan cannot be read.
    """
    planned = _load_plans(snapshot, apart_from)
    return {group: instant.time for instant, plan in planned for group in _groups_of(plan)}


def withdraw_clusterings(snapshot: Snapshot, end: EndRecord) -> None:
    """Withdraws the clusterings whose plans do not contain the files of a commit that is decided, and not yet visible.

    An engine that planned since the decision did not see the commit, which cannot give way any more. To carry out such
    a plan would lose its rows. If the engine is carrying it out, it does not find its instant at the end.

    Args:
        snapshot: the table as it is now; the caller has the lock.
        end: of the commit.

    Raises:
        StorageError: the store fails; the commit must not become visible yet.
    """
    written = end.metadata.file_groups
    for instant, plan in _load_plans(snapshot, end.time):
        if not written.isdisjoint(_groups_of(plan)):
            withdraw_plan(snapshot.storage, instant, f"it does not contain the commit {end.time}")


def withdraw_outdated(snapshot: Snapshot, known: frozenset[str]) -> frozenset[str]:
    """Withdraws the clusterings whose plans do not name all that their file groups hold: the rest would be lost.

    An engine that takes no lock may list the table before a commit, and request its plan after it. Each plan is looked
    at once, because batches leave its file groups alone from then on.

    Args:
        snapshot: the table; the caller has it alone.
        known: times of the clusterings that were looked at before.

    Returns:
        The times of all that are pending.

    Raises:
        TimelineMovedError: a clustering ended since the timeline was listed.
        CorruptFileError: a plan cannot be read.
    """
    seen = set()
    for instant, plan in _load_plans(snapshot, None):
        changed = find_changed_since(snapshot, plan) if instant.time not in known else None
        if changed is not None:
            withdraw_plan(snapshot.storage, instant, f"file group {changed.file_id} was changed after it was planned")
        seen.add(instant.time)
    return frozenset(seen)


def withdraw_signed(snapshot: Snapshot, spared: str | None) -> None:
    """Withdraws clusterings that a sink had planned for its services, and that no sink carries out any more.

    Only a sink that holds the table alone signs a plan. So the next writer of the table may withdraw the plan: else the
    plan would stop every change of its file groups.

    Args:
        snapshot: the table; the caller holds it.
        spared: id of the sink whose plans stay, because its services carry one out now; None: no plan stays.

    Raises:
        TimelineMovedError: a clustering ended since the timeline was listed.
        CorruptFileError: a plan cannot be read.
    """
    for instant, plan in _load_plans(snapshot, None):
        if plan.scheduled_by not in (None, spared):
            withdraw_plan(snapshot.storage, instant, "the process that planned it runs no more")


def find_changed_since(snapshot: Snapshot, plan: ClusteringPlan) -> ClusteredSlice | None:
    """A slice of a plan that is not what its file group holds now; None if there is none."""
    now = {
        (group.partition_path, group.file_id): group.merged_slice
        for path in plan.replaced
        for group in list_file_groups(snapshot.listing, path, snapshot.slicing)
    }
    for group in plan.groups:
        for one in group.slices:
            found = now.get((one.partition_path, one.file_id))
            base = None if found is None or found.base_file is None else found.base_file.name
            logs = set() if found is None else {log.name for log in found.log_files}
            if (base, logs) != (one.base_file, set(one.log_files)):
                return one
    return None


def withdraw_clusterings_with(table: HudiTable, deleted: Collection[str], undone: str) -> None:
    """Withdraws the clusterings whose plans name files that a rollback has deleted: no engine could carry them out.

    In timeline layout 1 a plan names log files of writes that are pending, too. Under the lock, because an engine that
    listed the files before their deletion has requested its plan before it gives the lock back.

    A plan that cannot be read stays: a person has to remove it.

    Args:
        deleted: paths of the files, relative to the table.
        undone: time of the instant that is rolled back.

    Raises:
        StorageError: the store fails.
    """
    with guarded(table, Step.SCHEDULE), suppress(CorruptFileError, ActionPendingError):
        snapshot = Snapshot.load(table)
        for instant, plan in _load_plans(snapshot, undone):
            if lost := sorted(_files_of(plan).intersection(deleted)):
                withdraw_plan(snapshot.storage, instant, f"{lost[0]} was rolled back")


def withdraw_plan(storage: Storage, instant: Instant, why: str) -> None:
    """Withdraws a clustering, unless a process of ours that carries it out has decided its commit already (rule 3).

    Args:
        instant: the clustering.
        why: for the log.
    """
    if decide_end(storage, EndRecord(instant.time, instant.action, ROLLBACK, "a writer that withdrew it")).is_commit:
        return
    storage.fence(instant.time)
    delete_strays(storage, instant.time, frozenset())
    for state in (State.INFLIGHT, State.REQUESTED):
        delete_instant_file(storage, instant.at(state))
    delete_heartbeat(storage, instant.time)
    forget_rolled_back(storage, instant.time)
    log.warning("clustering_withdrawn", table=storage.base_uri, instant_time=instant.time, why=why)


def _load_plans(snapshot: Snapshot, apart_from: str | None) -> Iterator[tuple[Instant, ClusteringPlan]]:
    for instant in snapshot.timeline.pending_of(Action.REPLACE_COMMIT, Action.CLUSTERING):
        is_replacement = instant.action is Action.REPLACE_COMMIT
        request = instant.at(State.REQUESTED)
        has_request = snapshot.timeline.contains(request)
        if instant.time == apart_from or (is_replacement and not has_request):
            continue
        if not has_request:
            raise ActionPendingError(
                f"{instant.file_name} has no request that says what it replaces: remove it with `hudistream rollback "
                f"PATH {instant.time}`"
            )
        data = find_instant(snapshot.storage, request)
        if data is None and is_replacement:
            continue  # undone since: the request of a replace commit that was completed stays until archival
        if data is None:
            raise TimelineMovedError(f"{instant.file_name} ended while the timeline was read: run the batch again")
        plan = decode_clustering_plan(data, request.file_name)
        if plan is not None and not (is_replacement and plan.is_ours):
            yield instant, plan


def _groups_of(plan: ClusteringPlan) -> frozenset[tuple[str, str]]:
    return frozenset((path, file_id) for path, file_ids in plan.replaced.items() for file_id in file_ids)


def _files_of(plan: ClusteringPlan) -> frozenset[str]:
    slices = (one for group in plan.groups for one in group.slices)
    named = ((one.partition_path, name) for one in slices for name in (one.base_file, *one.log_files) if name)
    return frozenset(join(path, name) for path, name in named)
