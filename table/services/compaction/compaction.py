"""Plans and requests compactions (ScheduleCompactionActionExecutor); `execution` carries them out.

A compaction is requested while nothing is being written: files that are written later belong to the slices that it
makes.
"""

from collections.abc import Collection, Iterator
from contextlib import ExitStack
from dataclasses import replace

from table import clock
from table.config.writable import check_version_written
from table.errors import (
    ActionPendingError,
    CommitConflictError,
    InstantEndedError,
    TableHeldError,
    UnsupportedTableError,
    WriteConflictError,
)
from table.hudi_table import HudiTable
from table.log import get_logger
from table.options.choices import TableType
from table.options.groups import BaseFileSettings, CompactionSettings
from table.options.write_options import WriteOptions
from table.references.losses import with_second_look
from table.services.compaction.due import make_due
from table.services.compaction.execution import carry_out_compactions
from table.services.compaction.plan import commits_since_compaction, plan_compaction
from table.services.compaction.runner import runner_of
from table.snapshot import Snapshot
from table.takes_path import takes_path
from table.timeline.active_timeline import delete_instant_file, request_and_list
from table.timeline.change import Change
from table.timeline.instant import WRITE_ACTIONS, Action, Instant
from table.timeline.metadata.compaction import encode_compaction_plan
from table.timeline.timeline import Timeline
from table.transaction.lease import COMMANDS, find_holder, hold_table
from table.transaction.lease_record import LeaseRecord
from table.transaction.lock import Step, guarded
from table.transaction.provisional import KEPT, WITHDRAWN, decide_plan, settle_compactions
from table.transaction.store_clock import wait_past_completed
from table.view.file_group import CommittedInstants, FileGroup
from table.view.file_system_view import walk_file_groups

_TURNS = 30  # to plan between two batches of a stream: about a minute

log = get_logger("hudistream.compaction")


@takes_path
def compact(
    table: HudiTable,
    settings: CompactionSettings | None = None,
    base_file: BaseFileSettings | None = None,
    *,
    schedules: bool = True,
) -> list[Instant]:
    """Carries out compactions that were requested; without one, plans a new one, whether it is due or not.

    Args:
        table: the table, or its path.
        settings: which slices; None: as a sink does by default.
        base_file: how base files are encoded; None: as a sink does by default.
        schedules: False: only compactions that were requested are carried out.

    Returns:
        The completed compactions.

    Raises:
        UnsupportedTableError: the table is copy-on-write, or tables of its kind are not written here.
        CommitConflictError: a live writer holds the table, or a write is pending.
    """
    settings = settings or CompactionSettings()
    if schedules:
        request_compaction(table, settings)
    encoding = base_file or WriteOptions().file_settings
    return carry_out_compactions(Snapshot.load(table), encoding, runner_of(settings))


def request_compaction(table: HudiTable, settings: CompactionSettings) -> tuple[Instant, ...]:
    """Requests a compaction, whether it is due or not, unless one is under way.

    Holds the table meanwhile. Where a writer holds it, the compaction is requested between two of its batches.

    Args:
        settings: which slices.

    Returns:
        The compactions that are to be carried out.

    Raises:
        UnsupportedTableError: the table is copy-on-write, or tables of its kind are not written here.
        CommitConflictError: a write is pending, or another command holds the table.
    """
    check_version_written(table.config, "compact")
    with ExitStack() as stack:
        try:
            stack.enter_context(hold_table(table.storage, "hudistream compact"))
        except TableHeldError as held:
            return _request_between_batches(table, settings, held)
        return schedule_compaction(table, settings).timeline.pending_of(Action.COMPACTION)


def _request_between_batches(
    table: HudiTable, settings: CompactionSettings, held: TableHeldError
) -> tuple[Instant, ...]:
    """Requests a compaction beside the writer that holds the table. That writer waits for the word on the plan.

    Raises:
        CommitConflictError: another command holds the table, or there was always a batch under way.
    """
    why = ""
    for turn in range(_TURNS):
        holder = find_holder(table.storage)
        if holder is None or holder.identity is None or holder.identity.sink_id.startswith(COMMANDS):
            raise held
        try:
            found = schedule_compaction(table, settings, shared=True, holder=holder)
            return found.timeline.pending_of(Action.COMPACTION)
        except CommitConflictError as conflict:
            why = str(conflict)
            log.debug("compaction_put_off", table=table.storage.base_uri, turn=turn, why=why)
        clock.sleep_s(min(0.05 * 2**turn, 2.0) * (0.5 + clock.jitter()))
    raise ActionPendingError(
        f"no compaction was requested in {_TURNS} turns; the last time: {why}. Wait for the end of what is pending, or "
        "undo it where its writer is dead (`hudistream rollback PATH INSTANT`); beside a stream that never rests let "
        "the stream request it: set compaction.schedule.enabled=true, and compaction.async.enabled=false to leave its "
        "execution to `hudistream compact --execute`"
    ) from held


def schedule_compaction(
    table: HudiTable,
    settings: CompactionSettings,
    *,
    only_due: bool = False,
    shared: bool = False,
    holder: LeaseRecord | None = None,
    only: Collection[tuple[str, str]] | None = None,
) -> Snapshot:
    """Requests a compaction, if one is due and none is under way. The caller writes nothing.

    It holds the table, or plans beside a writer (`shared`).

    Args:
        settings: when, and which slices.
        only_due: whether nothing is requested before it is due.
        shared: whether other writers may be writing: then the plan is provisional until it is kept.
        holder: the holder of the table, if it is not the caller. A command that undoes commits takes the table over
            first, so the plan is kept only if this holder still holds the table.
        only: partition path and file id of the file groups that may be taken; None: all.

    Returns:
        The table, with the compactions on its timeline that are to be carried out.

    Raises:
        UnsupportedTableError: the table is copy-on-write, or tables of its kind are not written here.
        LostDataError: a file of a slice is gone or cut short.
        CommitConflictError: a write is pending: its log files would be missed.
    """
    check_version_written(table.config, "compact")
    if table.config.table_type != TableType.MERGE_ON_READ:
        raise UnsupportedTableError(f"the table {table.config.name!r} is copy-on-write: there is nothing to compact")
    with guarded(table, Step.SCHEDULE):
        snapshot = settle_compactions(Snapshot.load(table))
        timeline = snapshot.timeline
        is_under_way = bool(timeline.pending_of(Action.COMPACTION, Action.LOG_COMPACTION))
        if is_under_way or (only_due and not make_due(commits_since_compaction(timeline), settings)):
            return snapshot
        _check_nothing_pending(timeline)
        plan = with_second_look(
            snapshot, lambda confirmed: plan_compaction(_walk_groups(snapshot, confirmed, only), settings)
        )
        if not plan.operations:
            return snapshot
        wait_past_completed(table)
        instant, now = request_and_list(
            table.storage,
            timeline,
            Action.COMPACTION,
            table.instant_clock,
            encode_compaction_plan(replace(plan, is_provisional=shared)),
        )
        try:
            _check_nothing_pending(now)  # either this sees a write that was requested meanwhile, or the write sees this
            _check_nothing_written(timeline, now, instant)
            if shared:
                _keep(table, instant, holder)
        except CommitConflictError:
            if shared:
                decide_plan(table.storage, instant.time, WITHDRAWN)
            delete_instant_file(table.storage, instant)
            raise
    log.debug(
        "compaction_requested",
        table=table.storage.base_uri,
        instant_time=instant.time,
        slices=len(plan.operations),
    )
    return snapshot.at(now)


def _walk_groups(
    snapshot: Snapshot, confirmed: CommittedInstants, only: Collection[tuple[str, str]] | None
) -> Iterator[FileGroup]:
    for _, found in walk_file_groups(snapshot.listing, confirmed):
        yield from (group for group in found if only is None or (group.partition_path, group.file_id) in only)


def _check_nothing_pending(timeline: Timeline) -> None:
    for pending in timeline.pending_of(*WRITE_ACTIONS, Action.CLUSTERING, Action.RESTORE, Action.ROLLBACK):
        raise ActionPendingError(f"{pending.file_name} is pending: no compaction is planned before its end")


def _keep(table: HudiTable, compaction: Instant, holder: LeaseRecord | None) -> None:
    if holder is not None and find_holder(table.storage) != holder:
        raise WriteConflictError("the table changed hands while a compaction was planned")
    if decide_plan(table.storage, compaction.time, KEPT) != KEPT:
        raise InstantEndedError(f"the compaction {compaction.time} was withdrawn by a writer that waited for it")


def _check_nothing_written(planned_from: Timeline, now: Timeline, mine: Instant) -> None:
    """Refuses a plan if a writer that shares the table committed, or planned a compaction, since the plan was made."""
    for other in now.pending_of(Action.COMPACTION, Action.LOG_COMPACTION):
        if other.time != mine.time:
            raise WriteConflictError(f"the compaction {other.time} was planned at the same time as {mine.time}")
    for time in sorted(Change.between(planned_from.committed_times, now.committed_times).came):
        raise WriteConflictError(f"{time} was committed while a compaction was planned, which does not know of it")
