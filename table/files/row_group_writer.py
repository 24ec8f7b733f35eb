"""Row groups into a file that somebody else began: Arrow encodes, we place.

Arrow's writer believes that it writes a whole file. Its magic at the start and its footer at the end are
kept back; what it says about places is moved to where the bytes really are.
"""

from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from table.files.parquet_footer import MAGIC, TAIL_BYTES, Footer, decode_footer, moved_group
from table.files.thrift_compact import Struct
from table.schema import COMMIT_SEQNO, META_COLUMNS, RECORD_KEY
from table.settings import BaseFileSettings
from table.storage import OutputFile


class _Pass:
    """What Arrow writes through."""

    closed = False

    def __init__(self, sink: OutputFile) -> None:
        self._sink = sink
        self._started = False
        self._footer: bytearray | None = None

    def write(self, data: Any) -> None:
        if not self._started:
            self._started = True  # the magic
        elif self._footer is not None:
            self._footer += data
        else:
            self._sink.write(data)

    def end_rows(self) -> None:
        self._footer = bytearray()

    @property
    def footer(self) -> bytes:
        return bytes(self._footer or b"")[:-TAIL_BYTES]

    def flush(self) -> None:
        """Nothing is held back here."""

    def close(self) -> None:
        """The file below goes on."""

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False


class RowGroupWriter:
    """Encodes row groups at the end of an open file.

    Args:
        sink: the file, which has its magic already.
        schema: of the rows (Arrow).
        settings: codec, level, dictionaries.
    """

    def __init__(self, sink: OutputFile, schema: pa.Schema, settings: BaseFileSettings) -> None:
        self._pass = _Pass(sink)
        self._shift = sink.tell() - len(MAGIC)
        plain = (RECORD_KEY, COMMIT_SEQNO)  # no two alike: a dictionary of them is built for nothing
        self._writer = pq.ParquetWriter(
            self._pass,
            schema,
            compression=settings.codec,
            compression_level=settings.codec_level,
            use_dictionary=[
                f.name for f in schema if f.name not in plain and (settings.dictionary or f.name in META_COLUMNS)
            ],
            store_schema=False,
        )

    def write(self, rows: pa.Table, parts: int = 1) -> None:
        """Writes rows as that many row groups of about the same size."""
        self._writer.write_table(rows, row_group_size=-(-len(rows) // parts))

    def finish(self) -> tuple[list[Struct], Footer]:
        """The row groups written, their offsets those in the file, and the footer Arrow would have written."""
        self._pass.end_rows()
        self._writer.close()
        footer = decode_footer(self._pass.footer)
        return [moved_group(group, self._shift) for group in footer.row_groups], footer


class _Nowhere:
    def write(self, data: Any) -> None:
        """Forgets it."""

    def tell(self) -> int:
        return len(MAGIC)

    def close(self) -> None:
        """Nothing is open."""


@lru_cache(maxsize=16)
def empty_footer(schema: pa.Schema, settings: BaseFileSettings) -> Footer:
    """The footer of a file of that schema without rows: how our writer spells schema trees today."""
    return RowGroupWriter(_Nowhere(), schema, settings).finish()[1]
