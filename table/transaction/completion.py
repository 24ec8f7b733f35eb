"""The completion time of a table service's instant, which timeline layout 2 puts into the completed file's name.

A completed file that names its time cannot be protected by create-if-absent: two processes that carry out one clean
would choose two times, and leave two completed files. So one object decides the time: the end record of the instant.
Each process that completes the instant creates the same file (rules 3 and 16 of docs/concepts/safety.md). Layout 1
needs no such record: there the completed file has only one possible name.
"""

from dataclasses import replace

from table import clock
from table.errors import CorruptFileError
from table.hudi_table import HudiTable
from table.metadata_table.changes import FileChanges
from table.metadata_table.keep import keep_lists
from table.snapshot import Snapshot
from table.timeline.active_timeline import complete_instant, find_instant
from table.timeline.end_record import COMMIT, EndRecord, decide_end, end_path
from table.timeline.instant import Action, Instant, State
from table.timeline.metadata.compaction import CompactionPlan, decode_compaction_plan

_COMPACTIONS = (Action.COMPACTION, Action.LOG_COMPACTION)


def complete_service(
    table: HudiTable, begun: Instant, content: bytes, owner: str, changes: FileChanges | None = None
) -> Instant:
    """Moves a clean, a rollback, a restore or a savepoint to completed.

    Can be repeated, also by several processes at once.

    Args:
        begun: the inflight instant.
        content: content of the completed file.
        owner: identity of the process that completes it.
        changes: the files that it deleted, for the table's metadata table.

    Raises:
        CommitOutcomeUnknownError: the store failed, and the outcome could not be read.
        StorageError: another process completed the instant with other content.
    """
    completion_time = _decide_completion(table, begun, owner)
    if changes:
        keep_lists(table.storage, begun.time, completion_time, changes, table.known_lists)
    return complete_instant(table.storage, begun, content, completion_time)


def choose_completion(snapshot: Snapshot, instant: Instant) -> str | None:
    """A completion time for an instant, greater than all times on the timeline; None in layout 1.

    Under a lock of several machines it waits until the time is old enough (`InstantClock.let_pass`).

    Args:
        snapshot: the table as it is now.
        instant: the instant to be completed.

    Raises:
        InvalidConfigError: the timeline is ahead of this machine's clock.
    """
    times = snapshot.table.instant_clock
    chosen = snapshot.layout.choose_completion(snapshot.timeline.last_time, instant.time, clock.now_ms(), times.zone)
    if chosen is not None:
        times.let_pass(chosen)
    return chosen


def completion_now(table: HudiTable, instant: Instant) -> str | None:
    """As `choose_completion`, but lists the timeline for it. In layout 1 no timeline is listed."""
    return choose_completion(Snapshot.load(table), instant) if table.layout.completes_in_order else None


def completed_past(table: HudiTable, end: EndRecord) -> EndRecord:
    """Moves the completion time of a decided commit past the compactions that do not know the commit.

    A log file belongs to the newest slice that was requested before its commit was completed (layout 2). Hudi plans a
    compaction beside a write that is pending, and leaves the write out. If the write were completed at the time that
    was decided before that request, its log files would lie below the new base file. All processes that carry out the
    end find the same time: the time that follows the newest such request. A compaction whose plan names a file of
    the commit knows it: somebody deleted the completed file since.

    Args:
        table: its timeline is listed.
        end: the end record of a write.

    Raises:
        CorruptFileError: the plan of a compaction is damaged.
    """
    if end.completion_time is None:
        return end
    timeline = table.load_timeline()
    found = timeline.find(end.time, end.action)
    if found is not None and found.is_completed:
        return replace(end, completion_time=found.completion_time)
    later = {
        file.time: file for file in timeline.files if file.action in _COMPACTIONS and file.time > end.completion_time
    }
    passed = max((time for time, plan in later.items() if not _knows(table, plan, end)), default=None)
    if passed is None:
        return end
    # computed in UTC: in the table's zone the same local time could occur twice
    return replace(end, completion_time=clock.format_instant_time(clock.parse_instant_time(passed) + 1))


def _knows(table: HudiTable, compaction: Instant, end: EndRecord) -> bool:
    """Whether the plan of a compaction names a log file of a commit."""
    request = compaction.at(State.REQUESTED)
    data = find_instant(table.storage, request)
    plan = decode_compaction_plan(data, request.file_name) if data else CompactionPlan()
    return any(not end.metadata.named_paths.isdisjoint(one.log_paths) for one in plan.operations)


def _decide_completion(table: HudiTable, begun: Instant, owner: str) -> str | None:
    if not table.layout.completes_in_order:
        return None
    snapshot = Snapshot.load(table)
    found = snapshot.timeline.find(begun.time, begun.action)
    if found is not None and found.is_completed:  # completed by Hudi, which has no end records
        return found.completion_time
    chosen = choose_completion(snapshot, begun)
    end = decide_end(table.storage, EndRecord(begun.time, begun.action, COMMIT, owner, completion_time=chosen))
    if end.completion_time is None:
        path = end_path(begun.time, begun.action)
        raise CorruptFileError(f"{path} does not say when {begun.file_name} is completed: delete the record by hand")
    return end.completion_time
