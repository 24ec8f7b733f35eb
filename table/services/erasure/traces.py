"""Finds the files in which keys still lie: older versions of files, and files below log files that delete them."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from table.errors import CorruptFileError, StorageError
from table.files.log.data_blocks import read_rows
from table.files.log.delete_block import read_deletes
from table.files.log.framing import BlockType, Verdict, read_block, scan_blocks
from table.hudi_table import HudiTable
from table.options.groups import CleanSettings
from table.schema.avro_schema import RECORD_KEY
from table.services.clean.judgement import judge_files
from table.storage.interface import Storage
from table.view.file_group import BaseFile, DataFile


@dataclass(frozen=True, slots=True)
class Trace:
    """A file that holds some of the keys.

    Attributes:
        path: relative to the table.
        rows: its rows with such a key.
        deletes: its log records that delete such a key: they hold the key alone.
        why: why a clean leaves the file, in words; "the next clean deletes it" where none does.
    """

    path: str
    rows: int
    deletes: int
    why: str


def find_traces(table: HudiTable, keys: pa.Array, settings: CleanSettings) -> Iterator[Trace]:
    """Looks for keys in every committed data file, current and older ones.

    Args:
        table: the table.
        keys: record keys, as ``_hoodie_record_key`` has them (string).
        settings: the policy by which files are cleaned.

    Yields:
        The files that hold some of the keys, partition by partition.

    Raises:
        StorageError, CorruptFileError: a file cannot be read, so nothing is known of it.
    """
    for partition in judge_files(table, settings):
        for fate in partition.fates:
            try:
                rows, deletes = _count(table.storage, fate.file, keys)
            except FileNotFoundError:
                continue  # it was cleaned meanwhile
            if rows or deletes:
                why = "the next clean deletes it" if fate.deleted else f"stays: {fate.rule}"
                yield Trace(fate.file.path, rows, deletes, why)


def _count(storage: Storage, file: DataFile, keys: pa.Array) -> tuple[int, int]:
    return (
        (_count_in_base(storage, file, keys), 0) if isinstance(file, BaseFile) else _count_in_log(storage, file, keys)
    )


def _count_in_base(storage: Storage, file: DataFile, keys: pa.Array) -> int:
    try:
        with storage.open_input(file.path, file.size_bytes) as source:
            stored = pq.ParquetFile(source)
            batches = stored.iter_batches(columns=[RECORD_KEY])
            return sum(_matches(batch.column(0), keys) for batch in batches)
    except (pa.ArrowInvalid, OSError) as error:
        if isinstance(error, FileNotFoundError | StorageError):
            raise
        raise CorruptFileError(f"{file.path} cannot be read: {error}") from error


def _count_in_log(storage: Storage, file: DataFile, keys: pa.Array) -> tuple[int, int]:
    rows = deletes = 0
    with storage.open_input(file.path, file.size_bytes) as stream:
        for place in scan_blocks(stream, with_content=False):
            if place.verdict is not Verdict.WHOLE or place.block is None or place.block.type is BlockType.COMMAND:
                continue
            block = read_block(stream, place)
            if block.type is BlockType.DELETE:
                deletes += _matches(read_deletes(block, pa.schema([]), file.path).keys, keys)
            else:
                parts = read_rows(block, [RECORD_KEY], file.path)
                rows += sum(_matches(part.column(RECORD_KEY), keys) for part in parts)
    return rows, deletes


def _matches(stored: pa.Array | pa.ChunkedArray, keys: pa.Array) -> int:
    texts = stored.cast(pa.string()) if pa.types.is_dictionary(stored.type) else stored
    return int(pc.sum(pc.is_in(texts, value_set=keys.cast(texts.type))).as_py() or 0)
