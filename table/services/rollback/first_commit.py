"""The first commit of a table that several writers begin to write: empty, so that no batch makes the first commit.

Every base file older than the first completed write counts as committed. So a single writer deletes the files that
earlier writers left before its first commit. With several writers, one would delete files that another one is writing.
"""

from table.options.choices import TableType
from table.references.strays import delete_before_first_commit
from table.snapshot import Snapshot
from table.timeline.instant import Action
from table.timeline.metadata.commit import CommitMetadata
from table.transaction.commit import begin_commit, complete_commit
from table.transaction.heartbeat import WriterIdentity, delete_heartbeat
from table.transaction.lease import Lease
from table.transaction.outcome import LostCommit

_OPERATION = "UPSERT"  # the operation of a sink that names none


def make_first_commit(snapshot: Snapshot, identity: WriterIdentity, lease: Lease) -> Snapshot:
    """Makes an empty commit where the table has none.

    Args:
        snapshot: the table after failed writes were rolled back; the caller holds it alone.
        identity: the writer.
        lease: the writer's hold on the table.

    Returns:
        The table, with a completed write on its timeline.

    Raises:
        HudiError: the table has no first commit yet.
    """
    if snapshot.timeline.completed_writes:
        return snapshot
    merge_on_read = snapshot.config.table_type == TableType.MERGE_ON_READ
    action = Action.DELTA_COMMIT if merge_on_read else Action.COMMIT
    pending = begin_commit(snapshot, _OPERATION, identity, lease, action)
    delete_before_first_commit(snapshot.table, pending.time)
    outcome = complete_commit(pending, CommitMetadata((), _OPERATION), "", lambda _: {}, lease)
    if isinstance(outcome, LostCommit):
        raise outcome.error()
    delete_heartbeat(snapshot.storage, pending.time)
    return snapshot.again()
