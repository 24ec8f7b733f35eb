"""Commits that must not be archived, because their batch id is stored nowhere else.

Every commit of hudistream carries the last batch id of every sink along. So a sink that looks for its last batch reads
the active timeline, and the newest commit of hudistream in the archive. Where several writers share a table, a commit
may be completed after commits with later instant times. These do not carry its batch id. If it were archived before
another commit carries its batch id along, the batch would be written twice.
"""

from collections.abc import Mapping

from table.services.archival.plan import ArchivalPlan
from table.snapshot import Snapshot
from table.timeline.instant import WRITE_ACTIONS
from table.transaction.checkpoint import OUR_KEY, batch_of_commit, decode_checkpoints
from table.transaction.commit_order import ORDER_FOLDER

_Missing = tuple[str, tuple[int, int]]  # a sink, and the order of its batch


def find_uncarried(snapshot: Snapshot, plan: ArchivalPlan) -> frozenset[str]:
    """Commits of a plan that must stay on the active timeline until another commit carries their batch id along.

    Args:
        snapshot: the table that the plan was made from.
        plan: what is to be archived.

    Returns:
        Their times. None if several writers never shared the table: then commits complete in the order of their times.

    Raises:
        CorruptFileError: a commit's file is damaged.
        TimelineMovedError: a commit was archived or undone since the timeline was listed.
    """
    if not snapshot.storage.list_dir(ORDER_FOLDER):
        return frozenset()
    leaving = [instant for instant in plan.instants if instant.action in WRITE_ACTIONS]
    extras = {instant.time: snapshot.commits.read_outline(instant).extra for instant in leaving}
    batches = {time: batch for time, extra in extras.items() if (batch := batch_of_commit(extra)) is not None}
    missing = {time: (sink_id, batch.order) for time, (sink_id, batch) in batches.items()}
    staying = [instant for instant in snapshot.timeline.completed_writes if instant.time not in extras]
    is_ours_left = False
    for instant in reversed(staying):
        if not missing:
            break
        extra = snapshot.commits.read_outline(instant).extra
        is_ours_left |= OUR_KEY in extra
        missing = _without_carried(missing, extra)
    if not is_ours_left:  # only other engines wrote since: then sinks read our newest commit in the archive
        newest = [extras[time] for time in sorted(extras) if OUR_KEY in extras[time]][-1:]
        missing = _without_carried(missing, newest[0]) if newest else {}
    return frozenset(missing)


def _without_carried(missing: Mapping[str, _Missing], extra: Mapping[str, str]) -> dict[str, _Missing]:
    known = {sink_id: batch.order for sink_id, batch in decode_checkpoints(extra).items()}
    return {time: (sink_id, order) for time, (sink_id, order) in missing.items() if known.get(sink_id, (0, -1)) < order}
