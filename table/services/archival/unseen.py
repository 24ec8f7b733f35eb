"""The changes that pending writes may not have seen, and look for before they complete (rule 15)."""

from table.services.archival.plan import Unseen
from table.snapshot import Snapshot
from table.timeline.instant import WRITE_ACTIONS, Action, State
from table.transaction.heartbeat import find_sight


def load_unseen(snapshot: Snapshot) -> Unseen:
    """The changes that pending writes may not have seen.

    A clean may be requested late with an early time. So the order in which cleans were completed counts, too, by the
    store's modification times.

    Args:
        snapshot: the table as it is now.

    Raises:
        StorageError: the store fails.
    """
    storage = snapshot.storage
    pending = snapshot.timeline.pending_of(*WRITE_ACTIONS, Action.CLUSTERING)
    if not pending:
        return Unseen()
    found = {instant.time: find_sight(storage, instant.time) for instant in pending}
    entries = {entry.name: entry.modified_ms for entry in storage.list_dir(snapshot.layout.names.folder)}
    requests = [entries.get(instant.at(State.REQUESTED).file_name, 0) for instant in pending]
    since_ms = min(requests) - storage.time_granularity_ms
    cleans = snapshot.timeline.completed_of(Action.CLEAN)
    late = {clean.time for clean in cleans if entries.get(clean.file_name, since_ms) >= since_ms}
    return Unseen({time: sight for time, sight in found.items() if sight is not None}, frozenset(late))
