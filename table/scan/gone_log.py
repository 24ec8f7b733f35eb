"""Decides whether a snapshot needed a log file that was deleted.

In layout 1 the name of a log file does not contain the write that made it, so a snapshot's slices include log files of
writes that are not completed. Such a file may be deleted during a read: by the rollback of the write, or by the write's
commit, which deletes the files of failed task attempts.
"""

from table.references.judge import is_surely_stray
from table.storage.interface import Storage
from table.timeline.active_timeline import find_instant, load_timeline
from table.timeline.commit_cache import CommitCache
from table.timeline.instant import Action, State
from table.timeline.metadata.rollback import decode_named_files
from table.timeline.timeline import Timeline
from table.view.file_group import CommittedInstants, LogFile


def was_not_needed(storage: Storage, file: LogFile, committed: CommittedInstants) -> bool:
    """Whether a deleted log file was written by no write that is visible in the snapshot.

    Args:
        file: the log file.
        committed: the snapshot's.

    Raises:
        CorruptFileError: a commit or the plan of a rollback cannot be read.
    """
    if committed.layout_version != 1:
        return False  # the name contains the write, so a slice has no log files of writes that are not visible
    timeline = load_timeline(storage)
    if _is_rolled_back(storage, timeline, file.path, committed):
        return True
    written = _written_logs(storage, timeline, committed)
    return written is not None and is_surely_stray(file, written, committed)


def _is_rolled_back(storage: Storage, timeline: Timeline, path: str, committed: CommittedInstants) -> bool:
    """Whether the file is in the plan of a rollback, and the snapshot does not show the write that it undoes."""
    for rollback in timeline:
        request = rollback.at(State.REQUESTED)
        data = find_instant(storage, request) if rollback.action is Action.ROLLBACK else None
        if not data:
            continue
        undone, named = decode_named_files(data, request.file_name)
        if not committed.includes_block(undone) and any(f"/{file}".endswith(f"/{path}") for file in named):
            return True
    return False


def _written_logs(storage: Storage, timeline: Timeline, committed: CommittedInstants) -> frozenset[str] | None:
    """The files that the writes of a snapshot wrote; None where one of them was archived or undone since."""
    instants = [instant for instant in timeline.completed_writes if instant.time in committed.times]
    found = map(CommitCache(storage).find, instants)
    commits = [commit for commit in found if commit is not None]
    if len(commits) < len(committed.times):
        return None
    return frozenset(stat.path for commit in commits for stat in commit.stats)
