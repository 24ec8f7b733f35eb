"""What tasks report: one value that adds up, from a single file to the whole batch (pure)."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from streaming.plan.bucket_assigner import LiveFile
from table.index.key_lookup import LookupCounts
from table.timeline.metadata.commit import WriteStat, stat_from_json

EXAMPLES = 3


@dataclass(frozen=True)
class TaskResult:
    """What a task did, or several together.

    Attributes:
        stats: files written.
        footer_bytes: of these files together.
        copied_bytes: of these files: taken over from older ones without encoding.
        reencoded: why older files were encoded anew -> how many.
        listed: live files of the paths that had to be listed; for rows that are only added, the small ones.
        bad_rows: rows that cannot be stored: no record key, no fit partition path, null where the
            table's schema allows none; then nothing of this result may be committed.
        examples: some of them, as text.
        quarantined: names of the files that hold the bad rows, if they were put aside.
        query_id: the streaming query that a task belongs to, if it says.
        lookup: what looking for keys cost.
    """

    stats: tuple[WriteStat, ...] = ()
    footer_bytes: int = 0
    copied_bytes: int = 0
    reencoded: Mapping[str, int] = field(default_factory=dict)
    listed: Mapping[str, tuple[LiveFile, ...]] = field(default_factory=dict)
    bad_rows: int = 0
    examples: tuple[str, ...] = ()
    quarantined: tuple[str, ...] = ()
    query_id: str | None = None
    lookup: LookupCounts = field(default_factory=LookupCounts)

    def __add__(self, other: "TaskResult") -> "TaskResult":
        return sum_results((self, other))

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing that a driver has to know."""
        return not (self.stats or self.bad_rows or self.listed)

    def encode(self) -> str:
        """JSON, one string per task."""
        parts = {f.name: getattr(self, f.name) for f in fields(self)}
        parts["stats"] = [stat.to_json() for stat in self.stats]
        parts["listed"] = {path: [asdict(file) for file in files] for path, files in self.listed.items()}
        parts["lookup"] = asdict(self.lookup)
        return json.dumps(parts)


def decode_result(text: str) -> TaskResult:
    """The inverse of `TaskResult.encode`."""
    parts: dict[str, Any] = json.loads(text)
    parts["stats"] = tuple(stat_from_json(stat, stat["partitionPath"]) for stat in parts["stats"])
    parts["listed"] = {path: tuple(LiveFile(**file) for file in files) for path, files in parts["listed"].items()}
    parts["lookup"] = LookupCounts(**parts["lookup"])
    for name in ("examples", "quarantined"):
        parts[name] = tuple(parts[name])
    return TaskResult(**parts)


def sum_results(results: Iterable[TaskResult]) -> TaskResult:
    """What several tasks did together: counts add up, lists follow each other, of the examples a few are kept."""
    every = list(results)
    reencoded: dict[str, int] = {}
    for result in every:
        for reason, files in result.reencoded.items():
            reencoded[reason] = reencoded.get(reason, 0) + files
    return TaskResult(
        stats=tuple(stat for result in every for stat in result.stats),
        footer_bytes=sum(result.footer_bytes for result in every),
        copied_bytes=sum(result.copied_bytes for result in every),
        reencoded=reencoded,
        listed={path: files for result in every for path, files in result.listed.items()},
        bad_rows=sum(result.bad_rows for result in every),
        examples=tuple(text for result in every for text in result.examples)[:EXAMPLES],
        quarantined=tuple(name for result in every for name in result.quarantined),
        query_id=next((result.query_id for result in reversed(every) if result.query_id), None),
        lookup=sum((result.lookup for result in every), LookupCounts()),
    )
