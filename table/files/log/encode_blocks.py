"""Rows and deletes -> blocks of a log file, as Hudi 1.0.2 writes them to tables of version 6 (HoodieAppendHandle)."""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from table.columns.memory_size import rows_bytes
from table.files.log.avro_data import encode_avro_runs, joined_runs
from table.files.log.delete_block import encode_deletes
from table.files.log.framing import BlockType, Header, LogBlock
from table.options.choices import LogBlockFormat
from table.options.groups import BaseFileSettings, LogFileSettings


def data_blocks(
    rows: pa.Table, avro_schema: str, instant_time: str, settings: LogFileSettings, base: BaseFileSettings
) -> Iterator[tuple[LogBlock, int]]:
    """Data blocks of rows, each with its number of rows; one block at a time is in memory.

    Args:
        rows: meta columns and table columns.
        avro_schema: Avro schema of these columns (JSON), for each block's header.
        instant_time: the delta commit that writes them.
        settings: form and size of the blocks.
        base: codec and level of Parquet blocks.
    """
    header = _header(instant_time, avro_schema)
    if settings.block_format is LogBlockFormat.PARQUET:
        count = max(1, -(-rows_bytes(rows) // settings.block_bytes))
        step = max(1, -(-len(rows) // count))
        for first in range(0, len(rows), step):
            piece = rows.slice(first, step)
            yield LogBlock(BlockType.PARQUET_DATA, header, _parquet_content(piece, avro_schema, base)), len(piece)
        return
    held: list[tuple[int, bytes]] = []
    held_bytes = 0
    for run in encode_avro_runs(avro_schema, rows):
        held.append(run)
        held_bytes += len(run[1])
        if held_bytes >= settings.block_bytes:
            yield _avro_block(header, held)
            held, held_bytes = [], 0
    if held:
        yield _avro_block(header, held)


def _avro_block(header: Mapping[int, str], runs: Sequence[tuple[int, bytes]]) -> tuple[LogBlock, int]:
    return LogBlock(BlockType.AVRO_DATA, header, joined_runs(runs)), sum(count for count, _ in runs)


def delete_block(keys: pa.Array, order: pa.Table, partition_path: str, avro_schema: str, instant_time: str) -> LogBlock:
    """The block of deletes.

    Args:
        keys: record keys (string).
        order: ordering values, a column for each ordering field; null where a delete has none.
        partition_path: partition path of all the keys.
        avro_schema: as in the data blocks.
        instant_time: the delta commit that writes them.
    """
    content = encode_deletes(keys, partition_path, order)
    return LogBlock(BlockType.DELETE, _header(instant_time, avro_schema), content)


def _header(instant_time: str, avro_schema: str) -> dict[int, str]:
    return {Header.INSTANT_TIME: instant_time, Header.SCHEMA: avro_schema}


def _parquet_content(rows: pa.Table, avro_schema: str, base: BaseFileSettings) -> bytes:
    """A whole Parquet file."""
    out = pa.BufferOutputStream()
    with pq.ParquetWriter(
        out,
        rows.schema,
        compression=base.codec,
        compression_level=base.level,
        store_schema=False,
    ) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata({"parquet.avro.schema": avro_schema, "writer.model.name": "avro"})
    content: bytes = out.getvalue().to_pybytes()
    return content
