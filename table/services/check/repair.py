"""The repairs of a check: it deletes files that provably belong to nothing, carries out decided ends, and makes lost
partition metadata files again.

The caller holds the table. Every step can be repeated, and none depends on an earlier one: a repair that died is
done again. Files are deleted one by one, each by its name, and only where two looks agree that no commit names it.
"""

from collections.abc import Callable, Sequence
from functools import partial

from table.errors import ActionPendingError, HudiError
from table.files.partition_metadata import create_partition_metadata
from table.files.publication import forget_ended
from table.hudi_table import HudiTable
from table.log import get_logger
from table.options.groups import HeartbeatSettings
from table.references.judge import is_decided
from table.references.strays import delete_strays
from table.services.check.finding import Finding, Kind, Repair
from table.services.check.judge_timeline import find_completed_of
from table.services.check.look import Look
from table.services.clean.emptied_partitions import remove_emptied_partitions
from table.services.rollback.rollback import roll_back_failed_writes
from table.snapshot import Snapshot
from table.timeline.active_timeline import find_instant, sweep_temporaries
from table.timeline.end_record import COMMIT, EndRecord, delete_end, find_end, overrule_end
from table.timeline.instant import Action
from table.transaction.heartbeat import WriterIdentity, delete_heartbeat, sweep_heartbeats
from table.transaction.lease import Lease
from table.transaction.mend_commits import mend_commits, put_back
from table.transaction.signs import measure_now_ms
from table.view.file_group import first_instant

log = get_logger("hudistream.check")

ENDS = frozenset(
    {
        Kind.PENDING_WRITE,
        Kind.END_NOT_CARRIED_OUT,
        Kind.PENDING_SERVICE,
        Kind.ENDED_MARKERS,
        Kind.BROKEN_MARKERS,
        Kind.ENDED_STAGING,
    }
)
STRAYS = frozenset({Kind.STRAY_BESIDE_COMMIT, Kind.VISIBLE_STRAY, Kind.WOULD_TURN_VISIBLE, Kind.DANGLING_FILE})
RECORDS = frozenset({Kind.DAMAGED_COMMIT, Kind.BROKEN_END_RECORD, Kind.CONTRADICTED_END_RECORD, Kind.ENDED_END_RECORD})

Problems = dict[tuple[Kind, str], str]


def end_instants(table: HudiTable, lease: Lease, found: Sequence[Finding], heartbeat: HeartbeatSettings) -> Problems:
    """Ends what dead writers left, as the next batch would.

    Args:
        lease: held by the caller.
        found: what two looks found.
        heartbeat: when a writer that knows no leases counts as dead.

    Returns:
        What could not be repaired, and why.
    """
    mine = [finding for finding in found if finding.kind in ENDS and finding.repair is Repair.POSSIBLE]
    if not mine:
        return {}
    identity = WriterIdentity("hudistream check", None, lease.owner)
    return _tried(mine, partial(roll_back_failed_writes, table, identity, heartbeat))


def mend(
    table: HudiTable, lease: Lease, look: Look, found: Sequence[Finding], heartbeat: HeartbeatSettings
) -> Problems:
    """Repairs what two looks found, the later one after everything pending was ended.

    Args:
        lease: held by the caller.
        look: the later one.
        found: what both found.
        heartbeat: when a writer that knows no leases counts as dead.

    Returns:
        What could not be repaired, and why.
    """
    problems: Problems = {}
    possible = [finding for finding in found if finding.repair is Repair.POSSIBLE]
    # strays first: no partition is made visible while a stray is in it
    for finding in sorted(possible, key=lambda finding: finding.kind not in STRAYS):
        problems |= _tried([finding], partial(_mend_one, table, look, finding))
    swept = [finding for finding in possible if finding.kind in (Kind.ENDED_HEARTBEAT, Kind.TEMPORARY_FILE)]
    if swept:
        problems |= _tried(swept, partial(_sweep_small_files, table, lease, look, heartbeat))
    return problems


def _tried(found: Sequence[Finding], mended: Callable[[], object]) -> Problems:
    try:
        mended()
    except HudiError as error:
        return {finding.key: str(error) for finding in found}
    return {}


def _mend_one(table: HudiTable, look: Look, finding: Finding) -> None:
    where = finding.where
    if finding.kind in STRAYS:
        _delete_stray(table, look, where)
    elif finding.kind is Kind.PARTITION_WITHOUT_METADATA:
        create_partition_metadata(table.storage, where, first_instant(look.current_files(look.folders[where])))
    elif finding.kind in RECORDS:
        _mend_record(table, look, finding)
    elif finding.kind in (Kind.ENDED_MARKERS, Kind.BROKEN_MARKERS):
        _sweep_markers(table, look, where)
    elif finding.kind is Kind.EMPTY_PARTITION:
        if look.pending:
            raise ActionPendingError("an instant is pending: it may be about to write there")
        remove_emptied_partitions(table, [where])


def _mend_record(table: HudiTable, look: Look, finding: Finding) -> None:
    """Completed files, end records and lost instants."""
    name = finding.where.rpartition("/")[2]
    if finding.kind is Kind.DAMAGED_COMMIT:
        _mend_commit(table, look, finding.where)
    elif finding.kind is Kind.BROKEN_END_RECORD:
        _mend_end(table, look, name)
    elif finding.kind is Kind.CONTRADICTED_END_RECORD:
        end = look.leftovers.ends[name]
        whole = find_end(table.storage, end.time, end.action)
        if whole is not None and whole.is_commit:
            put_back(table, whole)
    else:
        end = look.leftovers.ends[name]
        delete_end(table.storage, end.time, end.action)


def _mend_commit(table: HudiTable, look: Look, path: str) -> None:
    snapshot = Snapshot(table, look.timeline)
    for instant in look.damaged:
        if instant.path == path:
            snapshot.commits.read(instant)
    mend_commits(snapshot)


def _mend_end(table: HudiTable, look: Look, name: str) -> None:
    """Writes a damaged end record again, from the completed file of its instant."""
    completed = find_completed_of(look, name)
    data = find_instant(table.storage, completed) if completed is not None else None
    if completed is not None and data is not None:
        time, _, action = name.partition(".")
        at = completed.completion_time
        mended = EndRecord(time, Action(action), COMMIT, "hudistream check", data, completion_time=at)
        overrule_end(table.storage, mended)


def _delete_stray(table: HudiTable, look: Look, path: str) -> None:
    base = next((file for folder in look.folders.values() for file in folder.files if file.path == path), None)
    times = [base.instant_time] if base is not None else sorted(look.log_instants[path].writers)
    for time in times:
        table.storage.fence(time)
    table.storage.delete(path)
    log.warning("stray_file_deleted", table=table.storage.base_uri, instant_time=max(times, default=""), path=path)


def _sweep_markers(table: HudiTable, look: Look, time: str) -> None:
    """Deletes markers of an ended instant, and the files that they announce, unless a commit names them."""
    if time in look.pending or not is_decided(time, look.records):
        return
    storage, commit = table.storage, look.commits.get(time)
    named = commit.named_paths if commit is not None else frozenset(look.archive.named)
    storage.fence(time)
    delete_strays(storage, time, named | look.held_paths | look.records.decided.get(time, frozenset()))
    delete_heartbeat(storage, time)
    forget_ended(storage, time, table.config.timezone)


def _sweep_small_files(table: HudiTable, lease: Lease, look: Look, heartbeat: HeartbeatSettings) -> None:
    now_ms = measure_now_ms(table.storage, lease.owner)
    sweep_heartbeats(table.storage, look.pending, heartbeat, now_ms)
    sweep_temporaries(table.storage, now_ms, table.layout)
