"""Small frozen groups of settings that several rooms share and workers receive."""

from dataclasses import dataclass


@dataclass(frozen=True)
class BaseFileSettings:
    """How base files are written.

    Attributes:
        codec: ``zstd``, ``snappy``, ``gzip``, ``lz4`` or ``none``.
        codec_level: level of the codec, or None for its default.
        row_group_bytes: Arrow bytes of rows that make a row group.
        bloom_type: ``SIMPLE`` or ``DYNAMIC_V0``.
        bloom_entries: size of the filter in keys, or None to fit it to the file (60,000 for DYNAMIC_V0).
        bloom_fpp: false positive rate of the filter.
        bloom_max_entries: bound of a DYNAMIC_V0 filter in keys.
        bloom_headroom: how many times the file's keys a fitted filter is sized for.
        dictionary: whether columns of the table are dictionary-encoded.
        verify_share: share of the files made of copied row groups that are read whole before they count.
    """

    codec: str = "zstd"
    codec_level: int | None = 1
    row_group_bytes: int = 32 * 1024 * 1024
    bloom_type: str = "SIMPLE"
    bloom_entries: int | None = None
    bloom_fpp: float = 1e-6
    bloom_max_entries: int = 100_000
    bloom_headroom: float = 2.0
    dictionary: bool = True
    verify_share: float = 0.0


@dataclass(frozen=True, slots=True)
class HeartbeatSettings:
    """``hoodie.client.heartbeat.interval_in_ms`` and ``hoodie.client.heartbeat.tolerable.misses``."""

    interval_ms: int = 60_000
    tolerable_misses: int = 2

    @property
    def expiry_ms(self) -> int:
        """Age at which a heartbeat counts as dead."""
        return self.interval_ms * self.tolerable_misses


KEEP_LATEST_COMMITS = "KEEP_LATEST_COMMITS"
KEEP_LATEST_FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"
KEEP_LATEST_BY_HOURS = "KEEP_LATEST_BY_HOURS"
CLEAN_POLICIES = (KEEP_LATEST_COMMITS, KEEP_LATEST_FILE_VERSIONS, KEEP_LATEST_BY_HOURS)


@dataclass(frozen=True, slots=True)
class CleanSettings:
    """When old versions of files go, and which (HoodieCleanConfig).

    Attributes:
        automatic: ``hoodie.clean.automatic``: whether batches are followed by cleaning.
        asynchronous: ``hoodie.clean.async.enabled``: in the background; False: after the commit, before the next
            batch begins.
        at_checkpoint: ``clean.async.enabled``, Flink's word: False: the sink cleans nothing.
        policy: ``hoodie.clean.policy``.
        commits_retained: for KEEP_LATEST_COMMITS.
        versions_retained: for KEEP_LATEST_FILE_VERSIONS.
        hours_retained: for KEEP_LATEST_BY_HOURS, in the table's time zone.
        trigger_commits: a clean is due after so many commits (``hoodie.clean.max.commits``).
        incremental: look only at partitions that changed since the last clean.
        parallelism: files deleted at the same time.
        grace_ms: files younger than this stay whatever the policy says; 0: as Hudi has it.
        most_share: a plan that would delete a greater share of the table's bytes is refused; None: none is.
        on_failure: ``warn``, ``pause`` (no more cleaning by this sink) or ``fail`` (the next batch).
    """

    automatic: bool = True
    asynchronous: bool = True
    at_checkpoint: bool = True
    policy: str = KEEP_LATEST_COMMITS
    commits_retained: int = 10
    versions_retained: int = 3
    hours_retained: int = 24
    trigger_commits: int = 1
    incremental: bool = True
    parallelism: int = 8
    grace_ms: int = 0
    most_share: float | None = None
    on_failure: str = "warn"


@dataclass(frozen=True, slots=True)
class ArchiveSettings:
    """When instants leave the active timeline (HoodieArchivalConfig).

    Attributes:
        automatic: ``hoodie.archive.automatic``: whether commits are followed by archival, cleaning or not.
        min_commits: ``hoodie.keep.min.commits``: commits that stay.
        max_commits: ``hoodie.keep.max.commits``: beyond so many the older ones go.
        batch: instants in one block of the archive (``hoodie.commits.archival.batch``).
    """

    automatic: bool = True
    min_commits: int = 20
    max_commits: int = 30
    batch: int = 10
