"""The steps of a change feed: ranges of commits, and the file groups that their commits touched.

A feed reads one step for the whole range, or one for each commit. What a step needs is known from the commits alone:
the groups that they wrote or replaced. Compactions and clusterings change no rows. But a clustering carries rows from
group to group, so its groups belong together where another commit of the step touched one of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from table.errors import CorruptFileError, InvalidConfigError
from table.hudi_table import HudiTable
from table.references.undone import load_undone_times
from table.scan.as_of import AsOf, check_kept, load_range, since_time
from table.scan.change_range import EARLIEST
from table.scan.feed.choices import FeedChoices
from table.snapshot import SERVICE_OPERATIONS, Snapshot
from table.timeline.instant import Action, Instant
from table.timeline.metadata.commit import CommitMetadata

Group = tuple[str, str]  # partition path, file id


@dataclass(frozen=True)
class Step:
    """A range of commits.

    Attributes:
        since: a time as in `Timeline.visible_times`; exclusive.
        until: inclusive.
        commits: the commits of the range with what they did, in the order in which they became visible.
        is_whole: whether the range has all commits of the table, so that every row is an insert; no commit is given.
    """

    since: str
    until: str
    commits: tuple[tuple[Instant, CommitMetadata], ...] = ()
    is_whole: bool = False

    @property
    def written(self) -> frozenset[str]:
        """Request times of the commits that changed rows."""
        return frozenset(instant.time for instant, commit in self.commits if changes_rows(commit))

    @property
    def paths(self) -> frozenset[str]:
        """The files that the commits wrote."""
        return frozenset(stat.path for _, commit in self.commits for stat in commit.stats)

    @property
    def touched(self) -> Mapping[Group, str]:
        """The file groups that hold all changed rows before and after, and the last commit that changed each."""
        found: dict[Group, str] = {}
        for instant, commit in self.commits:
            if changes_rows(commit):
                found.update(dict.fromkeys(commit.file_groups, instant.time))
        linked = [groups for _, commit in self.commits for groups in _carried(commit)]
        while any(_join(found, groups) for groups in linked):
            pass
        return found


def changes_rows(commit: CommitMetadata) -> bool:
    """Whether a commit changed rows: it is no compaction and no clustering."""
    return not commit.compacted and commit.operation not in SERVICE_OPERATIONS


def _carried(commit: CommitMetadata) -> Iterable[frozenset[Group]]:
    """Groups between which a clustering carried rows, for each partition path."""
    if changes_rows(commit) or not commit.replaced:
        return
    for path in {path for path, _ in commit.file_groups}:
        yield frozenset(group for group in commit.file_groups if group[0] == path)


def _join(found: dict[Group, str], groups: frozenset[Group]) -> bool:
    """Adds groups to those found, if one of them is found. Returns whether anything changed."""
    known = [found[group] for group in groups if group in found]
    if not known or all(found.get(group) == max(known) for group in groups):
        return False
    found.update(dict.fromkeys(groups, max(known)))
    return True


def load_steps(
    table: HudiTable, since: AsOf, until: AsOf | None, choices: FeedChoices
) -> tuple[Snapshot, tuple[Step, ...]]:
    """The newest snapshot, and the steps of a feed over a range, oldest first.

    Args:
        since: as in `table.scan.as_of.load_changes`.
        until: as in `table.scan.as_of.load_changes`.
        choices: what the feed shows.

    Raises:
        InvalidConfigError: the start, the end or, for a feed of each commit, a commit between them cannot be read any
            more; the error names the first one that can. Or commits that were visible at the start were undone since.
            Or as `load_changes`.
        CorruptFileError: a commit of the range is damaged.
        UnsupportedTableError: the table version is not supported.
    """
    snapshot, chosen, asked = load_range(table, since, until)
    if chosen is None:
        first = since_time(since, table.config.timezone)
        if first != EARLIEST:  # the only commits may have been undone
            _check_not_undone(snapshot, first, asked)
        return snapshot, ()
    timeline = snapshot.timeline
    start = _start_of(snapshot, chosen.since)
    writes = timeline.writes_between(start, chosen.until)
    bounds = [timeline.visible_times[write.time] for write in writes] if choices.each_commit else [chosen.until]
    if chosen.since != EARLIEST:  # also where nothing older is left: what was undone may have been all there was
        _check_not_undone(snapshot, chosen.since, asked)
    if start != EARLIEST:
        check_kept(snapshot, asked, [start])
    if choices.each_commit:
        if start == EARLIEST:
            _check_whole(snapshot, asked)
        check_kept(snapshot, asked, bounds)
    if start == EARLIEST and not choices.each_commit:
        return snapshot, (Step(start, chosen.until, is_whole=True),)
    commits = [(write, _read(snapshot, write)) for write in writes]
    if not choices.each_commit:
        return snapshot, (Step(start, chosen.until, tuple(commits)),)
    begins = [start, *bounds][: len(bounds)]
    steps = (Step(first, last, (commit,)) for first, last, commit in zip(begins, bounds, commits, strict=True))
    return snapshot, tuple(step for step in steps if step.written)


def _read(snapshot: Snapshot, write: Instant) -> CommitMetadata:
    commit = snapshot.commits.read(write)
    if commit.is_empty:
        raise CorruptFileError(
            f"{write.path} is empty, so the file groups that it wrote are not known: give a since after it, and read "
            "the table anew"
        )
    return commit


def _start_of(snapshot: Snapshot, since: str) -> str:
    """The start of a range: a time before the first commit of all is the same as the earliest."""
    first = min(snapshot.timeline.visible_times.values(), default=None)
    is_before = since != EARLIEST and first is not None and since < first
    return EARLIEST if is_before and not _has_archived(snapshot) else since


def _has_archived(snapshot: Snapshot) -> bool:
    """Whether commits were archived. One file of the archive is read where it has some."""
    return any(commits for commits in snapshot.table.archived_timeline.read_files())


def _check_whole(snapshot: Snapshot, asked: str) -> None:
    """Refuses each commit from the earliest on where the first ones were archived."""
    if _has_archived(snapshot):
        first = min(snapshot.timeline.visible_times.values())
        raise InvalidConfigError(
            f"{asked}: the first commits were archived, so the change of each cannot be computed; give a since from "
            f"{first} on, or leave each_commit out: from the earliest on each row is an insert then"
        )


def _check_not_undone(snapshot: Snapshot, since: str, asked: str) -> None:
    """Refuses a start after which a commit was undone that was visible there.

    Where the start is the time of a commit that is still there, everything that was visible with it is: rollbacks undo
    the newest commit first. A restore undoes what was requested after the savepoint: among commits that are ordered by
    their completion, one that was completed earlier.
    """
    timeline = snapshot.timeline
    seen = timeline.visible_times.values()
    is_there = since in seen
    if is_there and not snapshot.layout.completes_in_order:
        return
    undoing = (Action.RESTORE,) if is_there else (Action.ROLLBACK, Action.RESTORE)
    for instant in timeline:
        if instant.action not in undoing or instant.time <= since:
            continue
        undone = [time for time in load_undone_times(snapshot, instant) if time <= since]
        if undone:
            last = max((time for time in seen if time < min(undone)), default="earliest")
            raise InvalidConfigError(
                f"{asked}: the {instant.action.value} {instant.time} undid {_named(undone)}, which a reader of that "
                f"time may have seen, and a change feed does not take it back: give since={last!r} if you have read no "
                "further, or read the table anew from 'earliest' on"
            )


def _named(times: Sequence[str]) -> str:
    more = f" and {len(times) - 1} more commits" if len(times) > 1 else ""
    return f"the commit {max(times)}{more}"
