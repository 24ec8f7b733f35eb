"""What late tasks left of instants that are over: files, markers and heartbeats, swept before each batch."""

from table.files.publication import forget_ended
from table.services.rollback.undone_files import find_referenced
from table.snapshot import Snapshot
from table.timeline.instant import Action
from table.transaction.commit import delete_strays
from table.transaction.heartbeat import delete_heartbeat, heartbeat_path


def sweep_late_files(snapshot: Snapshot, marked: list[str], staged: list[str], *, shared: bool = False) -> None:
    """Deletes what late tasks left of instants that are over, and the markers and folders that show it.

    Kept is what a commit references, and everything of an instant whose fate is not on the active
    timeline: deletion needs proof.

    Args:
        snapshot: the table, loaded after `marked` was listed.
        marked: instants that have markers.
        staged: instants that have room for waiting files.
        shared: whether others may be writing: one that has opened its instant may be about to request it.
    """
    storage = snapshot.storage
    pending = {instant.time for instant in snapshot.timeline.pending}
    known = {instant.time for instant in snapshot.timeline}
    for time in staged:
        if time not in pending and (time in known or not (shared and storage.exists(heartbeat_path(time)))):
            storage.fence(time)
    for time in marked:
        referenced = None if time in pending else find_referenced(snapshot, time)
        if referenced is None:
            continue
        delete_strays(storage, time, referenced)
        delete_heartbeat(storage, time)
        forget_ended(storage, time, snapshot.config.timezone)
    for instant in snapshot.timeline.completed_writes[-1:]:
        if instant.action is Action.REPLACE_COMMIT:
            delete_heartbeat(storage, instant.time)  # one that only took files away has no markers to be found by
