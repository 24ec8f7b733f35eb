"""The write profile of a table: record size, live files, and rows expected per partition path (pure).

The profile is a value. Our own commits are applied to it (`apply_commit`), so the next batch needs neither a listing
nor a count. Commits of other writers are applied, too (`apply_foreign_commit`), if their write stats say which files
changed. If they do not, the profile is built again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from streaming.plan.bucket_assigner import AssignRules
from streaming.plan.live_files import LiveFiles
from table.files.bloom.bloom_filter import filter_bytes_per_key
from table.files.names import BASE_FILE_EXTENSION, parse_base_file, parse_log_file
from table.options.write_options import WriteOptions
from table.storage.interface import join
from table.timeline.change import Change
from table.timeline.instant import Action, Instant
from table.timeline.metadata.commit import CommitMetadata, WriteStat
from table.view.file_group import BaseFile, base_file_of

RECORD_BYTES = 1024  # assumed row size where none is known (hoodie.copyonwrite.record.size.estimate)
COMMITS_REMEMBERED = 5  # AverageRecordSizeEstimator looks at as many
PATHS_REMEMBERED = 50_000
FILES_REMEMBERED = 250_000  # 80 MB on the driver; a global index sends them all, in a plan of 10 MB
# operations (WriteOperationType) whose write stats and replaced file groups describe every change; clustering,
# compaction and bootstrap are not among them
UNDERSTOOD_OPERATIONS = frozenset(
    {
        "INSERT",
        "INSERT_PREPPED",
        "UPSERT",
        "UPSERT_PREPPED",
        "BULK_INSERT",
        "BULK_INSERT_PREPPED",
        "DELETE",
        "DELETE_PREPPED",
        "INSERT_OVERWRITE",
        "INSERT_OVERWRITE_TABLE",
        "DELETE_PARTITION",
    }
)
FILES_SENT = 20_000  # limit for the other indexes: Spark sends a plan of up to one megabyte along with each task


@dataclass(frozen=True, slots=True)
class CommitSize:
    """Bytes and rows of one commit's base files, and how many of the bytes are footers."""

    total_bytes: int
    rows: int
    footer_bytes: int = 0


@dataclass(frozen=True)
class PathProfile:
    """One partition path.

    Attributes:
        files: its live base files, or only the files below the size limit; empty: the path has none; None: not known.
        rows: rows expected in the next batch: a moving average, in which each batch halves the weight of earlier ones.
        share: share of the batches that write the path, averaged in the same way: 1 if all recent batches did.
    """

    files: tuple[BaseFile, ...] | None = ()
    rows: float = 0.0
    share: float = 0.0


@dataclass(frozen=True)
class WriteProfile:
    """The write profile of a table.

    Attributes:
        seen: completed writes that the profile includes.
        sizes: sizes of the newest commits, newest first.
        paths: partition path -> profile, least recently written first. Unless `has_all_paths`, a path that is missing
            here is unknown, and the first task that writes it lists it.
        batches: batches from which the expected rows were learned; 0: no rows are expected.
        has_all_paths: whether a path that is missing in `paths` has no live file.
    """

    seen: frozenset[str] = frozenset()
    sizes: tuple[CommitSize, ...] = ()
    paths: Mapping[str, PathProfile] = field(default_factory=dict)
    batches: int = 0
    has_all_paths: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether the files of every path of the table are known."""
        return self.has_all_paths and all(known.files is not None for known in self.paths.values())

    def find_unseen(self, committed: frozenset[str], *, in_order: bool = True) -> frozenset[str] | None:
        """The completed writes that the profile does not include yet.

        Args:
            committed: completed writes of the active timeline.
            in_order: whether writes complete in the order of their instant times. With several writers they may not.
                Two writes that ran at the same time have no file group in common, so either may be applied first.

        Returns:
            None where the profile has to be built again: a write that it includes was undone, writes may have come and
            gone, or, if `in_order`, a write came late. Archived writes do not matter.
        """
        change = Change.between(self.seen, committed)
        if change.undone or (change.came and not change.is_gapless) or (in_order and change.late):
            return None
        return change.came


def record_size(sizes: Iterable[CommitSize], options: WriteOptions) -> int | None:
    """Average bytes of a row in a base file.

    Args:
        sizes: of the newest commits, newest first.
        options: with Hudi's threshold set, only commits above it count, footers included (AverageRecordSizeEstimator).
            Else every commit counts, and footers do not, except the bloom filter, which grows with the rows. It counts
            with its bytes per key in a full file.

    Returns:
        Rounded up, at least 1; None where no commit counts.
    """
    threshold = options.sizes.record_size_threshold
    filter_bytes = filter_bytes_per_key(options.file_settings)
    total_bytes = rows = 0
    for size in sizes:
        if threshold is not None:
            if size.total_bytes <= threshold * options.sizes.small_file_limit_bytes or size.rows == 0:
                continue
            total_bytes += size.total_bytes
        else:
            growing = min(size.footer_bytes, int(size.rows * filter_bytes))
            total_bytes += max(0, size.total_bytes - size.footer_bytes) + growing
        rows += size.rows
    return max(1, -(-total_bytes // rows)) if rows else None


def assign_rules(profile: WriteProfile, options: WriteOptions) -> AssignRules:
    """Sizes for the next batch."""
    sizes, learned = options.sizes, record_size(profile.sizes, options)
    # if the options give a row size or Hudi's threshold, tasks do not measure
    is_fixed = sizes.record_bytes_estimate is not None or sizes.record_size_threshold is not None
    return AssignRules(
        sizes.max_file_bytes,
        sizes.small_file_limit_bytes,
        learned or sizes.record_bytes_estimate or RECORD_BYTES,
        sizes.rows_per_new_file,
        is_guess=learned is None and not is_fixed,
    )


def is_log_file(stat: WriteStat) -> bool:
    """Whether a write stat describes a log file."""
    return parse_log_file(stat.path.rsplit("/", 1)[-1]) is not None


def base_file_stats(stats: Iterable[WriteStat]) -> list[WriteStat]:
    """The write stats that describe base files."""
    return [stat for stat in stats if not is_log_file(stat)]


def commit_size(stats: Iterable[WriteStat], footer_bytes: int = 0) -> CommitSize:
    """Size of one commit's base files."""
    listed = base_file_stats(stats)
    return CommitSize(
        sum(stat.total_write_bytes for stat in listed), sum(stat.num_writes for stat in listed), footer_bytes
    )


def fresh_profile(
    committed: frozenset[str],
    sizes: Iterable[CommitSize],
    live: Mapping[str, tuple[BaseFile, ...] | None] | None = None,
) -> WriteProfile:
    """A new profile, after a start or after a commit of another writer that cannot be applied.

    Args:
        committed: completed writes of the active timeline; if there are none, no path has a file.
        sizes: of the newest commits, newest first.
        live: files of every path of the table, None for a path with log files; None: no path is known.
    """
    paths = {path: PathProfile(files) for path, files in (live or {}).items()}
    knows = live is not None or not committed
    return WriteProfile(committed, tuple(sizes)[:COMMITS_REMEMBERED], paths, has_all_paths=knows)


def sent_files(profile: WriteProfile, most: int) -> LiveFiles:
    """The files that are sent to tasks: of the paths written last, which the next batch will probably write.

    Args:
        profile: the write profile.
        most: the largest number of files. If a path does not fit, the task that gets rows for it lists it.
    """
    known = {path: of_path.files for path, of_path in profile.paths.items() if of_path.files is not None}
    return last_written(known, most, is_complete=profile.is_complete)


def last_written(known: dict[str, tuple[BaseFile, ...]], most: int, *, is_complete: bool) -> LiveFiles:
    """The files of the paths that were written last, at most so many. A path is there with all of them, or not at all.

    Args:
        known: files by partition path, the path that was written last at the end.
        most: the largest number of files.
        is_complete: whether a path that is not among the known ones is new.
    """
    sent: dict[str, tuple[BaseFile, ...]] = {}
    for path in reversed(known):
        if len(known[path]) <= most:
            sent[path] = known[path]
            most -= len(known[path])
    return LiveFiles(sent, is_complete=is_complete and len(sent) == len(known))


def learn_listed(
    profile: WriteProfile, listed: Mapping[str, tuple[BaseFile, ...]], limit_bytes: int | None
) -> WriteProfile:
    """The profile after a batch that wrote nothing, but listed paths; the arguments are those of `apply_commit`."""
    paths = dict(profile.paths)
    for path, found in listed.items():
        paths[path] = replace(paths.get(path, PathProfile()), files=_below(found, limit_bytes))
    return _within_bounds(replace(profile, paths=paths))


def apply_commit(
    profile: WriteProfile,
    instant_time: str,
    stats: Iterable[WriteStat],
    footer_bytes: int,
    listed: Mapping[str, tuple[BaseFile, ...]],
    limit_bytes: int | None,
) -> WriteProfile:
    """The profile after one of our own commits.

    Args:
        profile: before it.
        instant_time: the commit.
        stats: files it wrote.
        footer_bytes: of all these files together.
        listed: live files, before this commit, of the paths that the workers had to list.
        limit_bytes: larger files are forgotten; None: none are.
    """
    written = list(stats)
    files: dict[str, dict[str, BaseFile] | None] = {}
    rows: dict[str, int] = {}
    for path, found in listed.items():
        files[path] = {file.file_id: file for file in found}
    for stat in written:
        path = stat.partition_path
        if path not in files:
            before = _files_before(profile, path)
            files[path] = None if before is None else {file.file_id: file for file in before}
        known_files = files[path]
        if is_log_file(stat):
            files[path] = None  # the next task that writes there lists the log files
        elif known_files is not None:
            known_files[stat.file_id] = _written_file(stat)
        rows[path] = rows.get(path, 0) + stat.num_inserts + stat.num_update_writes + stat.num_deletes
    first = profile.batches == 0
    paths = {
        path: replace(known, rows=known.rows / 2, share=known.share / 2)
        for path, known in profile.paths.items()
        if path not in files
    }
    for path, by_id in files.items():
        known = profile.paths.get(path, PathProfile())
        arrived = float(rows.get(path, 0))
        is_new = first or not known.rows
        expected = arrived if is_new else (known.rows + arrived) / 2
        written_now = float(path in rows)
        share = written_now if is_new else (known.share + written_now) / 2
        paths[path] = PathProfile(None if by_id is None else _below(by_id.values(), limit_bytes), expected, share)
    sizes = profile.sizes
    if not written or base_file_stats(written):
        sizes = (commit_size(written, footer_bytes), *sizes)[:COMMITS_REMEMBERED]
    seen = profile.seen | {instant_time}
    return _within_bounds(WriteProfile(seen, sizes, paths, profile.batches + 1, profile.has_all_paths))


def is_understood(instant: Instant, metadata: CommitMetadata) -> bool:
    """Whether the metadata of another writer's commit describes every change of base files.

    Args:
        instant: the completed commit.
        metadata: its metadata.
    """
    if instant.action not in (Action.COMMIT, Action.REPLACE_COMMIT):
        return False  # delta commits write log files
    written = frozenset((stat.partition_path, stat.file_id) for stat in metadata.stats)
    replaced = frozenset((path, file_id) for path, file_ids in metadata.replaced.items() for file_id in file_ids)
    return (
        metadata.operation in UNDERSTOOD_OPERATIONS
        and not written & replaced
        and all(_names_base_file(stat, instant.time) for stat in metadata.stats)
    )


def _names_base_file(stat: WriteStat, time: str) -> bool:
    """Whether a write stat describes a base file of that instant and has its size."""
    name = parse_base_file(stat.path.rsplit("/", 1)[-1])
    return (
        name is not None
        and (name.file_id, name.instant_time, name.extension) == (stat.file_id, time, BASE_FILE_EXTENSION)
        and stat.path == join(stat.partition_path, str(name))
        and stat.file_size_bytes > 0
    )


def apply_foreign_commit(
    profile: WriteProfile, instant: Instant, metadata: CommitMetadata, footer_bytes: int, limit_bytes: int | None
) -> WriteProfile:
    """The profile after a commit of another writer, or of another operation of the same sink.

    The expected rows stay as they are: the writes of others say nothing about our next batch.

    Args:
        profile: before it.
        instant: the commit; `is_understood`.
        metadata: its metadata.
        footer_bytes: footers of the files that it wrote, together.
        limit_bytes: larger files are forgotten; None: none are.
    """
    written: dict[str, list[WriteStat]] = {path: [] for path in metadata.replaced}
    for stat in metadata.stats:
        written.setdefault(stat.partition_path, []).append(stat)
    paths = dict(profile.paths)
    for path, stats in written.items():
        before = _files_before(profile, path)
        if before is None:
            continue  # an unknown path stays unknown
        replaced = frozenset(metadata.replaced.get(path, ()))
        files = {file.file_id: file for file in before if file.file_id not in replaced}
        files.update((stat.file_id, _written_file(stat)) for stat in stats if _is_newer(stat, files.get(stat.file_id)))
        paths[path] = replace(paths.get(path, PathProfile()), files=_below(files.values(), limit_bytes))
    sizes = profile.sizes
    if metadata.stats and instant.action is Action.COMMIT:
        sizes = (commit_size(metadata.stats, footer_bytes), *sizes)[:COMMITS_REMEMBERED]
    seen = profile.seen | {instant.time}
    return _within_bounds(replace(profile, seen=seen, sizes=sizes, paths=paths))


def _files_before(profile: WriteProfile, path: str) -> tuple[BaseFile, ...] | None:
    known = profile.paths.get(path)
    if known is None:
        return () if profile.has_all_paths else None
    return known.files


def _is_newer(stat: WriteStat, known: BaseFile | None) -> bool:
    """Whether a write stat describes a later version of a file group than the known one."""
    if known is None:
        return True
    return _written_file(stat).instant_time >= known.instant_time


def _written_file(stat: WriteStat) -> BaseFile:
    return base_file_of(stat.partition_path, stat.path.rsplit("/", 1)[-1], stat.file_size_bytes)


def _below(files: Iterable[BaseFile], limit_bytes: int | None) -> tuple[BaseFile, ...]:
    return tuple(file for file in files if limit_bytes is None or file.size_bytes < limit_bytes)


def _within_bounds(profile: WriteProfile) -> WriteProfile:
    """Forgets the least recently written paths, and files of paths, that exceed the limits."""
    surplus = max(0, len(profile.paths) - PATHS_REMEMBERED)
    paths = dict(list(profile.paths.items())[surplus:])
    free = FILES_REMEMBERED
    for path in reversed(list(paths)):
        known = paths[path]
        if known.files is None:
            continue
        if len(known.files) > free:
            paths[path] = replace(known, files=None)
        else:
            free -= len(known.files)
    return replace(profile, paths=paths, has_all_paths=profile.has_all_paths and not surplus)
