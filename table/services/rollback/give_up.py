"""Gives up a commit of a table service: it is rolled back by the process that began it."""

from table.errors import HudiError
from table.log import get_logger
from table.services.rollback.rollback import end_own
from table.transaction.commit_facts import PendingCommit
from table.transaction.lease import Lease

log = get_logger("hudistream.rollback")


def give_up(pending: PendingCommit, lease: Lease) -> None:
    """Rolls the commit back at once. If that fails, the next writer rolls it back.

    Args:
        pending: the commit; one that has ended stays as it is.
        lease: how the process holds the table.
    """
    lease.beat_for(None)
    try:
        end_own(pending, lease.owner)
    except HudiError as error:
        log.warning(
            "rollback_left_to_next_batch",
            table=pending.seen.storage.base_uri,
            instant_time=pending.time,
            error=str(error),
        )
