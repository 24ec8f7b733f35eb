"""Cleaning: plan, request, execute, record (CleanPlanActionExecutor, CleanActionExecutor).

A clean that was begun is finished from the plan in its own file, whichever writer began it. No new clean is planned
before. The files that a clean deletes are checked against a timeline loaded after the plan was durable: files of the
current snapshot and of savepoints stay, whatever a plan says (rules 1 and 10).
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from table import clock, threads
from table.config.writable import check_version_written
from table.errors import (
    CommitConflictError,
    CorruptFileError,
    InvalidConfigError,
    StorageError,
    TimelineMovedError,
)
from table.files.names import file_group_of, file_group_prefixes
from table.hudi_table import HudiTable
from table.log import get_logger
from table.metadata_table.changes import changes_of_clean
from table.options.choices import TableType
from table.options.groups import CleanSettings
from table.services.clean.emptied_partitions import remove_emptied_partitions
from table.services.clean.judgement import PinFacts, find_pinned, load_savepointed, plan_clean
from table.services.clean.known_folders import KnownFolders
from table.services.clean.memory import CleanerMemory
from table.services.clean.plan import find_retained
from table.snapshot import Snapshot
from table.storage.interface import FileInfo
from table.storage.reserve import keep_reserve, with_reserve
from table.takes_path import takes_path
from table.timeline.active_timeline import (
    begin_instant,
    delete_instant_file,
    read_instant,
    request_instant,
)
from table.timeline.instant import Action, Instant, State
from table.timeline.metadata.clean import (
    CleanMetadata,
    CleanPlan,
    decode_clean_plan,
    encode_clean_metadata,
    encode_clean_plan,
)
from table.timeline.timeline import Timeline
from table.transaction.completion import complete_service
from table.transaction.lease import hold_table
from table.transaction.lock import Step, guarded
from table.view.file_group import FileGroup, build_file_groups

_FILES_PER_REQUEST = 100  # a client is as busy with a request as with 30 files of a listing; but a request has a price

log = get_logger("hudistream.clean")


@takes_path
def clean(table: HudiTable, settings: CleanSettings | None = None, *, due: bool = True) -> list[CleanMetadata]:
    """Finishes cleans that were begun; without one, plans a new one if it is due, and executes it.

    Then it removes the folders of emptied partitions, unless a live writer holds the table. On a full disk it gives up
    the table's reserve first (`table.storage.reserve`).

    Args:
        table: the table, or its path.
        settings: the policy; None: the default one.
        due: False: only cleans that were begun are finished.

    Returns:
        What each clean did; empty if nothing had to be deleted.

    Raises:
        HudiError: nothing was deleted that is not in a plan on the timeline.
    """
    chosen = settings or CleanSettings()

    def clean_by(policy: CleanSettings) -> list[CleanMetadata]:
        return carry_out_cleans(schedule_clean(table, policy, due=due), policy)

    done, was_full = with_reserve(table.storage, lambda: clean_by(chosen))
    if was_full:  # the first may have been one that was begun, by a policy that frees less
        done += clean_by(replace(chosen, trigger_commits=0))
    keep_reserve(table.storage)
    emptied = [path for outcome in done for path in outcome.plan.emptied]
    if emptied:
        try:
            with hold_table(table.storage, "hudistream clean"):
                remove_emptied_partitions(table, emptied)
        except CommitConflictError as error:
            log.debug("emptied_partitions_left_to_writer", table=table.storage.base_uri, reason=str(error))
    return done


def schedule_clean(
    table: HudiTable, settings: CleanSettings, *, due: bool = True, known: CleanerMemory | None = None
) -> Snapshot:
    """Plans and requests a clean, if one is due and none is under way.

    Args:
        settings: the policy.
        due: False: nothing new is planned.
        known: what the caller remembers of earlier plans; see `plan_clean`.

    Returns:
        The table, with the cleans on its timeline that are to be carried out.

    Raises:
        UnsupportedTableError: tables of this version and type are not written here.
        HudiError: no clean was requested.
    """
    check_version_written(table.config, "clean")
    with guarded(table, Step.SCHEDULE):
        commits = known.commits_of(table.storage) if known is not None else None
        snapshot = _redo_empty_cleans(Snapshot.load(table, commits=commits), known)
        if not due or snapshot.timeline.pending_of(Action.CLEAN):
            return snapshot
        plan = plan_clean(snapshot, settings, known)
        if plan is not None:
            content = encode_clean_plan(plan)
            request_instant(table.storage, snapshot.timeline, Action.CLEAN, table.instant_clock, content)
            log.debug("clean_requested", table=table.storage.base_uri, files=plan.file_count, policy=plan.policy)
    # the instant is on the timeline before anything is deleted, and is found there
    return snapshot.again()


def carry_out_cleans(
    snapshot: Snapshot, settings: CleanSettings, known: CleanerMemory | None = None
) -> list[CleanMetadata]:
    """Carries out the cleans that are on the timeline, each from its own plan.

    Args:
        snapshot: the table, as `schedule_clean` returned it.
        settings: how many files at a time.
        known: what the caller remembers of earlier plans.

    Returns:
        What each clean did.

    Raises:
        HudiError: nothing was deleted that is not in a plan on the timeline.
    """
    done = []
    for pending in snapshot.timeline.pending_of(Action.CLEAN):
        try:
            outcome = execute_clean(snapshot, pending, settings, known)
        except (CorruptFileError, TimelineMovedError):
            # another cleaner may have carried it out, and even archived it, since we listed the timeline
            now = snapshot.table.load_timeline().find(pending.time, Action.CLEAN)
            if now is not None and not now.is_completed:
                raise
            outcome = None
        if outcome is not None:
            done.append(outcome)
    return done


def _redo_empty_cleans(snapshot: Snapshot, known: CleanerMemory | None) -> Snapshot:
    """A completed clean without content was cut short by a store that creates files before it fills them."""
    whole = known.last_clean.start_time if known is not None and known.last_clean is not None else None
    newest = [instant for instant in snapshot.timeline.completed_of(Action.CLEAN)[-1:] if instant.time != whole]
    empty = [instant for instant in newest if not read_instant(snapshot.storage, instant)]
    for instant in empty:
        delete_instant_file(snapshot.storage, instant)
    return snapshot.again() if empty else snapshot


def execute_clean(
    snapshot: Snapshot, pending: Instant, settings: CleanSettings, known: CleanerMemory | None = None
) -> CleanMetadata | None:
    """Carries out a clean that is on the timeline, from its own plan. Can be repeated.

    Args:
        snapshot: the table, with the clean on its timeline.
        pending: the clean, requested or inflight.
        settings: how many files at a time.
        known: what the caller remembers of earlier plans.

    Returns:
        What it did; None where it was dropped: it had no plan (it died before it had one), or commits that it
        was planned from are being undone.
    """
    storage = snapshot.storage
    started_ms = clock.now_ms()
    plan_file = pending.at(State.REQUESTED)
    data = read_instant(storage, plan_file) if snapshot.timeline.contains(plan_file) else b""
    if not data and snapshot.timeline.contains(pending.at(State.INFLIGHT)):
        data = read_instant(storage, pending.at(State.INFLIGHT))
    if not data:
        for state in reversed(snapshot.timeline.files_of(pending.time, Action.CLEAN)):
            delete_instant_file(storage, state)
        return None
    plan = decode_clean_plan(data, plan_file.file_name)
    wanted, refused, is_outdated = _sort_out(snapshot, plan, PinFacts.load(snapshot, settings), known)
    if pending.state is State.REQUESTED and (is_outdated or _is_being_undone(snapshot.timeline)):
        delete_instant_file(storage, plan_file)
        log.warning("clean_withdrawn", table=storage.base_uri, instant_time=pending.time)
        return None
    begun = begin_instant(storage, plan_file, encode_clean_plan(plan))
    deleted: dict[str, tuple[str, ...]] = {}
    failed: dict[str, tuple[str, ...]] = {}
    why = f"policy {plan.policy}, commits from {plan.earliest[0] if plan.earliest else '-'} retained"
    with threads.make_pool(settings.parallelism, "hudistream-clean") as pool:
        for path, relative in wanted.items():
            missed = storage.delete_many(relative, pool)
            # an answer may have been lost: the lists of files must not name what is gone
            missed = frozenset(
                file for file, is_left in zip(missed, pool.map(storage.exists, missed), strict=True) if is_left
            )
            names = {file: file.rsplit("/", 1)[-1] for file in relative}
            deleted[path] = tuple(names[file] for file in relative if file not in missed)
            if missed:
                failed[path] = tuple(names[file] for file in relative if file in missed)
            for name in relative:
                event = "file_not_cleaned" if name in missed else "file_cleaned"
                log.debug(event, table=storage.base_uri, path=name, instant_time=pending.time, why=why)
    for path, files in refused.items():
        failed[path] = (*failed.get(path, ()), *(file.rsplit("/", 1)[-1] for file in files))
    plan = replace(plan, emptied=(*plan.emptied, *plan.partitions))  # a foreign plan's partitions, too
    outcome = CleanMetadata(pending.time, clock.now_ms() - started_ms, plan, deleted, failed)
    _complete(snapshot.table, begun, outcome)
    return outcome


def _complete(table: HudiTable, begun: Instant, outcome: CleanMetadata) -> None:
    try:
        changes = changes_of_clean(outcome)
        complete_service(table, begun, encode_clean_metadata(outcome), clock.fresh_uuid(), changes)
    except StorageError:
        # another cleaner carried out the same plan at the same time: it is done either way
        now = table.load_timeline().find(begun.time, Action.CLEAN)
        if now is None or now.state is not State.COMPLETED:
            raise
    log.debug(
        "clean_completed",
        table=table.storage.base_uri,
        instant_time=begun.time,
        files=sum(map(len, outcome.deleted.values())),
        failed=sum(map(len, outcome.failed.values())),
    )


def _is_being_undone(timeline: Timeline) -> bool:
    """Whether commits are being undone, so that versions which the plan takes for old may be current again (rule 10).

    A process that undoes a commit looks for cleans after its own plan is durable. So either it sees the clean, or the
    clean sees its plan.
    """
    return bool(timeline.pending_of(Action.RESTORE, Action.ROLLBACK))


def _sort_out(
    snapshot: Snapshot, plan: CleanPlan, pins: PinFacts, known: CleanerMemory | None
) -> tuple[dict[str, list[str]], dict[str, tuple[str, ...]], bool]:
    """A plan's files by partition: the files to be deleted, relative to the table, and the files that must stay.

    The third value says whether some are in the current snapshot: then commits that the plan was made from were undone.

    These files must stay, whichever writer made the plan: files of the current snapshot (a commit was undone since, and
    an old version is current again), files that a savepoint or a pin holds which was made since, and files outside of
    the table.
    """
    storage = snapshot.storage
    held = load_savepointed(snapshot)
    wanted: dict[str, list[str]] = {}
    refused: dict[str, tuple[str, ...]] = {}
    is_outdated = False
    for path, files in plan.files.items():
        names = {file.rsplit("/", 1)[-1] for file in files}
        # what pins may keep is a share of the whole partition
        count = known.folders.count(path) if known is not None else 0
        entries = _list_groups_of(snapshot, path, names, count if not pins.needs.pins else 0)
        groups = build_file_groups(path, entries, snapshot.slicing)
        current = {file.name for group in groups for file in group.current_files}
        read = find_pinned(path, groups, pins, names)
        if known is not None and count:
            read.update(_recheck(plan, groups, names, known.folders))
        for file in files:
            try:
                relative = storage.relative(file, path)
            except InvalidConfigError as error:
                why = str(error)
            else:
                name = relative.rsplit("/", 1)[-1]
                if name not in current and name not in held.get(path, ()) and name not in read:
                    wanted.setdefault(path, []).append(relative)
                    continue
                is_outdated |= name in current
                why = "it is in the current snapshot" if name in current else read.get(name, "a savepoint holds it")
            log.warning("file_not_cleaned", table=storage.base_uri, path=file, why=why)
            refused[path] = (*refused.get(path, ()), file)
    return wanted, refused, is_outdated


def _recheck(plan: CleanPlan, groups: Iterable[FileGroup], names: set[str], folders: KnownFolders) -> dict[str, str]:
    """Files of a plan from memory that a retained commit shows by what the store lists: name -> why it stays."""
    if plan.earliest is None:
        return {}
    wrong = names & {name for group in groups for name in find_retained(group, plan.earliest[0])}
    if wrong:  # the timeline did not tell what happened: list everything again
        folders.forget_all()
    return dict.fromkeys(wrong, f"readers of {plan.earliest[0]} see it")


def _list_groups_of(snapshot: Snapshot, path: str, names: Iterable[str], count: int) -> Sequence[FileInfo]:
    """Entries of a partition's folder: all, or at least those of the file groups of some files.

    Args:
        path: the partition.
        names: of the files.
        count: of the files in the folder; 0 where it is not known.
    """
    ids = {file_group_of(name) for name in names}
    has_logs = snapshot.config.table_type == TableType.MERGE_ON_READ
    prefixes = [prefix for one in ids if one is not None for prefix in file_group_prefixes(one, has_logs=has_logs)]
    is_dearer = len(prefixes) > 1 + count // _FILES_PER_REQUEST
    if None in ids or is_dearer or not count or not snapshot.storage.lists_by_prefix:
        return snapshot.listing.list_files(path)
    return [entry for prefix in prefixes for entry in snapshot.storage.list_prefix(path, prefix)]
