"""Plans a clustering and requests it, apart from its execution (ClusteringPlanActionExecutor).

The request has Hudi's form, so every writer leaves the file groups of the plan alone until it has ended, and any engine
may carry it out.
"""

from dataclasses import replace

from table.config.writable import check_can_write, check_has_meta_fields
from table.log import get_logger
from table.options.clustering_settings import ClusteringSettings
from table.services.clustering.clustering import check_nothing_came, check_nothing_pending, is_due, plan_now
from table.snapshot import Snapshot
from table.timeline.active_timeline import request_and_list
from table.timeline.instant import Action, Instant
from table.timeline.metadata.clustering import encode_clustering_plan
from table.transaction.lease import Lease
from table.transaction.lock import Step, guarded
from table.transaction.planned_clusterings import withdraw_plan
from table.transaction.store_clock import wait_past_completed

log = get_logger("hudistream.clustering")


def schedule_clustering(
    snapshot: Snapshot,
    settings: ClusteringSettings,
    lease: Lease,
    *,
    scheduled_by: str | None = None,
    only_due: bool = False,
) -> Instant | None:
    """Requests a clustering, and leaves its execution to a later process.

    The caller holds the table by this lease, has ended what dead writers left, and writes nothing meanwhile.

    Args:
        snapshot: the table; it is listed again.
        settings: which slices, and by which columns their rows are sorted.
        lease: the caller's hold on the table.
        scheduled_by: id of the sink that carries the plan out; None: any process may.
        only_due: whether to do nothing until enough commits have come since the last clustering.

    Returns:
        The requested clustering; None if nothing was due, or if nothing would change.

    Raises:
        UnsupportedTableError: tables of this kind are not clustered.
        InvalidConfigError: a sort column is not in the table, or has no order.
        CommitConflictError: a write is pending, or came meanwhile. Nothing is left.
    """
    check_can_write(snapshot.config)
    check_has_meta_fields(snapshot.config, "clustered")
    with guarded(snapshot.table, Step.SCHEDULE):
        before = snapshot.again()
        if only_due and not is_due(before, settings):
            return None
        check_nothing_pending(before)
        plan = plan_now(before, settings)
        if not plan.groups:
            return None
        wait_past_completed(before.table)
        action = Action.CLUSTERING if before.layout.completes_in_order else Action.REPLACE_COMMIT
        standing = replace(plan, is_ours=False, scheduled_by=scheduled_by, layout=str(settings.layout))
        content = encode_clustering_plan(standing, before.storage.base_uri)
        storage, timeline = before.storage, before.timeline
        requested, now = request_and_list(storage, timeline, action, before.table.instant_clock, content)
        try:
            # a writer that begins from now on sees the plan; one that began before is seen here
            check_nothing_pending(before.at(now), apart_from=requested.time)
            check_nothing_came(before.timeline, now)
            lease.confirm()
        except BaseException:
            withdraw_plan(storage, requested, "a write came while it was planned, or the table changed hands")
            raise
    log.info(
        "clustering_requested",
        table=storage.base_uri,
        instant_time=requested.time,
        file_groups=sum(len(group.slices) for group in plan.groups),
    )
    return requested
