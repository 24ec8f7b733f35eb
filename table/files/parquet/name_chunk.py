"""The chunk in which copied rows name their new file: one string, repeated for every row of the row group.

Arrow encodes such a chunk once for each number of rows with a blank name; each file's name is then put into the place
of the blank. So these chunks are not compressed. A name would not get much shorter by it.
"""

import io
from dataclasses import dataclass, replace
from functools import lru_cache

import pyarrow as pa

from table.files.base.repeated_columns import constant_column
from table.files.parquet.chunk_statistics import with_statistics_replaced
from table.files.parquet.footer import MAGIC
from table.files.parquet.page_checksums import PageForm, forms_of
from table.files.parquet.row_group_writer import RowGroupWriter
from table.files.parquet.row_groups import chunks_of, moved_chunk, resized_chunk
from table.files.parquet.thrift_compact import Struct
from table.options.choices import Codec
from table.options.groups import BaseFileSettings


def _blank(length: int) -> str:
    # a pattern that cannot match itself at a shifted position
    return "\x01" + "\x02" * (length - 1)


@dataclass(frozen=True)
class _Form:
    """A chunk with a blank for the name.

    Attributes:
        pages: of the chunk.
        chunk: the description of the chunk, as if it began after the magic of a file.
    """

    pages: tuple[PageForm, ...]
    chunk: Struct


def encode_name_chunk(
    name: str, rows: int, start: int, field: pa.Field, settings: BaseFileSettings
) -> tuple[bytes, Struct]:
    """A chunk that holds only a file name.

    Args:
        name: name of the file.
        rows: rows of the row group.
        start: offset of the chunk in the file.
        field: the column (Arrow).
        settings: how base files are written.

    Returns:
        The bytes of the chunk, and its description (Thrift's ColumnChunk).
    """
    written = name.encode()
    form, blank = _form_of(len(written), rows, field, settings), _blank(len(written)).encode()
    pages = [page.filled(blank, written) for page in form.pages]
    chunk = with_statistics_replaced(moved_chunk(form.chunk, start - len(MAGIC)), blank, written)
    return (data := b"".join(pages)), resized_chunk(chunk, len(data), len(pages[0]))


@lru_cache(maxsize=4096)
def _form_of(length: int, rows: int, field: pa.Field, settings: BaseFileSettings) -> _Form:
    schema = pa.schema([field])
    sink = io.BytesIO()
    sink.write(MAGIC)
    groups = RowGroupWriter(sink, schema, replace(settings, codec=Codec.NONE, codec_level=None))
    groups.write(pa.table([constant_column(_blank(length), rows)], schema=schema))
    return _Form(forms_of(sink.getvalue()[len(MAGIC) :]), chunks_of(groups.finish()[0][0].decoded)[0])
