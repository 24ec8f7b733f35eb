"""A log file that is gone: did the snapshot need it?

The name of a log file does not say who wrote it, so a snapshot's slices hold files of writes that are not completed.
Whoever rolls such a write back deletes them, also while somebody reads.
"""

from table.storage.interface import Storage
from table.timeline.active_timeline import find_instant, load_timeline
from table.timeline.instant import Action, State
from table.timeline.metadata.rollback import decode_named_files
from table.view.file_group import CommittedInstants


def is_rolled_back(storage: Storage, path: str, committed: CommittedInstants) -> bool:
    """Whether a rollback deleted a log file of a write that the snapshot does not show. Looks at plans of rollbacks.

    Args:
        storage: the table's.
        path: the log file's, relative to the table.
        committed: the snapshot's.

    Raises:
        CorruptFileError: a plan cannot be read.
    """
    if committed.layout_version != 1:
        return False  # there the name says who wrote the file, and it is not among those of a slice
    for rollback in load_timeline(storage):
        request = rollback.at(State.REQUESTED)
        data = find_instant(storage, request) if rollback.action is Action.ROLLBACK else None
        if not data:
            continue
        undone, named = decode_named_files(data, request.file_name)
        if not committed.includes_block(undone) and any(storage.relative(file) == path for file in named):
            return True
    return False
