"""The rows of one file slice, as a snapshot reader sees them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from table.errors import StorageError, UnsupportedTableError
from table.files.base.stored_file import StoredBaseFile
from table.hudi_table import HudiTable
from table.storage.interface import Storage
from table.view.file_group import CommittedInstants, FileGroup, FileSlice


@dataclass(frozen=True)
class SliceContext:
    """What reading a slice needs besides the slice. Small and picklable: it goes to workers.

    Attributes:
        table: the table.
        committed: which instants count: blocks of log files name theirs.
        stored: the table's columns without meta columns (Arrow), as of the snapshot; None where nothing was written.
    """

    table: HudiTable
    committed: CommittedInstants
    stored: pa.Schema | None


def slice_to_read(group: FileGroup) -> FileSlice:
    """The slice of a file group that a snapshot shows: the newest base file, and every log file since.

    Log files above the newest slice with a base file are those behind a pending compaction
    (AbstractTableFileSystemView.getLatestMergedFileSlicesBeforeOrOn).
    """
    latest = group.latest_slice
    logs = tuple(log for log in group.log_files if log.base_instant_time >= latest.base_instant_time)
    return FileSlice(group.partition_path, group.file_id, latest.base_instant_time, latest.base_file, logs)


def check_readable(found: FileSlice) -> None:
    """Refuses a slice that `read_slice` cannot read, before a row of another one is given out.

    Raises:
        UnsupportedTableError: the slice has log files.
    """
    if found.log_files:
        raise UnsupportedTableError(
            f"file group {found.file_id} in {found.partition_path!r} has log files: merge-on-read is not read yet"
        )


def read_slice(context: SliceContext, found: FileSlice, schema: pa.Schema) -> Iterator[pa.Table]:
    """All rows of a slice, merged, some ten thousand at a time. Every reader of log files goes through here.

    Args:
        context: of the snapshot.
        found: the slice, by `slice_to_read`.
        schema: the columns wanted, as the table has them (Arrow, all nullable); ones that a file lacks are null.

    Raises:
        UnsupportedTableError: the slice has log files.
        CorruptFileError, StorageError: a file cannot be decoded or read.
    """
    check_readable(found)
    if found.base_file is None:
        return
    storage = context.table.storage
    with deletion_named(storage), StoredBaseFile(storage, found.base_file.path) as file:
        yield from file.read_batches(schema)


@contextmanager
def deletion_named(storage: Storage) -> Iterator[None]:
    """Says why a file that a snapshot shows is not there.

    Raises:
        StorageError: in place of FileNotFoundError; names the file and the way out.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise StorageError(
            f"a file of the snapshot was deleted while it was read, most likely by cleaning ({error}); read "
            f"{storage.base_uri!r} again, or let cleaning keep more commits (hoodie.clean.commits.retained)"
        ) from error
