"""Groups of options that packages outside `table.options` use (pure)."""

import re
from dataclasses import dataclass

from table.errors import InvalidConfigError
from table.options.choices import (
    COMPACTION_STRATEGY_CLASSES,
    BloomType,
    CleanFailure,
    CleanPolicy,
    Codec,
    CompactionStrategy,
    CompactionTrigger,
    LogBlockFormat,
)
from table.options.numbers import Number, Share, Size, Tasks, Whole
from table.options.settings import Settings, option
from table.options.values import (
    Flag,
    Names,
    OneOf,
    Text,
    check_pattern,
)

_MB = 1024 * 1024
KEEP_LATEST_COMMITS, KEEP_LATEST_FILE_VERSIONS, KEEP_LATEST_BY_HOURS = CleanPolicy
_LEVELS = {Codec.ZSTD: (-7, 22), Codec.GZIP: (1, 9)}


@dataclass(frozen=True)
class BaseFileSettings(Settings):
    """How base files are encoded.

    Attributes:
        codec: compression of the columns.
        codec_level: level of the codec; None: 1 for zstd, else the codec's own default.
        row_group_bytes: Arrow bytes of rows that make a row group.
        bloom_type: type of the bloom filter over the record keys.
        bloom_entries: size of the filter in keys; None fits it to the file (60,000 for DYNAMIC_V0).
        bloom_fpp: false positive rate of the filter.
        bloom_max_entries: bound of a DYNAMIC_V0 filter in keys.
        bloom_headroom: a fitted filter is sized for this many times the file's keys.
        full_bytes: size at which a file takes no more keys: a fitted filter has no room for more than it holds then.
            Sinks give `SizeSettings.max_file_bytes`. None: files have no such size.
        page_bytes: bytes of a page, about; a column chunk is read page by page.
        has_meta_fields: whether the meta columns have values. Sinks give the table's property. Without them a file has
            neither filter nor key range.
        keys_anew: whether filter and key range of a file are made of the keys of its rows alone, never of those of the
            older file, which hold deleted keys. An erasure asks for it. It reads the keys of copied row groups.
        dictionary: whether columns of the table are dictionary-encoded.
        shared_key_chunk: the record key and the column that holds the same text are stored once, under both names.
        verify_share: share of the files made of copied row groups that are read whole before they count.
    """

    codec: Codec = option(Codec.ZSTD, OneOf(Codec, {"uncompressed": Codec.NONE, "lz4_raw": Codec.LZ4}, "codec"))
    codec_level: int | None = option(None, Whole(-(2**31)))
    row_group_bytes: int = option(32 * _MB, Size(1))
    bloom_type: BloomType = option(BloomType.SIMPLE, OneOf(BloomType))
    bloom_entries: int | None = option(None, Whole(1))
    bloom_fpp: float = option(1e-6, Number(0, 1))
    bloom_max_entries: int = option(100_000, Whole(1))
    bloom_headroom: float = option(2.0, Number(0, 1e6))
    full_bytes: int | None = option(None, Size(1))
    page_bytes: int = option(_MB, Size(1))
    has_meta_fields: bool = option(default=True, kind=Flag())
    keys_anew: bool = option(default=False, kind=Flag())
    dictionary: bool = option(default=True, kind=Flag())
    shared_key_chunk: bool = option(default=False, kind=Flag())
    verify_share: float = option(0.0, Share())

    def _check(self) -> None:
        """Refuses a level that the codec does not have."""
        least, most = _LEVELS.get(self.codec, (None, None))
        level = self.codec_level
        if level is None or (least is not None and most is not None and least <= level <= most):
            return
        known = f"{least} to {most}" if least is not None else "none"
        raise InvalidConfigError(
            f"hudistream.parquet.compression.level={level}: the levels of {self.codec} are {known}"
        )

    @property
    def level(self) -> int | None:
        """The compression level; None for the codec's own default."""
        return 1 if self.codec_level is None and self.codec is Codec.ZSTD else self.codec_level


@dataclass(frozen=True)
class LogFileSettings(Settings):
    """How log files of merge-on-read tables are written (HoodieStorageConfig).

    Attributes:
        block_format: form of the rows in data blocks.
        block_bytes: size from which rows go into the next data block.
        file_bytes: size from which blocks go into the next log file.
        record_positions: whether blocks contain the positions of the rows that they change, in tables of versions 8 and
            9: Hudi's readers then compare no keys. They are not known with a bucket index.
    """

    block_format: LogBlockFormat = option(LogBlockFormat.AVRO, OneOf(LogBlockFormat, what="block format"))
    block_bytes: int = option(256 * _MB, Size(1))
    file_bytes: int = option(1024 * _MB, Size(1))
    record_positions: bool = option(default=True, kind=Flag())


_STRATEGY = OneOf(
    CompactionStrategy,
    {
        spelled.lower(): strategy
        for name, strategy in COMPACTION_STRATEGY_CLASSES.items()
        for spelled in (name, f"org.apache.hudi.table.action.compact.strategy.{name}")
    },
    "compaction strategy",
)


# no compaction is requested while one is pending, so the last requested is also the last completed one
_TRIGGER = OneOf(CompactionTrigger, {"num_commits_after_last_request": CompactionTrigger.NUM_COMMITS}, "trigger")


@dataclass(frozen=True)
class CompactionSettings(Settings):
    """When the log files of merge-on-read tables are folded into base files (HoodieCompactionConfig).

    Attributes:
        asynchronous: compactions that are due run in the background while the stream goes on.
        inline: they run after the commit, before the batch returns.
        schedules: Flink's switch: whether the sink requests a compaction that is due. None: if it also executes it.
        schedules_inline: Hudi's switch: the sink requests a compaction that is due although it executes none. A job of
            its own carries it out, such as `hudistream compact --execute`.
        disabled: this sink executes no compaction, and requests one only where a switch of scheduling says so.
        trigger: what makes one due: delta commits, time, both, or either.
        delta_commits: delta commits since the last compaction.
        delta_seconds: seconds between the first and the last of them.
        target_io_mb: no more file slices are taken once reading and writing them takes so many MB. Not heeded by the
            strategies UNBOUNDED and DAY_BASED.
        strategy: which file slices: those with the most bytes in log files first, those with the most log files first,
            by partition path, all of them, or those of the newest days.
        log_bytes: bytes in log files from which LOG_FILE_SIZE takes a file slice.
        log_files: number of log files from which LOG_FILE_NUM takes a file slice.
        days: partitions that DAY_BASED takes: the newest, by paths such as 2026/01/31 or day=2026-01-31.
        tasks: file slices that are compacted at a time in one process. Memory grows with it, by up to 1 GiB each. None:
            as many as there are cores and GiB of free memory; in the background of a stream half as many.
        executors_from_mb: MB of base and log files from which a stream's compaction runs on Spark's executors, on at
            most half of their cores. What is smaller, it does in its own process.
    """

    asynchronous: bool = option(default=True, kind=Flag())
    inline: bool = option(default=False, kind=Flag())
    schedules: bool | None = option(None, Flag())
    schedules_inline: bool = option(default=False, kind=Flag())
    disabled: bool = option(default=False, kind=Flag())
    trigger: CompactionTrigger = option(CompactionTrigger.NUM_COMMITS, _TRIGGER)
    delta_commits: int = option(5, Whole(1))
    delta_seconds: int = option(3600, Whole(1))
    target_io_mb: int = option(512_000, Whole(1))
    strategy: CompactionStrategy = option(CompactionStrategy.LOG_FILE_SIZE, _STRATEGY)
    log_bytes: int = option(0, Size(0))
    log_files: int = option(0, Whole(0))
    days: int = option(10, Whole(1))
    tasks: int | None = option(None, Tasks())
    executors_from_mb: int = option(256, Whole(0))

    def _check(self) -> None:
        """Refuses a switch that turns compaction on together with one that turns it off."""
        if self.disabled and self.inline:
            raise InvalidConfigError(
                "hoodie.datasource.write.streaming.disable.compaction=true and hoodie.compact.inline=true say "
                "different things: keep one"
            )
        if self.schedules is False and self.schedules_inline:
            raise InvalidConfigError(
                "compaction.schedule.enabled=false and hoodie.compact.schedule.inline=true say different things: "
                "keep one"
            )

    @property
    def executes(self) -> bool:
        """Whether the sink executes requested compactions."""
        return (self.asynchronous or self.inline) and not self.disabled

    @property
    def requests(self) -> bool:
        """Whether the sink requests compactions that are due."""
        return (self.executes or self.schedules_inline) if self.schedules is None else self.schedules


@dataclass(frozen=True)
class HeartbeatSettings(Settings):
    """How a running batch shows that it is alive.

    Attributes:
        interval_ms: milliseconds from one heartbeat to the next.
        tolerable_misses: heartbeats that may be missing before the writer counts as dead.
    """

    interval_ms: int = option(60_000, Whole(1))
    tolerable_misses: int = option(2, Whole(1))

    @property
    def expiry_ms(self) -> int:
        """Age at which a heartbeat counts as dead."""
        return self.interval_ms * self.tolerable_misses


@dataclass(frozen=True)
class CleanSettings(Settings):
    """When old versions of files are deleted, and which (HoodieCleanConfig).

    Attributes:
        automatic: whether commits are followed by cleaning.
        executes: false: the sink requests cleans that are due, and a job of its own carries them out, such as
            `hudistream clean --execute`.
        asynchronous: true: cleaning runs in the background while the stream goes on; false: it runs after the commit,
            before the batch returns.
        at_checkpoint: Flink's switch; false: the sink cleans nothing.
        policy: which versions of files stay.
        commits_retained: commits whose files stay, for KEEP_LATEST_COMMITS.
        versions_retained: versions per file group that stay, for KEEP_LATEST_FILE_VERSIONS.
        hours_retained: hours whose files stay, for KEEP_LATEST_BY_HOURS; in the table's time zone.
        trigger_commits: a clean is due after this many commits; 0: whether or not there was one.
        incremental: whether only partition paths that changed since the last clean are looked at.
        parallelism: files that are deleted at the same time.
        grace_ms: versions stay so long after the commit that superseded them, in milliseconds, whatever the policy
            says, for readers of other engines; 0: no such rule, as in Hudi.
        readers_share: what stays for readers alone (the grace period, and the pins of our own) takes at most this many
            bytes per byte of the largest version of each file group in its partition.
        most_share: a plan that would delete a greater share of the table's bytes is refused; None: no bound.
        most_commits: commits by which one clean moves on from where the last one ended, at most, with the policies that
            know commits; None: no bound.
        partition_pattern: only partition paths are cleaned that match this regular expression as a whole. Without
            `incremental` only, as in Hudi: a clean that looks at changed paths alone never returns to the others.
        partitions: only these partition paths are cleaned, whatever the pattern says; none: all are.
        on_failure: ``warn``; ``pause``: this sink cleans no more; ``fail``: the next batch fails.
    """

    automatic: bool = option(default=True, kind=Flag())
    executes: bool = option(default=True, kind=Flag())
    asynchronous: bool = option(default=True, kind=Flag())
    at_checkpoint: bool = option(default=True, kind=Flag())
    policy: CleanPolicy = option(CleanPolicy.KEEP_LATEST_COMMITS, OneOf(CleanPolicy, what="policy"))
    commits_retained: int = option(10, Whole(1))
    versions_retained: int = option(3, Whole(1))
    hours_retained: int = option(24, Whole(1))
    trigger_commits: int = option(1, Whole(0))
    incremental: bool = option(default=True, kind=Flag())
    parallelism: int = option(8, Whole(1))
    grace_ms: int = option(600_000, Whole(0))
    readers_share: float = option(1.0, Number(0, 1e12))
    most_share: float | None = option(None, Share())
    most_commits: int | None = option(None, Whole(1))
    partition_pattern: str | None = option(None, Text())
    partitions: tuple[str, ...] = option((), Names("partition paths, separated by commas"))
    on_failure: CleanFailure = option(CleanFailure.WARN, OneOf(CleanFailure))

    def _check(self) -> None:
        """Refuses contradicting switches, and a filter of partition paths that is no pattern or would lose paths.

        Off, one switch means cleaning after each commit, the other no cleaning at all.
        """
        self._check_filter()
        if not self.asynchronous and not self.at_checkpoint:
            raise InvalidConfigError(
                "CleanSettings.asynchronous=False and CleanSettings.at_checkpoint=False say different things: off, the "
                "first means cleaning after each commit, and the second none at all; keep one"
            )

    def _check_filter(self) -> None:
        if self.partition_pattern is not None:
            check_pattern("hoodie.clean.partition.filter.regex", self.partition_pattern)
        if self.incremental and (self.partitions or self.partition_pattern is not None):
            name, value = "selected", ",".join(self.partitions)
            if not self.partitions:
                name, value = "regex", str(self.partition_pattern)
            raise InvalidConfigError(
                f"hoodie.clean.partition.filter.{name}={value} needs hoodie.clean.incremental.enabled=false: an "
                "incremental clean looks at changed partition paths alone, and would never return to the others"
            )

    def takes(self, partition_path: str) -> bool:
        """Whether a partition path is cleaned."""
        if self.partitions:
            return partition_path in self.partitions
        return self.partition_pattern is None or re.fullmatch(self.partition_pattern, partition_path) is not None


@dataclass(frozen=True)
class ServiceSettings(Settings):
    """Whether a sink keeps the table in order.

    Attributes:
        enabled: false: after its commits the sink neither cleans, archives nor compacts, and plans nothing of that.
    """

    enabled: bool = option(default=True, kind=Flag())


@dataclass(frozen=True)
class ArchiveSettings(Settings):
    """When instants leave the active timeline (HoodieArchivalConfig).

    Attributes:
        automatic: whether archival runs after commits; independent of cleaning.
        min_commits: commits that stay on the active timeline.
        max_commits: with more commits than this, the oldest are archived.
        batch: instants per block of the archive.
        stops_at_clean: whether commits stay until a clean has passed them: no commit leaves that is not older than the
            earliest one that the last clean retained.
    """

    automatic: bool = option(default=True, kind=Flag())
    min_commits: int = option(20, Whole(1))
    max_commits: int = option(30, Whole(1))
    batch: int = option(10, Whole(1))
    stops_at_clean: bool = option(default=False, kind=Flag())
