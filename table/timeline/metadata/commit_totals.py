"""Sums over the write stats of a commit, without an object for each of 100,000 of them (pure)."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from table.errors import CorruptFileError
from table.files.names import BASE_FILE_EXTENSION
from table.timeline.metadata.avro_record import decode_fields
from table.timeline.metadata.commit import UNKNOWN, CommitMetadata, commit_of

_SAMPLED = 3
_AVRO = b"Obj\x01"
_STATS, _STAT = "partitionToWriteStats", "HoodieWriteStat"
_SUMMED = ("numInserts", "numUpdateWrites", "numDeletes", "fileSizeInBytes")
_OF_BASE_FILES = ("numWrites", "totalWriteBytes")
_NAMED = ("path", "fileId")


@dataclass(frozen=True)
class CommitTotals:
    """What a commit did as a whole.

    Attributes:
        operation: as of `CommitMetadata`.
        extra: as of `CommitMetadata`.
        compacted: as of `CommitMetadata`.
        files: number of files that it wrote.
        inserts: rows that it added.
        updates: rows that it changed.
        deletes: rows that it deleted.
        size_bytes: size of its files.
        base_files: number of base files among them.
        base_rows: rows in the base files.
        base_bytes: bytes that were written into base files.
        sample: path and size of the first few base files.
    """

    operation: str = UNKNOWN
    extra: Mapping[str, str] = field(default_factory=dict)
    compacted: bool = False
    files: int = 0
    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    size_bytes: int = 0
    base_files: int = 0
    base_rows: int = 0
    base_bytes: int = 0
    sample: tuple[tuple[str, int], ...] = ()


class _Sums:
    """Takes the JSON objects of write stats one by one."""

    def __init__(self) -> None:
        self.summed: Counter[str] = Counter()
        self.files = self.base_files = 0
        self.sample: list[tuple[str, int]] = []

    def take(self, value: dict[str, Any]) -> dict[str, Any] | None:
        """Adds the JSON object of a write stat and gives it up; returns any other object."""
        if not isinstance(value.get("numWrites"), int) or "fileId" not in value:
            return value
        is_base = str(value.get("path")).endswith(BASE_FILE_EXTENSION)
        self.files += 1
        for name in (*_SUMMED, *_OF_BASE_FILES) if is_base else _SUMMED:
            self.summed[name] += value.get(name) or 0
        self.base_files += is_base
        if is_base and len(self.sample) < _SAMPLED:
            self.sample.append((str(value["path"]), int(value.get("fileSizeInBytes") or 0)))
        return None

    def totals(self, document: Mapping[str, Any]) -> CommitTotals:
        """The sums, with what the commit says beside its write stats."""
        rest = commit_of({key: found for key, found in document.items() if key != _STATS})
        inserts, updates, deletes, size = (self.summed[name] for name in _SUMMED)
        rows, written = (self.summed[name] for name in _OF_BASE_FILES)
        return CommitTotals(
            rest.operation,
            rest.extra,
            rest.compacted,
            self.files,
            inserts,
            updates,
            deletes,
            size,
            self.base_files,
            rows,
            written,
            tuple(self.sample),
        )


def totals_of(metadata: CommitMetadata) -> CommitTotals:
    """The sums of a commit that is decoded already."""
    stats = metadata.stats
    bases = [stat for stat in stats if stat.path.endswith(BASE_FILE_EXTENSION)]
    return CommitTotals(
        metadata.operation,
        metadata.extra,
        metadata.compacted,
        len(stats),
        sum(stat.num_inserts for stat in stats),
        sum(stat.num_update_writes for stat in stats),
        sum(stat.num_deletes for stat in stats),
        sum(stat.file_size_bytes for stat in stats),
        len(bases),
        sum(stat.num_writes for stat in bases),
        sum(stat.total_write_bytes for stat in bases),
        tuple((stat.path, stat.file_size_bytes) for stat in bases[:_SAMPLED]),
    )


def decode_totals(data: bytes, name: str = "commit") -> CommitTotals:
    """The sums of a commit from the content of its file, JSON or Avro.

    Args:
        data: the file's bytes; not empty.
        name: file name, for the error.

    Raises:
        CorruptFileError: the content does not have the form of a commit.
    """
    sums = _Sums()
    try:
        if not data.startswith(_AVRO):
            return sums.totals(json.loads(data, object_hook=sums.take))
        record = decode_fields(
            data, (_STATS, "compacted", "extraMetadata", "operationType"), {_STAT: (*_NAMED, *_SUMMED, *_OF_BASE_FILES)}
        )
        if record is None:
            raise CorruptFileError(f"{name} is not an Avro file with a commit")
        for stat in _stats_in(record):
            sums.take(stat)
        return sums.totals(record)
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise CorruptFileError(f"{name} does not have the fields of a commit: {error}") from error


def _stats_in(record: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    return (stat for stats in (record.get(_STATS) or {}).values() for stat in stats)
