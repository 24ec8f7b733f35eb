"""When a merge-on-read table is compacted, and which of its slices (pure; ScheduleCompactionActionExecutor)."""

from collections.abc import Iterable, Iterator, Sequence

from table.options.choices import CompactionStrategy, CompactionTrigger
from table.options.groups import CompactionSettings
from table.timeline.instant import Action, Instant
from table.timeline.metadata.compaction import CompactionOperation, CompactionPlan
from table.timeline.timeline import Timeline
from table.view.file_group import FileGroup, FileSlice

_MB = 1024 * 1024


def commits_since_compaction(timeline: Timeline) -> tuple[Instant, ...]:
    """Completed delta commits after the last completed compaction (CompactionUtils).

    A delta commit comes after the compaction if it was completed since the compaction was requested. In timeline layout
    2 the delta commit itself may have been requested before.
    """
    last = max((instant.time for instant in timeline.completed_of(Action.COMMIT)), default="")
    since = timeline.layout.visible_since
    return tuple(instant for instant in timeline.completed_of(Action.DELTA_COMMIT) if since(instant) > last)


def is_due(commits: int, elapsed_s: float, settings: CompactionSettings) -> bool:
    """Whether it is time to compact (CompactionTriggerStrategy).

    Args:
        commits: delta commits since the last compaction.
        elapsed_s: seconds since the first of them.
        settings: the trigger and its bounds.
    """
    enough, late = commits >= settings.delta_commits, elapsed_s >= settings.delta_seconds
    if not commits:
        return False
    return {
        CompactionTrigger.NUM_COMMITS: enough,
        CompactionTrigger.TIME_ELAPSED: late,
        CompactionTrigger.NUM_AND_TIME: enough and late,
        CompactionTrigger.NUM_OR_TIME: enough or late,
    }[settings.trigger]


def plan_compaction(groups: Iterable[FileGroup], settings: CompactionSettings) -> CompactionPlan:
    """The slices with log files that a strategy takes (CompactionStrategy and the classes below it).

    Args:
        groups: of the table, or of some of its partitions.
        settings: the strategy and its bounds.
    """
    slices = [group.slices[0] for group in groups if _logs_of(group.slices[0])]
    found = [_operation_of(one) for one in sorted(slices, key=lambda one: (one.partition_path, one.file_id))]
    if settings.strategy is CompactionStrategy.UNBOUNDED:
        return CompactionPlan(tuple(found))
    if settings.strategy is CompactionStrategy.DAY_BASED:
        return CompactionPlan(tuple(_newest_days(found, settings.days)))
    return CompactionPlan(tuple(_within_io(_ordered(found, settings), settings.target_io_mb)))


def _ordered(found: Sequence[CompactionOperation], settings: CompactionSettings) -> Sequence[CompactionOperation]:
    """The operations above the bound of the strategy, the largest first; BOUNDED_IO leaves all as they are."""
    bounds = {
        CompactionStrategy.LOG_FILE_SIZE: ("TOTAL_LOG_FILES_SIZE", settings.log_bytes),
        CompactionStrategy.LOG_FILE_NUM: ("TOTAL_LOG_FILES", settings.log_files),
    }
    if settings.strategy not in bounds:
        return found
    name, least = bounds[settings.strategy]
    return sorted((one for one in found if one.metrics[name] >= least), key=lambda one: -one.metrics[name])


def _within_io(found: Iterable[CompactionOperation], target_io_mb: int) -> Iterator[CompactionOperation]:
    """The first operations, at least one, until the next would go beyond the bound (BoundedIOCompactionStrategy)."""
    left_mb = float(target_io_mb)
    for number, one in enumerate(found):
        left_mb -= one.metrics["TOTAL_IO_MB"]
        if number and left_mb < 0:
            return
        yield one


def _newest_days(found: Sequence[CompactionOperation], days: int) -> list[CompactionOperation]:
    """The operations of the newest partitions by name, the newest first (DayBasedCompactionStrategy)."""
    paths = sorted({one.partition_path for one in found}, reverse=True)[:days]
    return [one for path in paths for one in found if one.partition_path == path]


def _logs_of(found: FileSlice) -> list[str]:
    return [log.name for log in found.log_files]


def _operation_of(found: FileSlice) -> CompactionOperation:
    base_bytes = found.base_file.size_bytes if found.base_file is not None else 0
    log_bytes = sum(log.size_bytes for log in found.log_files)
    metrics = {
        "TOTAL_LOG_FILES": float(len(found.log_files)),
        "TOTAL_LOG_FILES_SIZE": float(log_bytes),
        "TOTAL_IO_READ_MB": float((base_bytes + log_bytes) // _MB),
        "TOTAL_IO_WRITE_MB": float((base_bytes or log_bytes) // _MB),
    }
    metrics["TOTAL_IO_MB"] = metrics["TOTAL_IO_READ_MB"] + metrics["TOTAL_IO_WRITE_MB"]
    name = found.base_file.name if found.base_file is not None else None
    logs = tuple(_logs_of(found))
    return CompactionOperation(found.partition_path, found.file_id, found.base_instant_time, name, logs, metrics)
