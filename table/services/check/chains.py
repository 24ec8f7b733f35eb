"""Whether each write of a file group continued the newest version of it, as far back as the records last (pure).

The write stat of a base file names the instant of the version that it continued. In timeline layout 1 that of a log
file does, too. In layout 2 the name of a log file holds its own instant, and its stat says nothing of the slice.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from table.files.names import parse_base_file, parse_log_file
from table.timeline.metadata.commit import CommitMetadata

Group = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Claim:
    """What one write stat says of its file group.

    Attributes:
        group: (partition path, file id).
        time: instant time of the commit.
        continued: instant time of the version that it continued; "" where the stat names none.
        path: of the file, relative to the table.
        rows: that it inserted or updated.
        is_log: whether it is a log file.
        folds: whether a compaction wrote it: it has the rows of the slice that it continued, and no other ones.
    """

    group: Group
    time: str
    continued: str
    path: str
    rows: int
    is_log: bool
    folds: bool = False


@dataclass(frozen=True, slots=True)
class Break:
    """A version of a file group that a later write did not continue: its rows are gone."""

    lost: Claim
    by: Claim


def claims_of(time: str, commit: CommitMetadata) -> Iterable[Claim]:
    """What the write stats of a commit say of their file groups."""
    for stat in commit.stats:
        name = stat.path.rpartition("/")[2]
        is_log = parse_log_file(name) is not None
        if not is_log and parse_base_file(name) is None:
            continue
        continued = stat.prev_commit if stat.prev_commit.isdigit() else ""
        rows = stat.num_inserts + stat.num_update_writes
        yield Claim((stat.partition_path, stat.file_id), time, continued, stat.path, rows, is_log, commit.compacted)


class Chains:
    """Follows file groups back in time, and finds the versions that were not continued.

    Args:
        logs_name_slices: whether the stats of log files name the version that they continue: timeline layout 1.

    Attributes:
        broken: what was found.
    """

    def __init__(self, *, logs_name_slices: bool) -> None:
        self._logs_name_slices = logs_name_slices
        self._waiting: dict[Group, dict[bool, Claim]] = {}
        self.broken: list[Break] = []

    def add(self, claims: Iterable[Claim]) -> None:
        """Takes claims that are older than those of earlier calls, in any order."""
        for claim in sorted(claims, key=lambda claim: claim.time, reverse=True):
            waiting = self._waiting.setdefault(claim.group, {})
            if not claim.is_log:
                newer = [one for one in waiting.values() if one.continued and one.continued < claim.time < one.time]
                self.broken += [Break(claim, one) for one in newer if not _is_same_slice(claim, one)]
                self._waiting[claim.group] = {False: claim}
            elif self._logs_name_slices:
                known = waiting.get(True)
                if known is None or claim.continued < known.continued:
                    waiting[True] = claim


def _is_same_slice(compaction: Claim, later: Claim) -> bool:
    """Whether a later write folded the slice that a compaction beside it folded, too: it has the same rows."""
    return compaction.folds and not later.is_log and later.continued == compaction.continued
