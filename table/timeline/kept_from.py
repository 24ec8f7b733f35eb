"""The commit since which cleaning has deleted no file: snapshots before it may not have all rows."""

from table.storage.interface import Storage
from table.timeline.active_timeline import find_instant
from table.timeline.instant import Action
from table.timeline.metadata.clean import decode_clean_metadata
from table.timeline.timeline import Timeline


def find_kept_from(storage: Storage, timeline: Timeline) -> str | None:
    """The first commit whose files no clean was allowed to delete; None where no clean has run.

    The last clean alone does not say it: another policy, an erasure or a restore lets a clean reach less far back than
    an earlier one. Cleans of ours carry the bound of those before them; cleans of others do not.

    Args:
        storage: of the table.
        timeline: the active one.

    Raises:
        CorruptFileError: a completed clean is damaged.
        StorageError: the store fails.
    """
    found: str | None = None
    for clean in reversed(timeline.completed_of(Action.CLEAN)):
        data = find_instant(storage, clean)
        if data is None:
            continue
        plan = decode_clean_metadata(data, clean.file_name).plan
        found = max(found or "", plan.bound or clean.time)
        if plan.kept_from:
            break
    return found
