"""Deletes rows for good: deletes them, folds their log files, cleans past them, and says where they still lie."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streaming.arrow_sink import ArrowSink
from table import clock
from table.config.metadata_indexes import RECORD_INDEX, STATISTICS
from table.config.table_config import load_table_config
from table.config.writable import check_has_meta_fields
from table.errors import CommitConflictError, InvalidConfigError
from table.log import get_logger
from table.metadata_table.keep import drop_indexes
from table.options.choices import CleanPolicy, TableType
from table.options.groups import CleanSettings
from table.options.write_options import WriteOptions, parse_options
from table.quarantine.read import read_bad_rows
from table.scan.predicate import Where
from table.scan.rows_beside import check_no_rows_beside
from table.scan.scan import make_scan
from table.schema.avro_schema import RECORD_KEY
from table.services.clean.clean import clean
from table.services.compaction.compaction import compact
from table.services.erasure.traces import Trace, find_traces
from table.user_table import HudiTable

_PAUSE_S = 10.0  # between two looks

log = get_logger("hudistream.erasure")


@dataclass(frozen=True)
class Erasure:
    """What an erasure did, and what is left.

    Attributes:
        keys: number of keys whose rows are to go.
        deleted: rows that were deleted.
        instant_time: the commit that deleted them; None where no row was visible any more.
        traces: data files that still hold such rows.
        bad_rows: rows with these keys that were put aside as bad rows; they are not deleted.
    """

    keys: int
    deleted: int
    instant_time: str | None
    traces: tuple[Trace, ...]
    bad_rows: int = 0

    @property
    def is_final(self) -> bool:
        """Whether no file of the table, and no bad row, holds such a row."""
        return not self.traces and not self.bad_rows


def erase(
    path: str | os.PathLike[str],
    keys: Sequence[str] | pa.Array = (),
    *,
    where: Where | None = None,
    options: Mapping[str, str | None] | WriteOptions | None = None,
    storage_options: Mapping[str, Any] | None = None,
    wait_s: float = 0.0,
) -> Erasure:
    """Deletes rows, and takes care that no file holds them any more.

    The rows are deleted by one commit. Statistics of columns and a record index are deleted, too: they hold keys and
    values. Then log files are folded into base files, and all older versions of files are
    cleaned, those of other rows too: earlier snapshots of the table are gone afterwards. What readers hold stays for
    as long as they hold it: pins, and the grace period (``hudistream.clean.grace.ms``). What a savepoint holds stays
    until it is deleted. Can be repeated: it finds the keys in older versions, too, if they are given.

    Args:
        path: the table's folder or address.
        keys: record keys, as ``_hoodie_record_key`` has them.
        where: also the keys of the rows for which this condition is true now, as in `HudiTable.scan`. It must be true
            for all rows of a key or for none.
        options: ``hoodie.*`` keys and values of the sink, its index and its grace period among them.
        storage_options: for fsspec.
        wait_s: seconds to wait until what readers hold is gone.

    Returns:
        What was done, and where rows with these keys still lie.

    Raises:
        InvalidConfigError: neither keys nor a condition is given, or the condition is true for a row and not for
            another one with the same key.
        CommitConflictError: another writer holds the table; nothing was deleted.
        HudiError: a step failed; run it again.
    """
    if not len(keys) and where is None:
        raise InvalidConfigError("erase takes keys, or where: give at least one of them")
    settings = options if isinstance(options, WriteOptions) else parse_options(options or {}).options
    table = HudiTable.open(path, storage_options)
    check_has_meta_fields(table.config, "searched for erased keys")
    wanted = _find_keys(table, keys, where)
    deleted, instant_time = _delete(path, wanted, options, storage_options)
    _drop_indexes(table)
    limit = clock.monotonic_s() + wait_s
    while True:
        traces = _clean_past(table, wanted, settings)
        if not traces or clock.monotonic_s() + _PAUSE_S > limit:
            break
        clock.sleep_s(_PAUSE_S)
    bad_rows = _count_bad_rows(table, path, wanted, storage_options)
    log.info("rows_erased", table=os.fspath(path), keys=len(wanted), deleted=deleted, files_left=len(traces))
    return Erasure(len(wanted), deleted, instant_time, traces, bad_rows)


def _find_keys(table: HudiTable, keys: Sequence[str] | pa.Array, where: Where | None) -> pa.Array:
    given = pa.array(keys, pa.string()) if not isinstance(keys, pa.Array) else keys.cast(pa.string())
    if where is None:
        return given.unique()
    rows = make_scan(table, [RECORD_KEY], where).to_arrow()
    check_no_rows_beside(table, where, rows)  # an erasure goes by key, in all partition paths
    found = rows.column(RECORD_KEY)
    return pa.concat_arrays([given, *(chunk.cast(pa.string()) for chunk in found.chunks)]).unique()


def _delete(
    path: str | os.PathLike[str], keys: pa.Array, options: Any, storage_options: Mapping[str, Any] | None
) -> tuple[int, str | None]:
    """Deletes the visible rows; a sink of its own does it, and does nothing else."""
    if not len(keys):
        return 0, None
    if isinstance(options, WriteOptions):
        quiet: Any = replace(options, services=replace(options.services, enabled=False))
    else:
        quiet = {**(options or {}), "hoodie.table.services.enabled": "false"}
    with ArrowSink(path, quiet, storage_options) as sink:
        summary = sink.delete(where=[(RECORD_KEY, "in", keys.to_pylist())])
    return summary.rows_deleted, None if summary.skipped else summary.instant_time


def _drop_indexes(table: HudiTable) -> None:
    """Drops indexes of the metadata table that hold keys, or least and greatest values."""
    config = load_table_config(table.storage)
    holding = STATISTICS | {RECORD_INDEX}
    if config is not None and config.metadata_indexes & holding:
        drop_indexes(table.storage, config, holding, "rows are erased, and the indexes may hold their keys and values")


def _clean_past(table: HudiTable, keys: pa.Array, settings: WriteOptions) -> tuple[Trace, ...]:
    """Folds log files, cleans all but the newest versions, and looks for what is left."""
    only_newest = replace(settings.clean, policy=CleanPolicy.KEEP_LATEST_FILE_VERSIONS, versions_retained=1)
    traces = tuple(find_traces(table, keys, only_newest))
    if not traces:
        return ()
    try:
        if table.config.table_type == TableType.MERGE_ON_READ:
            compact(table, settings.compaction, settings.file_settings)
        _clean(table, only_newest)
    except CommitConflictError as error:
        log.info("erasure_waits", table=table.storage.base_uri, why=str(error))
    return tuple(find_traces(table, keys, only_newest))


def _clean(table: HudiTable, settings: CleanSettings) -> None:
    clean(table, replace(settings, trigger_commits=0, incremental=False))


def _count_bad_rows(
    table: HudiTable, path: str | os.PathLike[str], keys: pa.Array, storage_options: Mapping[str, Any] | None
) -> int:
    rows = read_bad_rows(path, storage_options, replayed=True)
    fields = table.config.record_key_fields
    if len(fields) != 1 or fields[0] not in rows.column_names:
        return 0
    found = pc.is_in(rows.column(fields[0]).cast(pa.string()), value_set=keys)
    return int(pc.sum(found).as_py() or 0)
