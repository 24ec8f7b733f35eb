"""Finds the files in which keys still lie: in rows, in log records, and in what a footer derives from rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from table.errors import CorruptFileError, StorageError, UnsupportedTableError
from table.files.log.change_records import count_changed
from table.files.log.data_blocks import read_rows
from table.files.log.delete_block import read_deletes
from table.files.log.framing import BlockType, Verdict, read_block, scan_blocks
from table.hudi_table import HudiTable
from table.options.groups import CleanSettings
from table.schema.avro_schema import RECORD_KEY
from table.services.clean.judgement import judge_files
from table.services.erasure.footer_entries import find_entries
from table.storage.interface import Storage
from table.view.file_group import BaseFile, DataFile, parse_data_files

_UNNAMED = "no completed commit names it: a batch is under way, or it is left over: `hudistream check --repair`"
_UNREAD = "blocks that cannot be searched"
_CHANGED = "changed rows"


@dataclass(frozen=True, slots=True)
class Trace:
    """A file that holds some of the keys.

    Attributes:
        path: relative to the table.
        rows: its rows with such a key.
        deletes: its log records that delete such a key: they hold the key alone.
        why: why a clean leaves the file, in words; "the next clean deletes it" where none does.
        entries: parts of the file that contain such a key although none of its rows has it: ``key range``, ``bloom
            filter``, ``column statistics``; ``changed rows`` of a change file. Also ``blocks that cannot be searched``,
            of a log file.
    """

    path: str
    rows: int
    deletes: int
    why: str
    entries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Found:
    rows: int = 0
    deletes: int = 0
    entries: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.rows or self.deletes or self.entries)


def find_traces(table: HudiTable, keys: pa.Array, settings: CleanSettings) -> Iterator[Trace]:
    """Looks for keys in every data file: current and older ones, and those that no completed commit names.

    Args:
        table: the table.
        keys: record keys, as ``_hoodie_record_key`` has them (string).
        settings: the policy by which files are cleaned.

    Yields:
        The files that hold some of the keys, partition by partition.

    Raises:
        StorageError, CorruptFileError: a file cannot be read, so nothing is known of it.
    """
    judged: dict[str, str] = {}
    for partition in judge_files(table, settings):
        for fate in partition.fates:
            why = "the next clean deletes it" if fate.deleted else f"stays: {fate.rule}"
            judged[fate.file.path] = why
            yield from _trace(table, fate.file, keys, why)
    yield from _find_unnamed(table, keys, judged)


def _find_unnamed(table: HudiTable, keys: pa.Array, judged: Mapping[str, str]) -> Iterator[Trace]:
    """Traces in files that are in the folders of partitions, and count for no reader."""
    for path, entries in table.store_listing.walk():
        bases, logs = parse_data_files(path, entries)
        files: list[DataFile] = [*bases, *logs]
        for file in files:
            if file.path not in judged:
                yield from _trace(table, file, keys, _UNNAMED)


def _trace(table: HudiTable, file: DataFile, keys: pa.Array, why: str) -> Iterator[Trace]:
    storage, fields = table.storage, table.config.record_key_fields
    try:
        if isinstance(file, BaseFile):
            found = _search_base(storage, file, keys)
        else:
            found = _search_log(storage, file, keys, fields)
    except FileNotFoundError:
        return  # it was cleaned meanwhile
    if found:
        yield Trace(file.path, found.rows, found.deletes, why, found.entries)


def _search_base(storage: Storage, file: DataFile, keys: pa.Array) -> _Found:
    try:
        with storage.open_input(file.path, file.size_bytes) as source:
            stored = pq.ParquetFile(source)
            hits = [_hits(batch.column(0), keys) for batch in stored.iter_batches(columns=[RECORD_KEY])]
            held = pa.chunked_array(hits, pa.string())
            gone = keys.filter(pc.invert(pc.is_in(keys, value_set=held))) if len(held) else keys

            def read_keys() -> pa.Array:
                return stored.read([RECORD_KEY]).column(0).cast(pa.string()).combine_chunks()

            return _Found(len(held), 0, find_entries(stored.metadata, gone, read_keys))
    except (pa.ArrowInvalid, OSError) as error:
        if isinstance(error, FileNotFoundError | StorageError):
            raise
        raise CorruptFileError(f"{file.path} cannot be read: {error}") from error


def _search_log(storage: Storage, file: DataFile, keys: pa.Array, fields: Sequence[str]) -> _Found:
    rows = deletes = changed = 0
    unread = False
    with storage.open_input(file.path, file.size_bytes) as stream:
        for place in scan_blocks(stream, with_content=False):
            if place.verdict is not Verdict.WHOLE or place.block is None:
                unread = True
                continue
            if place.block.type is BlockType.COMMAND:
                continue
            block = read_block(stream, place)
            try:
                if block.type is BlockType.DELETE:
                    deletes += len(_hits(read_deletes(block, pa.schema([]), file.path).keys, keys))
                elif block.type is BlockType.CDC_DATA:
                    counted = count_changed(block, file.path, fields, keys)
                    changed, unread = changed + counted.rows, unread or counted.unsure > 0
                else:
                    parts = read_rows(block, [RECORD_KEY], file.path)
                    rows += sum(len(_hits(part.column(RECORD_KEY), keys)) for part in parts)
            except UnsupportedTableError:
                unread = True
    return _Found(rows, deletes, (*([_CHANGED] if changed else []), *([_UNREAD] if unread else [])))


def _hits(stored: pa.Array | pa.ChunkedArray, keys: pa.Array) -> pa.Array:
    """The stored keys that are among the given ones."""
    texts = stored.combine_chunks() if isinstance(stored, pa.ChunkedArray) else stored
    texts = texts.cast(pa.string())
    return texts.filter(pc.is_in(texts, value_set=keys))
