"""Archival: instants go to the archive, then their files are deleted (TimelineArchiverV1).

An instant is in the archive before any of its files is deleted. Its completed file is deleted last: half an instant
would look like a write that failed. A crash in between leaves an instant in both places; the next run retires it again,
and readers of the archive take it once.

Archival is a writer: it moves the line below which files count as committed, and deletes files that no commit names.
So one archival runs at a time (`turn`), it deletes only what the records that it has read prove (`retired`), and a plan
that is outdated is made anew.
"""

from contextlib import nullcontext, suppress
from dataclasses import dataclass

from table.config.writable import check_version_written
from table.errors import TimelineMovedError
from table.hudi_table import HudiTable
from table.log import get_logger
from table.metadata_table.compact import find_unmerged
from table.options.choices import TableType
from table.options.groups import ArchiveSettings, CleanSettings, CompactionSettings
from table.services.archival.carried import find_uncarried
from table.services.archival.leftovers import delete_leftovers, find_held
from table.services.archival.plan import ArchivalPlan, plan_archival
from table.services.archival.retired import Retired, read_retired
from table.services.archival.turn import Turn, hold_turn
from table.services.archival.unseen import load_unseen
from table.services.clean.memory import CleanerMemory
from table.services.compaction.due import first_that_counts
from table.snapshot import Snapshot
from table.takes_path import takes_path
from table.timeline.active_timeline import delete_instant_file
from table.timeline.end_record import ENDS_FOLDER, delete_end
from table.timeline.instant import DECIDED_ACTIONS, Action, Instant, State
from table.transaction.came_back import delete_returned
from table.transaction.lock import Step, guarded
from table.transaction.provisional import forget_plans

_TRIES = 5  # to plan from a timeline that moves

log = get_logger("hudistream.archival")

DECIDED_NAMES = frozenset(action.value for action in DECIDED_ACTIONS)


@dataclass(frozen=True)
class ArchivalOutcome:
    """What an archival did.

    Attributes:
        instants: instants that left the active timeline.
        path: the archive's new file, or None where nothing was due.
        orphans: files of rolled back instants that had come back and were deleted again.
    """

    instants: tuple[Instant, ...] = ()
    path: str | None = None
    orphans: tuple[str, ...] = ()


@takes_path
def archive(
    table: HudiTable,
    settings: ArchiveSettings | None = None,
    clean: CleanSettings | None = None,
    compaction: CompactionSettings | None = None,
) -> ArchivalOutcome:
    """Retires what is due.

    Args:
        table: the table, or its path.
        settings: the bounds; None: the default ones.
        clean: how many files are deleted at a time; None: as by default.
        compaction: when a merge-on-read table is compacted: the delta commits that count for the next compaction stay.

    Raises:
        CommitConflictError: another archival is under way, or the timeline changes faster than it can be read.
        HudiError: what was retired so far is in the archive.
    """
    settings, clean = settings or ArchiveSettings(), clean or CleanSettings()
    scheduled = schedule_archival(table, settings, compaction)
    return carry_out_archival(table, scheduled, settings, clean) if scheduled is not None else ArchivalOutcome()


@dataclass(frozen=True)
class ScheduledArchival:
    """What is to be retired.

    Attributes:
        plan: which instants.
        snapshot: the table that it was planned from.
        compaction: when a merge-on-read table is compacted; None: as by default.
    """

    plan: ArchivalPlan
    snapshot: Snapshot
    compaction: CompactionSettings | None = None


def schedule_archival(
    table: HudiTable, settings: ArchiveSettings, compaction: CompactionSettings | None = None
) -> ScheduledArchival | None:
    """Plans what is due; None where nothing is. An archival needs no instant: it can be repeated.

    Args:
        settings: the bounds.
        compaction: when a merge-on-read table is compacted; None: as by default.

    Raises:
        UnsupportedTableError: tables of this version and type are not written here.
        CommitConflictError: the timeline changes faster than it can be read.
    """
    check_version_written(table.config, "archive instants of")
    for _ in range(_TRIES):
        with suppress(TimelineMovedError), guarded(table, Step.SCHEDULE):
            return _plan(table, settings, compaction)
    raise _moves_too_fast(table)


def _plan(
    table: HudiTable, settings: ArchiveSettings, compaction: CompactionSettings | None
) -> ScheduledArchival | None:
    snapshot = delete_returned(Snapshot.load(table))
    needed = _needed_to_compact(snapshot, compaction or CompactionSettings()) | _needed_to_clean(snapshot, settings)
    plan = plan_archival(snapshot.timeline, settings, needed)
    if not plan.instants:
        return None
    unmerged = find_unmerged(table.storage, snapshot.config)
    held = find_held(snapshot, plan) | find_uncarried(snapshot, plan) | unmerged
    if held:
        log.debug("archival_held", table=table.storage.base_uri, instants=sorted(held))
    plan = plan_archival(snapshot.timeline, settings, held | needed, load_unseen(snapshot))
    return ScheduledArchival(plan, snapshot, compaction) if plan.instants else None


def _needed_to_clean(snapshot: Snapshot, settings: ArchiveSettings) -> frozenset[str]:
    """The earliest commit that the last clean retained, if commits wait for cleans."""
    last = CleanerMemory().load_last_clean(snapshot) if settings.stops_at_clean else None
    return frozenset() if last is None or last.plan.earliest is None else frozenset({last.plan.earliest[0]})


def _moves_too_fast(table: HudiTable) -> TimelineMovedError:
    return TimelineMovedError(
        f"the timeline of {table.storage.base_uri!r} changed {_TRIES} times while an archival read it: nothing was "
        "archived; try again"
    )


def _needed_to_compact(snapshot: Snapshot, settings: CompactionSettings) -> frozenset[str]:
    if snapshot.config.table_type != TableType.MERGE_ON_READ:
        return frozenset()
    first = first_that_counts(snapshot.timeline, settings)
    return frozenset((first,)) if first is not None else frozenset()


def carry_out_archival(
    table: HudiTable, scheduled: ScheduledArchival, settings: ArchiveSettings, clean: CleanSettings
) -> ArchivalOutcome:
    """Retires what was planned, as the only archival of the table. Plans anew if the timeline has moved since.

    Args:
        scheduled: by `schedule_archival`.
        settings: the bounds, and how many instants go together.
        clean: how many files are deleted at a time.

    Raises:
        CommitConflictError: another archival is under way, or the timeline changes faster than it can be read.
        HudiError: what was retired so far is in the archive.
    """
    with hold_turn(table.storage) as turn:
        current: ScheduledArchival | None = scheduled
        if table.load_timeline().files != scheduled.snapshot.timeline.files:
            current = schedule_archival(table, settings, scheduled.compaction)
        for _ in range(_TRIES):
            if current is None:
                return ArchivalOutcome()
            try:
                retired = read_retired(current.snapshot, current.plan, turn.check)
            except TimelineMovedError:
                current = schedule_archival(table, settings, scheduled.compaction)
                continue
            return _retire(current, retired, settings, clean, turn)
    raise _moves_too_fast(table)


def _retire(
    scheduled: ScheduledArchival,
    retired: Retired,
    settings: ArchiveSettings,
    clean: CleanSettings,
    turn: Turn,
) -> ArchivalOutcome:
    plan, snapshot, table = scheduled.plan, scheduled.snapshot, scheduled.snapshot.table
    orphans = delete_leftovers(snapshot, plan, retired, clean)
    turn.check()
    # the history of layout 2 has manifests, which Hudi's archival writes under the lock, too
    with guarded(table, Step.SCHEDULE) if table.layout.completes_in_order else nullcontext():
        path = table.archived_timeline.append(retired.files, settings.batch)
    for instant in plan.instants:
        turn.check()
        # the completed file last: a request without it looks like a write that failed
        for file in snapshot.timeline.files_of(instant.time, instant.action):
            if file.state is not State.COMPLETED:
                delete_instant_file(table.storage, file)
        delete_instant_file(table.storage, instant)
    _forget_ends(snapshot, plan, retired)
    if orphans:
        orphans += delete_leftovers(snapshot, plan, retired, clean)
    log.debug(
        "instants_archived",
        table=table.storage.base_uri,
        instants=len(plan.instants),
        first_active=plan.first_active,
        path=path,
    )
    return ArchivalOutcome(plan.instants, path, orphans)


def _forget_ends(snapshot: Snapshot, plan: ArchivalPlan, retired: Retired) -> None:
    """Deletes the end records of what was archived: no inflight file of these instants is left to be completed.

    The end record of an instant stays as long as its rollback is on the timeline: without it the rollback would look
    like one of another engine (`find_foreign_rollbacks`).
    """
    line = plan.first_active
    if line is None:
        return
    gone = frozenset(plan.instants)
    kept = {instant.time for instant in snapshot.timeline.pending}
    kept |= {done.instant_time for rollback, done in retired.rollbacks.items() if rollback not in gone}
    for entry in snapshot.storage.list_dir(ENDS_FOLDER):
        time, _, action = entry.name.partition(".")
        if time < line and time not in kept and action in DECIDED_NAMES:
            delete_end(snapshot.storage, time, Action(action))
    forget_plans(snapshot.storage, line, kept)
