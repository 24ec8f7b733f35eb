"""Deletes rows for good: deletes them, folds their log files, cleans past them, and says where they still lie."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from streaming.arrow_sink import ArrowSink
from streaming.batch.quarantine import EXTRA_KEY
from streaming.router.aside import OWN_FOLDER
from streaming.router.waiting_rows import count_waiting_rows
from table import clock
from table.config.metadata_indexes import RECORD_INDEX, STATISTICS
from table.config.table_config import load_table_config
from table.config.writable import check_has_meta_fields
from table.errors import CommitConflictError, CorruptFileError, InvalidConfigError, StorageError
from table.hudi_table import HudiTable
from table.keys.search import KeyCount
from table.log import get_logger
from table.metadata_table.keep import drop_indexes
from table.options.choices import CleanPolicy, CompactionStrategy, TableType
from table.options.groups import CleanSettings
from table.options.write_options import WriteOptions, parse_options
from table.quarantine.place import ENDING
from table.quarantine.read import count_bad_rows, list_bad_row_files, open_bad_rows
from table.scan.predicate import Where
from table.scan.rows_beside import check_no_rows_beside
from table.scan.scan import make_scan
from table.schema.avro_schema import RECORD_KEY
from table.services.clean.clean import clean
from table.services.compaction.compaction import compact
from table.services.erasure.partition_names import PartitionTrace, find_partition_names
from table.services.erasure.traces import Trace, find_traces
from table.services.erasure.write_anew import write_anew
from table.snapshot import Snapshot
from table.storage.interface import Storage
from table.storage.local import STAGED_FOLDER
from table.timeline.archived_timeline import read_archived_commits
from table.timeline.instant import WRITE_ACTIONS, Action, State

_PAUSE_S = 10.0  # between two looks

log = get_logger("hudistream.erasure")


@dataclass(frozen=True)
class Erasure:
    """What an erasure did, and what is left.

    Attributes:
        keys: number of keys whose rows are to go.
        deleted: rows that were deleted.
        instant_time: the commit that deleted them; None where no row was visible any more.
        traces: data files that still hold such rows or keys, in their rows or in their footers.
        bad_rows: rows with these keys that were put aside as bad rows; they are not deleted.
        waiting_rows: rows with these keys that wait in the folder of a router; they are not deleted.
        partition_traces: partition paths in which no row remains, and the folders and files that still name them. The
            paths hold the values of partition columns.
        unknown: what could not be searched, and why, each in words with the way out.
    """

    keys: int
    deleted: int
    instant_time: str | None
    traces: tuple[Trace, ...]
    bad_rows: int = 0
    waiting_rows: int = 0
    partition_traces: tuple[PartitionTrace, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def rows_are_gone(self) -> bool:
        """Whether no file of the table, no bad row and no waiting row holds such a row or key, and all was searched.

        Names of partitions are not asked.
        """
        return not (self.traces or self.bad_rows or self.waiting_rows or self.unknown)

    @property
    def is_final(self) -> bool:
        """Whether the rows are gone, and nothing names a partition path in which no row remains.

        It is False where it is not known: a partition path without rows may be that of an erased row.
        """
        return self.rows_are_gone and not self.partition_traces


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
    values. Then log files are folded into base files, and files whose key range or bloom filter still contains a key
    are written anew. All older versions of files are cleaned, those of other rows too: earlier snapshots of the table
    are gone afterwards. What readers hold stays for as long as they hold it: pins, and the grace period
    (``hudistream.clean.grace.ms``). What a savepoint holds stays until it is deleted. Can be repeated: it finds the
    keys in older versions, too, if they are given.

    Args:
        path: the table's folder or address.
        keys: record keys, as ``_hoodie_record_key`` has them.
        where: also the keys of the rows for which this condition is true now, as in `HudiTable.scan`. It must be true
            for all rows of a key or for none.
        options: ``hoodie.*`` keys and values of the sink, its index, its grace period and its folder of bad rows
            (``hudistream.bad.rows.path``) among them.
        storage_options: for fsspec.
        wait_s: seconds to wait until what readers hold is gone.

    Returns:
        What was done, where rows with these keys still lie, and what could not be searched.

    Raises:
        InvalidConfigError: neither keys nor a condition is given, or the condition is true for a row and not for
            another one with the same key.
        CommitConflictError: another writer holds the table; nothing was deleted.
        HudiError: a step failed; run it again.
    """
    if not wait_s >= 0:
        raise InvalidConfigError(f"wait_s={wait_s!r}: give a number of seconds, 0 or more")
    if not len(keys) and where is None:
        raise InvalidConfigError("erase takes keys, or where: give at least one of them")
    address = os.fspath(path)
    settings = options if isinstance(options, WriteOptions) else parse_options(options or {}, address).options
    settings = replace(settings, base_file=replace(settings.base_file, keys_anew=True))
    table = HudiTable.open(path, storage_options)
    check_has_meta_fields(table.config, "searched for erased keys")
    wanted = _find_keys(table, keys, where)
    deleted, instant_time = _delete(address, wanted, settings, storage_options)
    if _fold_what_is_left(HudiTable.open(path, storage_options), wanted, settings):
        more, later = _delete(address, wanted, settings, storage_options)
        deleted, instant_time = deleted + more, later or instant_time
    _drop_indexes(table)
    table = HudiTable.open(path, storage_options)  # its properties name no dropped index any more
    limit = clock.monotonic_s() + wait_s
    while True:
        traces = _clean_past(table, wanted, settings)
        if not traces or clock.monotonic_s() + _PAUSE_S > limit:
            break
        clock.sleep_s(_PAUSE_S)
    beside = _Beside(table, wanted, storage_options)
    bad_rows, waiting_rows = beside.count_bad_rows(settings.bad_rows.path), beside.count_waiting_rows()
    names = find_partition_names(table)
    unknown = (*beside.unknown, *_find_pending(table), *(f"{file} cannot be searched" for file in names.unread))
    done = Erasure(len(wanted), deleted, instant_time, traces, bad_rows, waiting_rows, names.traces, unknown)
    log.info(
        "rows_erased",
        table=address,
        keys=done.keys,
        deleted=deleted,
        files_left=len(traces),
        is_final=done.is_final,
    )
    return done


def _find_keys(table: HudiTable, keys: Sequence[str] | pa.Array, where: Where | None) -> pa.Array:
    given = pa.array(keys, pa.string()) if not isinstance(keys, pa.Array) else keys.cast(pa.string())
    if where is None:
        return given.unique()
    rows = make_scan(table, [RECORD_KEY], where).to_arrow()
    check_no_rows_beside(table, where, rows)  # an erasure goes by key, in all partition paths
    found = rows.column(RECORD_KEY)
    return pa.concat_arrays([given, *(chunk.cast(pa.string()) for chunk in found.chunks)]).unique()


def _delete(
    path: str, keys: pa.Array, settings: WriteOptions, storage_options: Mapping[str, Any] | None
) -> tuple[int, str | None]:
    """Deletes the visible rows; a sink of its own does it, and does nothing else."""
    if not len(keys):
        return 0, None
    quiet = replace(settings, services=replace(settings.services, enabled=False))
    with ArrowSink(path, quiet, storage_options) as sink:
        summary = sink.delete(where=[(RECORD_KEY, "in", keys.to_pylist())])
    return summary.rows_deleted, None if summary.skipped else summary.instant_time


def _fold_what_is_left(table: HudiTable, keys: pa.Array, settings: WriteOptions) -> bool:
    """Folds log files if rows with the keys are still visible. Returns whether they are.

    An index that looks into base files does not find rows that lie in log files alone.
    """
    if table.config.table_type != TableType.MERGE_ON_READ or not len(keys):
        return False
    if not make_scan(table, [RECORD_KEY], [(RECORD_KEY, "in", keys.to_pylist())]).count():
        return False
    with suppress(CommitConflictError):
        compact(table, replace(settings.compaction, strategy=CompactionStrategy.UNBOUNDED), settings.file_settings)
    return True


def _drop_indexes(table: HudiTable) -> None:
    """Drops indexes of the metadata table that hold keys, or least and greatest values."""
    config = load_table_config(table.storage)
    holding = STATISTICS | {RECORD_INDEX}
    if config is not None and config.metadata_indexes & holding:
        drop_indexes(table.storage, config, holding, "rows are erased, and the indexes may hold their keys and values")


def _clean_past(table: HudiTable, keys: pa.Array, settings: WriteOptions) -> tuple[Trace, ...]:
    """Folds log files, writes footers anew, cleans all but the newest versions, and looks for what is left."""
    only_newest = replace(
        settings.clean,
        policy=CleanPolicy.KEEP_LATEST_FILE_VERSIONS,
        versions_retained=1,
        partitions=(),
        partition_pattern=None,
    )
    traces = tuple(find_traces(table, keys, only_newest))
    if not traces:
        return ()
    try:
        if table.config.table_type == TableType.MERGE_ON_READ:
            every = replace(settings.compaction, strategy=CompactionStrategy.UNBOUNDED)
            if compact(table, every, settings.file_settings):  # it may have been planned before the deletion
                compact(table, every, settings.file_settings)
        footers = frozenset(trace.path for trace in traces if trace.entries and not trace.rows)
        if footers:
            write_anew(table, footers, settings)
        _clean(table, only_newest)
    except CommitConflictError as error:
        log.info("erasure_waits", table=table.storage.base_uri, why=str(error))
    return tuple(find_traces(table, keys, only_newest))


def _clean(table: HudiTable, settings: CleanSettings) -> None:
    clean(table, replace(settings, trigger_commits=0, incremental=False))


def _find_pending(table: HudiTable) -> list[str]:
    """The writes that are under way, and the files that wait to be published: not all of them can be searched."""
    pending = Snapshot.load(table).timeline.pending_of(*WRITE_ACTIONS, Action.CLUSTERING)
    found = [
        f"{instant.file_name} is under way: run this again after its end"
        for instant in pending
        if instant.state is State.INFLIGHT
    ]
    staged = table.storage.list_tree(STAGED_FOLDER)
    if staged:
        found.append(f"{len(staged)} files wait in {STAGED_FOLDER}: run this again after the next batch")
    return found


class _Beside:
    """Looks for keys in rows that lie beside the table.

    Args:
        table: the table.
        keys: the keys.
        storage_options: for fsspec.

    Attributes:
        unknown: what could not be searched, in words.
    """

    def __init__(self, table: HudiTable, keys: pa.Array, storage_options: Mapping[str, Any] | None) -> None:
        self._table, self._keys, self._options = table, keys, storage_options
        self.unknown: list[str] = []

    def count_bad_rows(self, folder: str | None) -> int:
        """The bad rows with one of the keys, in the folder of the options and in the one beside the table."""
        named = [] if folder is None else [open_bad_rows(self._table.storage, folder, self._options)]
        with suppress(InvalidConfigError):  # at the root of a store no folder is beside the table
            named.append(open_bad_rows(self._table.storage))
        above = self._table.storage.above()
        if above is not None:  # rows of a router that name no table
            named.append(above[0].below(ENDING))
        stores = {store.base_uri: store for store in named}
        found = 0
        for store in stores.values():
            counted = self._ask(store, partial(count_bad_rows, self._table, store, self._keys))
            found += counted.rows
            self._tell_unsure(counted, f"bad rows in {store.base_uri}: delete them, or correct and replay them")
        if folder is None and not self.unknown:
            self._tell_missing(list(stores.values()))
        return found

    def _ask(self, store: Storage, count: Callable[[], KeyCount]) -> KeyCount:
        """What is counted in a folder. A folder that cannot be read is unknown: the rows of the table are deleted."""
        try:
            return count()
        except (StorageError, CorruptFileError) as error:
            self.unknown.append(f"{store.base_uri} cannot be searched: {error}")
            return KeyCount()

    def _tell_unsure(self, counted: KeyCount, where: str) -> None:
        if counted.unsure:
            self.unknown.append(f"no record key is known of {counted.unsure} {where}")

    def _tell_missing(self, stores: list[Storage]) -> None:
        """Files of bad rows that commits name: they were deleted, or are in a folder that was not named."""
        snapshot = Snapshot.load(self._table)
        active = snapshot.commits.find_outlines(snapshot.timeline.completed_writes)
        extras = [outline.extra for _, outline in active if outline is not None]
        extras += [commit.metadata.extra for commit in read_archived_commits(self._table.archived_timeline)]
        named = {name for extra in extras for name in json.loads(extra.get(EXTRA_KEY, "[]"))}
        missing = named.difference(*(list_bad_row_files(store) for store in stores))
        if missing:
            self.unknown.append(
                f"{len(missing)} files of bad rows that commits name, such as {min(missing)}, are not beside the "
                "table: give hudistream.bad.rows.path, the folder where they are, or were before they were deleted"
            )

    def count_waiting_rows(self) -> int:
        """The rows with one of the keys that wait in a router's folder beside the table."""
        above = self._table.storage.above()
        if above is None:
            return 0
        store, name = above[0].below(OWN_FOLDER), above[1]
        fields = self._table.config.record_key_fields
        counted = self._ask(store, partial(count_waiting_rows, store, name, fields, self._keys))
        self._tell_unsure(counted, f"rows that wait in {store.base_uri}: let the router write them")
        return counted.rows
