"""Partition paths that appeared or disappeared since the last sync of a table (pure; TimelineUtils)."""

from collections.abc import Iterable
from dataclasses import dataclass

from table.timeline.change import Change
from table.timeline.instant import WRITE_ACTIONS, Instant
from table.timeline.metadata.commit import CommitMetadata
from table.timeline.timeline import Timeline

MANY = "many"
_MOST_TIMES = 150  # a metastore takes 4,000 letters in a property


@dataclass(frozen=True)
class PathChanges:
    """Partition paths that were written to, and paths that were deleted; the later event of a path counts."""

    written: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()


def settled_until(timeline: Timeline) -> str:
    """The newest completed write that is older than every pending write. A pending write may complete later.

    Returns:
        Its instant time; empty if there is no such write.
    """
    oldest_pending = min((instant.time for instant in timeline.pending_of(*WRITE_ACTIONS)), default=None)
    settled = (one.time for one in timeline.completed_writes if oldest_pending is None or one.time < oldest_pending)
    return max(settled, default="")


def written_beyond(timeline: Timeline, until: str) -> str:
    """The completed writes after an instant, as a property of a catalog stores them.

    They are registered although an older write is pending, and a later sync must know whether one of them was undone.

    Args:
        until: as `settled_until` gives it.

    Returns:
        Their instant times with commas between them; `MANY` if a property cannot hold them all.
    """
    times = [instant.time for instant in timeline.writes_by_time if instant.time > until]
    return ",".join(times) if len(times) <= _MOST_TIMES else MANY


def are_told(timeline: Timeline, since: str, beyond: str = "") -> bool:
    """Whether the active timeline still has an instant, every write after it, and the writes beyond it.

    If one of them was archived, or undone, the timeline does not have the changes since: partitions that it brought
    into the catalog may be gone.

    Args:
        since: instant time up to which all writes are registered.
        beyond: later writes that are registered, as `written_beyond` gives them.
    """
    registered = {since, *(beyond.split(",") if beyond else ())}
    change = Change.between(registered, timeline.committed_times)
    return not (change.archived or change.undone)


def find_path_changes(writes: Iterable[tuple[Instant, CommitMetadata]]) -> PathChanges:
    """The changes of partition paths by the writes of a table.

    Args:
        writes: completed writes with their metadata, in order of their times.
    """
    present: dict[str, bool] = {}
    for _, metadata in writes:
        present.update(dict.fromkeys(metadata.replaced, False))
        present.update((stat.partition_path, True) for stat in metadata.stats)
    return PathChanges(
        tuple(path for path, is_there in present.items() if is_there),
        tuple(path for path, is_there in present.items() if not is_there),
    )
