"""What a clean would delete now: reads what a plan is made of, and lets the rules of `clean_plan` judge it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from table import clock
from table.errors import BrokenInvariantError, StorageError
from table.files.names import parse_base_file
from table.hudi_table import HudiTable
from table.options.groups import KEEP_LATEST_FILE_VERSIONS, CleanSettings
from table.services.clean.plan import (
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
from table.storage.interface import FileInfo, join
from table.timeline.active_timeline import find_instant, read_instant
from table.timeline.instant import Action, Instant, State
from table.timeline.metadata.avro_record import decode_record, read_as
from table.timeline.metadata.clean import CleanMetadata, CleanPlan, decode_clean_metadata
from table.timeline.metadata.savepoint import decode_savepoint
from table.timeline.timeline import Timeline
from table.view.file_group import CommittedInstants, build_file_groups

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
class Facts:
    """What a plan is made of, read once."""

    timeline: Timeline
    settings: CleanSettings
    earliest: Instant | None
    last_clean: CleanMetadata | None
    savepoints: tuple[str, ...]
    protection: Protection
    committed: CommittedInstants
    replaced: dict[str, dict[str, str]]


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
    facts = _load_facts(table, table.load_timeline(), settings)
    for path in table.listing.list_partition_paths():
        yield _judge_partition(table, facts, path)


def _check_share(settings: CleanSettings, gone_bytes: int, seen_bytes: int) -> None:
    most = settings.most_share
    if most is not None and seen_bytes and gone_bytes > most * seen_bytes:
        raise StorageError(
            f"the clean would delete {gone_bytes / seen_bytes:.0%} of the {seen_bytes} bytes it looked at, more than "
            f"hudistream.clean.max.share={most}: look at `hudistream clean --dry-run`, then raise the share"
        )


def _load_facts(table: HudiTable, timeline: Timeline, settings: CleanSettings) -> Facts:
    storage = table.storage
    oldest_ms = clock.now_ms() - settings.hours_retained * HOUR_MS
    cleans = timeline.completed_of(Action.CLEAN)
    last = decode_clean_metadata(read_instant(storage, cleans[-1]), cleans[-1].file_name) if cleans else None
    savepoints = timeline.completed_of(Action.SAVEPOINT)
    protection = Protection(load_savepointed(table, timeline), _load_compacting(table, timeline))
    replaced: dict[str, dict[str, str]] = {}
    for instant in timeline.completed_of(Action.REPLACE_COMMIT):
        for path, ids in timeline.layout.decode_commit(
            read_instant(storage, instant), instant.file_name
        ).replaced.items():
            replaced.setdefault(path, {}).update(dict.fromkeys(ids, instant.time))
    return Facts(
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


def load_savepointed(table: HudiTable, timeline: Timeline) -> dict[str, frozenset[str]]:
    """Partition path -> names of the files that savepoints hold."""
    held: dict[str, set[str]] = {}
    for savepoint in timeline.completed_of(Action.SAVEPOINT):
        data = find_instant(table.storage, savepoint)
        for path, names in (decode_savepoint(data).files if data is not None else {}).items():
            held.setdefault(path, set()).update(names)
    return {path: frozenset(names) for path, names in held.items()}


def _load_compacting(table: HudiTable, timeline: Timeline) -> dict[tuple[str, str], str]:
    found = {}
    for pending in timeline.pending_of(Action.COMPACTION, Action.LOG_COMPACTION):
        plan = pending.at(State.REQUESTED)
        record = decode_record("compaction_plan", read_instant(table.storage, plan), plan.file_name)
        with read_as("compaction_plan", plan.file_name):
            for operation in record.get("operations") or ():
                found[(operation["partitionPath"], operation["fileId"])] = operation["baseInstantTime"]
    return found


def _choose_partitions(table: HudiTable, facts: Facts) -> list[str]:
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
                metadata = facts.timeline.layout.decode_commit(read_instant(table.storage, instant), instant.file_name)
                touched[instant.time] = {path for path, _ in metadata.file_groups}
        # and what an earlier clean could not delete, or must not yet
        again = {*last.plan.left, *(path for path, names in last.failed.items() if names), *facts.replaced}
        return sorted(choose_incremental_paths(since, until, touched) | again)
    return table.listing.list_partition_paths()


def _judge_partition(table: HudiTable, facts: Facts, path: str) -> PartitionFates:
    entries = table.listing.list_files(path)
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


def _with_grace(protection: Protection, settings: CleanSettings, path: str, entries: Sequence[FileInfo]) -> Protection:
    if not settings.grace_ms:
        return protection
    youngest_ms = clock.now_ms() - settings.grace_ms
    young = frozenset(join(path, entry.name) for entry in entries if entry.modified_ms > youngest_ms)
    return Protection(protection.savepointed, protection.compacting, young)
