"""Which instants leave the active timeline (pure; TimelineArchiverV1)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from table.options.groups import ArchiveSettings
from table.timeline.instant import WRITE_ACTIONS, Action, Instant
from table.timeline.timeline import Timeline


@dataclass(frozen=True)
class ArchivalPlan:
    """What is retired.

    Attributes:
        instants: completed instants, oldest first.
        first_active: the first commit that stays; None where all commits stay as they are.
    """

    instants: tuple[Instant, ...] = ()
    first_active: str | None = None


@dataclass(frozen=True)
class Unseen:
    """Changes that pending writes may not have seen, and will look for before they complete (rule 15 of safety.md).

    Attributes:
        sights: time of a pending write -> the least time of a write that it may not have seen.
        cleans: times of cleans that were completed after the request of a pending write.
    """

    sights: Mapping[str, str] = field(default_factory=dict)
    cleans: frozenset[str] = frozenset()


_BEHIND = 3
_WRITING = WRITE_ACTIONS | {Action.CLUSTERING, Action.COMPACTION, Action.LOG_COMPACTION}


def plan_archival(
    timeline: Timeline, settings: ArchiveSettings, held: Collection[str] = (), unseen: Unseen = Unseen()
) -> ArchivalPlan:
    """What can be retired now.

    If there are more commits than the upper bound, the oldest leave, down to the lower bound. The walk stops at the
    first commit that a savepoint holds, at the first pending service, at the first commit in `held`, and at the last
    commit before the first pending write or compaction: files older than the first commit count as completed. It also
    stops at the last commit before the writes that a pending write has not seen: the pending write looks for conflicts
    there. Cleans and rollbacks leave by the same bounds, each action counted for itself, and only if they are older
    than the first commit that stays (TimelineArchiverV2): to readers of a metadata table, an action that is newer than
    the first commit, and not there, was never completed. Cleans that a pending write may not have seen stay.

    Args:
        timeline: the active one.
        settings: the bounds.
        held: instants that must stay, such as replace commits whose replaced files still exist, the delta commits by
            which the next compaction is due, and what the metadata table has not compacted.
        unseen: what pending writes may not have seen.
    """
    commits = timeline.writes_by_time
    retired: list[Instant] = []
    if len(commits) > settings.max_commits:
        stop = _first_to_stay(timeline, held, unseen)
        for commit in commits[: len(commits) - settings.min_commits]:
            if stop is not None and commit.time >= stop:
                break
            retired.append(commit)
    first = commits[len(retired)].time if retired else None
    start = first or timeline.first_active_time or ""
    for action in (Action.CLEAN, Action.ROLLBACK):
        known = timeline.completed_of(action)
        free = [one for one in known if one.time not in held and not _may_be_unseen(timeline, one, unseen)]
        retired += _surplus(free, settings, start, len(known) - len(free))
    return ArchivalPlan(tuple(sorted(retired, key=lambda instant: instant.time)), first)


def is_far_behind(commits: int, settings: ArchiveSettings) -> bool:
    """Whether the active timeline has so many commits that each batch pays for them.

    Args:
        commits: completed writes on the active timeline.
        settings: the bounds.
    """
    return commits > _BEHIND * settings.max_commits


def _first_to_stay(timeline: Timeline, held: Collection[str], unseen: Unseen) -> str | None:
    pending = [instant for instant in timeline.pending if instant.action is not Action.SAVEPOINT]
    bounds = [_last_before(timeline, i.time) if i.action in _WRITING else i.time for i in pending]
    bounds += [timeline.last_write_until(sight) or sight for sight in unseen.sights.values()]
    bounds += [instant.time for instant in timeline if instant.action is Action.SAVEPOINT]
    bounds += list(held)
    return min(bounds, default=None)


def _last_before(timeline: Timeline, time: str) -> str:
    """The last completed write before a pending one: while it stays, files of the pending one do not count."""
    return max((i.time for i in timeline.completed_writes if i.time < time), default=time)


def _may_be_unseen(timeline: Timeline, done: Instant, unseen: Unseen) -> bool:
    """Whether a pending write may not have seen a clean."""
    if done.action is not Action.CLEAN:
        return False
    if done.time in unseen.cleans:
        return True
    writing = [instant.time for instant in timeline.pending_of(*_WRITING)]
    return any(done.time >= unseen.sights.get(time, _last_before(timeline, time)) for time in writing)


def _surplus(instants: Sequence[Instant], settings: ArchiveSettings, start: str, stays: int = 0) -> list[Instant]:
    """The oldest of the instants that may leave.

    Args:
        instants: of one action, oldest first.
        settings: the bounds.
        start: the first commit that stays.
        stays: number of other instants of the action that stay on the timeline.
    """
    if len(instants) + stays <= settings.max_commits:
        return []
    surplus = instants[: max(0, len(instants) + stays - settings.min_commits)]
    return [instant for instant in surplus if instant.time < start]
