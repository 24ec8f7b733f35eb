"""Plans a clean: reads the facts that a plan is made from, and applies the rules of `plan` to them."""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from table import clock
from table.errors import BrokenInvariantError, StorageError
from table.files.names import parse_base_file
from table.hudi_table import HudiTable
from table.options.choices import TableType
from table.options.groups import KEEP_LATEST_FILE_VERSIONS, CleanSettings
from table.services.clean.known_folders import KnownFolders
from table.services.clean.memory import CleanerMemory
from table.services.clean.plan import (
    FileFate,
    Protection,
    choose_incremental_paths,
    earliest_in_use,
    earliest_to_retain,
    find_arrivals,
    is_emptied,
    judge_file_group,
    judge_replaced_group,
    lifetimes,
    needs_cleaning,
)
from table.services.clean.readers import ReaderNeeds, bytes_of, hold_for_readers
from table.snapshot import Snapshot
from table.storage.interface import FileInfo
from table.timeline.active_timeline import find_instant
from table.timeline.instant import WRITE_ACTIONS, Action, Instant
from table.timeline.kept_from import find_kept_from
from table.timeline.metadata.clean import CleanMetadata, CleanPlan
from table.timeline.metadata.savepoint import decode_savepoint
from table.timeline.pins import Pin, load_live_pins, see_live_pins
from table.view.file_group import CommittedInstants, DataFile, FileGroup, build_file_groups, committed_instants
from table.view.pending_compactions import load_compacting

HOUR_MS = 3_600_000
_LEFT_OUT = "hoodie.clean.partition.filter leaves its partition path out"


@dataclass(frozen=True)
class PartitionFates:
    """What becomes of the files of one partition.

    Attributes:
        partition_path: the partition.
        fates: of each committed base file, and of each log file.
        is_emptied: whether nothing is left in it.
        total_bytes: of all these files.
        current: the files of file groups in sight that readers of the newest snapshot open.
    """

    partition_path: str
    fates: tuple[FileFate, ...]
    is_emptied: bool
    total_bytes: int
    current: frozenset[DataFile] = frozenset()

    @property
    def deleted(self) -> tuple[FileFate, ...]:
        """The fates of the files that are deleted."""
        return tuple(fate for fate in self.fates if fate.deleted)


@dataclass(frozen=True)
class Facts:
    """The facts that a plan is made from, read once."""

    snapshot: Snapshot
    settings: CleanSettings
    earliest: Instant | None
    last_clean: CleanMetadata | None
    savepoints: tuple[str, ...]
    protection: Protection
    committed: CommittedInstants
    replaced: dict[str, dict[str, str]]
    needs: ReaderNeeds


@dataclass(frozen=True)
class PinFacts:
    """The facts that are read again before files are deleted.

    Attributes:
        committed: which files count, those of replaced groups included.
        replaced: partition path -> file id -> instant that replaced it.
        needs: the pins.
        arrivals: see `find_arrivals`.
    """

    committed: CommittedInstants
    replaced: dict[str, dict[str, str]]
    needs: ReaderNeeds
    arrivals: dict[str, str]

    @staticmethod
    def load(snapshot: Snapshot, settings: CleanSettings) -> "PinFacts":
        """The facts as they are now, including pins that were written since the plan."""
        needs = replace(load_reader_needs(snapshot.table, settings), recent=None)
        if not needs.pins:
            return PinFacts(committed_instants(snapshot.timeline, {}), {}, needs, {})
        arrivals = _load_arrivals(snapshot)
        return PinFacts(_replaced_included(snapshot), load_replaced(snapshot), needs, arrivals)


def plan_clean(snapshot: Snapshot, settings: CleanSettings, known: CleanerMemory | None = None) -> CleanPlan | None:
    """The plan of the files that a clean would delete now; None if no clean is due, or no file has to be deleted.

    Args:
        settings: the policy.
        known: what the caller remembers of earlier plans.

    Raises:
        BrokenInvariantError: the plan names a file of the current snapshot: nothing is deleted.
        StorageError: the plan would delete more than the set share of the table.
    """
    memory = known if known is not None else CleanerMemory()
    last = memory.load_last_clean(snapshot)
    # before anything else is read: for most batches of a sink that cleans rarely, nothing more is read
    if not needs_cleaning(snapshot.timeline, last.plan.last_commit if last else None, settings):
        return None
    facts = _load_facts(snapshot, settings, last, load_reader_needs(snapshot.table, settings))
    files: dict[str, tuple[str, ...]] = {}
    emptied: list[str] = []
    postponed: list[str] = []
    gone_bytes = seen_bytes = 0
    now = clock.format_instant_time(clock.now_ms(), snapshot.config.timezone)
    judged, later = _judge_chosen(facts, memory)
    postponed += later
    for of_partition in judged:
        path = of_partition.partition_path
        memory.held.note(path, of_partition.fates, facts.earliest.time if facts.earliest else "", now)
        seen_bytes += of_partition.total_bytes
        gone = of_partition.deleted
        gone_bytes += sum(fate.file.size_bytes for fate in gone)
        if gone:
            files[path] = tuple(snapshot.storage.absolute(fate.file.path) for fate in gone)
        if of_partition.is_emptied:
            emptied.append(path)
        if any(fate.is_held for fate in of_partition.fates):
            postponed.append(path)
    if not files:
        return None
    _check_share(settings, gone_bytes, seen_bytes)
    earliest = facts.earliest
    commits = snapshot.timeline.writes_by_time
    plan = CleanPlan(
        settings.policy,
        (earliest.time, earliest.action.value) if earliest else None,
        commits[-1].time if commits else "",
        dict(sorted(files.items())),
        savepoints=facts.savepoints,
        left=tuple(sorted(postponed)),
        emptied=tuple(sorted(emptied)),
    )
    is_told = last is not None and last.plan.kept_from
    before = last.plan.bound if last and is_told else find_kept_from(snapshot.storage, snapshot.timeline)
    return replace(plan, kept_from=max(plan.bound, before or ""))


def judge_files(table: HudiTable, settings: CleanSettings) -> Iterator[PartitionFates]:
    """Says for every file of the table what a clean would do with it now, and why. Nothing is changed.

    Yields:
        One partition after the other.
    """
    snapshot = Snapshot.load(table)
    needs = _needs_of(see_live_pins(table.storage), table, settings)
    facts = _load_facts(snapshot, settings, CleanerMemory().load_last_clean(snapshot), needs)
    for path in snapshot.list_partition_paths():
        judged = _judge_partition(facts, path, snapshot.listing.list_files(path))
        yield judged if settings.takes(path) else _left_out(judged)


def _left_out(judged: PartitionFates) -> PartitionFates:
    """A partition that the filter of cleaning does not name: everything stays."""
    fates = [replace(fate, deleted=False, rule=_LEFT_OUT) if fate.deleted else fate for fate in judged.fates]
    return replace(judged, fates=tuple(fates), is_emptied=False)


def _check_share(settings: CleanSettings, gone_bytes: int, seen_bytes: int) -> None:
    most = settings.most_share
    if most is not None and seen_bytes and gone_bytes > most * seen_bytes:
        raise StorageError(
            f"the clean would delete {gone_bytes / seen_bytes:.0%} of the {seen_bytes} bytes it looked at, more than "
            f"hudistream.clean.max.share={most}: see `hudistream clean --dry-run`, then raise the share"
        )


def _load_facts(snapshot: Snapshot, settings: CleanSettings, last: CleanMetadata | None, needs: ReaderNeeds) -> Facts:
    timeline, oldest_ms = snapshot.timeline, clock.now_ms() - settings.hours_retained * HOUR_MS
    on_logs = snapshot.config.table_type == TableType.MERGE_ON_READ
    is_writing = bool(timeline.pending_of(*WRITE_ACTIONS, Action.CLUSTERING))
    compactions = timeline.completed_of(Action.COMMIT) if on_logs and is_writing else ()
    protection = Protection(
        load_savepointed(snapshot),
        _load_compacting(snapshot),
        compacted=frozenset(instant.time for instant in compactions),
        arrivals=_load_arrivals(snapshot),
        in_use=earliest_in_use(timeline) if settings.policy == KEEP_LATEST_FILE_VERSIONS else None,
    )
    return Facts(
        snapshot,
        settings,
        earliest_to_retain(
            timeline,
            settings,
            clock.format_instant_time(oldest_ms, snapshot.config.timezone),
            last.plan.earliest[0] if last is not None and last.plan.earliest is not None else None,
        ),
        last,
        tuple(savepoint.time for savepoint in timeline.completed_of(Action.SAVEPOINT)),
        protection,
        _replaced_included(snapshot),
        load_replaced(snapshot),
        needs,
    )


def _load_arrivals(snapshot: Snapshot) -> dict[str, str]:
    """See `find_arrivals`; a table that one writer writes, without compactions, has none."""
    if snapshot.layout.completes_in_order:
        return find_arrivals({time: int(since) for time, since in snapshot.timeline.visible_times.items()})
    names = snapshot.layout.names
    times = {instant.file_name: instant.time for instant in snapshot.timeline.completed_writes}
    entries = snapshot.storage.list_dir(names.folder)
    return find_arrivals({times[entry.name]: entry.modified_ms for entry in entries if entry.name in times})


def _replaced_included(snapshot: Snapshot) -> CommittedInstants:
    """Which files count. Replaced groups are judged here, so they are not left out."""
    return replace(snapshot.slicing, replaced={})


def load_replaced(snapshot: Snapshot) -> dict[str, dict[str, str]]:
    """Partition path -> file id -> instant of the commit that replaced the file group."""
    replaced: dict[str, dict[str, str]] = {}
    for instant in snapshot.timeline.completed_of(Action.REPLACE_COMMIT):
        commit = snapshot.commits.find(instant)
        if commit is not None:
            for path, ids in commit.replaced.items():
                replaced.setdefault(path, {}).update(dict.fromkeys(ids, instant.time))
    return replaced


def load_reader_needs(table: HudiTable, settings: CleanSettings) -> ReaderNeeds:
    """Which snapshots readers have pinned, and since when superseded versions stay.

    Raises:
        StorageError: the store fails.
    """
    return _needs_of(load_live_pins(table.storage), table, settings)


def _needs_of(live: Iterable[Pin], table: HudiTable, settings: CleanSettings) -> ReaderNeeds:
    pins = dict.fromkeys(pin.time for pin in live)
    recent_ms = clock.now_ms() - settings.grace_ms
    recent = clock.format_instant_time(recent_ms, table.config.timezone) if settings.grace_ms else None
    return ReaderNeeds(tuple(pins), recent, settings.readers_share)


def load_savepointed(snapshot: Snapshot) -> dict[str, frozenset[str]]:
    """Partition path -> names of the files that savepoints hold."""
    held: dict[str, set[str]] = {}
    for savepoint in snapshot.timeline.completed_of(Action.SAVEPOINT):
        data = find_instant(snapshot.storage, savepoint)
        for path, names in (decode_savepoint(data).files if data is not None else {}).items():
            held.setdefault(path, set()).update(names)
    return {path: frozenset(names) for path, names in held.items()}


def _load_compacting(snapshot: Snapshot) -> dict[tuple[str, str], str]:
    pending = snapshot.timeline.pending_of(Action.COMPACTION, Action.LOG_COMPACTION)
    return {key: found.base_instant_time for key, found in load_compacting(snapshot.storage, pending).items()}


def _judge_chosen(facts: Facts, memory: CleanerMemory) -> tuple[Iterable[PartitionFates], list[str]]:
    """What becomes of the partitions to look at now, one after the other, and the partitions for later.

    Those to look at are the ones that changed since the last clean; all where that is not known.
    """
    settings, last, timeline = facts.settings, facts.last_clean, facts.snapshot.timeline
    if settings.policy != KEEP_LATEST_FILE_VERSIONS and facts.earliest is None:
        return [], []
    first = timeline.first_active_time
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
        for instant in timeline.completed_writes:
            if since <= instant.time < until:
                touched[instant.time] = {path for path, _ in facts.snapshot.commits.read(instant).file_groups}
        # and partitions with files that an earlier clean could not delete, or must not delete yet
        again = {*last.plan.left, *(path for path, names in last.failed.items() if names), *facts.replaced}
        last_touched = {path: time for time in sorted(touched) for path in touched[time]}
        chosen = choose_incremental_paths(since, until, touched) | again
        later = {path for path in chosen if memory.held.may_skip(path, last_touched.get(path, ""), facts.needs.recent)}
        memory.follow(facts.snapshot)
        return (_judge_known(facts, path, memory.folders) for path in sorted(chosen - later)), sorted(later)
    walked = ((path, entries) for path, entries in facts.snapshot.listing.walk() if settings.takes(path))
    return (_judge_partition(facts, path, entries) for path, entries in walked), []


def _judge_known(facts: Facts, path: str, folders: KnownFolders) -> PartitionFates:
    """As `_judge_partition`, of a folder that is listed only where its files are not known."""
    known = folders.find(path)
    if known is not None:
        fates = _judge_partition(facts, path, known)
        if not fates.is_emptied:  # only a listing shows a file that is being written there
            return fates
    entries = facts.snapshot.listing.list_files(path)
    has_logs = facts.snapshot.config.table_type == TableType.MERGE_ON_READ
    folders.keep(path, entries, facts.committed, has_logs=has_logs)
    return _judge_partition(facts, path, entries)


def _judge_partition(facts: Facts, path: str, entries: Sequence[FileInfo]) -> PartitionFates:
    settings, earliest, protection = facts.settings, facts.earliest, facts.protection
    replaced = facts.replaced.get(path, {})
    judged: list[FileFate] = []
    seen: set[DataFile] = set()
    live: list[FileGroup] = []
    gone: list[tuple[FileGroup, str]] = []
    for group in build_file_groups(path, entries, facts.committed):
        if group.file_id in replaced:
            gone.append((group, replaced[group.file_id]))
            judged += judge_replaced_group(group, replaced[group.file_id], settings, earliest, protection)
        else:
            live.append(group)
            fates_of_group = judge_file_group(group, settings, earliest, protection)
            current = frozenset(group.current_files)
            seen |= current
            wrong = next((fate.file.path for fate in fates_of_group if fate.deleted and fate.file in current), None)
            if wrong is not None:
                raise BrokenInvariantError(f"a clean wanted to delete {wrong}, which is in the snapshot")
            judged += fates_of_group
    fates = hold_for_readers(judged, facts.needs, bytes_of(live, gone))
    pending = sum(
        (base := parse_base_file(entry.name)) is not None and not facts.committed.includes(base.instant_time)
        for entry in entries
    )
    emptied = bool(fates) and is_emptied(len(live), pending, list(replaced.values()), fates, earliest)
    return PartitionFates(path, tuple(fates), emptied, sum(fate.file.size_bytes for fate in fates), frozenset(seen))


def find_pinned(path: str, groups: Sequence[FileGroup], facts: PinFacts, names: Container[str]) -> dict[str, str]:
    """Files of a partition that a plan would delete and a pin holds: name -> why it stays (pure).

    Args:
        path: the partition.
        groups: its file groups.
        facts: what is pinned, and when file groups were replaced.
        names: of the plan's files in the partition.
    """
    if not facts.needs.pins:
        return {}
    replaced = facts.replaced.get(path, {})
    fates = [
        FileFate(file, deleted=True, rule="", seen=seen)
        for group in groups
        for found, seen in zip(group.slices, lifetimes(group, replaced.get(group.file_id), facts.arrivals), strict=True)
        for file in found.all_files
        if file.name in names
    ]
    live = [group for group in groups if group.file_id not in replaced]
    gone = [(group, replaced[group.file_id]) for group in groups if group.file_id in replaced]
    held = hold_for_readers(fates, facts.needs, bytes_of(live, gone))
    return {fate.file.name: fate.rule for fate in held if fate.is_held}
