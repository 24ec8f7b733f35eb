"""Finds the files that belong to an instant by its end record alone, because the instant's own files were lost.

An end record that says "commit" holds the whole commit. Where the files of the instant are gone from the timeline, and
no rollback or restore says why, the data files that the record names are the only copy of acknowledged rows.
"""

from collections.abc import Collection, Mapping

from table.errors import CorruptFileError
from table.references.undone import load_undone_times
from table.snapshot import Snapshot
from table.timeline.end_record import DATA_ACTIONS, ENDS_FOLDER, find_end
from table.timeline.instant import Action

WAY_OUT = (
    "`hudistream check --repair` puts an instant back if no later write was made without it; else compare its files "
    "with the table, and delete its end record by hand if they are not wanted"
)
_NAMES = {action.value: action for action in DATA_ACTIONS}


def find_decided(snapshot: Snapshot, times: Collection[str]) -> Mapping[str, frozenset[str]]:
    """The files that end records "commit" name, unless a rollback or a restore undid their instant.

    Args:
        snapshot: the table. Its archive is read only if such a record is found.
        times: instants that have no completed file on the timeline.

    Returns:
        Time of the instant -> paths of its files.

    Raises:
        CorruptFileError: an end record of these instants is damaged: what it decided is not known.
    """
    storage, found = snapshot.storage, dict[str, frozenset[str]]()
    for entry in storage.list_dir(ENDS_FOLDER) if times else ():
        time, _, name = entry.name.partition(".")
        end = find_end(storage, time, _NAMES[name]) if time in times and name in _NAMES else None
        if end is not None and end.is_commit:
            found[time] = found.get(time, frozenset()) | end.metadata.named_paths
    if not found:
        return {}
    undone: set[str] = set()
    for instant in snapshot.timeline:
        if instant.action in (Action.ROLLBACK, Action.RESTORE):
            undone.update(load_undone_times(snapshot, instant))
    if found.keys() - undone:
        for change in snapshot.table.archived_timeline.read_changes():
            undone.update(change.undone)
    return {time: paths for time, paths in found.items() if time not in undone}


def check_not_decided(snapshot: Snapshot, times: Collection[str], refusal: str) -> None:
    """Refuses to go on where an instant without a completed file is decided to be committed, and wrote files.

    Args:
        snapshot: the table.
        times: as of `find_decided`.
        refusal: what is not done, for the error.

    Raises:
        CorruptFileError: there is such an instant, or its end record is damaged.
    """
    for time, paths in sorted(find_decided(snapshot, times).items()):
        if paths:
            raise CorruptFileError(
                f"instant {time} of {snapshot.storage.base_uri!r} is not on the timeline, and its end record says that "
                f"it was committed with {len(paths)} files, {min(paths)} among them: its instant files were lost; "
                f"{refusal}. {WAY_OUT}"
            )
