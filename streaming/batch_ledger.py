"""Which batches are committed: the commits' checkpoint entries, each read once in a process."""

from collections.abc import Mapping

from table.hudi_table import HudiTable
from table.timeline.active_timeline import find_instant
from table.timeline.archived_timeline import read_archived_commits
from table.timeline.commit_metadata import decode_commit
from table.timeline.timeline import Timeline
from table.transaction.checkpoint import (
    CommittedBatch,
    decode_checkpoints,
    encode_checkpoints,
    merge_checkpoints,
    next_checkpoints,
)


class BatchLedger:
    """The last committed batch of every sink of one table."""

    def __init__(self) -> None:
        self._active: dict[str, dict[str, CommittedBatch]] = {}
        self._archived: dict[str, CommittedBatch] | None = None

    def find_last_batch(self, table: HudiTable, timeline: Timeline, sink_id: str) -> CommittedBatch | None:
        """A sink's last committed batch: from the active timeline, else, once a process, from the archive.

        Every commit of ours carries the entries of all sinks along, so the archive matters only where
        other writers' commits pushed our last one there.
        """
        found = self._load_active(table, timeline).get(sink_id)
        if found is not None:
            return found
        return self._load_archived(table).get(sink_id)

    def _load_archived(self, table: HudiTable) -> dict[str, CommittedBatch]:
        if self._archived is None:
            commits = read_archived_commits(table.storage, table.config.archive_folder)
            self._archived = merge_checkpoints(decode_checkpoints(commit.metadata.extra) for commit in commits)
        return self._archived

    def _load_active(self, table: HudiTable, timeline: Timeline) -> dict[str, CommittedBatch]:
        known = {}
        for instant in timeline.completed_writes:
            if instant.time not in self._active:
                data = find_instant(table.storage, instant)
                if data is None:
                    # archived since the timeline was listed: the archive knows more than it did
                    self._archived = None
                    self._load_archived(table)
                    continue
                self._active[instant.time] = decode_checkpoints(decode_commit(data, instant.file_name).extra)
            known[instant.time] = self._active[instant.time]
        self._active = known
        return merge_checkpoints(known[time] for time in sorted(known))

    def build_extra(
        self, table: HudiTable, timeline: Timeline, sink_id: str, batch_id: int | None, query_id: str | None
    ) -> Mapping[str, str]:
        """Extra metadata of the next commit: all that was known, and this batch if it has an id."""
        carried = {**(self._archived or {}), **self._load_active(table, timeline)}
        if batch_id is None:
            return encode_checkpoints(carried) if carried else {}
        return encode_checkpoints(next_checkpoints(carried, sink_id, batch_id, query_id))
