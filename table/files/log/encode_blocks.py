"""Rows and deletes -> blocks of a log file, as Hudi 1.0.2 writes them to tables of version 6 (HoodieAppendHandle)."""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from table.columns.memory_size import rows_bytes
from table.files.log.avro_data import encode_avro_runs, joined_runs
from table.files.log.delete_block import encode_deletes
from table.files.log.framing import BlockType, Header, LogBlock
from table.files.log.record_positions import RecordPositions
from table.options.choices import LogBlockFormat
from table.options.groups import BaseFileSettings, LogFileSettings


def data_blocks(
    rows: pa.Table,
    avro_schema: str,
    instant_time: str,
    settings: LogFileSettings,
    base: BaseFileSettings,
    positions: RecordPositions | None = None,
) -> Iterator[tuple[LogBlock, int]]:
    """Data blocks of rows, each with its number of rows; one block at a time is in memory.

    Args:
        rows: meta columns and table columns.
        avro_schema: Avro schema of these columns (JSON), for each block's header.
        instant_time: the delta commit that writes them.
        settings: form and size of the blocks.
        base: codec and level of Parquet blocks.
        positions: of the rows; None if they are not known.
    """
    header = _header(instant_time, avro_schema)
    if settings.block_format is LogBlockFormat.PARQUET:
        count = max(1, -(-rows_bytes(rows) // settings.block_bytes))
        step = max(1, -(-len(rows) // count))
        for first in range(0, len(rows), step):
            piece = rows.slice(first, step)
            whole = header | _positions_in_header(positions, first, len(piece))
            yield LogBlock(BlockType.PARQUET_DATA, whole, _parquet_content(piece, avro_schema, base)), len(piece)
        return
    first = 0
    for runs in _runs_by_block(encode_avro_runs(avro_schema, rows), settings.block_bytes):
        count = sum(records for records, _ in runs)
        whole = header | _positions_in_header(positions, first, count)
        yield LogBlock(BlockType.AVRO_DATA, whole, joined_runs(runs)), count
        first += count


def _runs_by_block(runs: Iterable[tuple[int, bytes]], block_bytes: int) -> Iterator[Sequence[tuple[int, bytes]]]:
    held: list[tuple[int, bytes]] = []
    held_bytes = 0
    for run in runs:
        held.append(run)
        held_bytes += len(run[1])
        if held_bytes >= block_bytes:
            yield held
            held, held_bytes = [], 0
    if held:
        yield held


def delete_block(
    keys: pa.Array,
    order: pa.Table,
    partition_path: str,
    avro_schema: str,
    instant_time: str,
    positions: RecordPositions | None = None,
) -> LogBlock:
    """The block of deletes.

    Args:
        keys: record keys (string).
        order: ordering values, a column for each ordering field; null where a delete has none.
        partition_path: partition path of all the keys.
        avro_schema: as in the data blocks.
        instant_time: the delta commit that writes them.
        positions: of the rows with these keys; None if they are not known.
    """
    header = _header(instant_time, avro_schema) | _positions_in_header(positions, 0, len(keys))
    return LogBlock(BlockType.DELETE, header, encode_deletes(keys, partition_path, order))


def _header(instant_time: str, avro_schema: str) -> dict[int, str]:
    return {Header.INSTANT_TIME: instant_time, Header.SCHEMA: avro_schema}


def _positions_in_header(positions: RecordPositions | None, first: int, count: int) -> dict[int, str]:
    return {} if positions is None else positions.part(slice(first, first + count)).header()


def _parquet_content(rows: pa.Table, avro_schema: str, base: BaseFileSettings) -> bytes:
    """A whole Parquet file."""
    out = pa.BufferOutputStream()
    with pq.ParquetWriter(
        out,
        rows.schema,
        compression=base.codec,
        compression_level=base.level,
        data_page_size=base.page_bytes,
        store_schema=False,
        write_page_checksum=True,
    ) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata({"parquet.avro.schema": avro_schema, "writer.model.name": "avro"})
    content: bytes = out.getvalue().to_pybytes()
    return content
