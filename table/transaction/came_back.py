"""Completed files that came back after their commit was archived.

A process that carries out an end looks for the inflight file, and then creates the completed file. If it is paused in
between, another writer may carry out the end, and archival may retire the commit. Then the completed file is absent,
and the paused process creates it a second time. That file would become the first instant of the active timeline, so
commits that were archived since would no longer count.
"""

from table.log import get_logger
from table.snapshot import Snapshot
from table.timeline.active_timeline import delete_instant_file
from table.timeline.archived_timeline import is_archived
from table.timeline.instant import COMPLETED_AS, Action, Instant, State
from table.timeline.timeline import Timeline

log = get_logger("hudistream.transaction")


def find_returned(timeline: Timeline) -> tuple[Instant, ...]:
    """Completed writes without a requested or inflight file on the timeline (pure).

    A running archival also leaves such writes.

    Args:
        timeline: the active timeline.
    """
    begun: dict[Action, set[str]] = {}  # times by action: in a long timeline, pairs would be too many objects
    for file in timeline.files:
        if file.state is not State.COMPLETED:
            begun.setdefault(COMPLETED_AS.get(file.action, file.action), set()).add(file.time)
    return tuple(write for write in timeline.completed_writes if write.time not in begun.get(write.action, ()))


def delete_returned(snapshot: Snapshot) -> Snapshot:
    """Deletes completed files that came back.

    A completed file whose instant is in no archive stays: older versions of Hudi requested no commits.

    Args:
        snapshot: the table as it is now.

    Returns:
        The table afterwards.

    Raises:
        CorruptFileError: the archive is damaged.
        StorageError: the store fails.
    """
    returned = find_returned(snapshot.timeline)
    gone = [instant for instant in returned if is_archived(snapshot.table.archived_timeline, instant.time)]
    for instant in gone:
        # no warning: a running archival leaves such a file, too, for a moment; the archival may also have been faster
        if delete_instant_file(snapshot.storage, instant):
            log.info("archived_commit_came_back", table=snapshot.storage.base_uri, instant_time=instant.time)
    return snapshot.again() if gone else snapshot
