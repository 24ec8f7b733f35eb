"""One column chunk under two names: the record key, and the column of the table that holds the same text (pure).

A chunk does not hold the name of its column: the footer does. So two descriptions may point at the same bytes. Some
readers distinguish chunks by where they begin. That is why a dictionary page of one entry stands before the shared
pages, and the chunk of the record key begins with it. No value refers to the entry.
"""

from collections.abc import Sequence
from functools import lru_cache

import pyarrow as pa

from table.files.parquet.page_checksums import CHECKSUM, STORED_BYTES, signed_checksum
from table.files.parquet.row_groups import chunk_path, chunks_of, named_again, with_columns
from table.files.parquet.thrift_compact import I32, STRUCT, Field, Struct, encode_struct
from table.options.choices import Codec
from table.schema.avro_schema import RECORD_KEY

_LEAST_BYTES = 4096  # bytes of keys: for fewer a second writer does not pay
# PageHeader of parquet.thrift: type, plain size, header of a dictionary page (values, encoding)
_TYPE, _PLAIN_BYTES, _DICTIONARY_HEADER = 1, 2, 7
_DICTIONARY_PAGE, _PLAIN = 2, 0
_EMPTY_TEXT = b"\x00\x00\x00\x00"  # its length


def find_shared_column(rows: pa.Table) -> str | None:
    """The column whose values equal the record keys, text for text.

    Args:
        rows: the rows to be written.

    Returns:
        The name; None if there is no such column, or if sharing saves little because there are few keys.
    """
    at = rows.schema.get_field_index(RECORD_KEY)
    if at < 0:
        return None
    keys, field = rows.column(at), rows.schema.field(at)
    if keys.null_count or keys.nbytes < _LEAST_BYTES:
        return None
    for number, other in enumerate(rows.schema):
        if number == at or (other.type, other.nullable) != (field.type, field.nullable):
            continue
        values = rows.column(number)
        if values[0] == keys[0] and values.equals(keys):  # the first value rules out most columns
            return str(other.name)
    return None


@lru_cache
def encode_lead_page(codec: Codec) -> tuple[bytes, int]:
    """A dictionary page that holds the empty text.

    Args:
        codec: codec of the chunk.

    Returns:
        The bytes of the page, and their number without compression.
    """
    held = _EMPTY_TEXT
    if codec is not Codec.NONE:
        # Parquet's LZ4 has no frames
        held = pa.Codec("lz4_raw" if codec is Codec.LZ4 else codec.value).compress(_EMPTY_TEXT, asbytes=True)
    header = encode_struct(
        {
            _TYPE: Field(I32, _DICTIONARY_PAGE),
            _PLAIN_BYTES: Field(I32, len(_EMPTY_TEXT)),
            STORED_BYTES: Field(I32, len(held)),
            CHECKSUM: Field(I32, signed_checksum(held)),
            _DICTIONARY_HEADER: Field(STRUCT, {1: Field(I32, 1), 2: Field(I32, _PLAIN)}),
        }
    )
    return header + held, len(header) + len(_EMPTY_TEXT)


def share_chunk(others: Struct, shared: Struct, names: Sequence[str], codec: Codec) -> Struct:
    """A row group whose record key shares the chunk of another column.

    Args:
        others: row group of the columns that share nothing.
        shared: row group of the shared column alone, after a page of `encode_lead_page`.
        names: top-level columns in the order of the schema, the record key included.
        codec: codec of the chunks.
    """
    [chunk] = chunks_of(shared)
    lead, lead_memory_bytes = encode_lead_page(codec)
    by_column = {RECORD_KEY.encode(): [named_again(chunk, RECORD_KEY, len(lead), lead_memory_bytes)]}
    for part in (*chunks_of(others), chunk):
        by_column.setdefault(chunk_path(part)[0], []).append(part)
    return with_columns(others, [part for name in names for part in by_column[name.encode()]])
