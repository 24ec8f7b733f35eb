"""Whether a compaction is due, by the delta commits of a timeline, and which of them say so."""

from collections.abc import Sequence

from table import clock
from table.options.groups import CompactionSettings
from table.services.compaction.plan import commits_since_compaction, is_due
from table.timeline.instant import Instant
from table.timeline.timeline import Timeline


def make_due(commits: Sequence[Instant], settings: CompactionSettings) -> bool:
    """Whether these delta commits, oldest first, make a compaction due."""
    if not commits:
        return False
    elapsed_ms = _ms_of(commits[-1]) - _ms_of(commits[0])
    return is_due(len(commits), elapsed_ms / 1000, settings)


def _ms_of(commit: Instant) -> int:
    """Its time in milliseconds since 1970; 0 for the instants that make a metadata table, which have no time."""
    return 0 if commit.time.startswith("0" * 14) else clock.parse_instant_time(commit.time)


def first_that_counts(timeline: Timeline, settings: CompactionSettings) -> str | None:
    """The first delta commit by which the next compaction is due, or will be (getOldestInstantToRetainForCompaction).

    Older delta commits change nothing. Hudi counts commits alone; here the same rule applies where time counts.

    Returns:
        Its time; None where there is no delta commit since the last compaction.
    """
    since = commits_since_compaction(timeline)
    first = 0
    while make_due(since[first + 1 :], settings):
        first += 1
    return min((instant.time for instant in since[first:]), default=None)
