"""Reads the rows of data blocks of every form (HoodieDataBlock), with one decoder for each form."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from table.errors import CorruptFileError, UnsupportedTableError
from table.files.log.avro_data import read_avro_rows
from table.files.log.framing import BlockType, LogBlock
from table.schema.avro_schema import RECORD_KEY

RECORD_BLOCKS = frozenset(BlockType) - {BlockType.COMMAND, BlockType.CORRUPT}  # blocks that hold rows or deletes
_BATCH_ROWS = 65_536


def read_rows(block: LogBlock, columns: Sequence[str] | None, name: str) -> Iterator[pa.Table]:
    """Rows of a data block in their order, some ten thousand at a time, with the types that the block has.

    Args:
        block: the block.
        columns: the wanted columns; columns that the block does not have are left out. None: what proves the block
            whole, which is every column of a Parquet block, whose pages have checksums, and the keys of an Avro block.
        name: name of its file, for the error.

    Raises:
        CorruptFileError: the rows cannot be decoded.
        UnsupportedTableError: this project does not read the block's form.
    """
    if block.type is BlockType.AVRO_DATA:
        return read_avro_rows(block, [RECORD_KEY] if columns is None else columns, name)
    if block.type is BlockType.PARQUET_DATA:
        return _read_parquet_rows(block, columns, name)
    raise UnsupportedTableError(
        f"{name} holds a block of the type {block.type.name}: read are Avro and Parquet blocks; "
        "let Hudi compact the table"
    )


def _read_parquet_rows(block: LogBlock, columns: Sequence[str] | None, name: str) -> Iterator[pa.Table]:
    try:
        file = pq.ParquetFile(pa.BufferReader(block.content), page_checksum_verification=True)
        present = file.schema_arrow.names
        wanted = present if columns is None else [column for column in columns if column in present]
        for batch in file.iter_batches(_BATCH_ROWS, columns=wanted, use_threads=False):
            yield pa.Table.from_batches([batch])
    # KeyError: older Arrow's for a missing column; ValueError: names that are no text
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise CorruptFileError(f"{name}: a Parquet block is damaged: {error}") from error
