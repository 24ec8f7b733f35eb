"""The result that tasks report. Results add up, from a single file to the whole batch (pure)."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from table.files.column_ranges import decode_ranges, encode_ranges
from table.files.key_changes import decode_keys, encode_keys
from table.index.key_lookup import LookupCounts
from table.timeline.metadata.commit import WriteStat, stat_from_json
from table.view.file_group import BaseFile, base_file_of

EXAMPLES = 3


@dataclass(frozen=True)
class TaskResult:
    """The result of one task, or of several together.

    Attributes:
        stats: write stats of the files written.
        footer_bytes: footers of these files, together.
        copied_bytes: bytes of these files that were copied from older files without encoding.
        reencoded: reason why older files were encoded again -> number of files.
        listed: live files of the paths that had to be listed; only the small ones if the batch only adds rows.
        bad_rows: number of rows that cannot be stored: no record key, no valid partition path, or null in a column
            where the table's schema allows none. Unless the rows were put aside, the batch must not be committed.
        examples: some of the bad rows, as text.
        quarantined: names of the files that hold the bad rows, if they were put aside.
        query_id: the streaming query of the task, if the task knows it.
        job_group: Spark's job group of the task, which is the run of the query unless code of the caller set another.
        lookup: the cost of looking up keys.
        deletes_unmatched: deletes of keys that the table does not have, as far as keys are looked up.
    """

    stats: tuple[WriteStat, ...] = ()
    footer_bytes: int = 0
    copied_bytes: int = 0
    reencoded: Mapping[str, int] = field(default_factory=dict)
    listed: Mapping[str, tuple[BaseFile, ...]] = field(default_factory=dict)
    bad_rows: int = 0
    examples: tuple[str, ...] = ()
    quarantined: tuple[str, ...] = ()
    query_id: str | None = None
    job_group: str | None = None
    lookup: LookupCounts = field(default_factory=LookupCounts)
    deletes_unmatched: int = 0

    def __add__(self, other: "TaskResult") -> "TaskResult":
        return sum_results((self, other))

    @property
    def is_empty(self) -> bool:
        """Whether the result has nothing that the driver needs."""
        return not (self.stats or self.bad_rows or self.listed or self.lookup.keys or self.deletes_unmatched)

    def encode(self) -> str:
        """JSON, one string per task."""
        parts = {f.name: getattr(self, f.name) for f in fields(self)}
        parts["stats"] = [stat.to_json() for stat in self.stats]
        parts["ranges"] = [encode_ranges(stat.ranges) for stat in self.stats]
        parts["keys"] = [encode_keys(stat.keys) for stat in self.stats]
        parts["listed"] = {
            path: [[file.name, file.size_bytes] for file in files] for path, files in self.listed.items()
        }
        parts["lookup"] = asdict(self.lookup)
        return json.dumps(parts)


def decode_result(text: str) -> TaskResult:
    """The inverse of `TaskResult.encode`."""
    parts: dict[str, Any] = json.loads(text)
    parts["stats"] = tuple(
        replace(stat_from_json(stat, stat["partitionPath"]), ranges=decode_ranges(ranges), keys=decode_keys(keys))
        for stat, ranges, keys in zip(parts["stats"], parts.pop("ranges"), parts.pop("keys"), strict=True)
    )
    parts["listed"] = {
        path: tuple(base_file_of(path, *file) for file in files) for path, files in parts["listed"].items()
    }
    parts["lookup"] = LookupCounts(**parts["lookup"])
    for name in ("examples", "quarantined"):
        parts[name] = tuple(parts[name])
    return TaskResult(**parts)


def sum_results(results: Iterable[TaskResult]) -> TaskResult:
    """Sums results: counts are added, lists are concatenated, and a few examples are kept."""
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
        job_group=next((result.job_group for result in reversed(every) if result.job_group), None),
        lookup=sum((result.lookup for result in every), LookupCounts()),
        deletes_unmatched=sum(result.deletes_unmatched for result in every),
    )
