"""Whether a list of files holds all files that readers of a commit need: proven from the records of commits (pure).

A listing alone proves nothing: it does not show a file that a clean deleted before the folder was listed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from table.files.names import parse_base_file, parse_log_file
from table.storage.interface import join
from table.timeline.metadata.commit import NO_PREVIOUS_COMMIT, CommitMetadata

GroupKey = tuple[str, str]


@dataclass
class Needed:
    """What readers of a commit need, as far as the commits of the active timeline say.

    Attributes:
        files: (partition path, file id) to the paths of the files, relative to the table.
        groups: file groups of which readers need an older file, which no commit of the active timeline names.
    """

    files: dict[GroupKey, list[str]] = field(default_factory=dict)
    groups: set[GroupKey] = field(default_factory=set)


def find_needed(commits: Sequence[tuple[str, CommitMetadata]], time: str) -> Needed:
    """What readers of a commit need (pure).

    Args:
        commits: instant time and record of each completed write of the active timeline, oldest first.
        time: the commit's instant time.
    """
    needed = Needed(_named_files([commit for at, commit in commits if at <= time]))
    born = set[GroupKey]()
    for at, commit in commits:
        if at <= time:
            continue
        continued = {(path, file_id) for path, ids in commit.replaced.items() for file_id in ids}
        for stat in commit.stats:
            if stat.prev_commit == at:  # a log file of timeline layout 2: its stat does not say which file it changes
                continue
            if stat.prev_commit != NO_PREVIOUS_COMMIT and stat.prev_commit <= time:
                continued.add((stat.partition_path, stat.file_id))
            elif not commit.compacted:  # the logs that a compaction reads may be older than the commit
                born.add((stat.partition_path, stat.file_id))
        needed.groups |= continued - born - needed.files.keys()
    return needed


def _named_files(commits: Iterable[CommitMetadata]) -> dict[GroupKey, list[str]]:
    """Of each file group the newest base file that the commits name, and the log files they wrote after it."""
    files: dict[GroupKey, list[str]] = {}
    for commit in commits:
        for path, file_ids in commit.replaced.items():
            for file_id in file_ids:
                files.pop((path, file_id), None)
        for stat in commit.stats:
            key, name = (stat.partition_path, stat.file_id), stat.path.rpartition("/")[2]
            is_base = parse_base_file(name) is not None
            if stat.path != join(stat.partition_path, name) or not (is_base or parse_log_file(name)):
                continue  # no reader takes it for a file of the partition path
            if is_base:
                files[key] = []
            files.setdefault(key, []).append(stat.path)
    return files


def find_lacking(needed: Needed, held: Mapping[str, tuple[str, ...]]) -> str | None:
    """In words, a file that readers of the commit need and a savepoint does not hold; None if there is none (pure).

    Args:
        needed: see `find_needed`.
        held: partition path to names of the files that the savepoint holds.
    """
    names = [(path, name) for path, of_path in held.items() for name in of_path]
    paths, newest = {join(path, name) for path, name in names}, _newest_bases(names)
    for key, files in needed.files.items():
        base = parse_base_file(files[0].rpartition("/")[2])
        if base is not None and newest.get(key, "") > base.instant_time:
            continue  # a newer version is held: the record of the commit that wrote it does not name it
        gone = next((file for file in files if file not in paths), None)
        if gone is not None:
            return f"{gone} was deleted"
    parsed = ((path, parse_base_file(name) or parse_log_file(name)) for path, name in names)
    groups = {(path, file.file_id) for path, file in parsed if file is not None}
    group = next((key for key in sorted(needed.groups) if key not in groups), None)
    if group is None:
        return None
    return f"the version of file group {group[1]} in the partition path {group[0]!r} that the commit shows was deleted"


def _newest_bases(names: Iterable[tuple[str, str]]) -> dict[GroupKey, str]:
    """File group -> the instant of its newest base file among files, given as (partition path, name)."""
    newest: dict[GroupKey, str] = {}
    for path, name in names:
        base = parse_base_file(name)
        if base is not None:
            key = (path, base.file_id)
            newest[key] = max(newest.get(key, ""), base.instant_time)
    return newest
