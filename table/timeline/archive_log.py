"""The archive of layout 1: log files of AVRO_DATA blocks, one record per state file (TimelineArchiverV1).

Each file of the archive is written once, as a whole. So damage in it is an error. In the log files of a slice it is
none: there, readers skip the block of a dead writer.
"""

import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from table.errors import BrokenInvariantError, CorruptFileError
from table.files.log.avro_data import encode_avro_content, read_avro_records
from table.files.log.framing import BlockType, Header, LogBlock, Verdict, encode_block, scan_blocks
from table.storage.interface import Storage, join
from table.timeline.archive_records import archive_record, damage_named, to_change, to_commit, to_retired
from table.timeline.archived_timeline import ArchivedChange, ArchivedCommit, RetiredFile, up_to
from table.timeline.metadata.avro_record import load_schema_text, read_as, text_of

_PREFIX = ".commits_.archive."


@dataclass(frozen=True)
class LogArchive:
    """The archive log of a table.

    Attributes:
        folder: the archive's, relative to the table.
    """

    storage: Storage
    folder: str

    def list_files(self) -> list[str]:
        """Paths of the archive's files, relative to the table, newest first."""
        names = [entry.name for entry in self.storage.list_dir(self.folder) if entry.name.startswith(_PREFIX)]
        return [join(self.folder, name) for name in sorted(names, key=_number, reverse=True)]

    def read_files(self) -> Iterator[list[ArchivedCommit]]:
        """Completed commits of each file, newest file first, oldest commit first.

        Raises:
            CorruptFileError: a file is damaged.
        """
        for path in self.list_files():
            with read_as("archived instant", path):
                found = [to_commit(record) for record in self._read_records(path)]
            yield [commit for commit in found if commit is not None]

    def read_changes(self) -> Iterator[ArchivedChange]:
        """Completed instants, writes with their files. One file of the archive is in memory at a time.

        Raises:
            CorruptFileError: a file is damaged.
        """
        for path in self.list_files():
            with read_as("archived instant", path):
                found = [to_change(record) for record in self._read_records(path)]
            yield from (change for change in found if change is not None)

    def find_commits(self, time: str) -> list[ArchivedCommit]:
        """See `Archive.find_commits`. Each file holds later instants than the file before."""
        files = self.list_files()[::-1]
        low, high = 0, len(files)
        while low < high:
            middle = (low + high) // 2
            with read_as("archived instant", files[middle]):
                records = list(self._read_records(files[middle]))
                commits = [to_commit(record) for record in records]
                times = [text_of(record["commitTime"]) for record in records]
            if not times or min(times) <= time <= max(times):
                return up_to(time, (commit for commit in commits if commit is not None))
            low, high = (low, middle) if time < min(times) else (middle + 1, high)
        return []

    def read_retired(self) -> Iterator[list[RetiredFile]]:
        """The archived instant files, oldest first. One file of the archive is in memory at a time.

        Raises:
            CorruptFileError: a file is damaged.
        """
        for path in reversed(self.list_files()):
            with read_as("archived instant", path):
                yield [to_retired(record) for record in self._read_records(path)]

    def find_completions(self, times: Collection[str]) -> Mapping[str, str]:  # noqa: ARG002 as `Archive`
        """Nothing: layout 1 stores no completion times."""
        return {}

    def find_passed(
        self,
        compactions: Collection[str],  # noqa: ARG002 as `Archive`
        *,
        since: str = "",  # noqa: ARG002
        known: Mapping[str, str] | None = None,  # noqa: ARG002
    ) -> Mapping[str, str]:
        """Nothing: in layout 1 the name of a log file names its slice."""
        return {}

    def append(self, files: Sequence[RetiredFile], batch: int) -> str:
        """Writes a new file of the archive. Each run of archival writes one.

        Args:
            files: in order of instants, lowest state first.
            batch: records per block.

        Returns:
            The new file's path, relative to the table.

        Raises:
            CorruptFileError: the content of a file does not match its name; nothing is archived.
        """
        data = _encode(files, batch)
        while True:
            path = self._next_file()
            if self.storage.create_exclusive(path, data, durable=True):
                return path

    def _next_file(self) -> str:
        files = self.list_files()
        number = _number(files[0].rsplit("/", 1)[-1]) + 1 if files else 1
        return join(self.folder, f"{_PREFIX}{max(1, number)}_1-0-1")

    def _read_records(self, path: str) -> Iterator[dict[str, Any]]:
        return read_log_records(self.storage.read(path), path)


def _encode(files: Sequence[RetiredFile], batch: int) -> bytes:
    records = [archive_record(file) for file in files]
    schema = load_schema_text("archived_entry")
    try:
        return b"".join(encode_log_block(schema, records[at : at + batch]) for at in range(0, len(records), batch))
    except Exception as error:  # encoding the records one by one finds the damaged one
        for file, record in zip(files, records, strict=True):
            with damage_named(file.instant):
                encode_log_block(schema, [record])
        raise BrokenInvariantError(
            f"instants cannot be archived together, though each of them can: {error!r}"
        ) from error


def _number(name: str) -> int:
    digits = name.removeprefix(_PREFIX).split("_", 1)[0]
    return int(digits) if digits.isdigit() else -1


def encode_log_block(schema: str, records: Sequence[Mapping[str, Any]]) -> bytes:
    """One block of the archive. The schema is its only header.

    Args:
        schema: Avro schema (JSON).
        records: of that schema.
    """
    return encode_block(LogBlock(BlockType.AVRO_DATA, {Header.SCHEMA: schema}, encode_avro_content(schema, records)))


def read_log_records(data: bytes, name: str) -> Iterator[Any]:
    """Records of a whole archive file, in order.

    Args:
        data: the file's bytes.
        name: file name, for errors.

    Raises:
        CorruptFileError: at the first byte that violates the format.
    """
    for found in scan_blocks(io.BytesIO(data)):
        if found.block is None:
            state = "damaged" if found.verdict is Verdict.DAMAGED else "cut off"
            raise CorruptFileError(f"{name}: the block at byte {found.start} is {state}: {found.reason}")
        if found.block.type is BlockType.AVRO_DATA:
            yield from read_avro_records(found.block, name)
