"""Cleaning: plan, request, execute, record (CleanPlanActionExecutor, CleanActionExecutor).

A clean that was begun is finished from the plan in its own file, whoever began it; nothing is planned
anew before. What it deletes is checked against a timeline loaded after the plan was durable: files of the
current snapshot and of savepoints stay, whatever a plan says (rules 1 and 10).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import structlog

from table import clock, threads
from table.errors import (
    BrokenInvariantError,
    CommitConflictError,
    CorruptFileError,
    InvalidConfigError,
    StorageError,
)
from table.files.file_names import parse_base_file
from table.hudi_table import HudiTable, check_copy_on_write
from table.services.clean_plan import (
    TOO_YOUNG,
    FileFate,
    Protection,
    choose_incremental_paths,
    earliest_to_retain,
    is_emptied,
    judge_file_group,
    judge_replaced_group,
    needs_cleaning,
)
from table.services.partitions import remove_emptied_partitions
from table.settings import KEEP_LATEST_FILE_VERSIONS, CleanSettings
from table.storage import FileInfo, join
from table.timeline.active_timeline import (
    begin_instant,
    complete_instant,
    delete_instant_file,
    find_instant,
    load_timeline,
    read_instant,
    request_instant,
)
from table.timeline.clean_metadata import (
    CleanMetadata,
    CleanPlan,
    decode_clean_metadata,
    decode_clean_plan,
    encode_clean_metadata,
    encode_clean_plan,
)
from table.timeline.commit_metadata import decode_commit
from table.timeline.instant import Action, Instant, State
from table.timeline.savepoint_metadata import decode_savepoint
from table.timeline.service_metadata import decode_record, read_as
from table.timeline.timeline import Timeline, inflight, requested
from table.transaction.lease import hold_table
from table.view.file_group import CommittedInstants, build_file_groups
from table.view.file_system_view import list_partition_paths

log = structlog.get_logger("hudistream.clean")

HOUR_MS = 3_600_000


@dataclass(frozen=True)
class PartitionFates:
    """What becomes of the files of one partition.

    Attributes:
        partition_path: the partition.
        fates: of each committed base file.
        is_emptied: whether nothing is left in it.
        total_bytes: of all these files.
    """

    partition_path: str
    fates: tuple[FileFate, ...]
    is_emptied: bool
    total_bytes: int

    @property
    def deleted(self) -> tuple[FileFate, ...]:
        """Those that go."""
        return tuple(fate for fate in self.fates if fate.deleted)


@dataclass(frozen=True)
class _Facts:
    """What a plan is made of, read once."""

    timeline: Timeline
    settings: CleanSettings
    earliest: Instant | None
    last_clean: CleanMetadata | None
    savepoints: tuple[str, ...]
    protection: Protection
    committed: CommittedInstants
    replaced: dict[str, dict[str, str]]


def clean(table: HudiTable, settings: CleanSettings, *, due: bool = True) -> list[CleanMetadata]:
    """`run_clean`, and then removes the folders of emptied partitions, unless a live writer holds the table.

    Args:
        table: the table.
        settings: the policy.
        due: False: only what was begun is finished.

    Returns:
        What each clean did; empty where nothing had to go.

    Raises:
        HudiError: nothing was deleted that is not in a plan on the timeline.
    """
    done = run_clean(table, settings, due=due)
    emptied = [path for outcome in done for path in outcome.plan.emptied]
    if emptied:
        try:
            with hold_table(table.storage, "hudistream clean"):
                remove_emptied_partitions(table, emptied)
        except CommitConflictError as error:
            log.info("emptied_partitions_left_to_writer", table=table.storage.base_uri, reason=str(error))
    return done


def run_clean(table: HudiTable, settings: CleanSettings, *, due: bool = True) -> list[CleanMetadata]:
    """Finishes cleans that were begun; without one, plans a new one if it is due, and executes it.

    Args:
        table: the table.
        settings: the policy.
        due: False: only what was begun is finished.

    Returns:
        What each clean did; empty where nothing had to go.

    Raises:
        HudiError: nothing was deleted that is not in a plan on the timeline.
    """
    check_copy_on_write(table.config, "clean")
    timeline = _redo_empty_cleans(table, load_timeline(table.storage))
    if due and not timeline.pending_of(Action.CLEAN):
        plan = plan_clean(table, timeline, settings)
        if plan is not None:
            request_instant(table.storage, timeline, Action.CLEAN, table.config.timezone, encode_clean_plan(plan))
            log.info("clean_requested", table=table.storage.base_uri, files=plan.file_count, policy=plan.policy)
        # the instant is on the timeline before anything is deleted, and is found there
        timeline = load_timeline(table.storage)
    done = []
    for pending in timeline.pending_of(Action.CLEAN):
        try:
            outcome = execute_clean(table, timeline, pending, settings)
        except CorruptFileError:
            # another cleaner may have carried it out, and even archived it, since we listed the timeline
            now = load_timeline(table.storage).find(pending.time, Action.CLEAN)
            if now is not None and not now.is_completed:
                raise
            outcome = None
        if outcome is not None:
            done.append(outcome)
    return done


def _redo_empty_cleans(table: HudiTable, timeline: Timeline) -> Timeline:
    """A completed clean without content was cut short by a store that creates files before it fills them."""
    empty = [i for i in timeline.completed_of(Action.CLEAN)[-1:] if not read_instant(table.storage, i)]
    for instant in empty:
        delete_instant_file(table.storage, instant)
    return load_timeline(table.storage) if empty else timeline


def plan_clean(table: HudiTable, timeline: Timeline, settings: CleanSettings) -> CleanPlan | None:
    """What a clean would delete now; None where none is due, or nothing has to go.

    Raises:
        BrokenInvariantError: the plan names a file of the current snapshot: nothing is deleted.
        StorageError: the plan would delete more than the set share of the table.
    """
    facts = _load_facts(table, timeline, settings)
    if not needs_cleaning(timeline, facts.last_clean.plan.last_commit if facts.last_clean else None, settings):
        return None
    files: dict[str, tuple[str, ...]] = {}
    emptied: list[str] = []
    left: list[str] = []
    gone_bytes = seen_bytes = 0
    for path in _choose_partitions(table, facts):
        of_partition = _judge_partition(table, facts, path)
        seen_bytes += of_partition.total_bytes
        gone = of_partition.deleted
        gone_bytes += sum(fate.file.size_bytes for fate in gone)
        if gone:
            files[path] = tuple(table.storage.absolute(fate.file.path) for fate in gone)
        if of_partition.is_emptied:
            emptied.append(path)
        if any(fate.rule == TOO_YOUNG for fate in of_partition.fates):
            left.append(path)
    if not files:
        return None
    _check_share(settings, gone_bytes, seen_bytes)
    earliest = facts.earliest
    commits = timeline.completed_writes
    return CleanPlan(
        settings.policy,
        (earliest.time, earliest.action.value) if earliest else None,
        commits[-1].time if commits else "",
        files,
        savepoints=facts.savepoints,
        left=tuple(left),
        emptied=tuple(emptied),
    )


def judge_files(table: HudiTable, settings: CleanSettings) -> Iterator[PartitionFates]:
    """For every file of the table what a clean would do with it now, and why; nothing is changed.

    Yields:
        One partition after the other.
    """
    facts = _load_facts(table, load_timeline(table.storage), settings)
    for path in list_partition_paths(table.storage):
        yield _judge_partition(table, facts, path)


def _check_share(settings: CleanSettings, gone_bytes: int, seen_bytes: int) -> None:
    most = settings.most_share
    if most is not None and seen_bytes and gone_bytes > most * seen_bytes:
        raise StorageError(
            f"the clean would delete {gone_bytes / seen_bytes:.0%} of the {seen_bytes} bytes it looked at, more than "
            f"hudistream.clean.max.share={most}: look at `hudistream clean --dry-run`, then raise the share"
        )


def _load_facts(table: HudiTable, timeline: Timeline, settings: CleanSettings) -> _Facts:
    storage = table.storage
    oldest_ms = clock.now_ms() - settings.hours_retained * HOUR_MS
    cleans = timeline.completed_of(Action.CLEAN)
    last = decode_clean_metadata(read_instant(storage, cleans[-1]), cleans[-1].file_name) if cleans else None
    savepoints = timeline.completed_of(Action.SAVEPOINT)
    protection = Protection(_load_savepointed(table, timeline), _load_compacting(table, timeline))
    replaced: dict[str, dict[str, str]] = {}
    for instant in timeline.completed_of(Action.REPLACE_COMMIT):
        for path, ids in decode_commit(read_instant(storage, instant), instant.file_name).replaced.items():
            replaced.setdefault(path, {}).update(dict.fromkeys(ids, instant.time))
    return _Facts(
        timeline,
        settings,
        earliest_to_retain(timeline, settings, clock.format_instant_time(oldest_ms, table.config.timezone)),
        last,
        tuple(savepoint.time for savepoint in savepoints),
        protection,
        # replaced groups are judged here, so nothing is out of sight
        CommittedInstants(timeline.committed_times, timeline.first_active_time, {}),
        replaced,
    )


def _load_savepointed(table: HudiTable, timeline: Timeline) -> dict[str, frozenset[str]]:
    held: dict[str, set[str]] = {}
    for savepoint in timeline.completed_of(Action.SAVEPOINT):
        data = find_instant(table.storage, savepoint)
        for path, names in (decode_savepoint(data).files if data is not None else {}).items():
            held.setdefault(path, set()).update(names)
    return {path: frozenset(names) for path, names in held.items()}


def _load_compacting(table: HudiTable, timeline: Timeline) -> dict[tuple[str, str], str]:
    found = {}
    for pending in timeline.pending_of(Action.COMPACTION, Action.LOG_COMPACTION):
        plan = requested(pending.time, pending.action)
        record = decode_record("compaction_plan", read_instant(table.storage, plan), plan.file_name)
        with read_as("compaction_plan", plan.file_name):
            for operation in record.get("operations") or ():
                found[(operation["partitionPath"], operation["fileId"])] = operation["baseInstantTime"]
    return found


def _choose_partitions(table: HudiTable, facts: _Facts) -> list[str]:
    """Partitions to look at: those that changed since the last clean, where it is known, or all."""
    settings, last = facts.settings, facts.last_clean
    if settings.policy != KEEP_LATEST_FILE_VERSIONS and facts.earliest is None:
        return []
    first = facts.timeline.first_active_time
    if (
        settings.incremental
        and settings.policy != KEEP_LATEST_FILE_VERSIONS
        and last is not None
        and last.plan.earliest is not None
        and first is not None
        and last.plan.earliest[0] >= first
        and set(last.plan.savepoints) <= set(facts.savepoints)
        and facts.earliest is not None
    ):
        since, until = last.plan.earliest[0], facts.earliest.time
        touched = {}
        for instant in facts.timeline.completed_writes:
            if since <= instant.time < until:
                metadata = decode_commit(read_instant(table.storage, instant), instant.file_name)
                touched[instant.time] = {path for path, _ in metadata.file_groups}
        # and what an earlier clean could not delete, or must not yet
        again = {*last.plan.left, *(path for path, names in last.failed.items() if names), *facts.replaced}
        return sorted(choose_incremental_paths(since, until, touched) | again)
    return list_partition_paths(table.storage)


def _judge_partition(table: HudiTable, facts: _Facts, path: str) -> PartitionFates:
    entries = table.storage.list_dir(path)
    settings, earliest = facts.settings, facts.earliest
    protection = _with_grace(facts.protection, settings, path, entries)
    replaced = facts.replaced.get(path, {})
    fates: list[FileFate] = []
    live = 0
    for group in build_file_groups(path, entries, facts.committed):
        if group.file_id in replaced:
            fates += judge_replaced_group(group, replaced[group.file_id], settings, earliest, protection)
        elif group.base_files:
            live += 1
            judged = judge_file_group(group, settings, earliest, protection)
            if judged[0].deleted:
                raise BrokenInvariantError(f"a clean wanted to delete {judged[0].file.path}, which is in the snapshot")
            fates += judged
    pending = sum(
        (base := parse_base_file(entry.name)) is not None and not facts.committed.includes(base.instant_time)
        for entry in entries
    )
    emptied = bool(fates) and is_emptied(live, pending, list(replaced.values()), fates, earliest)
    return PartitionFates(path, tuple(fates), emptied, sum(fate.file.size_bytes for fate in fates))


def _with_grace(protection: Protection, settings: CleanSettings, path: str, entries: list[FileInfo]) -> Protection:
    if not settings.grace_ms:
        return protection
    youngest_ms = clock.now_ms() - settings.grace_ms
    young = frozenset(join(path, entry.name) for entry in entries if entry.modified_ms > youngest_ms)
    return Protection(protection.savepointed, protection.compacting, young)


def execute_clean(
    table: HudiTable, timeline: Timeline, pending: Instant, settings: CleanSettings
) -> CleanMetadata | None:
    """Carries out a clean that is on the timeline, from its own plan. Can be repeated.

    Args:
        table: the table.
        timeline: with the clean in it.
        pending: the clean, requested or inflight.
        settings: how many files at a time.

    Returns:
        What it did; None where it was dropped: it had no plan (it died before it had one), or commits that it
        was planned from are being undone.

    Raises:
        BrokenInvariantError: the plan names a file of the current snapshot; nothing is deleted.
    """
    storage = table.storage
    started_ms = clock.now_ms()
    plan_file = requested(pending.time, Action.CLEAN)
    data = read_instant(storage, plan_file) if timeline.contains(plan_file) else b""
    if not data and timeline.contains(inflight(pending.time, Action.CLEAN)):
        data = read_instant(storage, inflight(pending.time, Action.CLEAN))
    if not data:
        for state in reversed(timeline.files_of(pending.time, Action.CLEAN)):
            delete_instant_file(storage, state)
        return None
    plan = decode_clean_plan(data, plan_file.file_name)
    if _is_being_undone(timeline, pending):
        delete_instant_file(storage, plan_file)
        log.warning("clean_withdrawn", table=storage.base_uri, instant_time=pending.time)
        return None
    wanted, refused = _sort_out(table, timeline, plan)
    _check_snapshot(table, timeline, wanted)
    begun = begin_instant(storage, plan_file, encode_clean_plan(plan))
    deleted: dict[str, tuple[str, ...]] = {}
    failed: dict[str, tuple[str, ...]] = {}
    why = f"policy {plan.policy}, commits from {plan.earliest[0] if plan.earliest else '-'} retained"
    with threads.make_pool(settings.parallelism, "hudistream-clean") as pool:
        for path, relative in wanted.items():
            missed = storage.delete_many(relative, pool)
            names = {file: file.rsplit("/", 1)[-1] for file in relative}
            deleted[path] = tuple(names[file] for file in relative if file not in missed)
            if missed:
                failed[path] = tuple(names[file] for file in relative if file in missed)
            for name in relative:
                event = "file_not_cleaned" if name in missed else "file_cleaned"
                log.info(event, table=storage.base_uri, path=name, instant_time=pending.time, why=why)
    for path, files in refused.items():
        failed[path] = (*failed.get(path, ()), *(file.rsplit("/", 1)[-1] for file in files))
    plan = replace(plan, emptied=(*plan.emptied, *plan.partitions))  # a foreign plan's partitions, too
    outcome = CleanMetadata(pending.time, clock.now_ms() - started_ms, plan, deleted, failed)
    _complete(table, begun, outcome)
    return outcome


def _complete(table: HudiTable, begun: Instant, outcome: CleanMetadata) -> None:
    try:
        complete_instant(table.storage, begun, encode_clean_metadata(outcome))
    except StorageError:
        # another cleaner carried out the same plan at the same time: it is done either way
        now = load_timeline(table.storage).find(begun.time, Action.CLEAN)
        if now is None or now.state is not State.COMPLETED:
            raise
    log.info(
        "clean_completed",
        table=table.storage.base_uri,
        instant_time=begun.time,
        files=sum(map(len, outcome.deleted.values())),
        failed=sum(map(len, outcome.failed.values())),
    )


def _is_being_undone(timeline: Timeline, pending: Instant) -> bool:
    """Whether commits are being undone, so that what the plan takes for old may be current again (rule 10).

    Whoever undoes one looks for cleans after its own plan is durable: of the two, one sees the other.
    """
    if timeline.contains(inflight(pending.time, Action.CLEAN)):
        return False
    return bool(timeline.pending_of(Action.RESTORE, Action.ROLLBACK))


def _sort_out(
    table: HudiTable, timeline: Timeline, plan: CleanPlan
) -> tuple[dict[str, list[str]], dict[str, tuple[str, ...]]]:
    """A plan's files by partition: those to be deleted, relative to the table, and those that must stay.

    Must stay: what a savepoint holds that was made since the plan was, and what does not lie in the table.
    """
    storage = table.storage
    held = _load_savepointed(table, timeline)
    wanted: dict[str, list[str]] = {}
    refused: dict[str, tuple[str, ...]] = {}
    for path, files in plan.files.items():
        for file in files:
            try:
                relative = storage.relative(file)
            except InvalidConfigError as error:
                log.warning("file_not_cleaned", table=storage.base_uri, path=file, why=str(error))
            else:
                if relative.rsplit("/", 1)[-1] not in held.get(path, ()):
                    wanted.setdefault(path, []).append(relative)
                    continue
                log.info("file_not_cleaned", table=storage.base_uri, path=relative, why="a savepoint holds it")
            refused[path] = (*refused.get(path, ()), file)
    return wanted, refused


def _check_snapshot(table: HudiTable, timeline: Timeline, wanted: Mapping[str, Sequence[str]]) -> None:
    committed = table.load_committed(timeline)
    for path, files in wanted.items():
        names = {file.rsplit("/", 1)[-1] for file in files}
        for group in build_file_groups(path, table.storage.list_dir(path), committed):
            if group.latest is not None and group.latest.name in names:
                raise BrokenInvariantError(
                    f"a clean plan names {group.latest.path}, which is in the current snapshot: nothing was deleted"
                )
