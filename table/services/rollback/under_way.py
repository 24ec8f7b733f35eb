"""A commit between its begin and its end: it shows signs of life, and is given up where its writer fails."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from table.errors import CommitOutcomeUnknownError, HudiError
from table.log import get_logger
from table.services.rollback.rollback import end_own
from table.snapshot import Snapshot
from table.transaction.commit_facts import PendingCommit
from table.transaction.heartbeat import WriterIdentity
from table.transaction.lease import Lease

log = get_logger("hudistream.rollback")


@contextmanager
def under_way(
    pending: PendingCommit,
    lease: Lease,
    identity: WriterIdentity,
    after_undoing: Callable[[Snapshot], object] | None = None,
) -> Iterator[None]:
    """Keeps the heartbeat of a commit while the block writes and completes it.

    If the block fails, the commit is rolled back at once; if that fails, too, the next writer rolls it back. If the
    outcome is unknown, nothing is rolled back: the completed file may yet appear, and the next writer finds out.

    Args:
        pending: the commit, as it was begun.
        lease: how the writer holds the table.
        identity: the writer.
        after_undoing: is called with the table as it was before the rollback.
    """
    lease.beat_for(pending.time, identity, pending.sight)
    try:
        yield
    except CommitOutcomeUnknownError:
        lease.beat_for(None)
        raise
    except BaseException:
        lease.beat_for(None)
        _give_up(pending, lease, after_undoing)
        raise
    lease.beat_for(None)


def _give_up(pending: PendingCommit, lease: Lease, after_undoing: Callable[[Snapshot], object] | None) -> None:
    """Rolls the commit back, unless it has ended."""
    try:
        now = end_own(pending, lease.owner)
        if after_undoing is not None:
            after_undoing(now)
    except HudiError as error:
        log.warning(
            "rollback_left_to_next_writer",
            table=pending.seen.storage.base_uri,
            instant_time=pending.time,
            error=str(error),
        )
