"""The last batch that a sink committed, for callers that keep nothing between two questions."""

from table.snapshot import Snapshot
from table.timeline.archived_timeline import read_archived_commits
from table.transaction.checkpoint import CommittedBatch, checkpoints_of_commit, merge_checkpoints


def find_last_batch(snapshot: Snapshot, sink_id: str) -> CommittedBatch | None:
    """The last batch that a sink committed: from the active timeline, else from the archive.

    Raises:
        CorruptFileError: a commit or the archive is damaged.
    """
    found = (snapshot.commits.find(instant) for instant in snapshot.timeline.completed_writes)
    active = [checkpoints_of_commit(commit.extra, commit.operation) for commit in found if commit is not None]
    last = merge_checkpoints(active).get(sink_id)
    if last is not None:
        return last
    archived = [commit.metadata for commit in read_archived_commits(snapshot.table.archived_timeline)]
    return merge_checkpoints(checkpoints_of_commit(each.extra, each.operation) for each in archived).get(sink_id)
