"""Which batches are committed: the commits' checkpoint entries, each read once in a process."""

from collections.abc import Mapping

from table.errors import WriteConflictError
from table.snapshot import Snapshot
from table.timeline.change import Change
from table.transaction.checkpoint import (
    OUR_KEY,
    SINK_KEY,
    CommittedBatch,
    checkpoints_of_commit,
    encode_checkpoints,
    merge_checkpoints,
    next_checkpoints,
)
from table.transaction.mend_commits import mend_commits
from table.transaction.positions import encode_streamer


class BatchLedger:
    """The last committed batch of every sink of one table.

    The ledger keeps the entries of commits that leave the active timeline, so the archive is not read for them. Every
    commit of hudistream contains the entries of all sinks, so the archive is read once, from its newest file back to
    our newest commit.
    """

    def __init__(self) -> None:
        self._active: dict[str, dict[str, CommittedBatch]] = {}
        self._merged: tuple[tuple[str, ...], dict[str, CommittedBatch]] = ((), {})  # of the active commits, and theirs
        self._retired: dict[str, CommittedBatch] = {}
        self._archive_read_until: str | None = None

    def look_at(self, snapshot: Snapshot) -> None:
        """Reads the commits that this process has not read, and mends those whose completed file is damaged.

        Raises:
            CorruptFileError: a completed file and its end record are damaged.
            StorageError: the store fails.
        """
        self._load_active(snapshot)
        mend_commits(snapshot)

    def find_last_batch(self, snapshot: Snapshot, sink_id: str) -> CommittedBatch | None:
        """A sink's last committed batch: from the active timeline, else from the archive.

        The archive matters only where other writers' commits pushed our last one there.
        """
        found = self._load_active(snapshot).get(sink_id)
        if found is not None:
            return found
        self._load_archived(snapshot)
        return self._retired.get(sink_id)

    def _load_archived(self, snapshot: Snapshot) -> None:
        """Reads the archive if it has grown since the last time: the archive ends where the active timeline begins."""
        first = snapshot.timeline.first_active_time or ""
        if self._archive_read_until == first:
            return
        for commits in snapshot.table.archived_timeline.read_files():
            found = [checkpoints_of_commit(commit.metadata.extra, commit.metadata.operation) for commit in commits]
            self._retired = merge_checkpoints([*found, self._retired])
            if any(OUR_KEY in commit.metadata.extra for commit in commits):
                break  # this commit contains the entries of all commits before it
        self._archive_read_until = first

    def _load_active(self, snapshot: Snapshot) -> dict[str, CommittedBatch]:
        is_behind = False
        writes = snapshot.timeline.completed_writes
        change = Change.between(self._active, snapshot.timeline.committed_times)
        for instant, outline in snapshot.commits.find_outlines([one for one in writes if one.time in change.came]):
            if outline is None:
                is_behind = True  # the instant was archived after the timeline was listed: read the archive again
                continue
            self._active[instant.time] = checkpoints_of_commit(outline.extra, outline.operation)
        archived = [self._active[time] for time in sorted(change.archived)]
        self._retired = merge_checkpoints([self._retired, *archived])
        self._active = {one.time: self._active[one.time] for one in writes if one.time in self._active}
        if is_behind:
            self._archive_read_until = None
            self._load_archived(snapshot)
        return self._merge_active()

    def _merge_active(self) -> dict[str, CommittedBatch]:
        """The entries of the active commits. Commits after those of the last call are merged into its result."""
        times = tuple(sorted(self._active))
        before, merged = self._merged
        if times[: len(before)] != before:
            before, merged = (), {}
        merged = merge_checkpoints([merged, *(self._active[time] for time in times[len(before) :])])
        self._merged = times, merged
        return dict(merged)

    def check_is_next(self, snapshot: Snapshot, sink_id: str, batch: CommittedBatch) -> None:
        """Refuses a batch that another process of the same sink committed since this process looked.

        Raises:
            WriteConflictError: names the batch. If the caller runs the batch again, it is found committed.
        """
        last = self.find_last_batch(snapshot, sink_id)
        if last is not None and last.order >= batch.order:
            raise WriteConflictError(
                f"batch {last.batch_id} of sink {sink_id!r} was committed by another process while {batch.batch_id} "
                "ran: each stream needs its own hoodie.datasource.write.streaming.checkpoint.identifier"
            )

    def build_extra(self, snapshot: Snapshot, sink_id: str, batch: CommittedBatch | None) -> Mapping[str, str]:
        """Extra metadata of the next commit: the entries of all sinks, and this batch if it belongs to a stream."""
        active = self._load_active(snapshot)
        carried = {**self._retired, **active}
        if batch is None:
            return encode_checkpoints(carried) if carried else {}
        known = {**encode_checkpoints(next_checkpoints(carried, sink_id, batch)), SINK_KEY: sink_id}
        is_alone = not any(other.positions for name, other in carried.items() if name != sink_id)
        return {**known, **(encode_streamer(batch.positions, snapshot.config.version) if is_alone else {})}
