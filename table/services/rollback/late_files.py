"""Sweeps, before each batch, what late tasks left of ended instants: files, markers and heartbeats."""

from collections.abc import Sequence

from table.errors import StorageError
from table.files.publication import forget_ended
from table.log import get_logger
from table.references.strays import delete_strays, find_referenced
from table.snapshot import Snapshot
from table.timeline.instant import Action
from table.transaction.heartbeat import delete_heartbeat, heartbeat_path

log = get_logger("hudistream.rollback")


def sweep_late_files(snapshot: Snapshot, marked: Sequence[str], staged: Sequence[str], *, shared: bool = False) -> None:
    """Deletes the files that late tasks left of ended instants, and the markers and folders of these instants.

    Files that a commit references stay. All files of an instant whose outcome is not on the active timeline stay, too:
    deletion needs proof. Where the store refuses to delete markers, the batch goes on, and the next sweep tries again.

    Args:
        snapshot: the table, loaded after `marked` was listed.
        marked: instants that have markers.
        staged: instants that have a folder for waiting files.
        shared: whether other writers may be writing: a writer that has opened its instant may be about to request it.
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
        delete_strays(storage, time, referenced, are_late=True)
        try:
            delete_heartbeat(storage, time)
            forget_ended(storage, time, snapshot.config.timezone)
        except StorageError as error:  # both have no effect any more, and the next sweep finds them by the markers
            log.warning("markers_left", table=storage.base_uri, instant_time=time, error=str(error))
    for instant in snapshot.timeline.completed_writes[-1:]:
        if instant.action is Action.REPLACE_COMMIT:
            delete_heartbeat(storage, instant.time)  # a commit that only took files away has no markers
