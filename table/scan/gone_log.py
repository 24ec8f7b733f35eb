"""A log file that is gone: did the snapshot need it?

The name of a log file does not say who wrote it, so a snapshot's slices hold files of writes that are not completed.
They are deleted while somebody reads: by the rollback of such a write, or by its commit, which deletes what the failed
attempts of its tasks left.
"""

from collections.abc import Collection

from table.files.names import parse_log_file
from table.storage.interface import Storage
from table.timeline.active_timeline import find_instant, load_timeline
from table.timeline.commit_cache import CommitCache
from table.timeline.instant import Action, State
from table.timeline.metadata.rollback import decode_named_files
from table.timeline.timeline import Timeline
from table.view.file_group import CommittedInstants, LogFile


def was_not_needed(storage: Storage, file: LogFile, committed: CommittedInstants) -> bool:
    """Whether no write that the snapshot shows wrote a log file that was deleted.

    Args:
        file: the log file.
        committed: the snapshot's.

    Raises:
        CorruptFileError: a commit or the plan of a rollback cannot be read.
    """
    if committed.layout_version != 1:
        return False  # there the name says who wrote the file, and it is not among those of a slice
    timeline = load_timeline(storage)
    if _is_rolled_back(storage, timeline, file.path, committed):
        return True
    written = _written_logs(storage, timeline, committed)
    return written is not None and is_stray(file, written, committed)


def is_stray(file: LogFile, written: Collection[str], committed: CommittedInstants) -> bool:
    """Whether the writes of a snapshot tell that none of them wrote a log file (pure).

    They tell it where every write that added to the slice is on the active timeline: where the slice began there, or
    where one of them wrote a log file of a lesser version. Versions ascend.

    Args:
        file: the log file.
        written: paths of the log files that the write stats of the active timeline name, of writes that count.
        committed: the snapshot's.
    """
    if file.path in written:
        return False
    if committed.first_time is not None and file.base_instant_time >= committed.first_time:
        return True
    names = (parse_log_file(path.rpartition("/")[2]) for path in written)
    found = (name for name in names if name is not None and name.file_id == file.file_id)
    return any(name.base_instant_time == file.base_instant_time and name.version < file.version for name in found)


def _is_rolled_back(storage: Storage, timeline: Timeline, path: str, committed: CommittedInstants) -> bool:
    """Whether the plan of a rollback of a write that the snapshot does not show names a log file."""
    for rollback in timeline:
        request = rollback.at(State.REQUESTED)
        data = find_instant(storage, request) if rollback.action is Action.ROLLBACK else None
        if not data:
            continue
        undone, named = decode_named_files(data, request.file_name)
        if not committed.includes_block(undone) and any(storage.relative(file) == path for file in named):
            return True
    return False


def _written_logs(storage: Storage, timeline: Timeline, committed: CommittedInstants) -> frozenset[str] | None:
    """What the writes of a snapshot wrote; None where one of them was archived since, or undone."""
    instants = [instant for instant in timeline.completed_writes if instant.time in committed.times]
    found = map(CommitCache(storage).find, instants)
    commits = [commit for commit in found if commit is not None]
    if len(commits) < len(committed.times):
        return None
    return frozenset(stat.path for commit in commits for stat in commit.stats)
