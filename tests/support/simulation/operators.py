"""What operators do, and what it means for the truth."""

import re
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace

from table.errors import CommitConflictError, HudiError, InvalidConfigError
from table.options.clustering_settings import ClusteringSettings, Layout
from table.options.groups import (
    ArchiveSettings,
    BaseFileSettings,
    CleanSettings,
    CompactionSettings,
    HeartbeatSettings,
)
from table.options.lock_settings import LockSettings
from table.services.archival.archival import archive
from table.services.clean.clean import clean
from table.services.clustering.clustering import plan_now
from table.services.clustering.command import cluster, execute_planned, schedule
from table.services.clustering.execution import carry_out_planned, find_planned_elsewhere
from table.services.compaction.compaction import compact, request_compaction
from table.services.compaction.plan import plan_compaction
from table.services.conversion.convert import convert_table
from table.services.rollback.undo_commit import roll_back
from table.services.savepoint.restore import restore_to_savepoint
from table.services.savepoint.savepoint import create_savepoint, delete_savepoint
from table.snapshot import Snapshot
from table.storage.interface import join
from table.timeline.active_timeline import request_and_list
from table.timeline.end_record import find_end
from table.timeline.instant import Action
from table.timeline.metadata.clustering import encode_clustering_plan
from table.timeline.metadata.compaction import encode_compaction_plan
from table.timeline.metadata.savepoint import decode_savepoint
from table.transaction.heartbeat import WriterIdentity
from table.transaction.lock import StepLock
from table.view.file_system_view import walk_file_groups

from .reader import completed, read_visible, rows_held


def do_clean(operator, table):
    """`hudistream clean`."""
    clean(table, CleanSettings(commits_retained=2, grace_ms=0))


def do_archive(operator, table):
    """`hudistream archive`."""
    archive(table, ArchiveSettings(min_commits=4, max_commits=6), CleanSettings(grace_ms=0))


def do_savepoint(operator, table):
    """`hudistream savepoint create`."""
    commits = [instant.time for instant in table.load_timeline().completed_writes][-3:]
    if commits:
        time = create_savepoint(table, operator.world.random.choice(commits))
        _check_savepoint(operator, time)


def _check_savepoint(operator, time):
    """What it holds must be all that a reader of its commit needs, and must stay."""
    files = operator.disk.files
    found = re.compile(rf"\.hoodie/(?:timeline/)?{time}(?:_\d+)?\.savepoint")  # not its end record
    done = next((files[path] for path in files if found.fullmatch(path)), None)
    if done is None or time not in completed(files):
        return  # it was deleted since, or its commit was undone
    named = decode_savepoint(done[0]).files
    held = {join(path, name) for path, names in named.items() for name in names}
    if rows_held(files, held, time) != sorted(read_visible(files, time, strict=False)):
        operator.world.violate(f"the savepoint {time} does not hold all that its commit shows")
    operator.truth.hold(time, held)


def do_delete_savepoint(operator, table):
    """`hudistream savepoint delete`."""
    held = [i for i in table.load_timeline() if i.action.value == "savepoint"]
    if held:
        operator.truth.release(held[0].time)
        delete_savepoint(table, held[0].time)
        operator.truth.releasing.discard(held[0].time)


def do_roll_back(operator, table):
    """`hudistream rollback --force` of the newest commit; the streams' checkpoints are set back accordingly."""
    writes = table.load_timeline().completed_writes
    if writes:
        _undo(operator, lambda: roll_back(table, writes[-1].time, force=True))


def do_compact(operator, table):
    """`hudistream compact`."""
    compact(table, CompactionSettings(tasks=1), BaseFileSettings())


def do_schedule_compaction(operator, table):
    """`hudistream compact --schedule-only`."""
    request_compaction(table, CompactionSettings())


def do_compact_requested(operator, table):
    """`hudistream compact --execute`."""
    compact(table, CompactionSettings(tasks=1), BaseFileSettings(), schedules=False)


def do_plan_beside_writes(operator, table):
    """Another engine plans a compaction of a table of layout 2 under the lock, whatever is being written."""
    with operator.disk.lock.hold():
        snapshot = Snapshot.load(table)
        if snapshot.timeline.pending_of(Action.COMPACTION, Action.LOG_COMPACTION):
            return
        walked = walk_file_groups(snapshot.listing, snapshot.slicing)
        plan = plan_compaction((group for _, found in walked for group in found), CompactionSettings())
        if plan.operations:
            content = encode_compaction_plan(replace(plan, is_ours=False))
            request_and_list(table.storage, snapshot.timeline, Action.COMPACTION, table.instant_clock, content)


def do_withdraw_compaction(operator, table):
    """`hudistream rollback` of a compaction that is pending."""
    pending = table.load_timeline().pending_of(Action.COMPACTION)
    if pending:
        roll_back(table, pending[0].time)


def do_cluster(operator, table):
    """`hudistream cluster`, while no other writer holds the table."""
    cluster(table, ClusteringSettings(sort_columns=("v",)), BaseFileSettings())


def do_cluster_beside(operator, table):
    """`hudistream cluster` as one of several writers."""
    cluster(table, ClusteringSettings(sort_columns=("v",)), BaseFileSettings(), shared=True)


_LIFE = HeartbeatSettings(interval_ms=300)  # as streams have it


def do_schedule_clustering(operator, table):
    """`hudistream cluster --schedule-only`, while no other writer holds the table."""
    schedule(table, ClusteringSettings(sort_columns=("v",)))


def do_schedule_clustering_beside(operator, table):
    """The same as one of several writers."""
    schedule(table, ClusteringSettings(sort_columns=("v",)), shared=True)


def do_execute_clusterings(operator, table):
    """`hudistream cluster --execute`, while no other writer holds the table."""
    execute_planned(table, BaseFileSettings(), heartbeat=_LIFE)


def do_execute_clusterings_beside(operator, table):
    """The same as one of several writers."""
    execute_planned(table, BaseFileSettings(), heartbeat=_LIFE, shared=True)


def do_execute_all_clusterings(operator, table):
    """The same again and again, until nothing is left: changes of those file groups wait for it."""
    is_left = True
    while is_left:
        with suppress(HudiError):
            do_execute_clusterings_beside(operator, table)
            is_left = bool(find_planned_elsewhere(Snapshot.load(table)))
        operator.world.sleep_s(0.2)


def do_cluster_under_lock(operator, table):
    """The same, where the writers of several engines share a lock."""
    lock = LockSettings(provider="org.apache.hudi.client.transaction.lock.InProcessLockProvider")
    cluster(table, ClusteringSettings(sort_columns=("v",)), BaseFileSettings(), shared=True, lock=lock)


def do_plan_clustering(operator, table):
    """Another engine plans a clustering under the lock, whatever is being written."""
    with operator.disk.lock.hold():
        snapshot = Snapshot.load(table)
        if find_planned_elsewhere(snapshot):
            return
        plan = plan_now(snapshot, ClusteringSettings(sort_columns=("v",), most_groups=1))
        if plan.groups:
            content = encode_clustering_plan(replace(plan, is_ours=False), table.storage.base_uri)
            action = Action.CLUSTERING if table.layout.completes_in_order else Action.REPLACE_COMMIT
            request_and_list(table.storage, snapshot.timeline, action, table.instant_clock, content)


def do_carry_out_clustering(operator, table):
    """That engine carries out its plan, beside our writers: it knows the lock, and no lease.

    It waits while a commit is decided and not visible: a plan that was made and carried out in between would lose it,
    as any write of an engine does that knows no decisions.
    """
    pending = table.load_timeline().pending_of(Action.COMMIT, Action.DELTA_COMMIT)
    if any(find_end(table.storage, one.time, one.action) is not None for one in pending):
        return
    locked = replace(table, lock=StepLock(operator.disk.lock))
    free = dict.fromkeys(("check", "confirm", "beat_for"), lambda *_: None)
    lease = SimpleNamespace(owner=f"engine-{operator.count}", is_shared=False, **free)
    who = WriterIdentity("engine", None, lease.owner)
    carry_out_planned(Snapshot.load(locked), Layout.LINEAR, BaseFileSettings(), lease, who, HeartbeatSettings())


def do_finish_clusterings(operator, table):
    """That engine carries out all that it planned: changes of those file groups wait for it."""
    is_left = True
    while is_left:
        with suppress(HudiError):
            do_carry_out_clustering(operator, table)
            is_left = bool(find_planned_elsewhere(Snapshot.load(table)))
        operator.world.sleep_s(0.2)


def do_convert(operator, table):
    """`hudistream upgrade`, or `downgrade`: the table gets the other version."""
    convert_table(table, 6 if table.config.version > 6 else 8, _LIFE)


def do_restore(operator, table):
    """`hudistream savepoint restore --force`."""
    if operator.truth.savepoints:
        time = max(operator.truth.savepoints)
        _undo(operator, lambda: restore_to_savepoint(table, time, force=True))


def finish_restore(operator, table):
    """The same command again, after its process died."""
    _undo(operator, lambda: restore_to_savepoint(table, "0", force=True))


def _undo(operator, act):
    """Commits go one by one, newest first, so that readers see states in between; then everybody starts from there."""
    truth = operator.truth
    truth.changing += 1
    undecided = True  # until it is known to be done, or refused before anything was
    try:
        act()
        truth.take_over_what_is_there()
        undecided = False
    except (CommitConflictError, InvalidConfigError) as error:
        operator.world.tell(f"undoing refused: {type(error).__name__} {error}"[:200])
        undecided = "under way" in str(error)
    except HudiError as error:
        operator.world.tell(f"undoing fails: {type(error).__name__} {error}"[:200])
    finally:
        truth.changing -= 1
        truth.undecided |= undecided
        truth.note_undoing()


JOBS = [do_clean, do_archive, do_savepoint, do_delete_savepoint]
UNDOING = [do_roll_back, do_restore]


CROWDED = [do_archive, do_archive, do_archive, do_clean, do_clean, do_savepoint, do_delete_savepoint]
COMPACTING = [do_compact, do_schedule_compaction, do_withdraw_compaction]


def random_jobs(world, more=()):
    """A few of them; in some worlds also those that undo."""
    jobs = [*JOBS, *UNDOING, *more] if world.random.random() < 0.3 else [*JOBS, *more]
    return [world.random.choice(jobs) for _ in range(world.random.randrange(1, 16))]
