"""What log files hold: blocks, their rows and deletes. One block at a time."""

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from table.config.table_config import TableConfig
from table.errors import CorruptFileError, StorageError, UnsupportedTableError
from table.files.log.data_blocks import RECORD_BLOCKS, read_rows
from table.files.log.delete_block import read_deletes
from table.files.log.framing import BlockType, LogBlock, Verdict, scan_blocks
from table.files.log.instants import LogInstants
from table.services.check.finding import Finding, Kind, Repair, Severity
from table.storage.interface import Storage
from table.view.file_group import LogFile

_BACKUP = "restore a savepoint, bring the file back from a backup, or write its rows again"
_WHY = "its bytes cannot be made again from here"


def ordering_of(config: TableConfig, schema: pa.Schema | None) -> pa.Schema:
    """The table's ordering fields with their types; none where it has none."""
    if schema is None or not {*config.ordering_fields} <= {*schema.names}:
        return pa.schema([])
    return pa.schema([schema.field(name) for name in config.ordering_fields])


def check_log_contents(
    storage: Storage, files: Iterable[LogFile], unnamed: Mapping[str, LogInstants], ordering: pa.Schema
) -> Iterator[Finding]:
    """Reads log files and says what is wrong with them.

    Args:
        files: which ones.
        unnamed: paths of log files that no commit names.
        ordering: the table's ordering fields with their types.
    """
    for file in files:
        try:
            yield from _check_file(storage, file.path, ordering, is_named=file.path not in unnamed)
        except FileNotFoundError:
            continue  # cleaned since
        except (CorruptFileError, StorageError) as error:
            if storage.exists(file.path):
                text = f"it cannot be read: {error}"
                yield Finding(Kind.UNREADABLE_FILE, Severity.ERROR, file.path, text, Repair.REFUSED, _WHY, _BACKUP)


def _check_file(storage: Storage, path: str, ordering: pa.Schema, *, is_named: bool) -> Iterator[Finding]:
    with storage.open_input(path) as stream:
        for place in scan_blocks(stream):
            if place.block is not None:
                decode_block(place.block, ordering, path)
                continue
            if place.is_framed or not place.begins or place.verdict is Verdict.WHOLE:
                raise CorruptFileError(f"the block at byte {place.start} is damaged: {place.reason}")
            why = "a commit names the file, so rows of it are lost" if is_named else "as over what dead writers leave"
            where = f"the bytes from {place.start} to {place.end} are no block ({place.reason})"
            yield Finding(
                Kind.DAMAGED_BLOCK,
                Severity.ERROR if is_named else Severity.WARNING,
                path,
                f"{where}; readers pass over them: {why}",
                Repair.REFUSED,
                _WHY,
                _BACKUP,
            )


def decode_block(block: LogBlock, ordering: pa.Schema, path: str) -> None:
    """Reads what a block holds.

    Raises:
        CorruptFileError: it cannot be decoded.
    """
    if block.type is BlockType.DELETE:
        read_deletes(block, ordering, path)
    elif block.type in RECORD_BLOCKS:
        try:
            for _ in read_rows(block, None, path):
                pass
        except UnsupportedTableError:
            return  # of a form that Hudi reads
