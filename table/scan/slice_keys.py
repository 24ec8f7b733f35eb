"""The record keys of a file slice."""

import pyarrow as pa

from table.files.base.stored_file import StoredBaseFile
from table.scan.read_slice import SliceContext, read_slice
from table.schema.avro_schema import RECORD_KEY
from table.view.file_group import FileSlice


def read_slice_keys(context: SliceContext, found: FileSlice) -> pa.Array:
    """The keys of the rows of a slice (string array): all of them are in memory.

    Args:
        context: of the snapshot.
        found: the slice, of `FileGroup.merged_slice`.

    Raises:
        UnsupportedTableError: a log file has a block that is not supported, or the merge mode is not.
        CorruptFileError, StorageError: a file cannot be decoded or read.
    """
    if found.base_file is not None and not found.log_files:
        with StoredBaseFile(context.table.storage, found.base_file.path, found.base_file.size_bytes or None) as stored:
            return pa.chunked_array(stored.read_keys(range(len(stored.group_rows))), pa.string()).combine_chunks()
    parts = [rows.column(RECORD_KEY) for rows in read_slice(context, found, pa.schema([(RECORD_KEY, pa.string())]))]
    return pa.chunked_array([chunk for part in parts for chunk in part.chunks], pa.string()).combine_chunks()
