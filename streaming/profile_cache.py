"""The write profile of one table, kept from batch to batch, and made anew when it cannot be trusted."""

import structlog

from streaming.task_plan import TaskResult
from streaming.write_profile import COMMITS_REMEMBERED, WriteProfile, apply_commit, commit_size, fresh_profile
from table.errors import HudiError
from table.files.base_file import read_footer_bytes
from table.storage import Storage
from table.timeline.active_timeline import read_instant
from table.timeline.commit_metadata import CommitMetadata, decode_commit
from table.timeline.instant import Action
from table.timeline.timeline import Timeline

FOOTERS_SAMPLED = 3

log = structlog.get_logger("hudistream.profile")


class ProfileCache:
    """Holds the profile between batches; everything it decides is in `streaming.write_profile`."""

    def __init__(self, storage: Storage, small_file_limit_bytes: int) -> None:
        self._storage, self._limit = storage, small_file_limit_bytes
        self._profile: WriteProfile | None = None

    def load(self, timeline: Timeline) -> WriteProfile:
        """The cached profile, or a fresh one after a start or somebody else's commit."""
        committed = timeline.committed_times
        if self._profile is None or self._profile.is_stale(committed):
            self._profile = self._build(timeline)
            log.info("write_profile_built", table=self._storage.base_uri, commits=len(committed))
        return self._profile

    def _build(self, timeline: Timeline) -> WriteProfile:
        sizes = []
        for instant in timeline.completed_of(Action.COMMIT, Action.DELTA_COMMIT)[: -COMMITS_REMEMBERED - 1 : -1]:
            metadata = decode_commit(read_instant(self._storage, instant), instant.file_name)
            if metadata.stats:
                sizes.append(commit_size(metadata.stats, self._sample_footers(metadata)))
        return fresh_profile(timeline.committed_times, sizes)

    def _sample_footers(self, metadata: CommitMetadata) -> int:
        """Footer bytes of a commit's files, estimated from a few of them."""
        sampled = []
        for stat in metadata.stats[:FOOTERS_SAMPLED]:
            try:
                sampled.append(read_footer_bytes(self._storage, stat.path))
            except (HudiError, FileNotFoundError):
                continue  # cleaned since; an estimate does without
        return round(sum(sampled) / len(sampled) * len(metadata.stats)) if sampled else 0

    def advance(self, profile: WriteProfile, instant_time: str, result: TaskResult) -> None:
        """Moves the profile past one of our own commits."""
        for path, small_files in result.listed.items():
            log.info("small_files_found", table=self._storage.base_uri, partition_path=path, files=len(small_files))
        self._profile = apply_commit(
            profile, instant_time, result.stats, result.footer_bytes, result.listed, self._limit
        )

    def drop(self) -> None:
        """Forgets the profile: what a failed batch left is not known."""
        self._profile = None
