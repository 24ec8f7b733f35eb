"""The newest snapshot of a table as Arrow, in one call."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from table.errors import UnsupportedTableError
from table.hudi_table import HudiTable
from table.scan.scan import make_scan
from table.snapshot import Snapshot
from table.view.file_group import BaseFile


def read_table(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> pa.Table:
    """The table's latest snapshot, whole, in memory. `HudiTable.scan` can do more.

    Args:
        path: the table.
        columns: columns wanted, in order; None for all, the five meta columns first.
        storage_options: for fsspec.

    Returns:
        Rows in the order of partition paths, then file groups. A table without commits has the
        columns of its declared schema, or just the meta columns, and no rows.

    Raises:
        TableNotFoundError: when there is no table.
        UnsupportedTableError: when the version is not 6, 8 or 9, or log files hold what is not read.
        CorruptFileError: when a file is damaged.
        InvalidConfigError: when a column is not in the table.
    """
    return make_scan(HudiTable.open(path, storage_options), columns).to_arrow()


def list_snapshot_files(table: HudiTable) -> list[BaseFile]:
    """`base_files_of` the newest snapshot."""
    return base_files_of(Snapshot.load(table))


def base_files_of(snapshot: Snapshot) -> list[BaseFile]:
    """The base files of a snapshot, by partition path and file group.

    Raises:
        UnsupportedTableError: when a file slice of the snapshot has log files: base files alone are not its rows.
    """
    files = []
    for _, groups in sorted(snapshot.walk_file_groups(), key=lambda found: found[0]):
        for group in groups:
            found = group.merged_slice
            if found.log_files:
                raise UnsupportedTableError(
                    f"file group {found.file_id} in {found.partition_path!r} has log files: its base file alone does "
                    "not hold its rows; read the table with read_table or HudiTable.scan"
                )
            if found.base_file is not None:
                files.append(found.base_file)
    return files
