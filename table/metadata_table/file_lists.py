"""Reads the partition ``files`` of the metadata table: which files the table has (HoodieBackedTableMetadata).

The partition has one file group: a base file (HFile), and log files with blocks of the same form. They are read whole.
Their values are decoded when they are asked for.
"""

from collections.abc import Iterable, Mapping

from table.config.metadata_indexes import FILES
from table.config.table_config import load_table_config
from table.errors import CorruptFileError, StorageError, UnsupportedTableError
from table.files.hfile.read_hfile import HFile
from table.log import get_logger
from table.metadata_table.groups import SliceRecords, read_records
from table.metadata_table.lost_files import check_all_seen
from table.metadata_table.metadata_table import MADE, MetadataTable, check_compactions, find_slice, is_making
from table.metadata_table.record_codec import decode_record
from table.metadata_table.records import ALL_PARTITIONS, ListRecord, combine, key_of, partition_path_of
from table.storage.interface import Storage
from table.timeline.instant import WRITE_ACTIONS
from table.timeline.timeline import Timeline
from table.view.file_group import CommittedInstants, FileSlice, committed_instants

log = get_logger("hudistream.metadata_table")


class FileLists:
    """The files of a table by partition path, as the metadata table lists them.

    Args:
        base: the base file; None where there are only log files.
        logs: records of the log files by key, oldest first.
    """

    def __init__(self, base: HFile | None, logs: Mapping[str, list[ListRecord]]) -> None:
        self._base, self._logs = base, logs

    def partition_paths(self) -> list[str]:
        """Every partition path, sorted.

        Raises:
            CorruptFileError: the record is damaged.
        """
        return sorted(partition_path_of(name) for name in combine(self._records(ALL_PARTITIONS)))

    def files(self, partition_path: str) -> dict[str, int]:
        """Names of a partition path's files, with their sizes in bytes.

        Raises:
            CorruptFileError: the record is damaged.
        """
        return combine(self._records(key_of(partition_path)))

    def entries(self) -> dict[str, dict[str, int]]:
        """Every key with its names and their sizes.

        Raises:
            CorruptFileError: a record is damaged.
        """
        keys = dict.fromkeys(map(decode_key, (key for key, _ in self._base.entries()) if self._base else ()))
        return {key: combine(self._records(key)) for key in sorted({**keys, **self._logs})}

    def _records(self, key: str) -> Iterable[ListRecord]:
        value = self._base.find(key.encode()) if self._base is not None else None
        if self._base is not None and value:
            yield decode_record(value, self._base.schema)
        yield from self._logs.get(key, ())


def load_file_lists(storage: Storage, known: Iterable[str]) -> FileLists:
    """Reads the lists of files, and proves that they are whole.

    A writer that does not keep the metadata table up deletes the table's property first, and then its files. So the
    property and the names are looked at again after the files were read.

    Args:
        storage: of the table.
        known: times of the writes that the caller has seen completed; the metadata table must know them.

    Raises:
        UnsupportedTableError: the lists may be incomplete, or have a form that is not known here.
        CorruptFileError: a file is damaged.
        StorageError: the store fails.
    """
    own = MetadataTable.open(storage)
    timeline, entries = own.load_timeline(), own.list_files()
    check_knows(timeline, known)
    check_compactions(timeline)
    committed = committed_instants(timeline, {})
    found = find_slice(entries, committed)
    records = read_records(own, found, committed)
    check_all_seen(own, timeline, found, records.times)
    lists = _lists_of(records, found)
    now = load_table_config(storage)
    if now is None or FILES not in now.metadata_indexes or own.list_files() != entries:
        raise UnsupportedTableError("the metadata table was changed while it was read")
    return lists


def read_lists(own: MetadataTable, found: FileSlice, committed: CommittedInstants) -> FileLists:
    """The lists of files that a slice holds; arguments and errors are those of `read_records`."""
    return _lists_of(read_records(own, found, committed), found)


def _lists_of(records: SliceRecords, found: FileSlice) -> FileLists:
    layers = list(records.layers)
    base = layers.pop(0) if found.base_file else None
    assert base is None or isinstance(base, HFile), "a base file is an HFile"
    logs: dict[str, list[ListRecord]] = {}
    for layer in layers:
        if not isinstance(layer, HFile):
            raise UnsupportedTableError("a list of files of the metadata table was deleted")
        for key, value in layer.entries():
            logs.setdefault(decode_key(key), []).append(decode_record(value, layer.schema))
    return FileLists(base, logs)


def check_knows(timeline: Timeline, known: Iterable[str]) -> None:
    """Refuses a metadata table in which a write is missing: a writer may have ignored it.

    Earlier writes than the first on its timeline were listed when it was made, or are archived there.

    Args:
        timeline: of the metadata table.
        known: times of completed writes.

    Raises:
        UnsupportedTableError: names the last write that it does not know.
    """
    begins = first_known(timeline)
    times = {instant.time for instant in timeline.completed_of(*WRITE_ACTIONS)}
    missed = sorted(time for time in known if time >= begins and time not in times)
    if missed:
        raise UnsupportedTableError(f"the metadata table does not know the write {missed[-1]}")


def first_known(timeline: Timeline) -> str:
    """The time from which on each write has a delta commit of its own on the metadata table's timeline (pure).

    No writer is at work while the lists are made. So they contain what was requested before they were complete.
    """
    writes = timeline.completed_of(*WRITE_ACTIONS)
    first = min((one.time for one in writes if not is_making(one.time)), default="")
    made = (one.completion_time or (one.time if not one.time.startswith(MADE) else "") for one in writes)
    return first or min(made, default="")


def decode_key(key: bytes) -> str:
    """A key as text.

    Raises:
        CorruptFileError: it is not UTF-8.
    """
    try:
        return key.decode()
    except UnicodeDecodeError as error:
        raise CorruptFileError(f"a key of the metadata table is damaged: {error}") from error


Failures = (UnsupportedTableError, CorruptFileError, StorageError, FileNotFoundError)
"""What makes a caller ask the store instead."""


def tell_not_used(event: str, table: str, error: Exception) -> None:
    """Logs that a reader asks the store instead of the metadata table.

    A metadata table that is out of date, or that has what is not read here, is nothing to look at. One that is damaged
    is: each reader pays for it, and a writer drops it.

    Args:
        event: name of the event.
        table: the table's address.
        error: one of `Failures`.
    """
    if isinstance(error, UnsupportedTableError):
        log.info(event, table=table, why=str(error))
        return
    hint = "the rows are not touched; `hudistream check PATH --repair` drops a damaged metadata table, to be made again"
    log.warning(event, table=table, why=str(error), hint=hint)
