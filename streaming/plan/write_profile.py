"""What the table's past says about the next batch: record size, live files, rows a partition path (pure).

The profile is a value. Our own commits move it forward (`apply_commit`), so that neither a listing nor
a count is needed for the next batch; a commit of somebody else makes it stale, and it starts anew.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from streaming.plan.bucket_assigner import AssignRules, LiveFile
from streaming.plan.live_files import LiveFiles
from table.options.write_options import WriteOptions
from table.timeline.metadata.commit import WriteStat

RECORD_BYTES = 1024  # of a row of which nothing is known (hoodie.copyonwrite.record.size.estimate)
COMMITS_REMEMBERED = 5  # AverageRecordSizeEstimator looks at as many
PATHS_REMEMBERED = 10_000
FILES_REMEMBERED = 100_000  # 30 MB on the driver; a global index sends them all, which is a plan of 4 MB
FILES_SENT = 20_000  # by the other indexes: up to a megabyte Spark sends a plan along with each task


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
        files: its live base files, or those of them that are below the limit; empty is an answer, too ("none");
            None: not known.
        rows: rows expected in the next batch: each batch counts half of what came before it.
    """

    files: tuple[LiveFile, ...] | None = ()
    rows: float = 0.0


@dataclass(frozen=True)
class WriteProfile:
    """What is known about a table.

    Attributes:
        seen: completed writes it accounts for.
        sizes: newest commits' sizes, newest first.
        paths: partition path -> profile, least recently written first; a path that is not there
            is not known, and its first writer lists it, unless `has_all_paths`.
        batches: batches that made the expectations; 0 means that nothing is expected.
        has_all_paths: whether a path that is not there has no live file.
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

    def is_stale(self, committed: frozenset[str]) -> bool:
        """Whether the timeline shows a write that the profile does not know, or lacks one it counts on.

        What the archival retired is older than all that is left, and does not matter.
        """
        oldest = min(committed, default="")
        return committed != frozenset(time for time in self.seen if time >= oldest)


def record_size(sizes: Iterable[CommitSize], options: WriteOptions) -> int | None:
    """Average bytes of a row in a base file.

    Args:
        sizes: of the newest commits, newest first.
        options: with Hudi's threshold set, only commits above it count, footers included
            (AverageRecordSizeEstimator); else every commit counts, footers left out.

    Returns:
        At least 1; None where nothing counts.
    """
    threshold = options.sizes.record_size_threshold
    total_bytes = rows = 0
    for size in sizes:
        if threshold is not None:
            if size.total_bytes <= threshold * options.sizes.small_file_limit_bytes or size.rows == 0:
                continue
            total_bytes += size.total_bytes
        else:
            total_bytes += max(0, size.total_bytes - size.footer_bytes)
        rows += size.rows
    return max(1, total_bytes // rows) if rows else None


def assign_rules(profile: WriteProfile, options: WriteOptions) -> AssignRules:
    """Sizes for the next batch."""
    sizes, learned = options.sizes, record_size(profile.sizes, options)
    # who says how large rows are, or wants Hudi's rule, gets the sizes that follow from it
    is_fixed = sizes.record_bytes_estimate is not None or sizes.record_size_threshold is not None
    return AssignRules(
        sizes.max_file_bytes,
        sizes.small_file_limit_bytes,
        learned or sizes.record_bytes_estimate or RECORD_BYTES,
        sizes.rows_per_new_file,
        is_guess=learned is None and not is_fixed,
    )


def commit_size(stats: Iterable[WriteStat], footer_bytes: int = 0) -> CommitSize:
    """Size of one commit."""
    listed = list(stats)
    return CommitSize(
        sum(stat.total_write_bytes for stat in listed), sum(stat.num_writes for stat in listed), footer_bytes
    )


def fresh_profile(
    committed: frozenset[str],
    sizes: Iterable[CommitSize],
    live: Mapping[str, tuple[LiveFile, ...]] | None = None,
) -> WriteProfile:
    """The profile after a start, or somebody else's commit.

    Args:
        committed: completed writes of the active timeline; none means that no path has a file.
        sizes: of the newest commits, newest first.
        live: files of every path of the table; None: nothing is known about any path.
    """
    paths = {path: PathProfile(files) for path, files in (live or {}).items()}
    knows = live is not None or not committed
    return WriteProfile(committed, tuple(sizes)[:COMMITS_REMEMBERED], paths, has_all_paths=knows)


def sent_files(profile: WriteProfile, most: int) -> LiveFiles:
    """What the tasks of a batch get to know: the files of the paths written last, which are the ones expected.

    Args:
        profile: what is known.
        most: files; a path that has more than are left is listed by whoever gets rows for it.
    """
    sent: dict[str, tuple[LiveFile, ...]] = {}
    known = {path: of_path.files for path, of_path in profile.paths.items() if of_path.files is not None}
    for path in reversed(known):
        if len(known[path]) <= most:
            sent[path] = known[path]
            most -= len(known[path])
    return LiveFiles(sent, is_complete=profile.is_complete and len(sent) == len(known))


def learn_listed(
    profile: WriteProfile, listed: Mapping[str, tuple[LiveFile, ...]], limit_bytes: int | None
) -> WriteProfile:
    """The profile after a batch that wrote nothing, but listed paths; the arguments are those of `apply_commit`."""
    paths = dict(profile.paths)
    for path, found in listed.items():
        paths[path] = PathProfile(_below(found, limit_bytes), paths[path].rows if path in paths else 0.0)
    return _within_bounds(replace(profile, paths=paths))


def apply_commit(
    profile: WriteProfile,
    instant_time: str,
    stats: Iterable[WriteStat],
    footer_bytes: int,
    listed: Mapping[str, tuple[LiveFile, ...]],
    limit_bytes: int | None,
) -> WriteProfile:
    """The profile after one of our own commits.

    Args:
        profile: before it.
        instant_time: the commit.
        stats: files it wrote.
        footer_bytes: of all these files together.
        listed: live files of the paths that the workers saw for the first time, as they were before.
        limit_bytes: larger files are forgotten; None: none are.
    """
    written = list(stats)
    files: dict[str, dict[str, LiveFile] | None] = {}
    rows: dict[str, int] = {}
    for path, found in listed.items():
        files[path] = {file.file_id: file for file in found}
    for stat in written:
        path = stat.partition_path
        if path not in files:
            before = _files_before(profile, path)
            files[path] = None if before is None else {file.file_id: file for file in before}
        known_files = files[path]
        if known_files is not None:
            name = stat.path.rsplit("/", 1)[-1]
            known_files[stat.file_id] = LiveFile(stat.file_id, name, stat.file_size_bytes)
        rows[path] = rows.get(path, 0) + stat.num_inserts + stat.num_update_writes + stat.num_deletes
    first = profile.batches == 0
    paths = {path: replace(known, rows=known.rows / 2) for path, known in profile.paths.items() if path not in files}
    for path, by_id in files.items():
        known = profile.paths.get(path)
        arrived = float(rows.get(path, 0))
        expected = arrived if first or known is None or not known.rows else (known.rows + arrived) / 2
        paths[path] = PathProfile(None if by_id is None else _below(by_id.values(), limit_bytes), expected)
    sizes = (commit_size(written, footer_bytes), *profile.sizes)[:COMMITS_REMEMBERED]
    seen = profile.seen | {instant_time}
    return _within_bounds(WriteProfile(seen, sizes, paths, profile.batches + 1, profile.has_all_paths))


def _files_before(profile: WriteProfile, path: str) -> tuple[LiveFile, ...] | None:
    known = profile.paths.get(path)
    if known is None:
        return () if profile.has_all_paths else None
    return known.files


def _below(files: Iterable[LiveFile], limit_bytes: int | None) -> tuple[LiveFile, ...]:
    return tuple(file for file in files if limit_bytes is None or file.size_bytes < limit_bytes)


def _within_bounds(profile: WriteProfile) -> WriteProfile:
    """Forgets paths, and the files of paths, that are too many: those written least recently."""
    surplus = max(0, len(profile.paths) - PATHS_REMEMBERED)
    paths = dict(list(profile.paths.items())[surplus:])
    left = FILES_REMEMBERED
    for path in reversed(list(paths)):
        known = paths[path]
        if known.files is None:
            continue
        if len(known.files) > left:
            paths[path] = replace(known, files=None)
        else:
            left -= len(known.files)
    return replace(profile, paths=paths, has_all_paths=profile.has_all_paths and not surplus)
