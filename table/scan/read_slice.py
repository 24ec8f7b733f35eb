"""The rows of one file slice, as a snapshot reader sees them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from table.columns.conform import conform
from table.errors import StorageError
from table.files.base.stored_file import StoredBaseFile
from table.hudi_table import HudiTable
from table.scan.merge_slice import SliceReading, merge_slice, rules_of
from table.schema.avro_schema import META_FIELDS, relaxed, with_meta_columns
from table.storage.interface import Storage
from table.view.file_group import CommittedInstants, FileSlice


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


def check_readable(table: HudiTable, found: FileSlice, schema: pa.Schema) -> None:
    """Refuses a slice that `read_slice` cannot read, before a row of another one is given out.

    Args:
        found: the slice.
        schema: every column of the table.

    Raises:
        UnsupportedTableError: the slice has log files, and how the table merges them is not known.
    """
    if found.log_files:
        rules_of(table.config, schema)


def read_slice(context: SliceContext, found: FileSlice, schema: pa.Schema) -> Iterator[pa.Table]:
    """All rows of a slice, merged, some ten thousand at a time. Every reader of log files goes through here.

    Args:
        context: of the snapshot.
        found: the slice, of `FileGroup.merged_slice`.
        schema: the columns wanted, as the table has them (Arrow, all nullable); ones that a file lacks are null.

    Raises:
        UnsupportedTableError: a log file holds what is not read.
        CorruptFileError, StorageError: a file cannot be decoded or read.
    """
    if found.log_files:
        stored = with_meta_columns(context.stored) if context.stored is not None else pa.schema(META_FIELDS)
        rules = rules_of(context.table.config, stored)
        reading = SliceReading(relaxed(stored), tuple(schema.names), rules, context.committed)
        with deletion_named(context.table.storage):
            for rows in merge_slice(context.table.storage, found, reading):
                yield conform(rows, schema)
        return
    if found.base_file is None:
        return
    storage, base = context.table.storage, found.base_file
    with deletion_named(storage), StoredBaseFile(storage, base.path, base.size_bytes) as file:
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
