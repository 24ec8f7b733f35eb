"""Finds the last batch that each sink committed, for callers that keep no state between calls."""

from table.snapshot import Snapshot
from table.timeline.archived_timeline import read_archived_commits
from table.transaction.checkpoint import CommittedBatch, checkpoints_of_commit, merge_checkpoints
from table.transaction.positions import Positions, decode_streamer


def find_last_batch(snapshot: Snapshot, sink_id: str) -> CommittedBatch | None:
    """The last batch that a sink committed: from the active timeline, else from the archive.

    Raises:
        CorruptFileError: a commit or the archive is damaged.
    """
    active = _load_active(snapshot)
    return active[sink_id] if sink_id in active else _load_archived(snapshot).get(sink_id)


def find_last_batches(snapshot: Snapshot) -> dict[str, CommittedBatch]:
    """Sink -> the last batch that it committed.

    Every commit of hudistream names the batches of all sinks. So the archive is read only if none of these commits is
    active.

    Raises:
        CorruptFileError: a commit or the archive is damaged.
    """
    active = _load_active(snapshot)
    # a commit of Hudi's own sink names that sink alone
    is_complete = any(batch.recorded for batch in active.values())
    return active if is_complete else merge_checkpoints([_load_archived(snapshot), active])


def find_streamer_positions(snapshot: Snapshot) -> Positions:
    """The source positions of HoodieStreamer after its last commit; empty if it made none, or does not read Kafka.

    Raises:
        CorruptFileError: a commit or the archive is damaged.
    """
    for instant in reversed(snapshot.timeline.completed_writes):
        commit = snapshot.commits.find(instant)
        positions = () if commit is None else decode_streamer(commit.extra)
        if positions:
            return positions
    archived = read_archived_commits(snapshot.table.archived_timeline)
    found = [(commit.time, positions) for commit in archived if (positions := decode_streamer(commit.metadata.extra))]
    return max(found)[1] if found else ()


def _load_active(snapshot: Snapshot) -> dict[str, CommittedBatch]:
    found = snapshot.commits.find_outlines(snapshot.timeline.completed_writes)
    known = (each for _, each in found if each is not None)
    return merge_checkpoints(checkpoints_of_commit(each.extra, each.operation) for each in known)


def _load_archived(snapshot: Snapshot) -> dict[str, CommittedBatch]:
    archived = [commit.metadata for commit in read_archived_commits(snapshot.table.archived_timeline)]
    return merge_checkpoints(checkpoints_of_commit(each.extra, each.operation) for each in archived)
