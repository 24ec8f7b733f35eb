"""The first commit of a table that several writers begin to write: empty, so that no later one is the first.

Every base file older than the first completed write counts as committed. A writer alone deletes what earlier writers
left before its first commit. Of several, one would delete what another one is writing.
"""

from table.hudi_table import HudiTable
from table.options.choices import TableType
from table.services.rollback.leftovers import delete_before_first_commit
from table.timeline.instant import Action
from table.timeline.metadata.commit import CommitMetadata
from table.timeline.timeline import Timeline
from table.transaction.commit import begin_commit, complete_commit
from table.transaction.heartbeat import WriterIdentity, delete_heartbeat
from table.transaction.lease import Lease

_OPERATION = "UPSERT"  # what a sink does that names none


def make_first_commit(table: HudiTable, timeline: Timeline, identity: WriterIdentity, lease: Lease) -> Timeline:
    """Makes an empty commit where the table has none.

    Args:
        table: the table, which the caller holds alone.
        timeline: loaded after failed writes were rolled back.
        identity: who writes.
        lease: its hold on the table.

    Returns:
        The timeline, with a completed write on it.

    Raises:
        HudiError: the table has no first commit yet.
    """
    if timeline.completed_writes:
        return timeline
    merge_on_read = table.config.table_type == TableType.MERGE_ON_READ
    action = Action.DELTA_COMMIT if merge_on_read else Action.COMMIT
    pending = begin_commit(table, timeline, _OPERATION, identity, lease, action)
    delete_before_first_commit(table, pending.time)
    complete_commit(table, pending, CommitMetadata((), _OPERATION), "", lambda _: {}, lease)
    delete_heartbeat(table.storage, pending.time)
    return table.load_timeline()
