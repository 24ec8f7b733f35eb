"""Row groups into a file that somebody else began: Arrow encodes, we place.

Arrow's writer believes that it writes a whole file. Its magic at the start and its footer at the end are
kept back; what it says about places is moved to where the bytes really are.
"""

from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from table.files.parquet.dictionary_choice import DICTIONARY_BYTES, columns_with_dictionary
from table.files.parquet.footer import MAGIC, TAIL_BYTES, Footer, decode_footer
from table.files.parquet.row_groups import moved_group, with_bounds
from table.files.parquet.thrift_compact import Struct
from table.files.parquet.value_bounds import Extremes, Path, as_bounds, long_extremes
from table.options.groups import BaseFileSettings
from table.schema.avro_schema import COMMIT_SEQNO, META_COLUMNS, RECORD_KEY
from table.storage.interface import OutputFile

_MOST_GROUP_ROWS = 64 * 1024 * 1024  # Arrow cuts larger row groups
_NEVER_REPEATED = (RECORD_KEY, COMMIT_SEQNO)


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
        self._schema, self._settings = schema, settings
        self._writer: pq.ParquetWriter | None = None
        self._extremes: list[dict[Path, Extremes]] = []  # of the row groups, where Arrow may leave out a bound

    def write(self, rows: pa.Table, parts: int = 1) -> None:
        """Writes rows as that many row groups of about the same size; the first ones tell what gets a dictionary."""
        if self._writer is None:
            self._writer = self._open(_with_dictionary(rows, parts, self._settings))
        group_rows = min(-(-len(rows) // parts), _MOST_GROUP_ROWS)
        self._writer.write_table(rows, row_group_size=group_rows)
        self._extremes += long_extremes(rows, group_rows)

    def _open(self, with_dictionary: list[str]) -> pq.ParquetWriter:
        return pq.ParquetWriter(
            self._pass,
            self._schema,
            compression=self._settings.codec,
            compression_level=self._settings.level,
            use_dictionary=with_dictionary,
            dictionary_pagesize_limit=DICTIONARY_BYTES,
            store_schema=False,
        )

    def finish(self) -> tuple[list[Struct], Footer]:
        """The row groups written, their offsets those in the file, and the footer Arrow would have written."""
        writer = self._writer or self._open([])
        self._pass.end_rows()
        writer.close()
        footer = decode_footer(self._pass.footer)
        groups = [moved_group(group, self._shift) for group in footer.row_groups]
        bounded = [
            with_bounds(group, as_bounds(extremes)) if extremes else group
            for group, extremes in zip(groups, self._extremes, strict=True)
        ]
        return bounded, footer


def _with_dictionary(rows: pa.Table, parts: int, settings: BaseFileSettings) -> list[str]:
    allowed = [name for name in rows.column_names if settings.dictionary or name in META_COLUMNS]
    return columns_with_dictionary(rows.select([name for name in allowed if name not in _NEVER_REPEATED]), parts)


class _Nowhere:
    """A file of which only the length is kept."""

    def __init__(self) -> None:
        self._length = len(MAGIC)

    def write(self, data: Any) -> None:
        self._length += len(data)

    def tell(self) -> int:
        return self._length

    def close(self) -> None:
        """Nothing is open."""


@lru_cache(maxsize=16)
def empty_footer(schema: pa.Schema, settings: BaseFileSettings) -> Footer:
    """The footer of a file of that schema without rows: how our writer spells schema trees today."""
    return RowGroupWriter(_Nowhere(), schema, settings).finish()[1]


def encoded_bytes(rows: pa.Table, settings: BaseFileSettings) -> int:
    """Bytes that rows take as one row group of a file, its footer left out."""
    sink = _Nowhere()
    writer = RowGroupWriter(sink, rows.schema, settings)
    writer.write(rows)
    writer.finish()
    return sink.tell() - len(MAGIC)
