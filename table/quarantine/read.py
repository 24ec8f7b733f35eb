"""The bad rows of a table, as Arrow rows."""

import os
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from table.columns.cast import cast_column
from table.errors import CorruptFileError, InvalidConfigError
from table.hudi_table import HudiTable
from table.keys.search import KeyCount, count_keys, missing_key_columns
from table.quarantine.place import ENDING, FILE, REASON, REPLAYED, ROW, STAGING, table_keys
from table.quarantine.replays import RowId, list_replays, read_replayed
from table.snapshot import Snapshot
from table.storage.interface import Storage, join
from table.storage.opening import open_storage
from table.transaction.checkpoint import REPLAY_SINK
from table.transaction.last_batch import find_last_batch

_ENDING = ".parquet"


def read_bad_rows(
    path: str | os.PathLike[str],
    storage_options: Mapping[str, Any] | None = None,
    *,
    folder: str | None = None,
    replayed: bool = False,
) -> pa.Table:
    """The rows that a sink has put aside (``hudistream.bad.rows=quarantine``), oldest file first.

    Args:
        path: the table's folder or address.
        storage_options: for fsspec.
        folder: where the bad rows are (``hudistream.bad.rows.path``); None: the table's path and ``_bad_rows``. A
            folder that several tables share has the rows of all of them.
        replayed: whether rows that were replayed are among them.

    Returns:
        The columns of the rows as they came; text where the types of a column have none in common. Of each row
        ``_hudistream_reason`` (string): why it cannot be stored. ``_hudistream_batch_id`` (int64),
        ``_hudistream_sink`` (string), ``_hudistream_time`` (timestamp[us, UTC]): the batch that it came with.
        ``_hudistream_file`` (string) and ``_hudistream_row`` (int64): its place, by which `replay` knows it.
        ``_hudistream_replayed`` (bool). No rows and no columns of the table where nothing was put aside.

    Raises:
        TableNotFoundError: there is no table.
        CorruptFileError: a file is damaged.
        StorageError: the store fails.
    """
    table = HudiTable.open(path, storage_options)
    storage = open_bad_rows(table.storage, folder, storage_options)
    taken = find_replayed(table, storage)
    found = [_read_file(storage, name, taken) for name in _list_files(storage)]
    if not found:
        columns = [(REASON, pa.string()), (FILE, pa.string()), (ROW, pa.int64()), (REPLAYED, pa.bool_())]
        return pa.schema(columns).empty_table()
    rows = _joined(found)
    return rows if replayed else rows.filter(pc.invert(rows.column(REPLAYED)))


def _joined(found: list[pa.Table]) -> pa.Table:
    """All rows as one table. Columns that came with types that have none in common become text."""
    names = list(dict.fromkeys(name for rows in found for name in rows.column_names))
    kinds = {name: {rows.schema.field(name).type for rows in found if name in rows.column_names} for name in names}
    for name in (name for name in names if len(kinds[name]) > 1):
        try:
            pa.concat_tables(
                [rows.select([name]) for rows in found if name in rows.column_names], promote_options="permissive"
            )
        except pa.ArrowException:
            found = [_with_text(rows, name) for rows in found]
    return pa.concat_tables(found, promote_options="permissive")


def _with_text(rows: pa.Table, name: str) -> pa.Table:
    at = rows.schema.get_field_index(name)
    if at < 0:
        return rows
    column = rows.column(at)
    try:
        text = cast_column(column, pa.string())
    except pa.ArrowException:  # nested values, or bytes that are no text
        text = pa.chunked_array([[None if one is None else repr(one) for one in column.to_pylist()]], pa.string())
    return rows.set_column(at, name, text)


def open_bad_rows(
    table: Storage, folder: str | None = None, storage_options: Mapping[str, Any] | None = None
) -> Storage:
    """The folder of a table's bad rows.

    Args:
        table: the table's storage.
        folder: ``hudistream.bad.rows.path``; None: the folder beside the table, with its name and ``_bad_rows``.
        storage_options: for fsspec, if `folder` is given.

    Raises:
        InvalidConfigError: the table is at the root of its store: beside it would be another store.
    """
    if folder:
        return open_storage(folder, storage_options)
    beside = table.beside(ENDING)
    if beside is None:
        raise InvalidConfigError(
            f"the table {table.base_uri!r} is at the root of its store, so that no folder is beside it: set "
            "hudistream.bad.rows.path"
        )
    return beside


def find_replayed(table: HudiTable, storage: Storage) -> frozenset[RowId]:
    """The bad rows that were replayed, by the records of replays and by the commits of the table."""
    replays = list_replays(storage, table_keys(table.storage.base_uri, table.config.name))
    if not replays:
        return frozenset()
    last = find_last_batch(Snapshot.load(table), REPLAY_SINK)
    return read_replayed(storage, [replay for replay in replays if replay.is_committed(last)])


def count_bad_rows(table: HudiTable, storage: Storage, keys: pa.Array) -> KeyCount:
    """Counts the bad rows that have one of the keys: published or staged, replayed or not.

    Rows of a file without any column of the record key are those of another table, and not counted.

    Args:
        table: the table.
        storage: the folder of bad rows.
        keys: record keys, as ``_hoodie_record_key`` has them (string).

    Raises:
        CorruptFileError: a file is damaged.
        StorageError: the store fails.
    """
    folders = [join(STAGING, key) for key in table_keys(table.storage.base_uri, table.config.name)]
    staged = [
        join(folder, name) for folder in folders for name in sorted(storage.list_tree(folder)) if name.endswith(_ENDING)
    ]
    fields, found = table.config.record_key_fields, KeyCount()
    for name in (*_list_files(storage), *staged):
        try:
            rows = _read_file(storage, name, frozenset())
        except CorruptFileError:
            if name not in staged:
                raise
            found += KeyCount(0, 1)  # its writer died, and the next batch deletes it
            continue
        if len(missing_key_columns(rows, fields)) < len(fields):
            found += count_keys(rows, fields, keys)
    return found


def list_bad_row_files(storage: Storage) -> frozenset[str]:
    """Names of the published files in a folder of bad rows."""
    return frozenset(_list_files(storage))


def _list_files(storage: Storage) -> list[str]:
    entries = storage.list_dir("")
    return sorted(entry.name for entry in entries if not entry.is_dir and entry.name.endswith(_ENDING))


def _read_file(storage: Storage, name: str, taken: frozenset[RowId]) -> pa.Table:
    try:
        with storage.open_input(name) as source:
            rows = pq.read_table(source)
    except pa.ArrowInvalid as error:
        raise CorruptFileError(f"{name} of {storage.base_uri!r} is no file of bad rows: {error}") from error
    numbers = range(len(rows))
    return (
        rows.append_column(FILE, pa.array([name] * len(rows), pa.string()))
        .append_column(ROW, pa.array(numbers, pa.int64()))
        .append_column(REPLAYED, pa.array([(name, number) in taken for number in numbers], pa.bool_()))
    )
