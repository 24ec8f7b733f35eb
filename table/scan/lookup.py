"""Looks up rows by record key. Files that cannot hold a key are not read, nor are row groups without a hit.

A record index of the metadata table names the file groups of the keys. Else the footers of all files are asked.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from table.config.metadata_indexes import RECORD_INDEX
from table.errors import InvalidConfigError, UnsupportedTableError
from table.files.base.stored_file import StoredBaseFile
from table.hudi_table import HudiTable
from table.index.key_lookup import positions_of
from table.metadata_table.file_lists import Failures, tell_not_used
from table.metadata_table.read_record_index import see_record_index
from table.scan.as_of import AsOf
from table.scan.partition_guarantee import with_folder_values
from table.scan.pinned import DEFAULT_LIFETIME_S, pinned
from table.scan.plan import ScanPlan, plan_scan
from table.scan.predicate import parse_where
from table.scan.read_slice import deletion_named, read_slice
from table.schema.avro_schema import RECORD_KEY
from table.storage.at_once import each_at_once
from table.timeline.change import Change
from table.view.file_group import FileSlice

_INDEX_PAYS = 32  # files: the index has ten file groups or more, and each costs some requests


def lookup(
    table: HudiTable,
    keys: Sequence[str] | pa.Array,
    columns: Sequence[str] | None = None,
    as_of: AsOf | None = None,
    *,
    meta_columns: bool = True,
) -> pa.Table:
    """The rows that have one of some record keys.

    Args:
        keys: record keys, as in ``_hoodie_record_key``; a key of several fields is ``a:1,b:2``. A key that is given
            twice counts once.
        columns: the columns wanted, in order; None means all.
        as_of: which snapshot; see `table.scan.as_of.load_snapshot`.
        meta_columns: whether all columns means the five meta columns, too.

    Returns:
        Rows in the order of partition paths, file groups and rows. A key without a row is left out. A key has several
        rows if several partitions have it, or if it was inserted twice; in a large table with a record index it has
        the rows of one file group.

    Raises:
        InvalidConfigError: a key is no text, a column is not in the table, or there is no such snapshot.
        UnsupportedTableError: the table keeps no record keys, or as `plan_scan`.
        CorruptFileError, StorageError: a file cannot be decoded or read.
    """
    if not table.config.populate_meta_fields:
        raise UnsupportedTableError(
            "the table keeps no record keys (hoodie.populate.meta.fields=false): scan it instead"
        )
    sought = _as_keys(keys)
    condition = [(RECORD_KEY, "in", sought.to_pylist())]

    def plan_them() -> ScanPlan:
        if as_of is None and RECORD_INDEX in table.config.metadata_indexes:
            plan = _by_index(table, plan_scan(table, columns, meta_columns=meta_columns), sought)
            if plan is not None:
                return replace(plan, predicate=parse_where(condition, plan.schema))
        return plan_scan(table, columns, condition, as_of, meta_columns=meta_columns)

    with pinned(table, plan_them, DEFAULT_LIFETIME_S) as (plan, _):
        found = each_at_once(table.storage, lambda one: _rows_in(plan, one, sought), plan.slices)
        return pa.concat_tables([plan.shown.empty_table(), *(rows for tables in found for rows in tables)])


def _by_index(table: HudiTable, plan: ScanPlan, keys: pa.Array) -> ScanPlan | None:
    """The plan with those slices that the record index names.

    Args:
        table: with a record index.
        plan: of the newest snapshot as a whole.
        keys: record keys.

    Returns:
        The smaller plan; None where footers must be asked: they cost less, or the index is not that of the snapshot.
    """
    if len(plan.slices) < _INDEX_PAYS:
        return None
    try:
        seen = see_record_index(table.storage, table.config, table.known_lists)
        now = table.load_timeline()
        if not Change.between(plan.context.committed.times, now.committed_times).is_none:
            return None
        groups = seen.as_of(now).find(keys).by_group().keys()
    except Failures as error:
        tell_not_used("record_index_not_used", table.storage.base_uri, error)
        return None
    kept = tuple(one for one in plan.slices if (one.partition_path, one.file_id) in groups)
    return replace(plan, slices=kept) if len(kept) == len(groups) else None


def _as_keys(keys: Sequence[str] | pa.Array) -> pa.Array:
    if isinstance(keys, str):
        raise InvalidConfigError(f"keys={keys!r}: give a list of record keys, [{keys!r}]")
    try:
        given = keys if isinstance(keys, (pa.Array, pa.ChunkedArray)) else pa.array(list(keys), pa.string())
        sought = pc.unique(given.cast(pa.string())).drop_null()
    except (pa.ArrowException, TypeError, UnicodeError) as error:
        raise InvalidConfigError(f"record keys are text: {error}") from error
    return sought


def _rows_in(plan: ScanPlan, found: FileSlice, keys: pa.Array) -> list[pa.Table]:
    config = plan.context.table.config
    return [with_folder_values(rows, config, found.partition_path) for rows in _stored_rows(plan, found, keys)]


def _stored_rows(plan: ScanPlan, found: FileSlice, keys: pa.Array) -> list[pa.Table]:
    if found.base_file is None or found.log_files:
        tables = read_slice(plan.context, found, plan.needed)
        return [rows.filter(pc.is_in(rows[RECORD_KEY], keys)).select(plan.names) for rows in tables]
    storage = plan.context.table.storage
    # the plan has already checked key ranges and bloom filters
    base = found.base_file
    with deletion_named(storage), StoredBaseFile(storage, base.path, base.size_bytes) as file:
        return list(_rows_of(plan, file, keys))


def _rows_of(plan: ScanPlan, file: StoredBaseFile, keys: pa.Array) -> Iterator[pa.Table]:
    """The rows of a file that have one of the keys. Of row groups without a hit, only the key column is read."""
    needed = plan.needed
    number = needed.get_field_index(RECORD_KEY)
    for group in range(len(file.group_rows)):
        stored = pa.chunked_array(file.read_keys([group]), pa.string())
        at = np.flatnonzero(positions_of(stored, keys) >= 0)
        if not len(at):
            continue
        found = stored.take(pa.array(at))
        for rows in file.read_rows_at(needed.remove(number), group, at):
            yield rows.add_column(number, needed.field(number), found.slice(0, len(rows))).select(plan.names)
            found = found.slice(len(rows))
