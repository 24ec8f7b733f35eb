"""Which partition paths came and went since a table was last registered (pure; TimelineUtils)."""

from collections.abc import Iterable
from dataclasses import dataclass

from table.timeline.instant import WRITE_ACTIONS, Instant
from table.timeline.metadata.commit import CommitMetadata
from table.timeline.timeline import Timeline


@dataclass(frozen=True)
class PathChanges:
    """Partition paths that rows were written to, and that were deleted, the later of both counting."""

    written: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()


def settled_until(timeline: Timeline) -> str:
    """The newest write before which none is pending: what is behind it may still be completed, out of order.

    Returns:
        Its instant time; empty where there is none.
    """
    oldest_pending = min((instant.time for instant in timeline.pending_of(*WRITE_ACTIONS)), default=None)
    settled = (one.time for one in timeline.completed_writes if oldest_pending is None or one.time < oldest_pending)
    return max(settled, default="")


def are_told(timeline: Timeline, since: str) -> bool:
    """Whether the active timeline still has an instant and every write after it.

    One that was archived, or undone by a restore, tells nothing: what it brought into the catalog may be gone.
    """
    return since in timeline.committed_times


def find_path_changes(writes: Iterable[tuple[Instant, CommitMetadata]]) -> PathChanges:
    """What the writes of a table did to its partition paths.

    Args:
        writes: completed ones with what their files hold, in order of their times.
    """
    present: dict[str, bool] = {}
    for _, metadata in writes:
        present.update(dict.fromkeys(metadata.replaced, False))
        present.update((stat.partition_path, True) for stat in metadata.stats)
    return PathChanges(
        tuple(path for path, is_there in present.items() if is_there),
        tuple(path for path, is_there in present.items() if not is_there),
    )
