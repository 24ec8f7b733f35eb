"""Reads the deletes in the log files of slices, without the data blocks."""

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from table.files.log.delete_block import Deletes, read_deletes
from table.files.log.framing import BlockType, read_block
from table.files.names import tells_no_deletes
from table.scan.log_records import find_blocks, open_log
from table.snapshot import Snapshot
from table.storage.at_once import each_at_once
from table.storage.interface import Storage
from table.view.file_group import CommittedInstants, FileSlice
from table.view.file_system_view import walk_file_groups


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


def find_ordered_deletes(snapshot: Snapshot, ordering: pa.Schema) -> list[FileSlice]:
    """The slices that readers merge now, with deletes in their logs that have an ordering value.

    Lists the table's files, and opens the log files that may have deletes.

    Args:
        snapshot: the table.
        ordering: its ordering fields with their types.

    Raises:
        CorruptFileError, UnsupportedTableError, StorageError: as `read_slice_deletes`.
    """
    storage, committed = snapshot.storage, snapshot.slicing

    def has_one(found: FileSlice) -> bool:
        deletes = read_slice_deletes(storage, found, committed, ordering)
        return any(not block.removes.all() for block in deletes)

    slices = find_logged(snapshot)
    return [one for one, has in zip(slices, each_at_once(storage, has_one, slices), strict=True) if has]


def find_logged(snapshot: Snapshot) -> list[FileSlice]:
    """The slices that readers merge now and that have log files. Lists the table's files."""
    walked = walk_file_groups(snapshot.listing, snapshot.slicing)
    return [group.merged_slice for _, found in walked for group in found if group.merged_slice.log_files]
