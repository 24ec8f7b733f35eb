"""Carries out compactions: each from the plan in its own file, by each process that finds it.

Each attempt has files of its own, and the end record says which attempt's files are committed. So a compaction that
failed needs no rollback (RunCompactionActionExecutor).
"""

from functools import partial

from table import clock
from table.config.writable import check_version_written
from table.errors import InstantEndedError, StorageError
from table.hudi_table import HudiTable
from table.lock import NO_LOCK
from table.log import get_logger
from table.metadata_table.changes import Written
from table.options.groups import BaseFileSettings
from table.references.losses import check_inputs
from table.references.strays import delete_strays
from table.scan.merge_slice import SliceReading
from table.services.compaction.compact_slice import compact_slice
from table.services.compaction.runner import read_mb
from table.services.rewriting import Rewriting
from table.services.runner import PieceRunner
from table.services.service import Stats
from table.snapshot import Snapshot
from table.storage.interface import join
from table.timeline.active_timeline import begin_instant, delete_instant_file, find_instant, read_instant
from table.timeline.end_record import COMMIT, EndRecord, decide_end, find_end
from table.timeline.instant import Action, Instant, State
from table.timeline.layout import name_instant
from table.timeline.metadata.commit import CommitMetadata
from table.timeline.metadata.compaction import CompactionOperation, decode_compaction_plan
from table.transaction.commit import carry_out_commit, clean_up_commit
from table.transaction.completion import choose_completion
from table.transaction.lock import Step, guarded
from table.transaction.provisional import is_kept
from table.write.context import WriteContext

LOCALLY = PieceRunner()
_OTHERS_TURN_MS = 3_600_000  # a compaction of another engine that takes longer is taken for dead

log = get_logger("hudistream.compaction")


def carry_out_compactions(
    snapshot: Snapshot,
    base_file: BaseFileSettings,
    runner: PieceRunner = LOCALLY,
    *,
    beside_others: bool = False,
) -> list[Instant]:
    """Carries out the compactions that are on a timeline, each from its own plan.

    Args:
        snapshot: the table, as `schedule_compaction` returned it.
        base_file: how base files are encoded.
        runner: runs the compaction of the slices.
        beside_others: whether another engine may be writing: a compaction that it planned is left to it for an hour.
            Two engines that carry out one compaction delete each other's files.

    Returns:
        The completed ones.

    Raises:
        UnsupportedTableError: tables of this version and type are not written here.
        HudiError: one could not be carried out; it can be tried again.
    """
    check_version_written(snapshot.config, "compact")
    kept = [one for one in snapshot.timeline.pending_of(Action.COMPACTION) if is_kept(snapshot.storage, one)]
    ours = [one for one in kept if not (beside_others and _is_left_to_others(snapshot.table, one))]
    return [execute_compaction(snapshot.table, pending, base_file, runner) for pending in ours]


def _is_left_to_others(table: HudiTable, pending: Instant) -> bool:
    request = pending.at(State.REQUESTED)
    data = find_instant(table.storage, request)
    if data is None or decode_compaction_plan(data, request.file_name).is_ours:
        return False
    return clock.now_ms() - clock.parse_instant_time(pending.time, table.config.timezone) < _OTHERS_TURN_MS


def execute_compaction(
    table: HudiTable, pending: Instant, base_file: BaseFileSettings, runner: PieceRunner = LOCALLY
) -> Instant:
    """Carries out one compaction. Can be repeated, also by several processes at once.

    Args:
        pending: requested or inflight.
        base_file: how base files are encoded.
        runner: runs the compaction of the slices.

    Raises:
        CommitConflictError: it was withdrawn meanwhile.
        HudiError: it could not be carried out.
    """
    storage, time = table.storage, pending.time
    end, written = find_end(storage, time, Action.COMPACTION), None
    if end is None:
        try:
            written = _written(table, pending, base_file, runner)
        except (FileNotFoundError, StorageError) as failed:
            end = _find_other_end(table, pending, failed)
    with guarded(table, Step.COMPLETE):
        snapshot = Snapshot.load(table)
        done = snapshot.timeline.find(time, Action.COMPACTION)
        if done is not None and done.is_completed:
            return _yield_to(snapshot, done)
        if end is None:
            _check_is_wanted(done, time)
            if written is None:
                raise InstantEndedError(f"the compaction {time} was ended and undone while it ran")
            _check_is_whole(table, written, time)
            content, at = table.layout.encode_commit(written), choose_completion(snapshot, pending)
            end = EndRecord(time, Action.COMPACTION, COMMIT, clock.fresh_uuid(), content, completion_time=at)
            end = decide_end(storage, end)
        _check_not_undone(table, pending, end)
        completed = carry_out_commit(table, end, Written(written.stats) if written is not None else None)
    stats = end.metadata.stats
    clean_up_commit(storage, time, stats)
    log.info("compaction_committed", table=storage.base_uri, instant_time=time, slices=len(stats))
    return completed


def _find_other_end(table: HudiTable, pending: Instant, failed: Exception) -> EndRecord | None:
    """The end that another process gave the compaction while this attempt failed. None: it has completed it.

    What a compaction reads is cleaned after it, so an attempt that comes late finds nothing to read.

    Raises:
        StorageError: the compaction has not ended.
    """
    end = find_end(table.storage, pending.time, Action.COMPACTION)
    found = table.load_timeline().find(pending.time, Action.COMPACTION) if end is None else None
    if found is None or found.is_completed:
        return end
    if isinstance(failed, StorageError):
        raise failed
    raise StorageError(f"{failed}, which the compaction {pending.time} reads, is not there") from failed


def _yield_to(snapshot: Snapshot, done: Instant) -> Instant:
    """Takes a compaction as another process, or another engine, has completed it. Deletes the files of this attempt."""
    storage, stats = snapshot.storage, snapshot.commits.read(done).stats
    storage.fence(done.time)
    delete_strays(storage, done.time, frozenset(stat.path for stat in stats))
    clean_up_commit(storage, done.time, stats)
    return done


def _written(table: HudiTable, pending: Instant, base_file: BaseFileSettings, runner: PieceRunner) -> CommitMetadata:
    """Writes the base files. Returns the metadata of the commit."""
    storage, snapshot = table.storage, Snapshot.load(table)
    request = pending.at(State.REQUESTED)
    plan = decode_compaction_plan(read_instant(storage, request), request.file_name)
    rewriting = Rewriting.of(snapshot, pending.time, base_file, "compacted", as_requested=True)
    gone = check_inputs(snapshot, {(one.partition_path, one.file_id) for one in plan.operations})
    operations = tuple(one.without(gone) for one in plan.operations)
    storage.open_staging(pending.time)
    begin_instant(storage, request)
    end = find_end(storage, pending.time, Action.COMPACTION)
    _check_not_undone(table, pending, end)
    if end is not None:  # another process was faster: readers must not see files of a second attempt beside its own
        storage.fence(pending.time)
        return end.metadata
    piece = partial(_compact_numbered, rewriting.context, rewriting.reading, operations)
    stats = runner.run(piece, len(operations), read_mb(plan))
    return CommitMetadata(stats, "COMPACT", {"schema": rewriting.schema}, compacted=True)


def _compact_numbered(
    context: WriteContext, reading: SliceReading, operations: tuple[CompactionOperation, ...], number: int
) -> Stats:
    return (compact_slice(context, reading, operations[number], number),)


def _check_not_undone(table: HudiTable, pending: Instant, end: EndRecord | None) -> None:
    """Looks whether the compaction was undone. If so, deletes the instant files that this attempt may have created.

    Raises:
        CommitConflictError: it was.
    """
    if end is None or end.is_commit:
        return
    for state in (State.INFLIGHT, State.REQUESTED):
        delete_instant_file(table.storage, name_instant(table.layout, pending.time, Action.COMPACTION, state))
    raise InstantEndedError(f"the compaction {pending.time} was undone while it ran; its files are deleted")


def _check_is_wanted(found: Instant | None, time: str) -> None:
    if found is None:
        raise InstantEndedError(
            f"the compaction {time} was withdrawn while it ran; its files are deleted before the next batch"
        )


def _check_is_whole(table: HudiTable, written: CommitMetadata, time: str) -> None:
    """Looks whether every file exists, if another engine may write: it may begin a pending compaction anew.

    Hudi then deletes the files of earlier attempts first, also those of other engines
    (HoodieTable.rollbackInflightCompaction).

    Raises:
        CommitConflictError: a file is gone.
    """
    if table.lock is NO_LOCK:
        return
    there = {
        join(path, entry.name)
        for path in {stat.partition_path for stat in written.stats}
        for entry in table.store_listing.list_files(path)
    }
    gone = next((stat.path for stat in written.stats if stat.path not in there), None)
    if gone is not None:
        raise InstantEndedError(
            f"{gone}, which the compaction {time} wrote, was deleted: another engine carries out the same compaction, "
            "and it is left to it. Let one engine compact: hoodie.compact.inline=false there, or "
            "hoodie.datasource.write.streaming.disable.compaction=true here"
        )
