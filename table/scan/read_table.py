"""The newest snapshot of a table as Arrow, in one call."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from table.hudi_table import HudiTable
from table.scan.scan import make_scan


def read_table(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    *,
    meta_columns: bool = False,
) -> pa.Table:
    """The table's latest snapshot, completely in memory. `HudiTable.scan` has more options.

    Args:
        path: the table.
        columns: columns wanted, in order; None for all.
        storage_options: for fsspec.
        meta_columns: whether all columns means Hudi's five meta columns, too; they come first.

    Returns:
        Rows in the order of partition paths, then file groups. A table without commits has the
        columns of its declared schema, and no rows.

    Raises:
        TableNotFoundError: when there is no table.
        UnsupportedTableError: the version is not 6, 8 or 9, or a log file has a block that is not supported.
        CorruptFileError: when a file is damaged.
        InvalidConfigError: when a column is not in the table.
    """
    return make_scan(HudiTable.open(path, storage_options), columns, meta_columns=meta_columns).to_arrow()
