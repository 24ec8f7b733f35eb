"""Which slice of its file group a log file belongs to: one rule for each timeline layout (pure; HoodieFileGroup).

A rule gets only times: the times of the base files that count, and the times in the names of the log files, in the
order of `LogFile.order`. For each log file it returns the time of its slice, or None where the log file does not count.
"""

from bisect import bisect_right, insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

CompletedAt = Callable[[str], str | None]
SliceTimes = Callable[[Iterable[str], Sequence[str], CompletedAt], list[str | None]]


def slices_by_name(base_times: Iterable[str], log_times: Sequence[str], completed_at: CompletedAt) -> list[str | None]:  # noqa: ARG001 as `SliceTimes`
    """Layout 1: the name of a log file holds the time of its slice.

    Every log file counts, because several instants write blocks to it. Only its reader knows which blocks count.
    """
    return list(log_times)


def slices_by_completion(
    base_times: Iterable[str], log_times: Sequence[str], completed_at: CompletedAt
) -> list[str | None]:
    """Layout 2: the name of a log file holds the delta commit that wrote it (HoodieFileGroup.getBaseInstantTime).

    The log file belongs to the newest slice that was requested before this delta commit was completed. If a delta
    commit began before a compaction was requested and was completed after it, its log file is not in the compaction's
    plan, and is read on top of the new base file. A log file that was completed before every slice opens a slice of its
    own time. Log files of instants that are not completed do not count
    (AbstractTableFileSystemView.filterUncommittedLogs).

    Args:
        base_times: of the base files that count.
        log_times: of the log files.
        completed_at: returns the completion time of an instant; None where it is not completed.
    """
    opened = sorted(set(base_times))
    slices: list[str | None] = []
    for time in log_times:
        done = completed_at(time)
        if done is None:
            slices.append(None)
            continue
        older = bisect_right(opened, done)
        if not older:
            insort(opened, time)
        slices.append(opened[older - 1] if older else time)
    return slices


SLICE_TIMES: Mapping[int, SliceTimes] = MappingProxyType({1: slices_by_name, 2: slices_by_completion})
