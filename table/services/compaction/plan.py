"""When a merge-on-read table is compacted, and which of its slices (pure; ScheduleCompactionActionExecutor)."""

from collections.abc import Iterable

from table.options.choices import CompactionTrigger
from table.options.groups import CompactionSettings
from table.timeline.instant import Action, Instant
from table.timeline.metadata.compaction import CompactionOperation, CompactionPlan
from table.timeline.timeline import Timeline
from table.view.file_group import FileGroup, FileSlice

_MB = 1024 * 1024


def commits_since_compaction(timeline: Timeline) -> tuple[Instant, ...]:
    """Completed delta commits after the last completed compaction (CompactionUtils)."""
    compactions = timeline.completed_of(Action.COMMIT)
    last = compactions[-1].time if compactions else ""
    return tuple(instant for instant in timeline.completed_of(Action.DELTA_COMMIT) if instant.time > last)


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


def plan_compaction(groups: Iterable[FileGroup], target_io_mb: int) -> CompactionPlan:
    """The slices with log files, those with the most bytes in log files first (LogFileSizeBasedCompactionStrategy).

    Args:
        groups: of the table, or of some of its partitions.
        target_io_mb: no more slices are taken once reading and writing them takes so much.
    """
    found = [group.slices[0] for group in groups if _logs_of(group.slices[0])]
    found.sort(key=lambda one: (-sum(log.size_bytes for log in one.log_files), one.partition_path, one.file_id))
    chosen: list[CompactionOperation] = []
    left_mb = float(target_io_mb)
    for one in found:
        operation = _operation_of(one)
        if chosen and operation.metrics["TOTAL_IO_MB"] > left_mb:
            break
        left_mb -= operation.metrics["TOTAL_IO_MB"]
        chosen.append(operation)
    return CompactionPlan(tuple(chosen))


def _logs_of(found: FileSlice) -> list[str]:
    return [log.name for log in found.log_files if not log.suffix]


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
