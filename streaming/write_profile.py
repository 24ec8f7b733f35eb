"""What the table's past says about the next batch: record size, small files, rows a partition path (pure).

The profile is a value. Our own commits move it forward (`apply_commit`), so that neither a listing nor
a count is needed for the next batch; a commit of somebody else makes it stale, and it starts anew.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from streaming.bucket_assigner import AssignRules, SmallFile
from table.options import WriteOptions
from table.timeline.commit_metadata import WriteStat

COMMITS_REMEMBERED = 5  # AverageRecordSizeEstimator looks at as many
PATHS_REMEMBERED = 10_000


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
        files: its live base files that are below the limit; empty is an answer, too ("none"); None: not known.
        rows: rows expected in the next batch: each batch counts half of what came before it.
    """

    files: tuple[SmallFile, ...] | None = ()
    rows: float = 0.0


@dataclass(frozen=True)
class WriteProfile:
    """What is known about a table.

    Attributes:
        seen: completed writes it accounts for.
        sizes: newest commits' sizes, newest first.
        paths: partition path -> profile, least recently written first; a path that is not there
            is not known, and its first writer lists it.
        batches: batches that made the expectations; 0 means that nothing is expected.
    """

    seen: frozenset[str] = frozenset()
    sizes: tuple[CommitSize, ...] = ()
    paths: Mapping[str, PathProfile] = field(default_factory=dict)
    batches: int = 0

    def is_stale(self, committed: frozenset[str]) -> bool:
        """Whether the timeline shows a write that the profile does not know, or lacks one it counts on.

        What the archival retired is older than all that is left, and does not matter.
        """
        oldest = min(committed, default="")
        return committed != frozenset(time for time in self.seen if time >= oldest)


def record_size(sizes: Iterable[CommitSize], options: WriteOptions) -> int:
    """Average bytes of a row in a base file.

    Args:
        sizes: of the newest commits, newest first.
        options: with Hudi's threshold set, only commits above it count, footers included
            (AverageRecordSizeEstimator); else every commit counts, footers left out.

    Returns:
        At least 1; the configured estimate where nothing counts.
    """
    threshold = options.record_size_threshold
    total_bytes = rows = 0
    for size in sizes:
        if threshold is not None:
            if size.total_bytes <= threshold * options.small_file_limit_bytes or size.rows == 0:
                continue
            total_bytes += size.total_bytes
        else:
            total_bytes += max(0, size.total_bytes - size.footer_bytes)
        rows += size.rows
    return max(1, total_bytes // rows) if rows else options.record_size_estimate_bytes


def assign_rules(profile: WriteProfile, options: WriteOptions) -> AssignRules:
    """Sizes for the next batch."""
    return AssignRules(
        options.max_file_size_bytes,
        options.small_file_limit_bytes,
        record_size(profile.sizes, options),
        options.rows_per_new_file,
    )


def commit_size(stats: Iterable[WriteStat], footer_bytes: int = 0) -> CommitSize:
    """Size of one commit."""
    listed = list(stats)
    return CommitSize(
        sum(stat.total_write_bytes for stat in listed), sum(stat.num_writes for stat in listed), footer_bytes
    )


def fresh_profile(committed: frozenset[str], sizes: Iterable[CommitSize]) -> WriteProfile:
    """A profile that knows sizes and nothing about any path: after a start, or somebody else's commit."""
    return WriteProfile(committed, tuple(sizes)[:COMMITS_REMEMBERED])


def apply_commit(
    profile: WriteProfile,
    instant_time: str,
    stats: Iterable[WriteStat],
    footer_bytes: int,
    listed: Mapping[str, tuple[SmallFile, ...]],
    small_file_limit_bytes: int,
) -> WriteProfile:
    """The profile after one of our own commits.

    Args:
        profile: before it.
        instant_time: the commit.
        stats: files it wrote.
        footer_bytes: of all these files together.
        listed: live files of the paths that the workers saw for the first time, as they were before.
        small_file_limit_bytes: larger files are forgotten.
    """
    written = list(stats)
    files: dict[str, dict[str, SmallFile] | None] = {}
    rows: dict[str, int] = {}
    for path, found in listed.items():
        files[path] = {file.file_id: file for file in found}
    for stat in written:
        path = stat.partition_path
        if path not in files:
            before = profile.paths.get(path, PathProfile(None)).files
            files[path] = None if before is None else {file.file_id: file for file in before}
        known_files = files[path]
        if known_files is not None:
            name = stat.path.rsplit("/", 1)[-1]
            known_files[stat.file_id] = SmallFile(stat.file_id, name, stat.file_size_bytes)
        rows[path] = rows.get(path, 0) + stat.num_inserts + stat.num_update_writes + stat.num_deletes
    first = profile.batches == 0
    paths = {path: replace(known, rows=known.rows / 2) for path, known in profile.paths.items() if path not in files}
    for path, by_id in files.items():
        known = profile.paths.get(path)
        arrived = float(rows.get(path, 0))
        expected = arrived if first or known is None else (known.rows + arrived) / 2
        small = None
        if by_id is not None:
            small = tuple(file for file in by_id.values() if file.size_bytes < small_file_limit_bytes)
        paths[path] = PathProfile(small, expected)
    for path in list(paths)[: max(0, len(paths) - PATHS_REMEMBERED)]:
        del paths[path]
    sizes = (commit_size(written, footer_bytes), *profile.sizes)[:COMMITS_REMEMBERED]
    return WriteProfile(profile.seen | {instant_time}, sizes, paths, profile.batches + 1)
