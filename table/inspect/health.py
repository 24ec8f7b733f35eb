"""The health of a table: the facts that an operator needs at a glance, and a verdict. Reads no data file."""

from collections import Counter
from collections.abc import Iterable, Sequence

from table import clock
from table.config.readable import check_can_read
from table.hudi_table import HudiTable
from table.inspect.health_facts import Backlog, Health, PendingInstant
from table.inspect.judge_health import judged
from table.inspect.overview import CommitFigures, read_figures
from table.options.choices import TableType
from table.options.groups import HeartbeatSettings
from table.services.compaction.plan import commits_since_compaction
from table.services.kept_settings import KeptSettings, load_settings
from table.services.probes import probe
from table.services.rollback.outlook import load_outlook
from table.snapshot import SERVICE_OPERATIONS, Snapshot
from table.timeline.instant import Action
from table.timeline.pins import PINS_FOLDER, parse_pin
from table.transaction.holder import find_standing_holder
from table.transaction.lease_record import describe_holder
from table.view.file_group import FileGroup

COMMITS_SEEN = 10
"""So many of the newest commits say how fast rows come."""


def load_health(table: HudiTable, settings: KeptSettings | None = None, stale_after_s: float | None = None) -> Health:
    """Examines a table: one listing per folder, and the commits of the active timeline. Changes nothing.

    Args:
        settings: of a sink, which say what is small and what is late. None: those of the sink that started last.
        stale_after_s: seconds without a commit of a writer after which the table is worth a look; None: never.
            Services do not count.

    Returns:
        The facts, with findings.

    Raises:
        HudiError: the timeline or a folder cannot be read, or the table has a version that is not read here.
    """
    check_can_read(table.config)
    settings = settings or load_settings(table.storage)
    snapshot = Snapshot.load(table)
    timeline = snapshot.timeline
    found = probe(snapshot)
    groups, room = found.groups, found.room
    newest = timeline.writes_by_time[-COMMITS_SEEN:]
    holder = find_standing_holder(table.storage, HeartbeatSettings())
    held_by = holder.record if holder.record is not None and not holder.record.is_released else None
    by_time = read_figures(snapshot, newest)
    figures = by_time.values()
    of_rows = [time for time, one in by_time.items() if one.operation not in SERVICE_OPERATIONS]
    facts = Health(
        table.storage.base_uri,
        table.config.version,
        table.config.table_type,
        newest[-1].time if newest else None,
        _age_s(newest[-1].time, table) if newest else None,
        rows_per_minute([instant.time for instant in newest], figures),
        describe_holder(held_by) if held_by is not None else None,
        holder.is_alive if held_by is not None else None,
        *_count_files(groups, settings.sizes.small_file_limit_bytes),
        small_beside=_count_beside(groups, settings.sizes.small_file_limit_bytes),
        backlog=_find_backlog(snapshot, groups, found.replaced),
        pending=tuple(
            PendingInstant(one.instant.time, one.instant.action.value, _age_s(one.instant.time, table), str(one))
            for one in load_outlook(snapshot, holder, HeartbeatSettings())
        ),
        savepoints=tuple(i.time for i in timeline.completed_of(Action.SAVEPOINT)),
        pinned_snapshots=len({pin.time for pin in map(parse_pin, _names(table, PINS_FOLDER)) if pin is not None}),
        missing_files=tuple(one.named.path for one in found.lost),
        lost=tuple(map(str, found.lost)),
        clock=found.clock,
        damaged_commits=found.damaged_commits,
        metadata_table=found.metadata_table,
        damaged_index=found.damaged_index,
        free_bytes=None if room is None else room.free_bytes,
        batch_bytes=max((one.bytes_written for one in figures), default=0),
        not_writable="" if room is None else room.not_writable,
        is_read_only=room is not None and room.is_read_only,
        judged_as=settings.sink_id,
        last_rows_age_s=min((_age_s(timeline.visible_times[time], table) for time in of_rows), default=None),
    )
    return judged(facts, settings.clean, settings.archive, settings.compaction, stale_after_s)


def rows_per_minute(times: Sequence[str], figures: Iterable[CommitFigures]) -> float | None:
    """Rows that commits added, updated and deleted per minute between the first and the last commit (pure).

    Args:
        times: instant times, oldest first.
        figures: figures of the same commits; rows of the first commit do not count, they came before that time.
    """
    if len(times) < 2:
        return None
    seconds = (clock.parse_instant_time(times[-1]) - clock.parse_instant_time(times[0])) / 1000
    rows = sum(one.rows_added + one.rows_updated + one.rows_deleted for one in list(figures)[1:])
    return rows * 60 / seconds if seconds > 0 else None


def _age_s(time: str, table: HudiTable) -> float:
    return max(0.0, (clock.now_ms() - clock.parse_instant_time(time, table.config.timezone)) / 1000)


def _names(table: HudiTable, folder: str) -> list[str]:
    return [entry.name for entry in table.storage.list_dir(folder)]


def _count_files(groups: Sequence[FileGroup], small_bytes: int) -> tuple[int, int, int, int, int]:
    bases = [group.latest_base_file for group in groups]
    sizes = [base.size_bytes for base in bases if base is not None]
    logs = [log.size_bytes for group in groups for log in group.merged_slice.log_files]
    return len(sizes), sum(sizes), sum(size < small_bytes for size in sizes), len(logs), sum(logs)


def _count_beside(groups: Sequence[FileGroup], small_bytes: int) -> int:
    """Small base files that share their partition path with another one."""
    bases = [group.latest_base_file for group in groups]
    counts = Counter(base.partition_path for base in bases if base is not None and base.size_bytes < small_bytes)
    return sum(count for count in counts.values() if count > 1)


def _find_backlog(snapshot: Snapshot, groups: Sequence[FileGroup], replaced: Sequence[FileGroup]) -> Backlog:
    cleans = snapshot.timeline.completed_of(Action.CLEAN)
    writes = snapshot.timeline.writes_by_time
    savepoints = snapshot.timeline.completed_of(Action.SAVEPOINT)
    old = [
        file.size_bytes
        for group in groups
        for found in group.slices
        for file in found.all_files
        if file not in group.current_files
    ]
    old += [file.size_bytes for group in replaced for file in group.files]
    on_logs = snapshot.config.table_type == TableType.MERGE_ON_READ
    return Backlog(
        sum(write.time > cleans[-1].time for write in writes) if cleans else None,
        len(old),
        sum(old),
        len(commits_since_compaction(snapshot.timeline)) if on_logs else None,
        len(snapshot.timeline.pending_of(Action.COMPACTION, Action.LOG_COMPACTION)),
        len(writes),
        sum(write.time >= savepoints[0].time for write in writes) if savepoints else None,
    )
