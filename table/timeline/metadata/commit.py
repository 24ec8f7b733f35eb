"""WriteStat and CommitMetadata <-> the contents of ``.commit`` files (pure; HoodieCommitMetadata, HoodieWriteStat).

In timeline layout 1 they are JSON. In layout 2 they are Avro with the same names (`avro_commit`).

Fields of a write stat that are not known survive a round trip. Unknown fields of the commit itself do not, and fields
of a stat that are the same in each commit of hudistream are written as there.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from table.errors import CorruptFileError
from table.files.column_ranges import Ranges
from table.files.key_changes import KeyChanges
from table.storage.interface import join

NO_PREVIOUS_COMMIT = "null"  # Hudi writes the word
UNKNOWN = "UNKNOWN"
CHANGE_FILES = "cdcStats"  # path of each change file beside the file of a stat -> its bytes


@dataclass(frozen=True, slots=True)
class WriteStat:
    """One file that a commit wrote: the fields of HoodieWriteStat in our spelling.

    Attributes:
        file_id: file group, with its ``-0``.
        path: relative to the table.
        partition_path: the same as the key of the stat's entry in ``partitionToWriteStats``.
        prev_commit: instant of the base file it replaces, or the word ``null``.
        prev_base_file: name of that file, or None.
        num_writes: rows in the new file, including rows carried over.
        num_inserts: rows that are new to the table.
        num_update_writes: rows that replaced others.
        num_deletes: rows that were deleted.
        file_size_bytes: size of the new file.
        ranges: least and greatest values of its columns, for the statistics of a metadata table. A commit's file does
            not contain them. None: they were not asked for.
        keys: record keys that the file group gets and loses, for a record index; as `ranges`.
    """

    file_id: str
    path: str
    partition_path: str
    prev_commit: str = NO_PREVIOUS_COMMIT
    prev_base_file: str | None = None
    num_writes: int = 0
    num_inserts: int = 0
    num_update_writes: int = 0
    num_deletes: int = 0
    total_write_bytes: int = 0
    file_size_bytes: int = 0
    total_write_errors: int = 0
    create_ms: int = 0
    upsert_ms: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict)
    ranges: Ranges | None = field(default=None, compare=False)
    keys: KeyChanges | None = field(default=None, compare=False)

    @property
    def named_paths(self) -> tuple[str, ...]:
        """Its file, and the change files (``.cdc``) beside it."""
        return (self.path, *self.change_files)

    @property
    def change_files(self) -> dict[str, int]:
        """The change files beside its file: path -> bytes."""
        named = self.extra.get(CHANGE_FILES) or {}
        return {join(self.partition_path, path.rpartition("/")[2]): size for path, size in named.items()}

    def to_json(self) -> dict[str, Any]:
        """The stat as Hudi spells it, every field of HoodieWriteStat present."""
        return {
            "fileId": self.file_id,
            "path": self.path,
            CHANGE_FILES: None,
            "prevCommit": self.prev_commit,
            "numWrites": self.num_writes,
            "numDeletes": self.num_deletes,
            "numUpdateWrites": self.num_update_writes,
            "numInserts": self.num_inserts,
            "numUpdates": 0,
            "totalWriteBytes": self.total_write_bytes,
            "totalWriteErrors": self.total_write_errors,
            "tempPath": None,
            "partitionPath": self.partition_path,
            "totalLogReadTimeMs": 0,
            "totalLogRecords": 0,
            "totalLogFilesCompacted": 0,
            "totalLogSizeCompacted": 0,
            "totalUpdatedRecordsCompacted": 0,
            "totalLogBlocks": 0,
            "totalCorruptLogBlock": 0,
            "totalRollbackBlocks": 0,
            "fileSizeInBytes": self.file_size_bytes,
            "minEventTime": None,
            "maxEventTime": None,
            "prevBaseFile": self.prev_base_file,
            "runtimeStats": {
                "totalScanTime": 0,
                "totalUpsertTime": self.upsert_ms,
                "totalCreateTime": self.create_ms,
            },
            **self.extra,
        }


_READABLE_STATS = 64
_STAT_NAMES = {
    "fileId": "file_id",
    "path": "path",
    "partitionPath": "partition_path",
    "prevCommit": "prev_commit",
    "prevBaseFile": "prev_base_file",
    "numWrites": "num_writes",
    "numInserts": "num_inserts",
    "numUpdateWrites": "num_update_writes",
    "numDeletes": "num_deletes",
    "totalWriteBytes": "total_write_bytes",
    "fileSizeInBytes": "file_size_bytes",
    "totalWriteErrors": "total_write_errors",
}
_STAT_TEXTS = frozenset(("file_id", "path", "partition_path", "prev_commit", "prev_base_file"))
_TIMES = "runtimeStats"
_WRITTEN = WriteStat("", "", "").to_json()
# fields that are the same in each of our stats; where another writer's differ, they are kept
_CONSTANTS = {key: value for key, value in _WRITTEN.items() if key not in _STAT_NAMES and key != _TIMES}


def stat_from_json(value: Mapping[str, Any], partition_path: str) -> WriteStat:
    """A write stat of a commit file, ours or another writer's.

    Raises:
        TypeError, ValueError, AttributeError: for a field of another type than Hudi writes.
    """
    known = {ours: value[theirs] for theirs, ours in _STAT_NAMES.items() if value.get(theirs) is not None}
    for name, found in known.items():
        if not isinstance(found, str if name in _STAT_TEXTS else int):
            raise TypeError(f"{name} is {found!r}")
    if not isinstance(value.get(CHANGE_FILES) or {}, Mapping):
        raise TypeError(f"{CHANGE_FILES} is {value[CHANGE_FILES]!r}")
    runtime = value.get(_TIMES) or {}
    extra = {
        key: found
        for key, found in value.items()
        if key not in _WRITTEN or (key in _CONSTANTS and found not in (None, _CONSTANTS[key]))
    }
    if runtime.get("totalScanTime"):
        extra[_TIMES] = runtime
    return WriteStat(
        **{"file_id": "", "path": "", "partition_path": partition_path, **known},
        create_ms=int(runtime.get("totalCreateTime") or 0),
        upsert_ms=int(runtime.get("totalUpsertTime") or 0),
        extra=extra,
    )


@dataclass(frozen=True)
class CommitMetadata:
    """What a commit did.

    Attributes:
        stats: files written, grouped by partition path when encoded.
        operation: ``INSERT``, ``UPSERT``, ``BULK_INSERT`` … (WriteOperationType).
        extra: ``extraMetadata``: the schema, the checkpoint of a stream.
        replaced: partition path to file ids that a replace commit replaces.
        compacted: whether a compaction wrote the files.
    """

    stats: tuple[WriteStat, ...] = ()
    operation: str = "INSERT"
    extra: Mapping[str, str] = field(default_factory=dict)
    replaced: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    compacted: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known of the commit, because its file is empty."""
        return self.operation == UNKNOWN and not (self.stats or self.replaced)

    @property
    def named_paths(self) -> frozenset[str]:
        """Paths of every file that the commit names, relative to the table."""
        return frozenset(path for stat in self.stats for path in stat.named_paths)

    @property
    def file_groups(self) -> frozenset[tuple[str, str]]:
        """(partition path, file id) of everything this commit wrote or replaced."""
        written = {(stat.partition_path, stat.file_id) for stat in self.stats}
        return frozenset(written | {(path, file_id) for path, ids in self.replaced.items() for file_id in ids})


@dataclass(frozen=True)
class CommitOutline:
    """What a commit says without its files: those take seconds to decode where there are 100,000.

    Attributes:
        operation: as of `CommitMetadata`.
        extra: as of `CommitMetadata`.
    """

    operation: str
    extra: Mapping[str, str]


def document_of(metadata: CommitMetadata, *, names_replaced: bool) -> dict[str, Any]:
    """The fields of a commit in Hudi's spelling, for either encoding.

    Args:
        names_replaced: whether the replaced file groups are a field.
    """
    by_path: dict[str, list[dict[str, Any]]] = {}
    for stat in metadata.stats:
        by_path.setdefault(stat.partition_path, []).append(stat.to_json())
    document: dict[str, Any] = {
        "partitionToWriteStats": by_path,
        "compacted": metadata.compacted,
        "extraMetadata": dict(metadata.extra),
        "operationType": metadata.operation,
    }
    if names_replaced:
        document["partitionToReplaceFileIds"] = {path: list(ids) for path, ids in metadata.replaced.items()}
    return document


def encode_commit(metadata: CommitMetadata) -> bytes:
    """JSON of a completed (or inflight) commit."""
    document = document_of(metadata, names_replaced=bool(metadata.replaced))
    # Python's indenting encoder takes ten times as long, and no person reads a commit of thousands of files
    indent = 1 if len(metadata.stats) <= _READABLE_STATS else None
    return json.dumps(document, ensure_ascii=False, indent=indent).encode()


def decode_commit(data: bytes, name: str = "commit") -> CommitMetadata:
    """Decodes the content of a commit file; empty content means "nothing is known" (CommitMetadataSerDeV1).

    Args:
        data: the file's bytes.
        name: file name, for the error.

    Raises:
        CorruptFileError: when it is not JSON of that form.
    """
    if not data.strip():
        return CommitMetadata(operation=UNKNOWN)
    try:
        return commit_of(json.loads(data))
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise CorruptFileError(f"{name} is not the JSON of a commit: {error}") from error


# how the JSON of a commit ends, in the order of fields in which Hudi and this project write it
_BEFORE_EXTRA = re.compile(rb'"compacted"\s*:\s*(?:true|false)\s*,\s*\Z')
_BEHIND_EXTRA = re.compile(r'\s*,\s*"operationType"\s*:\s*"(\w+)"\s*\}\s*\Z')
_EXTRA = b'"extraMetadata"'  # within a text the closing quote would have a backslash before it
_LEAD_BYTES = 200


def outline_of_json(data: bytes) -> CommitOutline | None:
    """The outline of a commit, from the end of its file; None where the fields have another order."""
    at = data.rfind(_EXTRA)
    if at < 0 or not _BEFORE_EXTRA.search(data[max(0, at - _LEAD_BYTES) : at]):
        return None
    try:
        text = data[at + len(_EXTRA) :].decode().lstrip().removeprefix(":").lstrip()
        extra, end = json.JSONDecoder().raw_decode(text)
        behind = _BEHIND_EXTRA.match(text, end)
        return None if behind is None else CommitOutline(behind[1], _texts(extra))
    except (ValueError, AttributeError, TypeError, RecursionError):
        return None  # who decodes the whole file says what is wrong with it


def commit_of(document: Mapping[str, Any]) -> CommitMetadata:
    """A commit from its fields in Hudi's spelling, for either encoding.

    Raises:
        TypeError, ValueError, AttributeError: for a field of another type than Hudi writes.
    """
    stats = tuple(
        stat_from_json(stat, path)
        for path, of_path in (document.get("partitionToWriteStats") or {}).items()
        for stat in of_path
    )
    replaced = {path: tuple(map(_text, ids)) for path, ids in (document.get("partitionToReplaceFileIds") or {}).items()}
    extra = _texts(document.get("extraMetadata"))
    operation = _text(document.get("operationType") or UNKNOWN)
    return CommitMetadata(stats, operation, extra, replaced, bool(document.get("compacted")))


def _texts(values: Mapping[str, Any] | None) -> dict[str, str]:
    return {key: _text(found) for key, found in (values or {}).items() if found is not None}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} in the place of a text")
    return value


def total_rows(stats: Iterable[WriteStat]) -> int:
    """Rows that these stats added to the table."""
    return sum(stat.num_inserts for stat in stats)
