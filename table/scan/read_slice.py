"""Reads the rows of one file slice, merged as in a snapshot query."""

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
    """All that is needed to read a slice, besides the slice. Small and picklable: it is sent to workers.

    Attributes:
        table: the table.
        committed: the visible instants, which decide which blocks of log files are valid.
        stored: the table's columns without meta columns (Arrow), as of the snapshot; None where nothing was written.
    """

    table: HudiTable
    committed: CommittedInstants
    stored: pa.Schema | None


def check_readable(table: HudiTable, found: FileSlice, schema: pa.Schema) -> None:
    """Refuses a slice that `read_slice` cannot read, before rows of another slice are returned.

    Args:
        found: the slice.
        schema: every column of the table.

    Raises:
        UnsupportedTableError: the slice has log files, and the table's merge mode is not supported.
    """
    if found.log_files:
        rules_of(table.config, schema)


def read_slice(context: SliceContext, found: FileSlice, schema: pa.Schema) -> Iterator[pa.Table]:
    """All rows of a slice, merged, some ten thousand at a time. All readers of log files use this function.

    Args:
        context: of the snapshot.
        found: the slice, of `FileGroup.merged_slice`.
        schema: the columns wanted, with the table's types (Arrow, all nullable); a column that a file does not have is
            null.

    Raises:
        UnsupportedTableError: a log file has a block that is not supported.
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
    """Explains why a file of a snapshot is missing.

    Raises:
        StorageError: in place of FileNotFoundError; names the file and a remedy.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise StorageError(
            f"a file of the snapshot was deleted while it was read, most likely by cleaning ({error}); read "
            f"{storage.base_uri!r} again, or let cleaning keep more commits (hoodie.clean.commits.retained). "
            "If it stays so, `hudistream accept-loss PATH` says whether the file is lost"
        ) from error
