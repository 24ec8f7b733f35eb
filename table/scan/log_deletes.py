"""Reads the deletes in the log files of a slice, without the data blocks."""

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from table.files.log.delete_block import Deletes, read_deletes
from table.files.log.framing import BlockType, read_block
from table.files.names import tells_no_deletes
from table.scan.log_records import find_blocks, open_log
from table.storage.interface import Storage
from table.view.file_group import CommittedInstants, FileSlice


def read_slice_deletes(
    storage: Storage, file_slice: FileSlice, committed: CommittedInstants, ordering: pa.Schema
) -> Iterator[Deletes]:
    """The deletes of a slice, block by block, oldest first.

    A log file whose name shows that it has no deletes is not opened.

    Args:
        file_slice: of `FileGroup.merged_slice`.
        committed: which instants count.
        ordering: the table's ordering fields with their types.

    Raises:
        CorruptFileError: a file or a block is damaged.
        UnsupportedTableError: a log file has a block that is not supported.
        StorageError: a file cannot be read.
    """
    logs = tuple(log for log in file_slice.log_files if not tells_no_deletes(log.write_token, committed.times))
    if not logs:
        return
    for found in find_blocks(storage, replace(file_slice, log_files=logs), committed):
        if found.shell.type is BlockType.DELETE:
            with open_log(storage, found.file, found.data) as stream:
                yield read_deletes(read_block(stream, found.place), ordering, found.file.path)
