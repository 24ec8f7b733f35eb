"""Retired instants: the archive log below ``.hoodie`` (TimelineArchiverV1, HoodieArchivedMetaEntry)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from table.files.log.block import BlockType, read_avro_records, read_blocks
from table.storage.interface import METAFOLDER, Storage, join
from table.timeline.metadata.avro_record import read_as, text_of, texts_of
from table.timeline.metadata.commit import CommitMetadata, stat_from_json

_PREFIX = ".commits_.archive."


@dataclass(frozen=True)
class ArchivedCommit:
    """A completed commit that left the active timeline.

    Attributes:
        time: its instant time.
        action: ``commit``, ``deltacommit`` or ``replacecommit``.
        metadata: operation and extra metadata; write stats are left out.
    """

    time: str
    action: str
    metadata: CommitMetadata


@dataclass(frozen=True)
class ArchivedChange:
    """What a completed instant did before it left the active timeline.

    Attributes:
        time: its instant time.
        metadata: of a write: its files, and what it replaced; None for a service.
        undone: of a rollback: instants that it undid.
    """

    time: str
    metadata: CommitMetadata | None = None
    undone: tuple[str, ...] = ()


def list_archive_files(storage: Storage, archive_folder: str) -> list[str]:
    """Paths of the archive's files, newest first."""
    folder = join(METAFOLDER, archive_folder)
    names = [entry.name for entry in storage.list_dir(folder) if entry.name.startswith(_PREFIX)]
    return [join(folder, name) for name in sorted(names, key=_number, reverse=True)]


def next_archive_file(storage: Storage, archive_folder: str) -> str:
    """Path of the file that the next archival writes: every run starts one."""
    files = list_archive_files(storage, archive_folder)
    number = _number(files[0].rsplit("/", 1)[-1]) + 1 if files else 1
    return join(METAFOLDER, archive_folder, f"{_PREFIX}{max(1, number)}_1-0-1")


def _number(name: str) -> int:
    digits = name.removeprefix(_PREFIX).split("_", 1)[0]
    return int(digits) if digits.isdigit() else -1


def read_archived_files(storage: Storage, archive_folder: str) -> Iterator[list[ArchivedCommit]]:
    """Completed commits of each file of the archive, newest file first, oldest commit first.

    Raises:
        CorruptFileError: when a file is not in the log format.
    """
    for path in list_archive_files(storage, archive_folder):
        with read_as("archived instant", path):
            found = [_completed_commit(record) for record in _read_records(storage, path)]
        yield [commit for commit in found if commit is not None]


def read_archived_changes(storage: Storage, archive_folder: str) -> Iterator[ArchivedChange]:
    """Completed instants, writes with their files; in memory is one file of the archive.

    Raises:
        CorruptFileError: when a file is not in the log format.
    """
    for path in list_archive_files(storage, archive_folder):
        with read_as("archived instant", path):
            found = [_completed_change(record) for record in _read_records(storage, path)]
        yield from (change for change in found if change is not None)


def _read_records(storage: Storage, path: str) -> Iterator[dict[str, Any]]:
    for block in read_blocks(storage.read(path), path):
        if block.type is BlockType.AVRO_DATA:
            yield from read_avro_records(block, path)


def read_archived_commits(storage: Storage, archive_folder: str) -> Iterator[ArchivedCommit]:
    """Completed commits of the archive, file by file, newest file first.

    Raises:
        CorruptFileError: when a file is not in the log format.
    """
    for commits in read_archived_files(storage, archive_folder):
        yield from commits


def is_archived(storage: Storage, archive_folder: str, time: str) -> bool:
    """Whether a completed commit of that time left the active timeline."""
    return any(commit.time == time for commit in read_archived_commits(storage, archive_folder))


def _completed_commit(record: dict[str, Any]) -> ArchivedCommit | None:
    content = record.get("hoodieCommitMetadata") or record.get("hoodieReplaceCommitMetadata")
    if record.get("actionState") != "COMPLETED" or not content:
        return None
    extra = {key: text_of(value) for key, value in (content.get("extraMetadata") or {}).items() if value is not None}
    metadata = CommitMetadata(operation=text_of(content.get("operationType") or "UNKNOWN"), extra=extra)
    return ArchivedCommit(text_of(record["commitTime"]), text_of(record["actionType"]), metadata)


def _completed_change(record: dict[str, Any]) -> ArchivedChange | None:
    if record.get("actionState") != "COMPLETED":
        return None
    time = text_of(record["commitTime"])
    rollback = record.get("hoodieRollbackMetadata")
    if rollback:
        return ArchivedChange(time, undone=texts_of(rollback.get("commitsRollback") or ()))
    content = record.get("hoodieCommitMetadata") or record.get("hoodieReplaceCommitMetadata")
    if not content:
        return ArchivedChange(time)
    by_path = content.get("partitionToWriteStats") or {}
    stats = tuple(stat_from_json(stat, path) for path, of_path in by_path.items() for stat in of_path)
    replaced = {path: texts_of(ids) for path, ids in (content.get("partitionToReplaceFileIds") or {}).items()}
    operation = text_of(content.get("operationType") or "UNKNOWN")
    return ArchivedChange(time, CommitMetadata(stats, operation, {}, replaced))
