"""The rows of one file slice, as a snapshot reader sees them."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from table.files.base.stored_file import StoredBaseFile
from table.hudi_table import HudiTable
from table.scan.merge_slice import SliceReading, merge_slice, rules_of
from table.schema.avro_schema import relaxed, with_meta_columns
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


def read_slice(context: SliceContext, found: FileSlice, schema: pa.Schema) -> Iterator[pa.Table]:
    """All rows of a slice, merged, some ten thousand at a time. Every reader of log files goes through here.

    Args:
        context: of the snapshot.
        found: the slice; see `FileGroup.merged_slice`.
        schema: the columns wanted, as the table has them (Arrow, all nullable); ones that a file lacks are null.

    Raises:
        UnsupportedTableError: log files hold what is not read.
        CorruptFileError, StorageError: a file cannot be decoded or read.
    """
    if found.log_files:
        whole = relaxed(with_meta_columns(context.stored if context.stored is not None else pa.schema([])))
        rules = rules_of(context.table.config, whole)
        reading = SliceReading(whole, tuple(schema.names), rules, context.committed)
        yield from merge_slice(context.table.storage, found, reading)
    elif found.base_file is not None:
        with StoredBaseFile(context.table.storage, found.base_file.path) as file:
            yield from file.read_batches(schema)
