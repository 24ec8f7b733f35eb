"""Finds out which instants rollbacks undid, and which files go with them."""

from collections.abc import Collection

from table.files.log.instants import is_written_by
from table.files.names import parse_log_file
from table.snapshot import Snapshot
from table.storage.interface import Storage
from table.timeline.active_timeline import find_instant
from table.timeline.end_record import ENDS_FOLDER
from table.timeline.instant import Action, Instant, State
from table.timeline.metadata.restore import decode_restore_plan, decode_restored
from table.timeline.metadata.rollback import (
    RollbackMetadata,
    RollbackPlan,
    decode_rollback_metadata,
    decode_rollback_plan,
)
from table.timeline.timeline import Timeline


def load_rolled_back_time(snapshot: Snapshot, rollback: Instant) -> str:
    """The instant that a rollback on the timeline undoes, or "" if its file does not name it."""
    if rollback.is_completed:
        data = find_instant(snapshot.storage, rollback)
        return decode_rollback_metadata(data, rollback.file_name).instant_time if data else ""
    plan = rollback.at(State.REQUESTED)
    data = find_instant(snapshot.storage, plan) if snapshot.timeline.contains(plan) else None
    return decode_rollback_plan(data, plan.file_name).instant_time if data else ""


def load_undone_times(snapshot: Snapshot, instant: Instant) -> tuple[str, ...]:
    """The instants that a rollback or a restore on the timeline undoes, also where it is pending."""
    if instant.action is not Action.RESTORE:
        return tuple(filter(None, [load_rolled_back_time(snapshot, instant)]))
    if instant.is_completed:
        data = find_instant(snapshot.storage, instant)
        return decode_restored(data, instant.file_name) if data else ()
    plan = instant.at(State.REQUESTED)
    data = find_instant(snapshot.storage, plan) if snapshot.timeline.contains(plan) else None
    return tuple(time for time, _ in decode_restore_plan(data, plan.file_name).instants) if data else ()


def rollbacks_after(timeline: Timeline, time: str) -> tuple[Instant, ...]:
    """Rollbacks, in any state, that can name an instant: they are younger than it."""
    return tuple(i for i in timeline if i.action is Action.ROLLBACK and i.time > time)


def find_foreign_rollbacks(snapshot: Snapshot, seen: Collection[str]) -> dict[str, str]:
    """Instants that another engine rolled back: no end record of ours says so.

    Args:
        snapshot: the table as it is now.
        seen: times of rollbacks that were looked at before.

    Returns:
        Time of the instant -> time of its rollback, without rollbacks that were archived or undone meanwhile.
    """
    fresh = [rollback for rollback in snapshot.timeline.completed_of(Action.ROLLBACK) if rollback.time not in seen]
    if not fresh:
        return {}
    ended = {entry.name.partition(".")[0] for entry in snapshot.storage.list_dir(ENDS_FOLDER)}
    undone = {load_rolled_back_time(snapshot, rollback): rollback.time for rollback in fresh}
    return {time: rollback for time, rollback in undone.items() if time and time not in ended}


def goes_with(storage: Storage, path: str, undone: RollbackPlan | RollbackMetadata) -> bool:
    """Whether a file that a rollback names was written by the instant that it undoes.

    A later write may reuse the name of a log file, so its blocks are read. If the instant began the slice, the whole
    slice goes: the names of its log files hold the instant's time.
    """
    log_name = parse_log_file(path.rpartition("/")[2])
    if log_name is None or log_name.base_instant_time == undone.instant_time:
        return True
    return is_written_by(storage, path, undone.instant_time)
