"""Parquet files in memory: pyarrow writes them, and their parts are put together anew."""

import pyarrow as pa
import pyarrow.parquet as pq

from table.files.parquet.footer import MAGIC, Footer, decode_footer, find_footer
from table.files.parquet.thrift_compact import LIST, STRUCT, Field, Items, encode_struct

ROW_GROUPS = 4  # field of FileMetaData


def parquet_of(table: pa.Table, **options) -> bytes:
    """A file of pyarrow with these rows."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return sink.getvalue().to_pybytes()


def thrift_of(file: bytes) -> bytes:
    """The Thrift bytes of a file's footer."""
    return file[find_footer(file[-8:], len(file)) : -8]


def footer_of(file: bytes) -> Footer:
    """The footer of a file."""
    return decode_footer(thrift_of(file))


def data_of(file: bytes) -> bytes:
    """What stands before a file's footer, the magic included."""
    return file[: find_footer(file[-8:], len(file))]


def joined(data: bytes, like: Footer, groups: list) -> bytes:
    """A file of these bytes, whose footer is `like` with these row groups (Thrift's RowGroup)."""
    thrift = encode_struct({**like.fields, ROW_GROUPS: Field(LIST, Items(STRUCT, groups))})
    return data + thrift + len(thrift).to_bytes(4, "little") + MAGIC


def metadata_of(file: bytes) -> pq.FileMetaData:
    """The footer of a file, as pyarrow reads it."""
    return pq.read_metadata(pa.BufferReader(file))


def rows_of_file(file: bytes) -> pa.Table:
    """The rows of a file, as pyarrow reads them."""
    return pq.read_table(pa.BufferReader(file))
