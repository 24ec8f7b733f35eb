"""Finds the last batch that each sink committed, for callers that keep no state between calls."""

from collections.abc import Mapping

from table.errors import BatchOrderError
from table.references.undone import load_rolled_back_time
from table.snapshot import Snapshot
from table.timeline.archived_timeline import read_archived_commits
from table.timeline.end_record import find_end
from table.timeline.instant import WRITE_ACTIONS, Action
from table.transaction.checkpoint import (
    OUR_KEY,
    CommittedBatch,
    checkpoints_of_commit,
    merge_checkpoints,
    steps_to_replay,
)
from table.transaction.positions import Positions, decode_streamer


def find_last_batch(snapshot: Snapshot, sink_id: str) -> CommittedBatch | None:
    """The last batch that a sink committed: from the active timeline, else from the archive.

    Raises:
        CorruptFileError: a commit or the archive is damaged.
    """
    active = _load_active(snapshot)
    return active[sink_id] if sink_id in active else _load_archived(snapshot).get(sink_id)


def check_nothing_undone(snapshot: Snapshot, last: CommittedBatch | None, sink_id: str, batch_id: int) -> None:
    """Refuses a batch if a batch between the last one and it was undone by hand.

    A gap alone proves nothing: a batch without rows leaves no commit.

    Args:
        last: the last batch that the sink committed, or None.
        batch_id: Spark's id of the batch that is to be written.

    Raises:
        BatchOrderError: the message names the batches and both remedies.
    """
    known = -1 if last is None else last.batch_id
    if batch_id <= known + 1:
        return
    for rollback in snapshot.timeline.completed_of(Action.ROLLBACK):
        time = load_rolled_back_time(snapshot, rollback)
        ends = (find_end(snapshot.storage, time, action) for action in sorted(WRITE_ACTIONS) if time)
        batch = next((end.undone for end in ends if end is not None and end.undone is not None), None)
        if batch is None:
            continue
        undone_sink, undone = batch
        if undone_sink == sink_id and known < undone < batch_id:
            raise BatchOrderError(
                f"batch {batch_id} of sink {sink_id!r} comes after batch {undone}, which was undone by hand "
                f"(commit {time}, {rollback.file_name}): its rows are not in the table. To get "
                f"them, {steps_to_replay(known + 1)}. If they are not wanted, give the sink another "
                "hoodie.datasource.write.streaming.checkpoint.identifier"
            )


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

    Commits of hudistream have its key, too, so that HoodieStreamer can go on behind a sink: that is the sink's place.

    Raises:
        CorruptFileError: a commit or the archive is damaged.
    """
    for instant in reversed(snapshot.timeline.completed_writes):
        commit = snapshot.commits.find(instant)
        positions = () if commit is None else _positions_of_streamer(commit.extra)
        if positions:
            return positions
    archived = read_archived_commits(snapshot.table.archived_timeline)
    known = ((commit.time, _positions_of_streamer(commit.metadata.extra)) for commit in archived)
    return max((each for each in known if each[1]), default=("", ()))[1]


def _positions_of_streamer(extra: Mapping[str, str]) -> Positions:
    return () if OUR_KEY in extra else decode_streamer(extra)


def _load_active(snapshot: Snapshot) -> dict[str, CommittedBatch]:
    found = snapshot.commits.find_outlines(snapshot.timeline.completed_writes)
    known = (each for _, each in found if each is not None)
    return merge_checkpoints(checkpoints_of_commit(each.extra, each.operation) for each in known)


def _load_archived(snapshot: Snapshot) -> dict[str, CommittedBatch]:
    archived = [commit.metadata for commit in read_archived_commits(snapshot.table.archived_timeline)]
    return merge_checkpoints(checkpoints_of_commit(each.extra, each.operation) for each in archived)
