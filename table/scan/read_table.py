"""Rows out: the latest snapshot of a table as Arrow."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from table.columns.conform import conform
from table.errors import CorruptFileError, InvalidConfigError, UnsupportedTableError
from table.hudi_table import HudiTable
from table.scan.read_slice import SliceReading, read_slice, rules_of
from table.schema.avro_schema import META_FIELDS, relaxed, with_meta_columns
from table.snapshot import Snapshot
from table.storage.interface import Storage
from table.view.file_group import BaseFile, FileSlice


def read_table(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> pa.Table:
    """The table's latest snapshot, whole, in memory.

    Args:
        path: the table.
        columns: columns wanted, in order; None for all, the five meta columns first.
        storage_options: for fsspec.

    Returns:
        Rows in the order of partition paths, then file groups. A table without commits has the
        columns of its declared schema, or just the meta columns, and no rows.

    Raises:
        TableNotFoundError: when there is no table.
        UnsupportedTableError: when the version is not 6, or log files hold what is not read.
        CorruptFileError: when a file is damaged.
        InvalidConfigError: when a column is not in the table.
    """
    table = HudiTable.open(path, storage_options)
    if table.config.version != 6:
        raise UnsupportedTableError(f"the table has hoodie.table.version={table.config.version}; version 6 is read")
    snapshot = Snapshot.load(table)
    stored = snapshot.load_schema()
    schema = whole = with_meta_columns(stored) if stored is not None else pa.schema(META_FIELDS)
    if columns is not None:
        unknown = [name for name in columns if name not in schema.names]
        if unknown:
            raise InvalidConfigError(f"the table has no column {unknown[0]!r}; it has {', '.join(schema.names)}")
        schema = pa.schema([schema.field(name) for name in columns])
    # what older files lack is null, whatever the newest schema says
    wanted = relaxed(schema)
    parts = (_read_slice(snapshot, found, relaxed(whole), wanted) for found in slices_of(snapshot))
    return pa.concat_tables([wanted.empty_table(), *parts])


def slices_of(snapshot: Snapshot) -> list[FileSlice]:
    """The slices that a reader of a snapshot merges, by partition path and file group; see `FileGroup.merged_slice`."""
    groups = sorted(snapshot.walk_file_groups())
    return [group.merged_slice for _, found in groups for group in found]


def list_snapshot_files(table: HudiTable) -> list[BaseFile]:
    """`base_files_of` the newest snapshot."""
    return base_files_of(Snapshot.load(table))


def base_files_of(snapshot: Snapshot) -> list[BaseFile]:
    """The base files of a snapshot, by partition path and file group.

    Raises:
        UnsupportedTableError: when a file group of the snapshot has log files: base files alone are not its rows.
    """
    files = []
    for partition_path, groups in sorted(snapshot.walk_file_groups()):
        for group in groups:
            if group.log_files:
                raise UnsupportedTableError(
                    f"file group {group.file_id} in {partition_path!r} has log files: its base file alone does "
                    "not hold its rows; read the table with read_table"
                )
            if group.latest_base_file is not None:
                files.append(group.latest_base_file)
    return files


def _read_slice(snapshot: Snapshot, found: FileSlice, whole: pa.Schema, wanted: pa.Schema) -> pa.Table:
    table = snapshot.table
    if not found.log_files:
        return wanted.empty_table() if found.base_file is None else _read_file(table.storage, found.base_file, wanted)
    rules = rules_of(table.config, whole)
    reading = SliceReading(whole, tuple(wanted.names), rules, snapshot.committed)
    return pa.concat_tables([wanted.empty_table(), *read_slice(table.storage, found, reading)])


def _read_file(storage: Storage, file: BaseFile, schema: pa.Schema) -> pa.Table:
    with storage.open_input(file.path) as source:
        try:
            parquet = pq.ParquetFile(source)
            present = set(parquet.schema_arrow.names)
            rows = parquet.read([name for name in schema.names if name in present])
            return conform(rows, schema)
        except (pa.ArrowException, KeyError, ValueError) as error:
            raise CorruptFileError(f"{file.path} of {storage.base_uri!r} cannot be decoded: {error}") from error
