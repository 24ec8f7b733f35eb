"""Old versions that stay for the sake of readers, within a bound (pure).

A policy counts versions or commits; a reader needs time. So a version that a policy lets go may stay for two reasons. A
reader has pinned a snapshot that shows the version. Or the version was superseded a moment ago, and a reader that pins
nothing (another engine) may still read it. Both reasons end with time. Together they keep at most a share of the bytes
of the partition: pinned snapshots come first, then the newest versions. The share is of the largest version of each
file group: after deletes the current one is smaller than the one that a reader needs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from table.services.clean.plan import FileFate
from table.view.file_group import FileGroup


@dataclass(frozen=True)
class ReaderNeeds:
    """What readers may still need.

    Attributes:
        pins: instant times of pinned snapshots, newest first.
        recent: versions superseded at this instant time or later stay; None: no grace.
        most_share: bytes that may stay, per byte of the partition (`bytes_of`).
    """

    pins: tuple[str, ...] = ()
    recent: str | None = None
    most_share: float = 1.0

    def reason(self, fate: FileFate) -> tuple[tuple[int, str], str] | None:
        """How much it matters that a version stays which the policy lets go, and why; None: it need not stay."""
        seen = fate.seen
        for time in self.pins:
            if seen.since <= time and (seen.needed_until is None or time < seen.needed_until):
                return (1, time), f"a reader has pinned the snapshot {time}"
        if self.recent is not None and seen.superseded_at is not None and seen.superseded_at >= self.recent:
            return (0, seen.superseded_at), "it was superseded within the grace period"
        return None


def hold_for_readers(fates: Sequence[FileFate], needs: ReaderNeeds, partition_bytes: int) -> list[FileFate]:
    """The same fates, in which some versions stay for readers.

    Args:
        fates: of a partition, by the policy.
        needs: what readers may still need.
        partition_bytes: see `bytes_of`.
    """
    wanted = [(found, at) for at, fate in enumerate(fates) if fate.deleted and (found := needs.reason(fate))]
    held = list(fates)
    kept_bytes = 0
    for (_, rule), at in sorted(wanted, key=lambda one: one[0][0], reverse=True):
        kept_bytes += fates[at].file.size_bytes
        if kept_bytes > needs.most_share * partition_bytes:
            break
        held[at] = replace(fates[at], deleted=False, rule=rule, is_held=True)
    return held


class HeldPartitions:
    """Partitions whose only old versions are held for readers, and when it is worth looking at these partitions again.

    A long-lived sink keeps this object, so that it does not look at each such partition after each commit.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, str]] = {}

    def note(self, path: str, fates: Sequence[FileFate], until: str, now: str) -> None:
        """Remembers what became of a partition's files.

        Args:
            path: the partition.
            fates: of all its files.
            until: earliest commit retained when they were judged.
            now: as an instant time.
        """
        self._known.pop(path, None)
        held = [fate.seen.superseded_at or now for fate in fates if fate.is_held]
        if held and not any(fate.deleted for fate in fates):
            self._known[path] = until, min(held)

    def may_skip(self, path: str, touched_at: str, recent: str | None) -> bool:
        """Whether nothing can go from a partition yet.

        Args:
            path: the partition.
            touched_at: the last commit in range that touched it.
            recent: as `ReaderNeeds.recent`.
        """
        until, due = self._known.get(path, ("", ""))
        return recent is not None and touched_at < until and due >= recent


def bytes_of(live: Sequence[FileGroup], replaced: Sequence[tuple[FileGroup, str]]) -> int:
    """The bytes of a partition: the largest version of each file group, or the versions that one commit replaced.

    The larger number counts.

    Args:
        live: file groups in sight.
        replaced: the others, each with the instant that replaced it.
    """
    sizes = {"": sum(_largest_bytes(group) for group in live)}
    for group, time in replaced:
        sizes[time] = sizes.get(time, 0) + sum(file.size_bytes for file in group.current_files)
    return max(sizes.values())


def _largest_bytes(group: FileGroup) -> int:
    return max((sum(file.size_bytes for file in found.files) for found in group.slices), default=0)
