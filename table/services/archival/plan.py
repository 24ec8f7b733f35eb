"""Which instants leave the active timeline (pure; TimelineArchiverV1)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

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


_WRITING = WRITE_ACTIONS | {Action.COMPACTION, Action.LOG_COMPACTION}


def plan_archival(timeline: Timeline, settings: ArchiveSettings, held: Collection[str] = ()) -> ArchivalPlan:
    """What can be retired now.

    Commits go when there are more than the most, down to the least, oldest first. The walk stops at the first that a
    savepoint holds, at the first pending service, at the first that is held, and at the last commit before the first
    pending write or compaction: what is older than the first commit counts as completed. Cleans and rollbacks go by the
    same bounds, each action counted for itself; of the rollbacks only those that are older than the first commit that
    stays.

    Args:
        timeline: the active one.
        settings: the bounds.
        held: instants that must not leave: replace commits whose replaced files are still there, for one; the delta
            commits by which the next compaction is due.
    """
    commits = timeline.completed_writes
    retired: list[Instant] = []
    if len(commits) > settings.max_commits:
        stop = _first_to_stay(timeline, held)
        for commit in commits[: len(commits) - settings.min_commits]:
            if stop is not None and commit.time >= stop:
                break
            retired.append(commit)
    first = commits[len(retired)].time if retired else None
    start = first or timeline.first_active_time or ""
    for action in (Action.CLEAN, Action.ROLLBACK):
        retired += _surplus(timeline.completed_of(action), settings, start)
    return ArchivalPlan(tuple(sorted(retired, key=lambda instant: instant.time)), first)


def _first_to_stay(timeline: Timeline, held: Collection[str]) -> str | None:
    pending = [instant for instant in timeline.pending if instant.action is not Action.SAVEPOINT]
    bounds = [_last_before(timeline, i.time) if i.action in _WRITING else i.time for i in pending]
    bounds += [instant.time for instant in timeline if instant.action is Action.SAVEPOINT]
    bounds += list(held)
    return min(bounds, default=None)


def _last_before(timeline: Timeline, time: str) -> str:
    """The last completed write before a pending one: while it stays, files of the pending one do not count."""
    return max((i.time for i in timeline.completed_writes if i.time < time), default=time)


def _surplus(instants: Sequence[Instant], settings: ArchiveSettings, start: str) -> list[Instant]:
    if len(instants) <= settings.max_commits:
        return []
    surplus = instants[: len(instants) - settings.min_commits]
    return [instant for instant in surplus if instant.action is not Action.ROLLBACK or instant.time < start]
