"""Retired instants: the archive log below ``.hoodie`` (TimelineArchiverV1, HoodieArchivedMetaEntry)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from table.files.log_block import BlockType, read_avro_records, read_blocks
from table.storage import METAFOLDER, Storage, join
from table.timeline.commit_metadata import CommitMetadata
from table.timeline.service_metadata import read_as, text_of

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
        blocks = [block for block in read_blocks(storage.read(path), path) if block.type is BlockType.AVRO_DATA]
        with read_as("archived instant", path):
            found = [_completed_commit(record) for block in blocks for record in read_avro_records(block, path)]
        yield [commit for commit in found if commit is not None]


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
